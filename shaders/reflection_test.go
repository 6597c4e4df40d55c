package shaders

import (
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/vk/spirv"
)

// access is how a shader declares that it uses a binding.
type access string

const (
	reads      access = "reads"
	writes     access = "writes"
	readWrites access = "reads and writes"
)

type binding struct {
	Stride uint32
	Access access
}

type member struct {
	Name  string
	Kind  spirv.ScalarKind
	Bytes uint32
}

// shipped is a kernel as its shader declares it, and the region that its wrapper
// makes.
type shipped struct {
	source   vkomp.KernelSource
	target   vkomp.Target
	err      error
	bindings []binding
	values   []member // in order, without the offsets
	args     []vkomp.Arg
	launch   vkomp.Range
}

func everyKernel() []shipped {
	var (
		k        vkomp.Kernel
		f, g     = make([]float32, 35), make([]float32, 35)
		u, v     = make([]uint32, 35), make([]uint32, 35)
		p, q     = make([]Pixel, 35), make([]Pixel, 35)
		long     = make([]float32, 5000)
		weights  = []float32{0.5, 0.25, 0}
		tile     = Tile{Width: 5, Height: 7, Y0: 3, Y1: 6}
		near     = tile.Grow(1) // rows 2 to 7
		far      = tile.Grow(2) // rows 1 to 7
		uintOf   = func(name string) member { return member{name, spirv.ScalarUint, 4} }
		floatOf  = func(name string) member { return member{name, spirv.ScalarFloat, 4} }
		shape    = []member{uintOf("width"), uintOf("rows")}
		window   = append(shape[:2:2], uintOf("first"), uintOf("source_rows"))
		value    = func(n uint32) vkomp.Arg { return vkomp.Value(n) }
		fraction = func(x float32) vkomp.Arg { return vkomp.Value(x) }
	)
	all := []shipped{
		{
			source:   Saxpy,
			bindings: []binding{{4, reads}, {4, readWrites}},
			values:   []member{uintOf("n"), floatOf("a")},
			args:     []vkomp.Arg{vkomp.To(f), vkomp.ToFrom(g), value(35), fraction(2)},
			launch:   vkomp.Range{X: 35},
		},
		{
			source:   Reduce,
			bindings: []binding{{4, reads}, {4, writes}},
			values:   []member{uintOf("n")},
			args:     []vkomp.Arg{vkomp.To(long), vkomp.From(g[:3]), value(5000)},
			launch:   vkomp.Range{X: 3 * 128},
		},
		{
			source:   Heat,
			bindings: []binding{{4, reads}, {4, writes}},
			values:   append(window[:4:4], floatOf("alpha")),
			args:     []vkomp.Arg{vkomp.To(f[10:35]), vkomp.From(g[15:30]), value(5), value(3), value(1), value(5), fraction(0.25)},
			launch:   vkomp.Range{X: 5, Y: 3},
		},
		{
			source:   Grayscale,
			bindings: []binding{{4, reads}, {4, writes}},
			values:   []member{uintOf("n")},
			args:     []vkomp.Arg{vkomp.To(u), vkomp.From(v), value(35)},
			launch:   vkomp.Range{X: 35},
		},
		{
			source:   BlurRows,
			bindings: []binding{{4, reads}, {4, reads}, {16, writes}},
			values:   append(shape[:2:2], uintOf("radius")),
			args:     []vkomp.Arg{vkomp.To(weights), vkomp.To(u[15:30]), vkomp.From(p[15:30]), value(5), value(3), value(2)},
			launch:   vkomp.Range{X: 5, Y: 3},
		},
		{
			source:   BlurColumns,
			bindings: []binding{{4, reads}, {16, reads}, {16, writes}},
			values:   append(window[:4:4], uintOf("radius")),
			args:     []vkomp.Arg{vkomp.To(weights), vkomp.To(p[5:35]), vkomp.From(q[15:30]), value(5), value(3), value(2), value(6), value(2)},
			launch:   vkomp.Range{X: 5, Y: 3},
		},
		{
			source:   Sobel,
			bindings: []binding{{16, reads}, {4, writes}},
			values:   window,
			args:     []vkomp.Arg{vkomp.To(p[10:35]), vkomp.From(f[15:30]), value(5), value(3), value(1), value(5)},
			launch:   vkomp.Range{X: 5, Y: 3},
		},
		{
			source:   Blend,
			bindings: []binding{{4, reads}, {16, reads}, {4, reads}, {4, writes}},
			values:   []member{uintOf("n"), floatOf("mix_original"), floatOf("mix_blurred"), floatOf("mix_edges")},
			args:     []vkomp.Arg{vkomp.To(u), vkomp.To(p), vkomp.To(f), vkomp.From(v), value(35), fraction(1), fraction(2), fraction(3)},
			launch:   vkomp.Range{X: 35},
		},
	}
	made := func(n int) func(vkomp.Target, error) {
		return func(t vkomp.Target, err error) { all[n].target, all[n].err = t, err }
	}
	made(0)(SaxpyTarget(k, 2, f, g))
	made(1)(ReduceTarget(k, long, g[:3]))
	made(2)(HeatTarget(k, tile, 0.25, Rows(f, near), Rows(g, tile)))
	made(3)(GrayscaleTarget(k, u, v))
	made(4)(BlurRowsTarget(k, tile, weights, Rows(u, tile), Rows(p, tile)))
	made(5)(BlurColumnsTarget(k, tile, weights, Rows(p, far), Rows(q, tile)))
	made(6)(SobelTarget(k, tile, Rows(p, near), Rows(f, tile)))
	made(7)(BlendTarget(k, Mix{1, 2, 3}, u, p, f, v))
	return all
}

func TestShadersDeclareWhatTheirWrappersPass(t *testing.T) {
	for _, c := range everyKernel() {
		t.Run(c.source.Name, func(t *testing.T) {
			if c.err != nil {
				t.Fatal(c.err)
			}
			if !reflect.DeepEqual(c.target.Args, c.args) {
				t.Errorf("arguments are\n%+v, want\n%+v", c.target.Args, c.args)
			}
			if c.target.Range != c.launch {
				t.Errorf("range is %+v, want %+v", c.target.Range, c.launch)
			}
			if want := len(c.bindings) + len(c.values); len(c.args) != want {
				t.Errorf("%d arguments for %d bindings and values", len(c.args), want)
			}

			entry := entryPoint(t, c.source)
			var bindings []binding
			for i, b := range entry.Bindings {
				if b.Set != 0 || b.Binding != uint32(i) || b.Kind != spirv.StorageBuffer || b.Count != 1 {
					t.Errorf("binding %d: set %d, binding %d, %v, %d descriptors", i, b.Set, b.Binding, b.Kind, b.Count)
				}
				bindings = append(bindings, binding{b.Stride, declared(b)})
			}
			if diff := cmp.Diff(c.bindings, bindings); diff != "" {
				t.Errorf("bindings:\n%s", diff)
			}

			if entry.PushConstants == nil {
				t.Fatal("no push constants")
			}
			var values []member
			offsets := map[string]int{}
			for _, m := range entry.PushConstants.Members {
				if suffix, ok := strings.CutPrefix(m.Name, "vkomp_offset_"); ok {
					offsets[suffix]++
					if m.Kind != spirv.ScalarUint || m.Size != 4 {
						t.Errorf("%s is %v of %d bytes", m.Name, m.Kind, m.Size)
					}
					continue
				}
				values = append(values, member{m.Name, m.Kind, m.Size})
			}
			if diff := cmp.Diff(c.values, values); diff != "" {
				t.Errorf("values:\n%s", diff)
			}
			wantOffsets := map[string]int{}
			for i := range c.bindings {
				wantOffsets[strconv.Itoa(i)] = 1
			}
			if diff := cmp.Diff(wantOffsets, offsets); diff != "" {
				t.Errorf("offset members:\n%s", diff)
			}
		})
	}
}

// Every Vulkan device supports 128 bytes of push constants and workgroups of 128
// invocations. A runtime that launches a range in parts changes the number of
// workgroups.
func TestShadersRunOnEveryDevice(t *testing.T) {
	for _, c := range everyKernel() {
		entry := entryPoint(t, c.source)
		if size := entry.PushConstants.Size; size > 128 {
			t.Errorf("%s: %d bytes of push constants", c.source.Name, size)
		}
		group := entry.WorkgroupSize(nil)
		if n := group[0] * group[1] * group[2]; n == 0 || n > 128 {
			t.Errorf("%s: workgroups of %v", c.source.Name, group)
		}
		if entry.UsesNumWorkgroups {
			t.Errorf("%s depends on the number of workgroups", c.source.Name)
		}
	}
	if group := entryPoint(t, Reduce).WorkgroupSize(nil); group != [3]uint32{reduceLanes, 1, 1} {
		t.Errorf("reduce: workgroups of %v, the wrapper launches %d invocations each", group, reduceLanes)
	}
}

func declared(b spirv.Binding) access {
	switch {
	case b.NonWritable && !b.NonReadable:
		return reads
	case b.NonReadable && !b.NonWritable:
		return writes
	case !b.NonReadable && !b.NonWritable:
		return readWrites
	}
	return "does nothing"
}

func entryPoint(t *testing.T, source vkomp.KernelSource) *spirv.EntryPoint {
	t.Helper()
	module, err := spirv.Parse(source.SPIRV)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := module.EntryPoint("main")
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// A device may fuse a product and a sum into one rounding unless the shader
// forbids it, and software drivers, which do not, would not show it.
func TestShadersForbidFusing(t *testing.T) {
	const (
		opDecorate          = 71
		opFAdd              = 129
		opFSub              = 131
		opFMul              = 133
		opVectorTimesScalar = 142
		noContraction       = 42
		headerWords         = 5
	)
	for _, c := range everyKernel() {
		module, err := spirv.Parse(c.source.SPIRV)
		if err != nil {
			t.Fatal(err)
		}
		exact := map[uint32]bool{}
		arithmetic := 0
		// Each instruction is its length and opcode in one word, then operands.
		for words := module.Words[headerWords:]; len(words) > 0; words = words[words[0]>>16:] {
			switch words[0] & 0xffff {
			case opDecorate:
				if words[2] == noContraction {
					exact[words[1]] = true
				}
			case opFAdd, opFSub, opFMul, opVectorTimesScalar:
				arithmetic++
				if result := words[2]; !exact[result] {
					t.Errorf("%s: the arithmetic instruction with result %%%d may be fused", c.source.Name, result)
				}
			}
		}
		if arithmetic == 0 && c.source.Name != Grayscale.Name {
			t.Errorf("%s: no arithmetic instruction seen", c.source.Name)
		}
	}
}
