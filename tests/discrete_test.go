package tests

import (
	"errors"
	"slices"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// Numbers of words: the host writes few itself where it writes any, and more than a ring of staging
// memory holds are copied piece by piece.
var (
	fewWords  = []int{1, 64, 100_000}
	manyWords = append(slices.Clone(fewWords), 5<<20)
)

// everyWay brings so many words to the device and back, in every way that there is, and checks all of
// them.
func everyWay(t *testing.T, rt *vkomp.Runtime, words []int) {
	t.Helper()
	ctx := t.Context()
	try := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	k, d := newAffine(t, rt), rt.DefaultDevice(ctx)
	for _, n := range words {
		x, y := repeated(n, 1), repeated(n, 2)
		expect := func(what string, s []uint32, want uint32) {
			t.Helper()
			if i := slices.IndexFunc(s, func(v uint32) bool { return v != want }); i >= 0 {
				t.Fatalf("%s of %d words: word %d is %#x, want %#x", what, n, i, s[i], want)
			}
		}
		try("target", rt.Target(ctx, now(k.on(y, x, 1, 1, 4))))
		expect("the map of a region", y, 7)
		try("enter", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}))
		try("target", rt.Target(ctx, now(k.on(x, y, 1, 1, 0))))
		expect("mapped storage, which the host has as it was,", x, 1)
		try("update", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}}))
		expect("an update to the host", x, 8)
		for i := range x {
			x[i] = 20
		}
		try("update", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}, NoWait: true}))
		try("taskwait", rt.Taskwait(ctx))
		try("target", rt.Target(ctx, now(k.on(x, y, 1, 1, 0))))
		try("exit", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}}))
		expect("the end of a map", x, 27)

		p, err := d.Alloc(ctx, 4*n)
		try("alloc", err)
		q, err := d.Alloc(ctx, 4*n)
		try("alloc", err)
		try("memcpy", rt.Memcpy(ctx, p, vkomp.HostPtr(x), 4*n))
		try("memcpy", rt.Memcpy(ctx, q, p, 4*n))
		try("memcpy", rt.Memcpy(ctx, vkomp.HostPtr(y), q, 4*n))
		expect("a copy over two allocations", y, 27)
		try("memset", d.Memset(ctx, p, 0x5a, 4*n))
		try("memcpy", rt.MemcpyAsync(ctx, vkomp.HostPtr(y), p, 4*n))
		try("taskwait", rt.Taskwait(ctx))
		expect("a fill", y, 0x5a5a5a5a)
		try("free", errors.Join(d.Free(ctx, p), d.Free(ctx, q)))
	}
}

// Memory in the shapes of all profiles, and in shapes that leave something to be desired: everything
// works, if more slowly.
func TestEveryShapeOfMemoryWorks(t *testing.T) {
	vktest.Long(t)
	for _, c := range []struct{ name, profile, variable, value string }{
		{"all of it mapped", "bar", "", ""},
		{"a small window", "smallbar", "", ""},
		{"a window that is smaller than a slice", "smallbar", "VKOMP_DISCRETE_BAR_KIB", "4"},
		{"a window of no bytes", "smallbar", "VKOMP_DISCRETE_BAR_KIB", "0"},
		{"no window", "nobar", "", ""},
		{"nothing that the host caches, and no imports", "nocached", "", ""},
		{"one heap", "integrated", "", ""},
		{"one heap, cached and not coherent", "incoherent", "", ""},
		{"a heap of no bytes", "bar", "VKOMP_DISCRETE_MIB", "0"},
		{"a heap of no bytes and nothing cached", "nocached", "VKOMP_DISCRETE_MIB", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vktest.Discrete(t, c.profile)
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			for _, path := range vktest.Paths {
				words := fewWords
				if path == vkomp.MemoryAuto || path == vkomp.MemoryStaged {
					words = manyWords // the others have the same rings as one of these, or none
				}
				t.Run(path.String(), func(t *testing.T) { everyWay(t, vktest.Open(t, vktest.Path(path)), words) })
			}
		})
	}
}

// A driver that refuses to import host storage gets copies of it. Where the program insists on
// sharing, the error says what cannot be shared.
func TestImportsThatTheDriverRefuses(t *testing.T) {
	vktest.Once(t)
	faults := vktest.InjectFaults(t)
	const command = "vkGetMemoryHostPointerPropertiesEXT"
	for _, path := range []vkomp.MemoryPath{vkomp.MemoryAuto, vkomp.MemoryImported} {
		t.Run(path.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			x := repeated(1<<16, 1)
			share := func() error {
				return rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x).Self()}})
			}
			shares := share() == nil
			if err := rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}}); err != nil {
				t.Fatal(err)
			}
			before := faults.Failed(command)
			faults.Fail(command, 1, -1, vk.ErrorInvalidExternalHandle)
			defer faults.Mend()
			everyWay(t, rt, manyWords)
			if err := share(); !errors.Is(err, vkomp.ErrUnsupported) && !errors.Is(err, vkomp.ErrNotShared) || isPresent(rt, x) {
				t.Errorf("a map with self: %v", err)
			}
			if shares && faults.Failed(command) == before {
				t.Error("the driver was not asked to import anything")
			}
		})
	}
}
