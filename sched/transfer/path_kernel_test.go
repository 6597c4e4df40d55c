package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/vk"
)

// copier gives the rig's device the kernel for copies, which binds at most limit bytes, and returns
// the sizes of its dispatches in bytes.
func (r *rig) copier(limit uint32) (dispatched *[]int) {
	dispatched = new([]int)
	r.soft.Props.Limits.MaxStorageBufferRange = limit
	r.soft.Kernel = func(buffers [][]byte, push []byte, groups uint32) {
		words := int(binary.NativeEndian.Uint32(push))
		if n := len(buffers[0]); n != 4*words || n != len(buffers[1]) || n%vector != 0 {
			r.t.Errorf("%d and %d bytes are bound for %d words", n, len(buffers[1]), words)
		}
		if want := min((words/4+perGroup-1)/perGroup, copyGroups); int(groups) != want {
			r.t.Errorf("%d workgroups for %d words, want %d", groups, words, want)
		}
		copy(buffers[1], buffers[0])
		*dispatched = append(*dispatched, 4*words)
	}
	k, err := CopyKernel()
	if err != nil {
		r.t.Fatal(err)
	}
	o, err := k.PipelineOptions(0, &r.soft.Props)
	if err := errors.Join(err, k.Supported(&r.soft.Props)); err != nil {
		r.t.Fatal(err)
	}
	pipeline := &vk.Pipeline{Handle: 1, Layout: 1, Bindings: uint32(len(o.Bindings)), PushConstants: o.PushConstants}
	r.d.Copier = NewCopier(&r.soft.Props, func() *vk.Pipeline { return pipeline })
	return dispatched
}

// The kernel copies what can be bound, in parts if that is more than can be bound at once, and
// commands copy the bytes before and behind.
func TestKernelCopiesWhatCanBeBound(t *testing.T) {
	const room = 1 << 20
	for _, c := range []struct {
		from, to, size uint64
		limit          uint32
		dispatches     string
	}{
		{0, 0, room, 1 << 27, "[1048576]"},
		{0, 64, 4096, 1 << 27, "[4096]"},
		{4, 68, 4096, 1 << 27, "[4032]"}, // 60 bytes before, 4 behind
		{1, 129, 200, 1 << 27, "[128]"},
		{1, 129, 63, 1 << 27, "[]"},
		{1, 129, 63 + 15, 1 << 27, "[]"},
		{1, 129, 63 + 16, 1 << 27, "[16]"},
		{1, 129, 3, 1 << 27, "[]"},
		{64, 0, 10_000, 4096, "[4096 4096 1808]"},
		{64, 0, 10_007, 4096 + 63, "[4096 4096 1808]"},
		{70, 6, 600_000, 1<<27 - 1, "[599936]"},
	} {
		t.Run(fmt.Sprintf("%d bytes from %d to %d, at most %d", c.size, c.from, c.to, c.limit), func(t *testing.T) {
			r := newRig(t, modes[1])
			dispatched := r.copier(c.limit)
			source, result := make([]byte, room), make([]byte, room)
			for i := range source {
				source[i] = byte(i*7 + i>>8)
			}
			a, b := r.device(room), r.device(room)
			r.along(&stagingIn, &Transfer{Kind: CopyToDevice, Host: section(source), Dst: a, Size: room})
			r.along(&deviceFill, &Transfer{Kind: Fill, Dst: b, Size: room, value: 0xEE})
			r.along(&kernelCopy, &Transfer{Kind: CopyWithin, Dst: b, DstAt: c.to, Src: a, SrcAt: c.from, Size: c.size})
			r.along(&stagingOut, &Transfer{Kind: CopyToHost, Host: section(result), Src: b, Size: room})
			for i, got := range result {
				want := byte(0xEE)
				if at := uint64(i) - c.to; uint64(i) >= c.to && at < c.size {
					want = source[c.from+at]
				}
				if got != want {
					t.Fatalf("byte %d is %#x, want %#x", i, got, want)
				}
			}
			if got := fmt.Sprint(*dispatched); got != c.dispatches {
				t.Errorf("dispatches of %s bytes, want %s", got, c.dispatches)
			}
		})
	}
}

// On a queue that runs no kernels commands copy.
func TestCommandsCopyWhereTheKernelCannot(t *testing.T) {
	r := newRig(t, modes[1])
	dispatched := r.copier(1 << 27)
	a, b := r.device(4096), r.device(4096)
	x := &Transfer{Kind: CopyWithin, Dst: b, Src: a, Size: 4096}
	rec := recorder{copier: r.d.Copier, stage: vk.StageTransfer}
	err := r.submit(func(stream *vk.Stream) {
		rec.stream = stream
		kernelCopy.record(&rec, x)
	})
	if err != nil || rec.inner != 1 || rec.within != 4096 || rec.stage != vk.StageTransfer || len(*dispatched) > 0 {
		t.Errorf("%v, %d commands of %d bytes, %d dispatches", err, rec.inner, rec.within, len(*dispatched))
	}
}

func TestKernelTakesLargeCopiesThatAreAligned(t *testing.T) {
	r := newRig(t, modes[1])
	r.copier(1 << 27)
	const most = 1 << 20
	p := &allocation.Profile{KernelCopies: most / 2}
	a, b := r.device(most), r.device(most)
	if a.Offset%64 != 0 || b.Offset%64 != 0 {
		t.Fatalf("allocations at %d and %d", a.Offset, b.Offset)
	}
	shared := &allocation.Allocation{Shared: true}
	registered := &allocation.Allocation{Origin: allocation.Registered}
	external := &allocation.Allocation{External: &vk.Block{Buffer: 5}}
	for name, c := range map[string]struct {
		profile            allocation.Profile
		from, to           *allocation.Allocation
		fromAt, toAt, size uint64
		want               bool
	}{
		"aligned":                       {*p, a, b, 0, 0, most, true},
		"at the same distance":          {*p, a, b, 68, 4, most / 2, true},
		"at another distance":           {*p, a, b, 16, 0, most / 2, false},
		"few bytes":                     {*p, a, b, 0, 0, most/2 - 1, false},
		"a device that is not for it":   {allocation.Profile{}, a, b, 0, 0, most, false},
		"from the host's own storage":   {*p, shared, b, 0, 0, most, false},
		"to the host's own storage":     {*p, a, shared, 0, 0, most, false},
		"to a buffer of the program's":  {*p, a, registered, 0, 0, most, false},
		"from memory with a descriptor": {*p, external, b, 0, 0, most, false},
	} {
		if got := r.d.Copier.takes(&c.profile, c.from, c.to, c.fromAt, c.toAt, c.size); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if (*Copier)(nil).takes(p, a, b, 0, 0, most) {
		t.Error("there is no kernel, and it copies")
	}
	// A device with memory of its own uses it for what a program copies, rows excepted, as soon as it
	// is compiled.
	l := &List{}
	r.d.Memory.Profile().KernelCopies = most
	compiled := r.d.Copier.Pipeline
	for _, c := range []struct {
		at       uint64
		pipeline func() *vk.Pipeline
		want     *path
	}{
		{0, compiled, &kernelCopy},
		{4, compiled, &deviceCopy},
		{0, func() *vk.Pipeline { return nil }, &deviceCopy},
	} {
		x := l.Add(CopyWithin)
		x.Dst, x.Src, x.DstAt, x.Size = b, a, c.at, most-c.at
		r.d.Copier.Pipeline = c.pipeline
		if err := l.Plan(&r.d, x, Situation{}); err != nil || x.path != c.want {
			t.Errorf("%v, path %q, want %q", err, x.path.name, c.want.name)
		}
	}
}
