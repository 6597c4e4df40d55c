package spirv

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAccessIsDeducedFromInstructions(t *testing.T) {
	buffer := func(binding uint32, name string, b Binding) Binding {
		b.Binding, b.Name, b.Kind, b.Count = binding, name, StorageBuffer, 1
		return b
	}
	want := []Binding{
		buffer(0, "Read", Binding{Read: true, ReadOnly: true, Stride: 4}),
		buffer(1, "Write", Binding{Written: true, WriteOnly: true, Stride: 4}),
		buffer(2, "Atomic", Binding{Read: true, Written: true, Stride: 4}),
		buffer(3, "DeclaredRead", Binding{Read: true, NonWritable: true, ReadOnly: true, Stride: 4}),
		buffer(4, "DeclaredWrite", Binding{Written: true, NonReadable: true, WriteOnly: true, Stride: 4}),
		buffer(5, "LengthOnly", Binding{ReadOnly: true, WriteOnly: true, Stride: 4}),
		buffer(6, "mixed", Binding{Read: true, Written: true, Stride: 4, MinSize: 4}),
		buffer(7, "AtomicLoadOnly", Binding{Read: true, ReadOnly: true, MinSize: 4}),
		buffer(8, "AtomicStoreOnly", Binding{Written: true, WriteOnly: true, MinSize: 4}),
	}
	if diff := cmp.Diff(want, entryPoint(t, "access.spv", "main").Bindings); diff != "" {
		t.Error(diff)
	}
}

func TestPointersAreFollowedToTheirVariable(t *testing.T) {
	bindings := entryPoint(t, "pointers.spv", "main").Bindings
	if len(bindings) != 14 {
		t.Errorf("%d bindings, want 14", len(bindings))
	}
	for _, b := range bindings {
		_, want, _ := strings.Cut(b.Name, ".")
		got := map[[2]bool]string{{true, false}: "r", {false, true}: "w", {true, true}: "rw", {false, false}: "n"}[[2]bool{b.Read, b.Written}]
		if got != want {
			t.Errorf("binding %d %s: %s", b.Binding, b.Name, got)
		}
		if b.ReadOnly == b.Written || b.WriteOnly == b.Read {
			t.Errorf("binding %d %s: ReadOnly %v, WriteOnly %v", b.Binding, b.Name, b.ReadOnly, b.WriteOnly)
		}
	}
}

func TestDescriptorKinds(t *testing.T) {
	want := []Binding{
		{Set: 0, Binding: 0, Name: "written", Kind: StorageImage, Written: true, WriteOnly: true, Count: 1},
		{Set: 0, Binding: 1, Name: "read", Kind: StorageImage, Read: true, ReadOnly: true, Count: 1},
		{Set: 0, Binding: 2, Name: "counted", Kind: StorageImage, Read: true, Written: true, Count: 1},
		{Set: 0, Binding: 3, Name: "combined", Kind: CombinedImageSampler, Read: true, ReadOnly: true, Count: 1},
		{Set: 0, Binding: 4, Name: "separate", Kind: SampledImage, Read: true, ReadOnly: true, Count: 1},
		{Set: 0, Binding: 5, Name: "separateSampler", Kind: Sampler, Read: true, ReadOnly: true, Count: 1},
		{Set: 0, Binding: 6, Name: "storageTexels", Kind: StorageTexelBuffer, Written: true, WriteOnly: true, Count: 1},
		{Set: 0, Binding: 7, Name: "uniformTexels", Kind: UniformTexelBuffer, Read: true, ReadOnly: true, Count: 1},
		{Set: 0, Binding: 8, Name: "sized", Kind: StorageImage, ReadOnly: true, WriteOnly: true, Count: 1},
		{Set: 1, Binding: 0, Name: "several", Kind: StorageBuffer, Written: true, WriteOnly: true, MinSize: 4, Count: 6},
		{Set: 1, Binding: 1, Name: "unbounded", Kind: StorageBuffer, Read: true, ReadOnly: true, Stride: 4, Count: 0},
		{Set: 2, Binding: 0, Name: "uniformBlock", Kind: UniformBuffer, Read: true, ReadOnly: true, MinSize: 4, Count: 1},
	}
	if diff := cmp.Diff(want, entryPoint(t, "descriptors.spv", "main").Bindings); diff != "" {
		t.Error(diff)
	}
}

func TestOldStyleBuffersAndDecorationGroups(t *testing.T) {
	e := entryPoint(t, "groups.spv", "main")
	want := []Binding{
		{Set: 2, Binding: 0, Name: "in", Kind: StorageBuffer, Read: true, NonWritable: true, ReadOnly: true, Stride: 4, Count: 1},
		{Set: 2, Binding: 3, Name: "out", Kind: StorageBuffer, Written: true, NonReadable: true, WriteOnly: true, Stride: 4, MinSize: 16, Count: 1},
		{Set: 2, Binding: 5, Name: "scale", Kind: UniformBuffer, Read: true, NonWritable: true, ReadOnly: true, MinSize: 4, Count: 1},
	}
	if diff := cmp.Diff(want, e.Bindings); diff != "" {
		t.Error(diff)
	}
}

func TestViewsOfOneBufferAreOneBinding(t *testing.T) {
	want := []Binding{{Name: "Narrow", Kind: StorageBuffer, Read: true, Written: true, MinSize: 16, Count: 1}}
	if diff := cmp.Diff(want, entryPoint(t, "views.spv", "main").Bindings); diff != "" {
		t.Error(diff)
	}
}

// TestViewsOfOneBindingUnite covers cases that no installed compiler emits: an image and a
// sampler with a combined descriptor, and arrays of different lengths.
func TestViewsOfOneBindingUnite(t *testing.T) {
	tests := []struct {
		name  string
		a, b  Binding
		want  Binding
		clash bool
	}{
		{
			name: "image and sampler",
			a:    Binding{Kind: SampledImage, Read: true, ReadOnly: true, Count: 1},
			b:    Binding{Name: "s", Kind: Sampler, Read: true, ReadOnly: true, Count: 1},
			want: Binding{Name: "s", Kind: CombinedImageSampler, Read: true, ReadOnly: true, Count: 1},
		},
		{
			name: "same stride, other length",
			a:    Binding{Name: "a", Kind: StorageBuffer, Written: true, WriteOnly: true, Stride: 8, Count: 2},
			b:    Binding{Name: "b", Kind: StorageBuffer, NonWritable: true, ReadOnly: true, WriteOnly: true, Stride: 8, Count: 3, MinSize: 12},
			want: Binding{Name: "a", Kind: StorageBuffer, Written: true, WriteOnly: true, Stride: 8, Count: 3, MinSize: 12},
		},
		{
			name: "one without a length",
			a:    Binding{Name: "a", Kind: StorageBuffer, Count: 2},
			b:    Binding{Name: "b", Kind: StorageBuffer, Count: 0},
			want: Binding{Name: "a", Kind: StorageBuffer, Count: 0},
		},
		{
			name:  "buffer and image",
			a:     Binding{Kind: StorageBuffer, Count: 1},
			b:     Binding{Kind: SampledImage, Count: 1},
			clash: true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, order := range [][2]Binding{{test.a, test.b}, {test.b, test.a}} {
				kind, ok := unitedKind(order[0].Kind, order[1].Kind)
				if ok == test.clash {
					t.Fatalf("kinds %v and %v: %v", order[0].Kind, order[1].Kind, ok)
				}
				if test.clash {
					continue
				}
				got := order[0]
				got.Kind = kind
				got.unite(order[1])
				want := test.want
				if order[0].Name != "" {
					want.Name = order[0].Name
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestArraysOfDescriptorsMultiply(t *testing.T) {
	s := storageBuffer()
	s.globals = append(s.globals[:len(s.globals)-1],
		op(opConstant, idUint, 30, 5),
		op(opTypeArray, 31, idStruct, idTwo),
		op(opTypeArray, 32, 31, 30),
		op(opTypePointer, 33, uint32(classStorageBuffer), 32),
		op(opVariable, 33, idVariable, uint32(classStorageBuffer)))
	s.body = [][]uint32{op(opAccessChain, idUintPointer, 40, idVariable, idOne, idZero, idZero, idZero)}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	if got := m.EntryPoints[0].Bindings[0].Count; got != 10 {
		t.Errorf("Count %d, want 10", got)
	}
}

func TestKindsOfOpaqueTypes(t *testing.T) {
	const image, pointer, sampledImage = 50, 51, 52
	imageOf := func(dim, sampled uint32) []uint32 { return op(opTypeImage, image, idUint, dim, 0, 0, 0, sampled, 0) }
	tests := []struct {
		name    string
		globals [][]uint32
		of      uint32
		want    BindingKind
	}{
		{"2D, sampled", [][]uint32{imageOf(1, 1)}, image, SampledImage},
		{"2D, storage", [][]uint32{imageOf(1, 2)}, image, StorageImage},
		{"buffer, sampled", [][]uint32{imageOf(dimBuffer, 1)}, image, UniformTexelBuffer},
		{"buffer, storage", [][]uint32{imageOf(dimBuffer, 2)}, image, StorageTexelBuffer},
		{"subpass", [][]uint32{imageOf(dimSubpassData, 2)}, image, InputAttachment},
		{"combined", [][]uint32{imageOf(1, 1), op(opTypeSampledImage, sampledImage, image)}, sampledImage, CombinedImageSampler},
		{"combined buffer", [][]uint32{imageOf(dimBuffer, 1), op(opTypeSampledImage, sampledImage, image)}, sampledImage, UniformTexelBuffer},
		{"sampler", [][]uint32{op(opTypeSampler, image)}, image, Sampler},
		{"acceleration structure", [][]uint32{op(opTypeAccelerationStructureKHR, image)}, image, AccelerationStructure},
		{"unknown", [][]uint32{op(35, image)}, image, Other}, // OpTypeDeviceEvent
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := shader{
				annotations: storageBuffer().annotations[3:],
				globals: append(test.globals,
					op(opTypePointer, pointer, uint32(classUniformConstant), test.of),
					op(opVariable, pointer, idVariable, uint32(classUniformConstant))),
				body: [][]uint32{op(opLoad, test.of, 60, idVariable)},
			}
			m, err := Parse(s.encode())
			if err != nil {
				t.Fatal(err)
			}
			if b := m.EntryPoints[0].Bindings[0]; b.Kind != test.want || b.Read || b.Written {
				t.Errorf("%+v, want a %v of which only the handle is loaded", b, test.want)
			}
		})
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k := Other; k <= AccelerationStructure; k++ {
		if s := k.String(); s == "" || strings.HasPrefix(s, "BindingKind") {
			t.Errorf("kind %d is %q", uint8(k), s)
		}
	}
	for got, want := range map[string]string{
		StorageBuffer.String():                      "storage buffer",
		AccelerationStructure.String():              "acceleration structure",
		BindingKind(200).String():                   "BindingKind(200)",
		ScalarAddress.String():                      "address",
		ScalarKind(99).String():                     "ScalarKind(99)",
		CapabilityInt64.String():                    "Int64",
		Capability(123456).String():                 "Capability(123456)",
		ModelGLCompute.String():                     "GLCompute",
		ExecutionModel(77).String():                 "ExecutionModel(77)",
		classPhysicalStorageBuffer.String():         "PhysicalStorageBuffer",
		storageClass(4242).String():                 "storage class 4242",
		CapabilityVariablePointers.String():         "VariablePointers",
		CapabilityStorageBuffer16BitAccess.String(): "StorageBuffer16BitAccess",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
