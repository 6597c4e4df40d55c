package tests

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp"
)

// associate makes a chunk the corresponding storage of a section, unless that is refused.
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
				// Depend clauses cannot order two arrays that share storage.
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

// wrongPointer uses a pointer in a way that is not allowed.
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

// end unmaps everything from the device, which checks every count: a block is present until the
// last construct has unmapped it.
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
