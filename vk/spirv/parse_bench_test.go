package spirv

import "testing"

func BenchmarkParse(b *testing.B) {
	modules := testModules(b)
	for _, file := range []string{"saxpy.spv", "access.spv", "layout.spv"} {
		code := modules[file]
		b.Run(file, func(b *testing.B) {
			b.SetBytes(int64(len(code)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(code); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWorkgroupSize(b *testing.B) {
	e := entryPoint(b, "workgroupsize.spv", "main")
	spec := map[uint32]uint32{0: 5, 1: 20}
	b.ReportAllocs()
	for b.Loop() {
		if e.WorkgroupSize(spec) != [3]uint32{21, 20, 50} {
			b.Fatal(e.WorkgroupSize(spec))
		}
	}
}
