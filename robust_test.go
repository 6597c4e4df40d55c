package vkomp_test

import (
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// beyond writes a value to count words, starting at word at of y, even outside of y.
func beyond[T any](t *testing.T, rt *vkomp.Runtime, k vkomp.Kernel, y []T, at int32, count, value uint32) {
	t.Helper()
	must(t, rt.Target(t.Context(), vkomp.Target{
		Kernel: k, Range: vkomp.Range{X: int(count)},
		Args: []vkomp.Arg{vkomp.Alloc(y), vkomp.Value(uint32(at)), vkomp.Value(count), vkomp.Value(value)},
	}))
}

// With Robust a kernel that exceeds its argument cannot access other mappings, whatever the device
// supports. Devices with robustBufferAccess2, and software drivers without it, confine kernels to
// each binding even without Robust. TestOwnBuffers of package sched checks what Robust changes
// where only a VkBuffer confines kernels.
func TestRobustKeepsKernelsOutOfOtherMappings(t *testing.T) {
	for _, m := range memoryModes[:2] {
		t.Run(m.name, func(t *testing.T) {
			rt := vktest.Open(t, m.option, func(o *vkomp.Options) { o.Robust = true })
			ctx := t.Context()
			k, err := rt.NewKernel(vkomp.KernelSource{Name: "beyond", SPIRV: beyondSPIRV})
			must(t, err)
			for _, words := range []int{1, 64, 100, 1 << 14} {
				const far = 1 << 14
				mapped := make([][]uint32, 3)
				var maps, motions, release []vkomp.Arg
				for i := range mapped {
					mapped[i] = make([]uint32, words)
					maps = append(maps, vkomp.To(mapped[i]))
					motions = append(motions, vkomp.From(mapped[i]))
					release = append(release, vkomp.Release(mapped[i]))
				}
				must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: maps}))
				beyond(t, rt, k, mapped[1], 0, uint32(words), 7)
				beyond(t, rt, k, mapped[1], int32(words), far, 0x666)
				beyond(t, rt, k, mapped[1], -far, far, 0x777)
				must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: motions}))
				for i, s := range mapped {
					want := [...]uint32{0, 7, 0}[i]
					for at, v := range s {
						if v != want {
							t.Fatalf("%d words each: word %d of slice %d is %#x, want %#x", words, at, i, v, want)
						}
					}
				}
				must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: release}))
			}
		})
	}
}

// The binding of a section ends where the section does. It includes the rest of the last word only
// if that is not other data.
func TestBindingOfBytesLeavesTheirNeighboursAlone(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	k, err := rt.NewKernel(vkomp.KernelSource{Name: "beyond", SPIRV: beyondSPIRV})
	must(t, err)
	// A device may count a whole word as bound (robustStorageBufferAccessSizeAlignment is 1 or 4
	// bytes); software drivers count bytes.
	bound := 4
	if rt.DefaultDevice(ctx).Info().Type == "software" {
		bound = 1
	}
	bytes := make([]byte, 61)
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(bytes)}}))
	beyond(t, rt, k, bytes[:1], 0, 1, 0x01010101)
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(bytes)}}))
	for i, v := range bytes {
		if i >= bound && v != 0 {
			t.Errorf("byte %d, which the kernel has no argument for, is %#x", i, v)
		}
	}
	// The last word ends with the mapping.
	beyond(t, rt, k, bytes, 0, 16, 0x02020202)
	must(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(bytes)}}))
	for i, v := range bytes {
		if v != 2 {
			t.Errorf("byte %d is %#x, want 2", i, v)
		}
	}
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(bytes)}}))
}
