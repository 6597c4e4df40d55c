package sched

import (
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

func TestLaunchThatDoesNotFitIsRefused(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(8, 0)
	large := array32(1 << 20)
	r.d.props.Limits.MaxStorageBufferRange = 1 << 20
	for _, c := range []struct {
		name, want string
		region     *Region
	}{
		{"too few slices", "binding 2", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"too many slices", "no binding 2", r.region(launch{kernel: "mix", args: []arg{from(x), to(x), to(x)}})},
		{"too few values", "[n (uint, 4 bytes) c (uint, 4 bytes)]", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"value of the wrong size", "value 1 is 2 bytes", r.region(launch{kernel: "set", args: []arg{from(x)}})},
		{"slice beyond the device", "maxStorageBufferRange", r.region(launch{kernel: "set", args: []arg{from(large)}})},
	} {
		g := c.region
		g.Label = c.name
		switch c.name {
		case "too few slices":
			g.Kernel = r.kernels["mix"]
		case "too many slices":
			g.Kernel = r.kernels["set"]
		case "too few values":
			g.Values = g.Values[:1]
		case "value of the wrong size":
			g.Values[1] = g.Values[1][:2]
		}
		err := r.s.Run(t.Context(), g)
		if !errors.Is(err, kernel.ErrInvalidLaunch) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if n := r.graph.Counts().Tasks; n != 0 {
		t.Errorf("%d tasks were made", n)
	}
}

// Of memory up to its end a binding gets as much as the device can bind.
func TestPointerToMoreMemoryThanTheDeviceBinds(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		const bound = 1 << 12
		r.d.props.Limits.MaxStorageBufferRange = bound
		p := r.allocate(bound)
		l := launch{label: "set", kernel: "set", args: []arg{{at: p, s: array32(16), toEnd: true}}, constant: 3, included: true}
		r.run(l)
		got, want := array32(16), array32(16)
		for i := range want {
			want[i] = 3 + uint32(i)
		}
		r.transfer(launch{label: "back", included: true}, toHost(got, p))
		r.expect("the memory", got, want...)
		l.args[0].toEnd, l.args[0].s = false, array32(bound)
		if err := r.s.Run(t.Context(), r.region(l)); !errors.Is(err, kernel.ErrInvalidLaunch) || !strings.Contains(err.Error(), "maxStorageBufferRange") {
			t.Errorf("all of the memory: %v", err)
		}
		r.free(p)
	})
}

func TestKernelBeyondTheDeviceIsRefused(t *testing.T) {
	for name, narrow := range map[string]func(*vk.Limits){
		"workgroup of 4×1×1":      func(l *vk.Limits) { l.MaxComputeWorkGroupSize[0] = 2 },
		"4 invocations":           func(l *vk.Limits) { l.MaxComputeWorkGroupInvocations = 3 },
		"20 bytes of push const…": func(l *vk.Limits) { l.MaxPushConstantsSize = 16 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[0], 1)
			defer r.close()
			r.kernels["mix"] = loadKernel(t, "mix")
			narrow(&r.d.props.Limits)
			x := filled(8, 0)
			err := r.s.Run(t.Context(), r.region(launch{label: "mix", kernel: "mix", args: []arg{from(x), to(x), to(x)}}))
			want, _ := strings.CutSuffix(name, "…")
			if !errors.Is(err, vk.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
