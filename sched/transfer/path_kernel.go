package transfer

import (
	_ "embed"
	"encoding/binary"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// On the kernel path a kernel copies between two places of device memory, because copy commands do
// not reach the speed of the memory: they copied 410 GB/s where a kernel copied 1,300 (NVIDIA H100).
// Commands copy what lies before and behind the bytes that can be bound. Until the kernel is compiled
// they copy everything, and so they do on queues that run no kernels.

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o copy.spv copy.comp

//go:embed copy.spv
var copyCode []byte

const (
	// vector is how many bytes an invocation of the kernel copies at a time, and perGroup how many
	// invocations a workgroup has.
	vector   = 16
	perGroup = 128
	// copyGroups is the most workgroups of a copy, whose invocations then copy several times each.
	// So many are 16 for each of the 132 processors on which the kernel was measured. Every device
	// takes as many.
	copyGroups = 2112
)

// CopyKernel returns the kernel of the kernel path.
func CopyKernel() (*kernel.Kernel, error) { return kernel.New("vkomp copy", copyCode, "main", nil) }

// Copier has the kernel of the kernel path on a device.
type Copier struct {
	// Pipeline returns the kernel's pipeline, nil as long as there is none; once there, it stays. It
	// is called with the scheduler's lock held, and does not wait.
	Pipeline func() *vk.Pipeline
	// Unit is the alignment of what is bound, in bytes, and Range the most that can be bound.
	Unit, Range uint64
}

// NewCopier returns the kernel of a device with these properties.
func NewCopier(p *vk.Properties, pipeline func() *vk.Pipeline) *Copier {
	return &Copier{
		Pipeline: pipeline,
		Unit:     max(vector, p.Limits.MinStorageBufferOffsetAlignment),
		Range:    uint64(p.Limits.MaxStorageBufferRange),
	}
}

// takes reports whether the kernel is to copy so many bytes from one place of a device's memory to
// another. It cannot where no offset is aligned on both sides, nor while it has no pipeline.
func (c *Copier) takes(p *allocation.Profile, from, to *allocation.Allocation, fromAt, toAt, bytes uint64) bool {
	ours := func(a *allocation.Allocation) bool {
		return !a.Shared && a.Origin != allocation.Registered && a.External == nil
	}
	return c != nil && p.KernelCopies > 0 && bytes >= p.KernelCopies && ours(from) && ours(to) &&
		(from.Offset+fromAt)%c.Unit == (to.Offset+toAt)%c.Unit && c.Pipeline() != nil
}

// kernelCopy copies between two places of device memory by a kernel.
var kernelCopy = path{
	name: "kernel copy",
	record: func(r *recorder, x *Transfer) {
		c := r.copier
		if !r.computes {
			deviceCopy.record(r, x)
			return
		}
		pipeline := c.Pipeline()
		r.copyWithin(x.Size)
		r.stage = vk.StageCompute
		src, dst := vk.Buffer(x.Src.Block.ID), vk.Buffer(x.Dst.Block.ID)
		from, to := x.Src.Offset+x.SrcAt, x.Dst.Offset+x.DstAt
		command := func(at, n uint64) {
			if n > 0 {
				r.stream.Copy(src, dst, from+at, to+at, n)
			}
		}
		at := min(-from%c.Unit, x.Size)
		command(0, at)
		for most := c.Range / c.Unit * c.Unit; x.Size-at >= vector; {
			n := min(most, (x.Size-at)/vector*vector)
			var push [4]byte
			binary.NativeEndian.PutUint32(push[:], uint32(n/4))
			groups := min((n/vector+perGroup-1)/perGroup, copyGroups)
			bindings := [2]vk.BufferRange{{Buffer: src, Offset: from + at, Size: n}, {Buffer: dst, Offset: to + at, Size: n}}
			r.stream.Dispatch(*pipeline, bindings[:], push[:], [3]uint32{}, [3]uint32{uint32(groups), 1, 1})
			at += n
		}
		command(at, x.Size-at)
	},
}
