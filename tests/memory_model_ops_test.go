package tests

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp"
)

// step adds a random construct.
func (h *modelHistory) step() {
	ops := [...]struct {
		weight int
		add    func()
	}{
		// Steps shrink to nothing.
		{1, func() {}}, {3, h.look}, {5, h.update}, {4, h.join}, {4, h.query}, {5, h.memset}, {4, h.hostTask}, {6, h.enterData}, {8, h.exitData},
		{4, h.free}, {7, h.memcpy}, {14, h.target}, {4, h.hostTarget}, {6, h.associate}, {5, h.rect}, {5, h.targetData},
		{3, h.disassociate}, {4, h.wrongPointer}, {4, h.through}, {6, h.alloc}, {4, h.taskwait},
	}
	total := 0
	for _, op := range ops {
		total += op.weight
	}
	n := h.evenly(total, "construct")
	for _, op := range ops {
		if n -= op.weight; n < 0 {
			op.add()
			return
		}
	}
}

// array draws an array that the next step may use.
func (h *modelHistory) array() *modelArray {
	if h.deferred {
		return pick(h, h.mine, "array")
	}
	return pick(h, h.arrays, "array")
}

// chunk draws a chunk that the next step may use.
func (h *modelHistory) chunk() *modelChunk {
	some := h.chunks
	if h.deferred {
		some = h.myChunks
	}
	if len(some) == 0 {
		return nil
	}
	return pick(h, some, "chunk")
}

// section draws a range of bytes of an array.
func (h *modelHistory) section(a *modelArray, words bool) (lo, hi int) {
	const all = 4 * modelArrayWords
	unit := 4
	if !words && h.rarely(8, "any byte") {
		unit = 1
	}
	blocks := a.blocks()
	how := h.below(10, "section")
	if len(blocks) == 0 && how >= 4 {
		how = 3
	}
	switch {
	case how < 2:
		return 0, all
	case how < 4:
		lo = h.below(all/unit, "from") * unit
		return lo, min(all, lo+unit*h.below(9, "size"))
	}
	b := pick(h, blocks, "block")
	lo, hi = b.lo, b.hi
	if words {
		lo, hi = (lo+3)&^3, hi&^3
		if lo >= hi {
			return lo &^ 3 % all, lo &^ 3 % all
		}
	}
	if how < 8 {
		return lo, hi
	}
	lo += h.below((hi-lo+unit-1)/unit, "in block") * unit
	return lo, min(hi, lo+unit*h.below(9, "size"))
}

// modifiers draws the modifiers of an item that maps.
func (h *modelHistory) modifiers(m modelMap) modelMap {
	switch h.below(24, "modifier") {
	case 10:
		m.closeBy = true
	case 11, 12, 13, 14:
		m.always = true
	case 15, 16:
		// Mostly where the storage is present.
		_, is := m.find()
		m.present = is == isInside || h.rarely(3, "absent")
	case 17:
		m.present, m.always = true, true
	case 18, 19:
		m.self = !m.empty()
	}
	m.asBytes, m.asSection = h.rarely(4, "as bytes"), h.rarely(4, "as section")
	return m
}

// items draws the items of a clause: one to three, or the items of an iterator.
func (h *modelHistory) items(kinds []modelMapType) []modelMap {
	if h.rarely(12, "iterator") {
		a := h.array()
		from, step := h.below(modelArrayWords, "begin"), 1+h.below(3, "step")
		kind := pick(h, kinds, "type")
		var items []modelMap
		for i := from; i+step <= modelArrayWords && len(items) < 4; i += step {
			items = append(items, modelMap{array: a, lo: 4 * i, hi: 4 * (i + step), kind: kind})
		}
		if len(items) > 0 {
			h.count("iterator")
			return items
		}
	}
	var items []modelMap
	for range 1 + h.below(3, "items") {
		m := modelMap{array: h.array(), kind: pick(h, kinds, "type")}
		m.lo, m.hi = h.section(m.array, false)
		items = append(items, m)
	}
	return items
}

func argsOf(items []modelMap) []vkomp.Arg {
	if n := len(items); n > 1 && !items[0].asSection && !items[0].asBytes {
		return vkomp.IterateMaps(0, n, 1, func(i int) vkomp.Arg { return items[i].arg() })
	}
	var args []vkomp.Arg
	for _, m := range items {
		args = append(args, m.arg())
	}
	return args
}

func (h *modelHistory) enterData() {
	items := h.items([]modelMapType{modelTo, modelAlloc, modelTo, modelFrom, modelToFrom})
	for i := range items {
		items[i] = h.modifiers(items[i])
		h.countModifiers(items[i])
	}
	h.count("enter data")
	h.call(modelCall{
		say: fmt.Sprint("enter data ", items), accesses: ofArrays(items), failing: refusesEntry(items, h.e.canShare),
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			return h.e.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: argsOf(items), Depend: depend, NoWait: deferred})
		},
		apply: func() { enterModel(items) },
	})
}

func (h *modelHistory) countModifiers(m modelMap) {
	for what, set := range map[string]bool{
		"always": m.always, "present": m.present, "self": m.self, "delete modifier": m.deleting, "close": m.closeBy, "zero length": m.empty(),
	} {
		if set {
			h.count(what)
		}
	}
}

func (h *modelHistory) exitData() {
	items := h.items([]modelMapType{modelFrom, modelRelease, modelFrom, modelDelete, modelTo, modelAlloc, modelToFrom})
	for i := range items {
		m := &items[i]
		switch h.below(24, "modifier") {
		case 10:
			m.closeBy = true
		case 11, 12, 13:
			m.always = true
		case 14, 15:
			_, is := m.find()
			m.present = is == isInside || h.rarely(3, "absent")
		case 16:
			m.deleting = true
		}
		m.asBytes, m.asSection = h.rarely(4, "as bytes"), h.rarely(4, "as section")
		h.countModifiers(*m)
	}
	h.exit(items)
}

func (h *modelHistory) exit(items []modelMap) {
	h.count("exit data")
	h.call(modelCall{
		say: fmt.Sprint("exit data ", items), accesses: ofArrays(items), failing: refusesExit(items),
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			return h.e.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: argsOf(items), Depend: depend, NoWait: deferred})
		},
		apply: func() {
			before := h.blocksOf(items)
			exitModel(items)
			for _, b := range before {
				if b.gone && b.asked {
					h.removed = append(h.removed, b)
				}
			}
		},
	})
}

// blocksOf returns the blocks that contain the items.
func (h *modelHistory) blocksOf(items []modelMap) (blocks []*modelBlock) {
	for _, m := range items {
		if b, _ := m.find(); b != nil && !slices.Contains(blocks, b) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// update copies sections with and without gaps.
func (h *modelHistory) update() {
	type motion struct {
		modelMap
		at  []int // bytes that are copied
		arg vkomp.Arg
		say string
	}
	var motions []motion
	var items []modelMap
	for range 1 + h.below(2, "motions") {
		m := motion{modelMap: modelMap{array: h.array(), kind: pick(h, []modelMapType{modelFrom, modelTo}, "motion")}}
		a := m.array
		if strided := h.rarely(3, "strided"); !strided {
			m.lo, m.hi = h.section(a, false)
			m.asBytes, m.asSection = h.rarely(4, "as bytes"), h.rarely(4, "as section")
			for i := m.lo; i < m.hi; i++ {
				m.at = append(m.at, i)
			}
		} else {
			h.count("strided")
			rows, columns := 1+h.below(4, "rows"), 1+h.below(4, "columns")
			var spans [2]vkomp.Span
			for d, n := range [...]int{rows, columns} {
				s := vkomp.Span{Start: h.below(n, "start"), Stride: 1 + h.below(3, "stride")}
				s.Count = h.below((n-1-s.Start)/s.Stride+2, "count")
				spans[d] = s
			}
			first := h.below(modelArrayWords-rows*columns+1, "from")
			for i := range spans[0].Count {
				for k := range spans[1].Count {
					at := 4 * (first + (spans[0].Start+i*spans[0].Stride)*columns + spans[1].Start + k*spans[1].Stride)
					m.at = append(m.at, at, at+1, at+2, at+3)
				}
			}
			if n := len(m.at); n > 0 {
				m.lo, m.hi = m.at[0], m.at[n-1]+1
			}
			item := vkomp.To[uint32]
			if m.kind == modelFrom {
				item = vkomp.From[uint32]
			}
			m.arg = item(a.words[first:]).Shape(rows, columns).Section(spans[0], spans[1])
			m.say = fmt.Sprintf(" as %v of [%d %d] from word %d", spans, rows, columns, first)
		}
		if m.present = h.rarely(10, "present"); m.say == "" {
			m.arg = m.modelMap.arg()
		} else if m.present {
			m.arg = m.arg.Present()
		}
		if slices.ContainsFunc(motions, func(o motion) bool { return o.overlaps(m.modelMap) }) {
			continue
		}
		motions = append(motions, m)
		items = append(items, m.modelMap)
	}
	var failing []error
	for _, m := range items {
		if !m.empty() {
			failing = append(failing, refusesExit([]modelMap{m})...)
		}
	}
	say := "update"
	var args []vkomp.Arg
	for _, m := range motions {
		say += " " + m.String() + m.say
		args = append(args, m.arg)
	}
	h.count("update")
	h.call(modelCall{
		say: say, accesses: ofArrays(items), failing: failing,
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			return h.e.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: args, Depend: depend, NoWait: deferred})
		},
		apply: func() {
			for _, m := range motions {
				b, _ := m.find()
				if b == nil || m.empty() {
					continue
				}
				host, device := m.array.host, b.device.bytes()
				for _, at := range m.at {
					if m.kind == modelTo {
						device[at-b.lo] = host[at]
					} else {
						host[at] = device[at-b.lo]
					}
				}
			}
		},
	})
}

// hostTask adds an explicit task that changes part of an array on the host.
func (h *modelHistory) hostTask() {
	a := h.array()
	lo, hi := h.section(a, false)
	c := byte(1 + h.below(100, "c"))
	reads := h.below(2, "reads") == 1
	h.count("task")
	h.call(modelCall{
		say: fmt.Sprintf("task on %s[%d:%d] with %d, reads %t", a.name, lo, hi, c, reads), accesses: ofArray(a, true),
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			return h.e.rt.Task(ctx, vkomp.Task{If: vkomp.If(deferred), Depend: depend, Body: func(context.Context) error {
				for i := lo; i < hi; i++ {
					if reads {
						a.bytes[i] = 3*a.bytes[i] + c
					} else {
						a.bytes[i] = c + byte(7*i)
					}
				}
				return nil
			}})
		},
		apply: func() {
			for i := lo; i < hi; i++ {
				switch v := a.host[i]; {
				case !reads:
					a.host[i] = int16(c + byte(7*i))
				case v != modelUnknown:
					a.host[i] = int16(3*byte(v) + c)
				}
			}
		},
	})
}

// hostTarget adds a target region whose if clause is false.
func (h *modelHistory) hostTarget() {
	src, dst := modelMap{array: h.array(), kind: modelTo}, modelMap{array: h.array(), kind: modelToFrom}
	src.lo, src.hi = h.section(src.array, true)
	dst.lo, dst.hi = h.section(dst.array, true)
	n, mul, fac, add := min(src.size(), dst.size())/4, uint32(h.below(4, "mul")), uint32(5*h.below(2, "fac")), uint32(h.below(100, "add"))
	h.count("target on the host")
	h.call(modelCall{
		say:      fmt.Sprintf("target on the host: %v and %v, %d·dst + %d·src + %d", src, dst, mul, fac, add),
		accesses: ofArrays([]modelMap{src, dst}),
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			return h.e.rt.Target(ctx, vkomp.Target{
				Kernel: h.e.affine, If: vkomp.If(false), Range: vkomp.Range{X: n}, NoWait: deferred, Depend: depend,
				Args: []vkomp.Arg{src.arg(), dst.arg(), vkomp.Value(uint32(n)), vkomp.Value(mul), vkomp.Value(fac), vkomp.Value(add)},
			})
		},
		apply: func() {
			affineModel(src.array.place(src.lo, src.hi), dst.array.place(dst.lo, dst.hi), n, mul, fac, add)
		},
	})
}

// join adds a taskwait with nowait.
func (h *modelHistory) join() {
	a := h.array()
	accesses := ofArray(a, h.below(2, "writes") == 1)
	h.count("join")
	h.call(modelCall{
		say: "taskwait nowait on " + a.name, accesses: accesses,
		invoke: func(ctx context.Context, deferred bool, depend []vkomp.Depend) error {
			if !deferred {
				return h.e.rt.Taskwait(ctx, depend...)
			}
			return h.e.rt.TaskwaitNoWait(ctx, depend...)
		},
		apply: func() {},
	})
}

// taskwait adds a taskwait, after which the host may write its arrays.
func (h *modelHistory) taskwait() {
	h.wait(h.below(2, "devices") == 1)
	if h.deferred {
		return
	}
	for _, a := range h.arrays {
		if h.below(3, "write") != 2 {
			continue
		}
		c := byte(h.below(100, "c"))
		for i := range a.host {
			a.host[i] = int16(c + byte(5*i))
		}
		h.emit(fmt.Sprintf("the host writes %s with %d", a.name, c), func(context.Context) {
			for i := range a.bytes {
				a.bytes[i] = c + byte(5*i)
			}
		})
	}
}

// look waits for one array and checks it.
func (h *modelHistory) look() {
	a := h.array()
	h.settle(ofArray(a, true))
	want := slices.Clone(a.host)
	h.count("look")
	h.emit("look at "+a.name, func(context.Context) {
		for i, v := range want {
			if v != modelUnknown && a.bytes[i] != byte(v) {
				h.e.fail("byte %d of %s is %d, want %d", i, a.name, a.bytes[i], v)
				return
			}
		}
	})
}

// query checks what is present.
func (h *modelHistory) query() {
	a := h.array()
	h.settle(ofArray(a, true))
	lo := h.below(4*modelArrayWords, "byte")
	b := a.owner[lo]
	h.count("query")
	if b != nil && !h.deferred {
		b.asked = true
	}
	h.emit(fmt.Sprintf("query of %s[%d]", a.name, lo), func(context.Context) {
		d, host := h.e.device, vkomp.HostPtr(a.bytes[lo:])
		p := d.MappedPtr(host)
		if d.IsPresent(host) != (b != nil) || p.IsNil() != (b == nil) {
			h.e.fail("%s[%d]: present %t, mapped to %v, want %t", a.name, lo, d.IsPresent(host), p, b != nil)
		}
		if d.IsAccessible(host, 1) {
			h.e.fail("%s[%d] of the host is accessible from device 0", a.name, lo)
		}
		if b == nil {
			return
		}
		b.pointer = p.Add(b.lo - lo)
		left := b.hi - lo
		if b.chunk != nil {
			left = len(b.chunk.memory) - b.device.lo - (lo - b.lo)
		}
		if p.Device() != d || !d.IsAccessible(p, left) || d.IsAccessible(p, left+1) {
			h.e.fail("%s[%d] is mapped to %v, of which not %d bytes are accessible, or more", a.name, lo, p, left)
		}
	})
}
