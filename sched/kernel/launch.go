package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/vkomp/vkomp/vk"
)

// Call is one dispatch of a launch.
type Call struct {
	// Base is the index of the first workgroup, and Count the number of workgroups, in each
	// dimension.
	Base, Count [3]uint32
}

// Plan is the division of a range of workgroups into dispatches.
type Plan struct {
	// Calls are the dispatches.
	Calls []Call
	// Fold is 1 + the dimension that is folded into z, or 0 if none is.
	Fold int
}

// A kernel has a pipeline for each value of Plan.Fold, and one with which one dispatch does what several
// of that for 0 do.
const (
	Merging   = 3 // the number of the latter
	Pipelines = 4 // how many there are
)

// PlanDispatch divides g workgroups into dispatches within the device's limits, which it appends to
// calls[:0].
//
// vkCmdDispatchBase does not reach beyond maxComputeWorkGroupCount: base and
// count together stay below it (VUID-vkCmdDispatchBase-groupCountX-00424). A
// dimension that is too long is therefore folded: layers of `limit` workgroups
// stand along z, and a variant of the kernel takes its index apart again.
// The kernel sees only indices, and exactly as many as it was launched with, so it
// cannot tell the difference unless it reads NumWorkgroups.
func (k *Kernel) PlanDispatch(g *[3]uint64, p *vk.Properties, calls []Call) (Plan, error) {
	limit := &p.Limits.MaxComputeWorkGroupCount
	if g[0] == 0 {
		return Plan{Calls: calls[:0]}, nil
	}
	long := -1
	for d := range g {
		if high, low := bits.Mul64(g[d], uint64(k.local[d])); high != 0 || low > math.MaxUint32 {
			return Plan{}, k.tooLong(d, g, p, "GlobalInvocationId, which has 32 bits, would overflow")
		}
		if g[d] > uint64(limit[d]) {
			if long >= 0 || d == 2 {
				return Plan{}, k.tooLong(d, g, p, "the range cannot be split")
			}
			long = d
		}
	}
	calls = append(calls[:0], Call{})
	if long < 0 {
		calls[0].setCount(g)
		return Plan{Calls: calls}, nil
	}
	if k.entry.UsesNumWorkgroups {
		return Plan{}, k.tooLong(long, g, p, "the kernel reads NumWorkgroups, so the range cannot be split")
	}
	fold := uint64(limit[long])
	layers, rest := g[long]/fold, g[long]%fold
	if g[2] != 1 || layers+1 > uint64(limit[2]) {
		return Plan{}, k.tooLong(long, g, p, "the range cannot be split along z")
	}
	count := *g
	count[long], count[2] = fold, layers
	calls[0].setCount(&count)
	if rest > 0 {
		count[long], count[2] = rest, 1
		calls = append(calls, Call{Base: [3]uint32{2: uint32(layers)}})
		calls[1].setCount(&count)
	}
	return Plan{Calls: calls, Fold: long + 1}, nil
}

// setCount sets the number of workgroups.
func (c *Call) setCount(g *[3]uint64) {
	for d := range g {
		c.Count[d] = uint32(g[d])
	}
}

func (k *Kernel) tooLong(d int, g *[3]uint64, p *vk.Properties, why string) error {
	return fmt.Errorf("%w: kernel %q would run %d workgroups along %c, device %q takes at most %d: %s",
		ErrInvalidLaunch, k.name, g[d], "xyz"[d], p.Name, p.Limits.MaxComputeWorkGroupCount[d], why)
}

// Bind returns the descriptor for a buffer argument of size bytes that lies at offset in its block.
// The descriptor begins at an aligned address. If that is before the argument, Bind writes the
// distance, in elements, to the kernel's offset member in push. padded says that nothing else lies in
// the argument's last word of 4 bytes.
func (k *Kernel) Bind(i int, buffer vk.Buffer, offset, size uint64, padded bool, p *vk.Properties, push []byte) (vk.BufferRange, error) {
	b := &k.buffers[i]
	align := max(p.Limits.MinStorageBufferOffsetAlignment, 4) // a power of two
	residual := offset & (align - 1)
	if !b.Takes(residual) {
		return vk.BufferRange{}, fmt.Errorf("%w: argument for binding %d of kernel %q begins %d bytes past a multiple of %d, where device %q can bind%s", ErrInvalidLaunch, i, k.name, residual, align, p.Name, k.whyNotTaken(i))
	}
	r := vk.BufferRange{Buffer: buffer, Offset: offset - residual, Size: size + residual}
	if padded {
		// A descriptor of whole words lets a kernel that packs bytes into words reach the
		// last one.
		r.Size = (r.Size + 3) &^ 3
	}
	if limit := uint64(p.Limits.MaxStorageBufferRange); r.Size > limit && size+residual > limit {
		return vk.BufferRange{}, fmt.Errorf("%w: argument for binding %d of kernel %q takes %d bytes from the aligned address below it, device %q binds at most %d (maxStorageBufferRange)", ErrInvalidLaunch, i, k.name, size+residual, p.Name, limit)
	} else if r.Size > limit {
		r.Size = limit
	}
	if b.offsetAt >= 0 {
		elements := uint32(0)
		if residual != 0 {
			elements = uint32(residual / uint64(b.Stride))
		}
		binary.NativeEndian.PutUint32(push[b.offsetAt:], elements)
	}
	return r, nil
}

// whyNotTaken says, as the end of an error, why Takes is false for a binding, and what helps.
func (k *Kernel) whyNotTaken(i int) string {
	switch b := &k.buffers[i]; {
	case b.offsetAt < 0:
		return fmt.Sprintf(": map it on its own, or declare the push-constant member uint %s%d", offsetPrefix, i)
	case b.MinSize > 0:
		return fmt.Sprintf(", and %s%d moves the elements of the block, not the %d bytes of members before them: map it on its own", offsetPrefix, i, b.MinSize)
	default:
		return fmt.Sprintf(", which is no whole number of its elements of %d bytes", b.Stride)
	}
}
