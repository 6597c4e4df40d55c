package tests

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp"
)

// modelOperand is a binding of a kernel.
type modelOperand struct {
	// item is a map, or the target of an implicit pointer.
	item modelMap
	// mapped says that the binding is a map, implicit that it is an implicit pointer. Otherwise
	// it is memory of a chunk from byte at: size bytes or, with a size of -1, all of it.
	mapped, implicit bool
	chunk            *modelChunk
	at, size         int
}

func (o *modelOperand) String() string {
	switch {
	case o.mapped:
		return o.item.String()
	case o.implicit:
		return fmt.Sprintf("implicit %s[%d:]", o.item.array.name, o.item.lo)
	}
	return fmt.Sprintf("%s[%d:] of %d bytes", o.chunk.name, o.at, o.size)
}

func (o *modelOperand) arg() vkomp.Arg {
	switch {
	case o.mapped:
		m := o.item
		m.asBytes = false
		return m.arg()
	case o.implicit:
		return vkomp.Implicit(o.item.array.words[o.item.lo/4:])
	case o.size < 0:
		return vkomp.IsDevicePtr(o.chunk.pointer.Add(o.at))
	}
	return vkomp.HasDeviceAddr[uint32](o.chunk.pointer.Add(o.at), o.size/4)
}

// bytes returns the size of the binding, -1 if it is only known when the task runs.
func (o *modelOperand) bytes() int {
	switch {
	case o.mapped:
		return o.item.size()
	case o.implicit:
		return -1
	case o.size < 0:
		return len(o.chunk.memory) - o.at
	}
	return o.size
}

// operand draws a binding.
func (h *modelHistory) operand(writes bool) *modelOperand {
	how := h.below(10, "operand")
	if how == 9 {
		h.count("implicit")
		a := h.array()
		lo, _ := h.section(a, true)
		return &modelOperand{implicit: true, item: modelMap{array: a, lo: lo, hi: lo, kind: modelAlloc, ifPresent: true}}
	}
	if c := h.chunk(); how >= 7 && c != nil {
		o := &modelOperand{chunk: c, size: -1}
		o.at = 4 * h.below(len(c.memory)/4, "at")
		if h.rarely(20, "at the end") {
			o.at = len(c.memory)
		}
		if how == 7 {
			o.size = 4 * h.below((len(c.memory)-o.at)/4+1, "size")
			if h.rarely(20, "beyond") {
				o.size = len(c.memory) - o.at + 4
			}
			h.count("has device addr")
		} else {
			h.count("is device ptr")
		}
		return o
	}
	kinds := []modelMapType{modelTo, modelTo, modelTo, modelAlloc, modelToFrom, modelFrom}
	if writes {
		kinds = []modelMapType{modelToFrom, modelToFrom, modelToFrom, modelFrom, modelTo, modelAlloc}
	}
	m := modelMap{array: h.array(), kind: pick(h, kinds, "type")}
	m.lo, m.hi = h.section(m.array, true)
	m = h.modifiers(m)
	h.countModifiers(m)
	return &modelOperand{mapped: true, item: m}
}

// target runs a kernel.
func (h *modelHistory) target() {
	src, dst := h.operand(false), h.operand(true)
	mul, fac, add := uint32(h.below(4, "mul")), uint32(5*h.below(2, "fac")), uint32(h.below(100, "add"))
	most := h.below(modelArrayWords+2, "n")
	if most == 0 {
		most = modelArrayWords
	} else {
		most--
	}
	c := modelCall{say: fmt.Sprintf("target %v and %v, %d·dst + %d·src + %d", src, dst, mul, fac, add)}
	operands := []*modelOperand{src, dst}
	var items []modelMap
	empty, bare := most == 0, false // bare: an operand has no elements
	for _, o := range operands {
		if o.chunk == nil {
			items = append(items, o.item)
		} else {
			c.accesses = append(c.accesses, modelAccess{&o.chunk.token, o == dst})
			if o.chunk.onHost {
				c.wrong = append(c.wrong, vkomp.ErrInvalidDevice)
			}
			if o.size > len(o.chunk.memory)-o.at {
				c.wrong = append(c.wrong, vkomp.ErrInvalidPointer)
			}
		}
		bare = bare || o.bytes() == 0
	}
	if bare && !empty {
		h.count("target without elements")
		c.wrong = append(c.wrong, vkomp.ErrInvalidLaunch)
	}
	for _, o := range operands {
		if o.chunk == nil {
			c.accesses = append(c.accesses, ofArray(o.item.array, !(o == src && h.readsAlone(src, items)))...)
		}
	}
	c.failing = refusesEntry(items, h.e.canShare)
	if len(c.failing) == 0 && !empty {
		c.failing = refusesBinding(operands, items)
	}
	if len(c.failing) > 0 {
		// Other tasks would see its maps while they are checked.
		for i := range c.accesses {
			c.accesses[i].writes = true
		}
	}
	// The size of a binding is known when the task starts, which is here if it comes next.
	n := most
	if len(c.failing) == 0 && !empty {
		for _, o := range operands {
			size := o.bytes()
			if o.implicit {
				_, size = o.pointee(items)
			}
			n = min(n, size/4)
		}
	}
	h.count("target")
	if empty {
		h.count("empty target")
	}
	c.say += fmt.Sprintf(" on %d", n)
	c.invoke = func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
		x := n
		if bare {
			x = most
		}
		return h.e.rt.Target(ctx, vkomp.Target{
			Kernel: h.e.affine, Range: vkomp.Range{X: x}, NoWait: deferred, Depend: depend,
			Args: []vkomp.Arg{src.arg(), dst.arg(), vkomp.Value(uint32(n)), vkomp.Value(mul), vkomp.Value(fac), vkomp.Value(add)},
		})
	}
	c.apply = func() {
		if h.readsAlone(src, items) && !c.accessesWritten(&src.item.array.token) {
			if b, _ := src.item.find(); b == nil && !src.item.empty() {
				t := &src.item.array.token
				t.reading, t.read = [2]int{src.item.lo, src.item.hi}, true
			}
		}
		blocks := enterModel(items)
		var leave []modelMap
		var views [2]memoryPlace
		for k, o := range operands {
			if o.chunk != nil {
				views[k] = o.chunk.place(o.at, o.at+max(o.bytes(), 0))
				continue
			}
			b := blocks[0]
			blocks = blocks[1:]
			m := o.item
			m.present = false
			if b == nil {
				// Nothing was mapped for a pointer without a target.
				if m.ifPresent {
					continue
				}
			} else if o.implicit {
				views[k] = b.corresponding(m.lo, b.hi)
			} else {
				views[k] = b.corresponding(m.lo, m.hi)
			}
			leave = append(leave, m)
		}
		if !empty {
			affineModel(views[0], views[1], n, mul, fac, add)
		}
		exitModel(leave)
	}
	h.call(c)
}

// accessesWritten reports whether the call writes a token.
func (c *modelCall) accessesWritten(t *modelToken) bool {
	return slices.ContainsFunc(c.accesses, func(a modelAccess) bool { return a.token == t && a.writes })
}

// readsAlone reports whether a task may run in any order with other readers of the binding.
// Readers that map absent storage have to map the same section.
func (h *modelHistory) readsAlone(o *modelOperand, items []modelMap) bool {
	m := o.item
	if !o.mapped || m.always || m.self || m.present || m.kind != modelTo && m.kind != modelAlloc || m.empty() {
		return false
	}
	others := 0
	for _, i := range items {
		if i.array == m.array {
			others++
		}
	}
	if others > 1 {
		return false
	}
	switch _, is := m.find(); is {
	case isInside:
		return true
	case isAbsent:
		t := &m.array.token
		return m.kind == modelTo && (!t.read || t.reading == [2]int{m.lo, m.hi})
	}
	return false
}

// pointee returns the block that an implicit pointer will point into, nil for one that the
// construct itself creates, and the number of bytes from there to its end, -1 if there is no
// block.
func (o *modelOperand) pointee(items []modelMap) (*modelBlock, int) {
	if b, is := o.item.find(); is == isInside {
		return b, b.hi - o.item.lo
	}
	left := -1
	for _, m := range createsBlocks(items) {
		if m.array == o.item.array && m.lo <= o.item.lo && o.item.lo < m.hi {
			left = max(left, m.hi-o.item.lo)
		}
	}
	return nil, left
}

// refusesBinding returns the errors of which a kernel with these operands must get one.
func refusesBinding(operands []*modelOperand, items []modelMap) (errs []error) {
	for _, o := range operands {
		var b *modelBlock
		switch {
		case o.mapped:
			b, _ = o.item.find()
		case o.implicit:
			var left int
			if b, left = o.pointee(items); left < 0 {
				errs = append(errs, vkomp.ErrNotPresent)
			}
		}
		if b != nil && !b.wordsAt(o.item.lo) {
			errs = append(errs, vkomp.ErrInvalidLaunch)
		}
	}
	return errs
}

// through runs a kernel that writes to memory through its address.
func (h *modelHistory) through() {
	if !h.e.hasThrough {
		return
	}
	var place memoryPlace
	c := modelCall{}
	var value func() vkomp.Arg
	if a := h.array(); h.below(2, "chunk") == 0 {
		lo, hi := h.section(a, true)
		m := modelMap{array: a, lo: lo, hi: hi}
		b, is := m.find()
		if is != isInside || m.empty() || !b.wordsAt(lo) {
			return
		}
		place = b.corresponding(lo, hi)
		c.say = fmt.Sprintf("through the address of %s[%d:], %d words", a.name, lo, place.size()/4)
		c.accesses = ofArray(a, true)
		value = func() vkomp.Arg { return vkomp.AddressOf(a.words[lo/4:]) }
		h.count("address of")
	} else {
		k := h.chunk()
		if k == nil || k.onHost {
			return
		}
		at := 4 * h.below(len(k.memory)/4, "at")
		place = k.place(at, at+4*h.below((len(k.memory)-at)/4+1, "words"))
		c.say = fmt.Sprintf("through a pointer to %s[%d:], %d words", k.name, at, place.size()/4)
		c.accesses = []modelAccess{{&k.token, true}}
		value = func() vkomp.Arg { return vkomp.Value(k.pointer.Add(at)) }
		h.count("pointer value")
	}
	n := place.size() / 4
	c.invoke = func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
		return h.e.rt.Target(ctx, vkomp.Target{
			Kernel: h.e.through, Range: vkomp.Range{X: n}, NoWait: deferred, Depend: depend,
			Args: []vkomp.Arg{value(), vkomp.Value(uint32(n))},
		})
	}
	c.apply = func() {
		for i := range n {
			place.setWord(i, uint32(5*i), true)
		}
	}
	h.call(c)
}

// modelUse is an item of use_device_ptr or use_device_addr.
type modelUse struct {
	modelMap
	addr  bool
	found *modelBlock
	want  contents
	got   vkomp.DevicePtr
}

// targetData adds a region with a body of a few steps.
func (h *modelHistory) targetData() {
	if h.depth >= 2 {
		return
	}
	items := h.items([]modelMapType{modelToFrom, modelTo, modelFrom, modelAlloc})
	for i := range items {
		items[i] = h.modifiers(items[i])
		h.countModifiers(items[i])
	}
	all := slices.Clone(items)
	var uses []*modelUse
	for range h.below(3, "uses") {
		u := &modelUse{modelMap: modelMap{array: h.array(), kind: modelAlloc, ifPresent: true}, addr: h.below(2, "addr") == 1}
		u.lo, u.hi = h.section(u.array, false)
		if !u.addr {
			u.hi = u.lo
		}
		uses = append(uses, u)
		all = append(all, u.modelMap)
		h.count("use device")
	}
	accesses := merged(ofArrays(all))
	if failedBefore(accesses) {
		h.wait(false)
	}
	say := fmt.Sprint("target data ", all)
	region := vkomp.TargetData{Maps: argsOf(items), Depend: dependOf(accesses)}
	for _, u := range uses {
		if u.addr {
			region.Use = append(region.Use, vkomp.UseDeviceAddr(u.array.bytes[u.lo:u.hi], &u.got))
		} else {
			region.Use = append(region.Use, vkomp.UseDevicePtr(u.array.bytes[u.lo:u.hi], &u.got))
		}
	}
	h.count("target data")
	note(accesses, false)
	refuse := func(want []error) {
		h.count("failing included")
		h.emit(say+" refused", func(ctx context.Context) {
			err := h.e.rt.TargetData(ctx, region, func(context.Context) error { return errBodyRan })
			if !matches(err, want) || matches(err, []error{errBodyRan}) {
				h.e.fail("%s: %s", say, gotInstead(err, want))
			}
		})
	}
	if errs := refusesEntry(all, h.e.canShare); len(errs) > 0 {
		refuse(errs)
		return
	}
	blocks := enterModel(all)
	exits := slices.Clone(items)
	for i := range exits {
		exits[i].present = false
	}
	missing := false
	for i, u := range uses {
		if u.found = blocks[len(items)+i]; u.found != nil {
			u.want = slices.Clone(u.found.corresponding(u.lo, u.found.hi).bytes())
			exits = append(exits, u.modelMap)
		}
		missing = missing || u.addr && u.found == nil && !u.empty()
	}
	if missing {
		withoutCopies(exits)
		exitModel(exits)
		refuse([]error{vkomp.ErrNotPresent})
		return
	}
	inside := *h
	var body []modelStep
	inside.list = &body
	inside.depth++
	if deferred := h.depth == 0 && h.rarely(3, "deferred"); deferred {
		h.count("target data nowait")
		say += " deferred"
		region.NoWait = true
		inside.deferred = true
		inside.mine, inside.myChunks = nil, nil
		for _, m := range all {
			if !slices.Contains(inside.mine, m.array) {
				inside.mine = append(inside.mine, m.array)
			}
		}
		// Chunks that correspond to these arrays are used by the region already.
		for _, c := range h.chunks {
			if a := (modelAccess{&c.token, true}); slices.Contains(accesses, a) && !c.onHost {
				inside.myChunks = append(inside.myChunks, c)
			}
		}
	}
	if h.rarely(2, "wait") || len(uses) > 0 {
		for range h.below(5, "steps") {
			inside.step()
		}
	} else {
		inside.step()
	}
	failing := refusesExit(exits)
	h.adopt(&inside)
	note(accesses, false)
	if len(failing) > 0 {
		withoutCopies(exits)
	}
	before := h.blocksOf(exits)
	exitModel(exits)
	for _, b := range before {
		if b.gone && b.asked {
			h.removed = append(h.removed, b)
		}
	}
	if len(failing) > 0 {
		h.count("refused end")
		if region.NoWait {
			note(accesses, true)
			h.unreported = append(h.unreported, failing)
			failing = nil
		}
	}
	h.emit(say+" {\n"+sayings(body)+"\n}", func(ctx context.Context) {
		err := h.e.rt.TargetData(ctx, region, func(ctx context.Context) error {
			h.checkUses(ctx, say, uses)
			h.e.run(ctx, body)
			return nil
		})
		if !matches(err, failing) {
			h.e.fail("%s: %s", say, gotInstead(err, failing))
		}
	})
}

// withoutCopies makes the items those of a region that ends with an error.
func withoutCopies(exits []modelMap) {
	for i := range exits {
		exits[i].kind, exits[i].always = modelRelease, false
	}
}

// adopt takes over the results of a body.
func (h *modelHistory) adopt(inside *modelHistory) {
	h.t = inside.t
	h.chunks, h.allocated, h.freed, h.removed = inside.chunks, inside.allocated, inside.freed, inside.removed
	h.unreported, h.named = inside.unreported, inside.named
}

// checkUses checks the targets of the region's pointers.
func (h *modelHistory) checkUses(ctx context.Context, say string, uses []*modelUse) {
	for _, u := range uses {
		switch host := vkomp.HostPtr(u.array.bytes[u.lo:u.hi]); {
		case u.found == nil:
			if u.got != host {
				h.e.fail("%s: a pointer to %s[%d] is %v, want the host's", say, u.array.name, u.lo, u.got)
			}
		case u.got.Device() != h.e.device:
			h.e.fail("%s: a pointer to %s[%d] is %v, want one of the device", say, u.array.name, u.lo, u.got)
		default:
			got := make([]byte, len(u.want))
			if err := h.e.rt.Memcpy(ctx, vkomp.HostPtr(got), u.got, len(got)); err != nil {
				h.e.fail("%s: %v", say, err)
			}
			for i, v := range u.want {
				if v != modelUnknown && got[i] != byte(v) {
					h.e.fail("%s: byte %d at the pointer to %s[%d] is %d, want %d", say, i, u.array.name, u.lo, got[i], v)
					break
				}
			}
		}
	}
}
