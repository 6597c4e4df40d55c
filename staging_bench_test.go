package vkomp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp"
)

// BenchmarkStagedUpdate updates mapped slices through staging memory, as devices with memory of
// their own need it: one slice of each size, and 64 MiB in slices that one construct updates.
func BenchmarkStagedUpdate(b *testing.B) {
	const most = 1 << 30
	rt, err := vkomp.Open(vkomp.Options{MemoryPath: vkomp.MemoryStaged})
	must(b, err)
	b.Cleanup(func() { must(b, rt.Close()) })
	ctx := context.Background()
	all := noise(most, 1)
	for _, c := range []struct{ slices, bytes int }{
		{1, 64 << 10}, {1, 1 << 20}, {1, 2 << 20}, {1, 4 << 20}, {1, 8 << 20}, {1, 64 << 20}, {1, most}, {64, 1 << 20}, {16, 4 << 20},
	} {
		var enter, to, from []vkomp.Arg
		for i := range c.slices {
			s := all[i*c.bytes:][:c.bytes]
			enter, to, from = append(enter, vkomp.Alloc(s)), append(to, vkomp.To(s)), append(from, vkomp.From(s))
		}
		must(b, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: enter}))
		for _, way := range []struct {
			name    string
			motions []vkomp.Arg
		}{{"to", to}, {"from", from}} {
			b.Run(fmt.Sprintf("%s/%dx%d", way.name, c.slices, c.bytes), func(b *testing.B) {
				b.SetBytes(int64(c.slices * c.bytes))
				b.ReportAllocs()
				must(b, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: way.motions}))
				for b.Loop() {
					if err := rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: way.motions}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		must(b, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: enter}))
	}
}
