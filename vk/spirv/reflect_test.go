package spirv

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEntryPointsListOnlyWhatTheyReach(t *testing.T) {
	fill, count := entryPoint(t, "entries.spv", "fill"), entryPoint(t, "entries.spv", "count")

	wantFill := []Binding{{Binding: 0, Name: "a", Kind: StorageBuffer, Written: true, WriteOnly: true, Stride: 4, Count: 1}}
	if diff := cmp.Diff(wantFill, fill.Bindings); diff != "" {
		t.Error("fill", diff)
	}
	wantCount := []Binding{{Binding: 1, Name: "b", Kind: StorageBuffer, Read: true, ReadOnly: true, Stride: 4, Count: 1}}
	if diff := cmp.Diff(wantCount, count.Bindings); diff != "" {
		t.Error("count", diff)
	}
	if fill.PushConstants != nil || count.PushConstants == nil || count.PushConstants.Members[0].Name != "n" {
		t.Errorf("push constants of fill %v, of count %v", fill.PushConstants, count.PushConstants)
	}
	if fill.UsesNumWorkgroups || !count.UsesNumWorkgroups {
		t.Errorf("NumWorkgroups used by fill %v, by count %v", fill.UsesNumWorkgroups, count.UsesNumWorkgroups)
	}
	if fill.LocalSize != [3]uint32{32, 1, 1} || count.LocalSize != [3]uint32{8, 8, 1} {
		t.Errorf("local sizes %v and %v", fill.LocalSize, count.LocalSize)
	}
}

func TestNumWorkgroupsIsFoundInCalledFunction(t *testing.T) {
	if !entryPoint(t, "numworkgroups.spv", "main").UsesNumWorkgroups {
		t.Error("not found")
	}
	if entryPoint(t, "saxpy.spv", "main").UsesNumWorkgroups {
		t.Error("found where it is not used")
	}
}

func TestEntryPointRefusals(t *testing.T) {
	modules := testModules(t)
	tests := []struct{ file, name, want string }{
		{"entries.spv", "paint", `entry point "paint" has execution model Fragment, not GLCompute`},
		{"entries.spv", "absent", `"absent": the module has "fill", "count", "paint" (Fragment), "fill" (Fragment)`},
		{"triangle.spv", "main", `entry point "main" has execution model Vertex, not GLCompute`},
		{"saxpy.spv", "", `"": the module has "main"`},
	}
	for _, test := range tests {
		m, err := Parse(modules[test.file])
		if err != nil {
			t.Fatal(err)
		}
		e, err := m.EntryPoint(test.name)
		if !errors.Is(err, ErrEntryPoint) || e != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: %v, %v; want %s", test.file, test.name, e, err, test.want)
		}
	}
	m, err := Parse(assemble(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.EntryPoint("main"); err == nil || !strings.Contains(err.Error(), "no entry points") {
		t.Errorf("empty module: %v", err)
	}
}

func TestRefusalListsFewOfManyNames(t *testing.T) {
	m := &Module{EntryPoints: make([]EntryPoint, 20)}
	for i := range m.EntryPoints {
		m.EntryPoints[i] = EntryPoint{Name: strings.Repeat(string(rune('a'+i)), 1000), Model: ModelGLCompute}
	}
	_, err := m.EntryPoint("absent")
	if err == nil || !strings.HasSuffix(err.Error(), " and 4 more") || len(err.Error()) > 2000 {
		t.Error(err)
	}
}

func TestModuleNamesWhatItDeclares(t *testing.T) {
	modules := testModules(t)
	m, err := Parse(modules["pointers.spv"])
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != 0x00010400 {
		t.Errorf("Version %#x", m.Version)
	}
	if diff := cmp.Diff([]Capability{CapabilityShader, CapabilityVariablePointers, CapabilityGenericPointer}, m.Capabilities); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SPV_KHR_non_semantic_info"}, m.Extensions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Block{Name: "Push", Size: 8, Members: []Member{
		{Name: "a", Size: 4, Kind: ScalarFloat, Width: 4, Components: 1},
		{Name: "n", Offset: 4, Size: 4, Kind: ScalarUint, Width: 4, Components: 1},
	}}, entryPoint(t, "saxpy.spv", "main").PushConstants); diff != "" {
		t.Error(diff)
	}
}

func TestEntryPointsShareOneFunction(t *testing.T) {
	s := storageBuffer()
	s.modes = [][]uint32{
		op(opEntryPoint, text("again", uint32(ModelGLCompute), idMain)...),
		op(opExecutionMode, idMain, modeLocalSize, 4, 2, 1),
	}
	s.body = [][]uint32{op(opArrayLength, idUint, 40, idVariable, 0)}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.EntryPoints[0], m.EntryPoints[1]
	if a.Name != "main" || b.Name != "again" || len(b.Bindings) != 1 || a.LocalSize != b.LocalSize {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestUnknownInstructionsCountAsAccess(t *testing.T) {
	const unknown = 7777
	s := storageBuffer()
	s.body = [][]uint32{
		op(unknown, idUint, 40, 42), // refers to a later pointer, as OpPhi may
		op(unknown, idUint, 41, 3),
		op(opAccessChain, idUintPointer, 42, idVariable, idZero, 41), // only the unknown instruction defines 41
	}
	m, err := Parse(s.encode())
	if err != nil {
		t.Fatal(err)
	}
	if b := m.EntryPoints[0].Bindings[0]; !b.Read || !b.Written {
		t.Errorf("%+v is not read and written", b)
	}
}

func TestUnusedBindingNeedsNoDescriptor(t *testing.T) {
	s := storageBuffer()
	s.annotations = s.annotations[:3]
	m, err := Parse(s.encode())
	if err != nil {
		t.Error(err)
	}
	if len(m.Descriptors) != 0 {
		t.Errorf("descriptors %v", m.Descriptors)
	}
	s.body = [][]uint32{op(opArrayLength, idUint, 40, idVariable, 0)}
	_, err = Parse(s.encode())
	wantError(t, err, `OpVariable: StorageBuffer variable %14 "" has no DescriptorSet and Binding`)
}

// A variable that nothing uses is a descriptor of the module, and a binding of no entry point.
func TestModuleNamesUnusedDescriptors(t *testing.T) {
	m, err := Parse(storageBuffer().encode())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Descriptor{{0, 0}}; !slices.Equal(m.Descriptors, want) || len(m.EntryPoints[0].Bindings) != 0 {
		t.Errorf("descriptors %v, bindings %v", m.Descriptors, m.EntryPoints[0].Bindings)
	}
}
