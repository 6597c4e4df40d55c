package tests

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp"
)

func (h *modelHistory) alloc() {
	if h.deferred || len(h.chunks) >= 4 {
		return
	}
	h.named++
	c := &modelChunk{name: fmt.Sprint("p", h.named), onHost: h.rarely(5, "on the host")}
	c.memory = unknownContents(4 * (1 + h.below(24, "words")))
	c.token.storage = make([]byte, 1)
	h.chunks, h.allocated = append(h.chunks, c), append(h.allocated, c)
	h.count("alloc")
	h.emit(fmt.Sprintf("alloc %s of %d bytes, on the host %t", c.name, len(c.memory), c.onHost), func(ctx context.Context) {
		d := h.e.device
		if c.onHost {
			d = h.e.rt.InitialDevice()
		}
		var err error
		if c.pointer, err = d.Alloc(ctx, len(c.memory)); err != nil || c.pointer.Device() != d {
			h.e.fail("alloc %s: %v, %v", c.name, c.pointer, err)
		}
	})
	if value := byte(h.below(256, "value")); h.rarely(2, "fill") {
		h.set(modelEnd{say: c.name, place: c.place(0, len(c.memory)), chunk: c, pointer: func() vkomp.DevicePtr { return c.pointer }}, 0, value, len(c.memory))
	}
}

// free frees memory that tasks may still use.
func (h *modelHistory) free() {
	if h.deferred || len(h.chunks) == 0 {
		return
	}
	c := pick(h, h.chunks, "chunk")
	h.freeOf(c)
}

func (h *modelHistory) freeOf(c *modelChunk) {
	h.count("free")
	want := []error(nil)
	if c.associations > 0 {
		want = []error{vkomp.ErrBusy}
		h.count("free of associated")
	} else {
		c.freed = true
		h.chunks = slices.DeleteFunc(slices.Clone(h.chunks), func(o *modelChunk) bool { return o == c })
		if h.freed = append(h.freed, c); len(h.freed) > 4 {
			h.freed = h.freed[1:]
		}
	}
	h.emit("free "+c.name, func(ctx context.Context) {
		if err := c.pointer.Device().Free(ctx, c.pointer); !matches(err, want) {
			h.e.fail("free %s: %s", c.name, gotInstead(err, want))
		}
	})
}

// modelEnd is an end of a copy: a pointer and its target.
type modelEnd struct {
	say   string
	place memoryPlace
	// array is the array of host storage or of a mapped pointer; chunk is memory from Alloc.
	array   *modelArray
	mapped  *modelBlock
	chunk   *modelChunk
	pointer func() vkomp.DevicePtr
}

func (x modelEnd) accesses(writes bool) []modelAccess {
	if x.chunk != nil {
		return []modelAccess{{&x.chunk.token, writes}}
	}
	return ofArray(x.array, writes)
}

// onDevice reports whether the memory belongs to a Vulkan device.
func (x modelEnd) onDevice() bool { return x.mapped != nil || x.chunk != nil && !x.chunk.onHost }

// place draws an end of a copy.
func (h *modelHistory) place() modelEnd {
	how := h.below(8, "end")
	if c := h.chunk(); how >= 4 && how < 7 && c != nil {
		return modelEnd{say: c.name, place: c.place(0, len(c.memory)), chunk: c, pointer: func() vkomp.DevicePtr { return c.pointer }}
	}
	a := h.array()
	if blocks := a.blocks(); how == 7 && len(blocks) > 0 {
		b := pick(h, blocks, "block")
		x := modelEnd{say: "the storage of " + b.String(), place: b.device, array: a, mapped: b}
		if b.chunk != nil {
			x.place.hi = len(*b.device.of)
		}
		if b.asked {
			h.count("mapped pointer from before")
			x.pointer = func() vkomp.DevicePtr { return b.pointer }
			return x
		}
		h.settle(ofArray(a, true))
		h.count("mapped pointer")
		x.pointer = func() vkomp.DevicePtr { return h.e.device.MappedPtr(vkomp.HostPtr(a.bytes[b.lo:])) }
		return x
	}
	return modelEnd{say: a.name, place: a.place(0, len(a.host)), array: a, pointer: func() vkomp.DevicePtr { return vkomp.HostPtr(a.bytes) }}
}

// offset draws where in the end a copy begins, size how many bytes it copies.
func (h *modelHistory) offset(x modelEnd) int {
	n := x.place.size()
	if h.rarely(4, "any byte") {
		return h.below(n, "at")
	}
	return 4 * h.below((n+3)/4, "at")
}

func (h *modelHistory) size(left int) int {
	switch h.below(12, "size") {
	case 9:
		return left
	case 10:
		return h.below(left+1, "bytes")
	case 11:
		return left + 1
	}
	return min(left, 4*h.below(17, "words"))
}

// aliased reports whether the ends are the same bytes at different addresses.
func aliased(dst, src modelEnd) bool {
	return dst.place.of == src.place.of && (dst.mapped == nil) != (src.mapped == nil) && dst.chunk == nil && src.chunk == nil
}

func (h *modelHistory) memcpy() {
	dst, src := h.place(), h.place()
	if aliased(dst, src) {
		return
	}
	to, from := h.offset(dst), h.offset(src)
	n := h.size(min(dst.place.size()-to, src.place.size()-from))
	if h.rarely(40, "negative") {
		n = -n - 1
	}
	c := modelCall{
		say:      fmt.Sprintf("memcpy of %d to %s at %d from %s at %d", n, dst.say, to, src.say, from),
		accesses: append(dst.accesses(true), src.accesses(false)...),
	}
	var d, s memoryPlace
	switch {
	case n < 0:
		c.wrong = append(c.wrong, vkomp.ErrInvalidArgument)
	case n == 0:
	case to+n > dst.place.size() || from+n > src.place.size():
		// Two places in one allocation, which overlap too.
		c.wrong = append(c.wrong, vkomp.ErrInvalidPointer, vkomp.ErrInvalidArgument)
	default:
		d, s = dst.place.from(to, n), src.place.from(from, n)
		if d.overlaps(s) && dst.onDevice() {
			c.wrong = append(c.wrong, vkomp.ErrInvalidArgument)
		}
	}
	c.invoke = func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
		if deferred {
			return h.e.rt.MemcpyAsync(ctx, dst.pointer().Add(to), src.pointer().Add(from), n, depend...)
		}
		return h.settled(ctx, depend, func() error { return h.e.rt.Memcpy(ctx, dst.pointer().Add(to), src.pointer().Add(from), n) })
	}
	c.apply = func() {
		if n > 0 {
			d.copyFrom(s)
		}
	}
	h.count("memcpy")
	h.call(c)
}

// settled makes a call without depend items after the tasks that these items stand for.
func (h *modelHistory) settled(ctx context.Context, depend []vkomp.Depend, call func() error) error {
	if len(depend) > 0 {
		if err := h.e.rt.Taskwait(ctx, depend...); err != nil {
			return err
		}
	}
	return call()
}

func (h *modelHistory) memset() {
	x := h.place()
	at := h.offset(x)
	n := h.size(x.place.size() - at)
	h.set(x, at, byte(h.below(256, "value")), n)
}

// set fills part of an end.
func (h *modelHistory) set(x modelEnd, at int, value byte, n int) {
	c := modelCall{say: fmt.Sprintf("memset of %d in %s at %d to %d", n, x.say, at, value), accesses: x.accesses(true)}
	// Host storage belongs to the initial device.
	wrongDevice := h.rarely(16, "wrong device")
	onHost := !x.onDevice()
	if wrongDevice {
		c.say += " on the wrong device"
		c.wrong = append(c.wrong, vkomp.ErrInvalidDevice)
	} else if at+n > x.place.size() && n > 0 {
		c.wrong = append(c.wrong, vkomp.ErrInvalidPointer)
	}
	c.invoke = func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
		d := h.e.device
		if onHost != wrongDevice {
			d = h.e.rt.InitialDevice()
		}
		if deferred {
			return d.MemsetAsync(ctx, x.pointer().Add(at), value, n, depend...)
		}
		return h.settled(ctx, depend, func() error { return d.Memset(ctx, x.pointer().Add(at), value, n) })
	}
	c.apply = func() {
		if n > 0 {
			b := x.place.from(at, n).bytes()
			for i := range b {
				b[i] = int16(value)
			}
		}
	}
	h.count("memset")
	h.call(c)
}

// rect copies a rectangular part of an array with a few dimensions.
func (h *modelHistory) rect() {
	dst, src := h.place(), h.place()
	if aliased(dst, src) {
		return
	}
	r := vkomp.Rect{Elem: pick(h, []int{4, 4, 1, 2, 3}, "elem")}
	dims := 1 + h.below(4, "dims")
	for range dims {
		v, moreDst, moreSrc := 1+h.below(3, "volume"), h.below(3, "dst more"), h.below(3, "src more")
		if h.rarely(12, "nothing") {
			v = 0
		}
		r.Volume = append(r.Volume, v)
		r.DstDims, r.SrcDims = append(r.DstDims, v+moreDst), append(r.SrcDims, v+moreSrc)
		r.DstOffsets = append(r.DstOffsets, h.below(moreDst+1, "dst at"))
		r.SrcOffsets = append(r.SrcOffsets, h.below(moreSrc+1, "src at"))
	}
	c := modelCall{
		say:      fmt.Sprintf("memcpy rect %+v to %s from %s", r, dst.say, src.say),
		accesses: append(dst.accesses(true), src.accesses(false)...),
	}
	if h.rarely(20, "outside") {
		r.DstOffsets[dims-1] = r.DstDims[dims-1] + 1
		c.say += " outside"
		c.wrong = append(c.wrong, vkomp.ErrInvalidArgument)
	}
	to, from := bytesOf(r.Elem, r.Volume, r.DstOffsets, r.DstDims), bytesOf(r.Elem, r.Volume, r.SrcOffsets, r.SrcDims)
	if n := len(to); n > 0 && len(c.wrong) == 0 {
		if to[n-1] >= dst.place.size() || from[n-1] >= src.place.size() {
			// It can overlap the other part.
			c.wrong = append(c.wrong, vkomp.ErrInvalidPointer, vkomp.ErrInvalidArgument)
		}
		if dst.place.of == src.place.of {
			for i := range from {
				if slices.Contains(to, from[i]+src.place.lo-dst.place.lo) {
					c.wrong = append(c.wrong, vkomp.ErrInvalidArgument)
					break
				}
			}
		}
	}
	c.invoke = func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
		if deferred {
			return h.e.rt.MemcpyRectAsync(ctx, dst.pointer(), src.pointer(), r, depend...)
		}
		return h.settled(ctx, depend, func() error { return h.e.rt.MemcpyRect(ctx, dst.pointer(), src.pointer(), r) })
	}
	c.apply = func() {
		d, s := dst.place.bytes(), src.place.bytes()
		for i := range to {
			d[to[i]] = s[from[i]]
		}
	}
	h.count("memcpy rect")
	h.call(c)
}

// bytesOf returns the offsets of the bytes of a part of an array, in order.
func bytesOf(elem int, volume, offsets, dims []int) (at []int) {
	at = []int{0}
	for d := range volume {
		var next []int
		for _, from := range at {
			for i := range volume[d] {
				next = append(next, from*dims[d]+offsets[d]+i)
			}
		}
		at = next
	}
	var bytes []int
	for _, element := range at {
		for i := range elem {
			bytes = append(bytes, element*elem+i)
		}
	}
	return bytes
}
