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

// free frees memory, of which tasks may still be to come.
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

// modelEnd is an end of a copy: a pointer, and what it points to.
type modelEnd struct {
	say   string
	place memoryPlace
	// array is that of the host's storage, or of a mapped pointer; chunk that of
	// memory from Alloc.
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

// onDevice reports whether the memory is that of a Vulkan device.
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

// offset draws where in the end a copy begins, and size how much it copies.
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
		// Of two places in one allocation, which overlap too.
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

// settled makes a call that takes no depend items after what they stand for.
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
	// Host storage is the initial device's.
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

// rect copies a part of an array of a few dimensions.
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
			// It can run into the other part.
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

// bytesOf lists the bytes of a part of an array, in order.
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

// associate makes a chunk the corresponding storage of a section, or is refused.
func (h *modelHistory) associate() {
	c := h.chunk()
	if h.deferred || c == nil {
		return
	}
	a := h.array()
	lo, hi := h.section(a, false)
	offset := 4 * h.below(5, "offset")
	if h.rarely(5, "odd offset") {
		offset += h.below(4, "more")
	}
	if b := a.owner[lo]; b != nil && b.chunk != nil && h.rarely(2, "again") {
		lo, hi, c, offset = b.lo, b.hi, b.chunk, b.device.lo
	}
	at := memoryPlace{&c.memory, offset, offset + hi - lo}
	for _, o := range h.arrays {
		for _, b := range o.blocks() {
			if b.device.overlaps(at) && !(b.array == a && b.lo == lo && b.hi == hi) {
				// Two arrays with one storage have no order that depend clauses keep.
				return
			}
		}
	}
	b, is := modelMap{array: a, lo: lo, hi: hi}.find()
	var want []error
	switch {
	case hi == lo:
		want = append(want, vkomp.ErrInvalidArgument)
	case c.onHost:
		want = append(want, vkomp.ErrInvalidDevice)
	case at.hi > len(c.memory):
		want = append(want, vkomp.ErrInvalidPointer)
	case is == isPartly:
		want = append(want, vkomp.ErrPartialOverlap)
	case is == isInside && b.chunk == c && b.lo == lo && b.hi == hi && b.device == at:
		h.count("associate again")
	case is == isInside:
		want = append(want, vkomp.ErrAssociated)
	}
	h.settle(append(ofArray(a, true), modelAccess{&c.token, true}))
	say := fmt.Sprintf("associate %s[%d:%d] with %s at %d", a.name, lo, hi, c.name, offset)
	h.emit(say, func(ctx context.Context) {
		err := h.e.device.AssociatePtr(ctx, vkomp.HostPtr(a.bytes[lo:hi]), c.pointer, hi-lo, offset)
		if !matches(err, want) {
			h.e.fail("%s: %s", say, gotInstead(err, want))
		}
	})
	if len(want) > 0 {
		h.count("associate refused")
		return
	}
	if is == isAbsent {
		h.count("associate")
		b = &modelBlock{array: a, lo: lo, hi: hi, infinite: true, device: at, chunk: c}
		c.associations++
		for i := lo; i < hi; i++ {
			a.owner[i] = b
		}
	}
}

func (h *modelHistory) disassociate() {
	if h.deferred {
		return
	}
	a := h.array()
	lo := h.below(4*modelArrayWords, "byte")
	for _, o := range h.arrays {
		for _, b := range o.blocks() {
			if b.chunk != nil && h.rarely(2, "associated") {
				a, lo = o, b.lo
			}
		}
	}
	h.disassociateAt(a, lo)
}

func (h *modelHistory) disassociateAt(a *modelArray, lo int) {
	h.settle(ofArray(a, true))
	var want []error
	switch b := a.owner[lo]; {
	case b == nil:
		want = []error{vkomp.ErrNotPresent}
	case b.chunk == nil:
		want = []error{vkomp.ErrAssociated}
	case b.lo != lo:
		want = []error{vkomp.ErrNotPresent}
	default:
		h.count("disassociate")
		b.chunk.associations--
		b.remove()
	}
	say := fmt.Sprintf("disassociate %s[%d:]", a.name, lo)
	h.emit(say, func(ctx context.Context) {
		if err := h.e.device.DisassociatePtr(ctx, vkomp.HostPtr(a.bytes[lo:])); !matches(err, want) {
			h.e.fail("%s: %s", say, gotInstead(err, want))
		}
	})
}

// wrongPointer uses a pointer as it must not be used.
func (h *modelHistory) wrongPointer() {
	if h.deferred {
		return
	}
	say, want := "", []error{vkomp.ErrInvalidPointer}
	var use func(ctx context.Context) error
	scratch := make([]byte, 4)
	host := vkomp.HostPtr(scratch)
	stale := func(name string, pointer func() vkomp.DevicePtr, d func() vkomp.Device) {
		how := h.below(4, "use")
		say = fmt.Sprintf("use %d of stale pointer to %s", how, name)
		use = func(ctx context.Context) error {
			p := pointer()
			switch how {
			case 0:
				return d().Free(ctx, p)
			case 1:
				return h.e.rt.Memcpy(ctx, host, p, 1)
			case 2:
				return h.e.rt.MemcpyAsync(ctx, p, host, 4)
			}
			if d().IsAccessible(p, 1) {
				return nil
			}
			return d().Memset(ctx, p, 1, 1)
		}
	}
	switch how := h.below(6, "wrong"); {
	case how == 0 && len(h.freed) > 0:
		c := pick(h, h.freed, "freed")
		stale(c.name, func() vkomp.DevicePtr { return c.pointer }, func() vkomp.Device { return c.pointer.Device() })
	case how == 1 && len(h.removed) > 0:
		b := pick(h, h.removed, "removed")
		if b.chunk != nil {
			return
		}
		h.settle(ofArray(b.array, true))
		stale("the storage of "+b.String(), func() vkomp.DevicePtr { return b.pointer }, func() vkomp.Device { return h.e.device })
	case how <= 2 && len(h.chunks) > 0:
		c := pick(h, h.chunks, "chunk")
		at := 1 + h.below(len(c.memory), "at")
		say = fmt.Sprintf("free %s at %d", c.name, at)
		use = func(ctx context.Context) error { return c.pointer.Device().Free(ctx, c.pointer.Add(at)) }
	case how <= 3 && len(h.chunks) > 0:
		c := pick(h, h.chunks, "chunk")
		say, want = "free "+c.name+" on another device", []error{vkomp.ErrInvalidDevice}
		use = func(ctx context.Context) error {
			d := h.e.device
			if !c.onHost {
				d = h.e.rt.InitialDevice()
			}
			return d.Free(ctx, c.pointer)
		}
	case how == 4:
		a := h.array()
		lo := h.below(4*modelArrayWords, "byte")
		b := a.owner[lo]
		if b == nil || b.chunk != nil {
			return
		}
		h.settle(ofArray(a, true))
		say = fmt.Sprintf("free what %s[%d] is mapped to", a.name, lo)
		use = func(ctx context.Context) error {
			return h.e.device.Free(ctx, h.e.device.MappedPtr(vkomp.HostPtr(a.bytes[lo:])))
		}
	default:
		say = "free host storage"
		use = func(ctx context.Context) error { return h.e.device.Free(ctx, host) }
	}
	h.count("wrong pointer")
	h.emit(say, func(ctx context.Context) {
		if err := use(ctx); !matches(err, want) {
			h.e.fail("%s: %s", say, gotInstead(err, want))
		}
	})
}

// end takes everything off the device again, so that each count is seen: a block is
// present until the last of its holders has left.
func (h *modelHistory) end() {
	h.wait(true)
	for _, a := range h.arrays {
		for _, b := range a.blocks() {
			switch {
			case b.chunk != nil:
				h.disassociateAt(a, b.lo)
				continue
			case b.infinite:
				continue
			}
			m := modelMap{array: a, lo: b.lo, hi: b.hi, kind: modelRelease}
			for range min(b.count-1, 6) {
				h.exit([]modelMap{m})
			}
			if m.kind = modelFrom; b.count > 1 {
				m.kind = modelDelete
			}
			h.settle(ofArray(a, true))
			h.emit("last holder of "+b.String(), func(context.Context) {
				if !h.e.device.IsPresent(vkomp.HostPtr(a.bytes[b.lo:])) {
					h.e.fail("%v is gone before its last holder", b)
				}
			})
			h.exit([]modelMap{m})
		}
	}
	for _, c := range slices.Clone(h.chunks) {
		h.freeOf(c)
	}
	h.wait(true)
}

// begin makes the model of an environment in which nothing has happened.
func (e *modelEnvironment) begin(h *modelHistory) {
	for i, old := range e.arrays {
		a := &modelArray{name: old.name, bytes: old.bytes, words: old.words}
		a.token.storage = a.bytes
		a.owner = make([]*modelBlock, len(a.bytes))
		a.host = make(contents, len(a.bytes))
		for k := range a.bytes {
			a.host[k] = int16(firstByte(i, k))
		}
		h.arrays = append(h.arrays, a)
	}
	declared := h.arrays[len(h.arrays)-1]
	stored := slices.Clone(declared.host)
	b := &modelBlock{array: declared, hi: len(declared.bytes), infinite: true, device: memoryPlace{&stored, 0, len(stored)}}
	for i := range declared.owner {
		declared.owner[i] = b
	}
}

func firstByte(array, k int) byte { return byte(50*array + 3*k) }

// fill gives the arrays of a history their contents.
func (e *modelEnvironment) fill(ctx context.Context, h *modelHistory) {
	for i, a := range h.arrays {
		for k := range a.bytes {
			a.bytes[k] = firstByte(i, k)
		}
	}
	declared := h.arrays[len(h.arrays)-1]
	if err := e.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(declared.bytes).Present()}}); err != nil {
		e.fail("update of what is declared for the target: %v", err)
	}
}
