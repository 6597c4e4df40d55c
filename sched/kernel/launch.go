package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
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

// A kernel has a pipeline for each value of Plan.Fold, and some with which one dispatch does what several
// of that for 0 do. These are their numbers, by what the launches bind.
const (
	Merging       = 3                                   // the first of them
	MergingOwn    = Merging + int(spirv.OwnBindings)    // of spirv.OwnBindings
	MergingShared = Merging + int(spirv.SharedBindings) // of spirv.SharedBindings
	MergingSpaced = Merging + int(spirv.SpacedBindings) // of spirv.SpacedBindings
	Pipelines     = MergingSpaced + 1                   // how many pipelines there are
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
	if g[2] != 1 || layers+min(rest, 1) > uint64(limit[2]) {
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

// Argument is a buffer argument of a launch.
type Argument struct {
	// Buffer is where the argument lies.
	Buffer vk.Buffer
	// Offset is where the argument begins in the buffer, and Size its size, in bytes.
	Offset, Size uint64
	// Before is how many bytes before the argument belong to the same storage.
	Before uint64
	// Padded says that nothing else lies in the argument's last word of 4 bytes.
	Padded bool
	// Cut says that the argument ends where the device can bind no more.
	Cut bool
}

// Bind returns the descriptor for the buffer argument a of binding i, which begins at an aligned address: at the
// argument or before it. If the kernel has an offset member for the binding, Bind writes the distance to it, in
// elements, also if that is 0: push may be that of an earlier call, for an argument elsewhere.
func (k *Kernel) Bind(i int, a *Argument, p *vk.Properties, push []byte) (vk.BufferRange, error) {
	b := &k.buffers[i]
	align := BindAlignment(p)
	skip, ok := b.Skip(a.Offset, a.Before, align)
	if !ok {
		return vk.BufferRange{}, fmt.Errorf("%w: argument for binding %d of kernel %q begins %d bytes past a multiple of %d, where device %q can bind%s", ErrInvalidLaunch, i, k.name, a.Offset%align, align, p.Name, k.whyNotTaken(i))
	}
	r := vk.BufferRange{Buffer: a.Buffer, Offset: a.Offset - skip, Size: a.Size + skip}
	limit := uint64(p.Limits.MaxStorageBufferRange)
	switch {
	case r.Size > limit && a.Cut:
		r.Size = limit &^ 3
	case r.Size > limit:
		return vk.BufferRange{}, fmt.Errorf("%w: argument for binding %d of kernel %q takes %d bytes from the aligned address below it, device %q binds at most %d (maxStorageBufferRange)", ErrInvalidLaunch, i, k.name, r.Size, p.Name, limit)
	case a.Padded && b.packs():
		r.Size = min((r.Size+3)&^3, limit)
	}
	if b.offsetAt >= 0 {
		elements := uint32(0)
		if skip != 0 {
			elements = uint32(skip / uint64(b.Stride))
		}
		binary.NativeEndian.PutUint32(push[b.offsetAt:], elements)
	}
	return r, nil
}

// BindAlignment returns what the offsets of descriptors on a device are multiples of, in bytes: a power of two.
func BindAlignment(p *vk.Properties) uint64 {
	return max(p.Limits.MinStorageBufferOffsetAlignment, 4)
}

// packs reports whether a kernel may pack smaller elements into the words of the binding: then a descriptor of
// whole words lets it reach the last one. Where the elements are smaller than a word, that would be elements
// more.
func (b *Binding) packs() bool { return b.Stride == 0 || b.Stride >= 4 }

// whyNotTaken says, as the end of an error, why Skip fails for a binding, and what helps.
func (k *Kernel) whyNotTaken(i int) string {
	switch b := &k.buffers[i]; {
	case b.offsetAt < 0:
		return fmt.Sprintf(": map it on its own, or declare the push-constant member uint %s%d", offsetPrefix, i)
	case b.MinSize > 0:
		return fmt.Sprintf(", and %s%d moves the elements of the block, not the %d bytes of members before them: map it on its own", offsetPrefix, i, b.MinSize)
	default:
		return fmt.Sprintf(", and none of these before it in its storage is a whole number of elements of %d bytes away", b.Stride)
	}
}
