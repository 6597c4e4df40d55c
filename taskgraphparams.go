package vkomp

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// Param is a parameter of a taskgraph with its value at one encounter: an element of
// Taskgraph.Params, made with Bind.
type Param struct {
	of *param
	// storage is the slice of a ParamSlice, of so many elements; capacity is in bytes.
	storage  memory.Section
	elements int
	capacity int
	// arg is the value of a ParamVar as an argument of a kernel, and value the value itself.
	arg   Arg
	value any
}

// param is the identity of a parameter: its address.
type param struct{ _ byte }

// ParamSlice is a parameter of taskgraphs: a slice that can be another at each encounter, of the
// same length. The zero ParamSlice is ready for use. It must not be copied.
//
// Items of the block's constructs belong to the parameter by their storage: a slice that lies in
// the slice to which the parameter is bound, in an argument, a depend item or a [HostPtr], stands
// for the same elements of the slice to which it is bound at the replay. One that lies there only in
// part is [ErrNotReplayable], and so is a value with a [Mapper]. A block whose parameters are bound
// to slices that overlap makes no record. The body of a task calls Get.
//
// In a taskgraph that the body of a task encounters, the parameters of the taskgraphs around are parameters
// too. An item that lies in slices of several taskgraphs belongs to that of the innermost.
type ParamSlice[T any] struct{ p param }

// Bind returns the parameter with its slice for one encounter.
func (p *ParamSlice[T]) Bind(s []T) Param {
	section := sectionOf(s)
	return Param{of: &p.p, storage: section, elements: len(s), capacity: capacity(s)}
}

// Get returns the slice of the encounter to which ctx belongs: ctx is that of the block, or of the
// body of a task that the block has generated. It returns nil for any other context.
func (p *ParamSlice[T]) Get(ctx context.Context) []T {
	b := boundIn(ctx, &p.p)
	if b == nil {
		return nil
	}
	var zero T
	elements := b.elements
	if size := int(unsafe.Sizeof(zero)); size > 0 {
		elements = b.capacity / size
	}
	return unsafe.Slice((*T)(b.storage.Ptr), elements)[:b.elements]
}

// ParamVar is a parameter of taskgraphs: a value that can be another at each encounter. The zero
// ParamVar is ready for use. It must not be copied.
//
// To a parameter that is a [DevicePtr] also belong the pointers into the same allocation or, for a
// [HostPtr], to the same slice: arguments, and the ends of copies and fills. They stand for pointers at the
// same distance from the pointer to which it is bound at the replay. A block of which two parameters point
// into the same memory makes no record.
type ParamVar[T any] struct{ p param }

// Bind returns the parameter with its value for one encounter.
func (p *ParamVar[T]) Bind(v T) Param {
	return Param{of: &p.p, arg: Value(v), value: v}
}

// Get returns the value of the encounter to which ctx belongs, as [ParamSlice.Get] does, and the
// zero T for any other context. What a block computes from it is recorded with its result.
func (p *ParamVar[T]) Get(ctx context.Context) T {
	var v T
	if b := boundIn(ctx, &p.p); b != nil {
		v, _ = b.value.(T) // nil, if T is an interface, is of no type
	}
	return v
}

// Arg returns the value as an argument of a kernel, as [Value] does. A replay passes the value to
// which the parameter is bound then. With a context that belongs to no encounter the argument is
// the zero Arg, which constructs refuse.
func (p *ParamVar[T]) Arg(ctx context.Context) Arg {
	b := boundIn(ctx, &p.p)
	if b == nil {
		return Arg{}
	}
	escape(unsafe.Pointer(&p.p))
	a := b.arg
	a.param = &p.p
	return a
}

// bindings are the parameters of an encounter, and those of the encounters around it.
type bindings struct {
	// params has the encounter's own parameters first, and then, from the nearest encounter to the farthest,
	// those of the others that are not bound again. own is the number of the former.
	params []Param
	own    int
	// depth says how many encounters are between the encounter and that of each parameter.
	depth []int
	// used says which parameters a record that is made with the bindings depends on besides its own.
	used []atomic.Bool
}

// boundKey is the key of the bindings in contexts.
type boundKey struct{}

// bind returns a context with the parameters of an encounter, and its bindings, nil if there are no
// parameters.
func bind(ctx context.Context, params []Param) (context.Context, *bindings) {
	outer, _ := ctx.Value(boundKey{}).(*bindings)
	if len(params) == 0 && outer == nil {
		return ctx, nil
	}
	b := &bindings{params: slices.Clone(params), own: len(params), depth: make([]int, len(params))}
	if outer != nil {
		for i := range outer.params {
			if b.find(outer.params[i].of) < 0 {
				b.params, b.depth = append(b.params, outer.params[i]), append(b.depth, outer.depth[i]+1)
			}
		}
	}
	b.used = make([]atomic.Bool, len(b.params))
	return context.WithValue(ctx, boundKey{}, b), b
}

// boundIn returns the parameter with its value in ctx, nil if it has none.
func boundIn(ctx context.Context, p *param) *Param {
	b, _ := ctx.Value(boundKey{}).(*bindings)
	at := b.find(p)
	if at < 0 {
		return nil
	}
	b.used[at].Store(true) // the block may compute anything from it
	return &b.params[at]
}

// find returns the index of a parameter, -1 if it is not bound.
func (b *bindings) find(p *param) int {
	if b != nil {
		for i := range b.params {
			if b.params[i].of == p {
				return i
			}
		}
	}
	return -1
}

// like reports whether a record made with b is one for the parameters of other: both encounters have the same
// parameters of their own, and those of the encounters around them that the record uses.
func (b *bindings) like(other *bindings) bool {
	if b.owned() != other.owned() {
		return false
	}
	for i := 0; b != nil && i < len(b.params); i++ {
		if i >= b.own && !b.used[i].Load() {
			continue
		}
		k := other.find(b.params[i].of)
		if k < 0 || i < b.own && k >= other.own || other.params[k].elements != b.params[i].elements {
			return false
		}
	}
	return true
}

// owned returns the number of the encounter's own parameters.
func (b *bindings) owned() int {
	if b == nil {
		return 0
	}
	return b.own
}

// ordered returns the bindings with the parameters in the order of those of a record, which they fit.
func (b *bindings) ordered(record *bindings) *bindings {
	if b == nil {
		return nil
	}
	if record == nil || slices.EqualFunc(b.params, record.params, func(p, q Param) bool { return p.of == q.of }) {
		return b
	}
	o := &bindings{params: make([]Param, len(record.params))}
	for i := range record.params {
		// The record does not use one that is not found.
		if k := b.find(record.params[i].of); k >= 0 {
			o.params[i] = b.params[k]
		}
	}
	return o
}

// ofRecord returns what a complete record keeps of the bindings with which it was made. It reports false if
// the record uses two parameters of the same encounter around that share storage or memory: an item could
// belong to either.
func (b *bindings) ofRecord() (kept *bindings, ok bool) {
	if b == nil {
		return nil, true
	}
	if !b.distinct(func(i int) bool { return i >= b.own && b.used[i].Load() }) {
		return nil, false
	}
	kept = &bindings{params: slices.Clone(b.params), own: b.own, used: make([]atomic.Bool, len(b.params))}
	for i := range kept.params {
		if used := b.used[i].Load(); used || i < b.own {
			kept.used[i].Store(used)
		} else {
			kept.params[i] = Param{of: b.params[i].of}
		}
	}
	return kept, true
}

// distinct reports whether no two of the chosen parameters that one encounter binds share storage or memory,
// so that it is known which of them an item belongs to.
func (b *bindings) distinct(chosen func(i int) bool) bool {
	for i := 0; b != nil && i < len(b.params); i++ {
		for k := range i {
			if b.depth[i] == b.depth[k] && chosen(i) && chosen(k) &&
				(overlap(b.params[i].section(), b.params[k].section()) || b.params[i].pointsTo(&b.params[k].arg.at)) {
				return false
			}
		}
	}
	return true
}

// section returns the host storage of a slice, or that into which a pointer points. That of a slice without
// elements has one byte, if the slice has a capacity.
func (a *Param) section() memory.Section {
	s := a.storage
	if a.arg.kind == argPointer {
		s = a.arg.at.host
	}
	if s.Size == 0 && a.capacity > 0 {
		s.Size = 1
	}
	return s
}

// pointsTo reports whether the parameter is a pointer into the memory into which p points.
func (a *Param) pointsTo(p *DevicePtr) bool {
	own := &a.arg.at
	switch {
	case a.arg.kind != argPointer || own.IsNil() || own.d != p.d:
		return false
	case own.onVulkan():
		return own.p.Add(int64(p.p.Address-own.p.Address)) == p.p
	}
	return own.block == p.block && own.host == p.host
}

// overlap reports whether two sections have a byte in common.
func overlap(a, b memory.Section) bool {
	return a.Size > 0 && b.Size > 0 && a.Start() < b.End() && b.Start() < a.End()
}

// place says which item of a recorded construct belongs to a parameter, and how many bytes after the
// beginning of the parameter's slice, or after its pointer, the item begins.
type place struct {
	item, param int
	offset      uint64
	// limited says of an Implicit or AddressOf that its capacity was less than that of the parameter's slice
	// from there on when it was recorded, and limit is that capacity in bytes.
	limited bool
	limit   int
}

// use returns the place of an item that belongs to a parameter.
func (b *bindings) use(param, item int, offset uint64) place {
	b.used[param].Store(true)
	return place{item: item, param: param, offset: offset}
}

// placeOf returns the place of an item, false if it belongs to no parameter.
func (b *bindings) placeOf(item int, s memory.Section) (p place, ok bool, err error) {
	if b == nil || s.Ptr == nil {
		return place{}, false, nil
	}
	for i := range b.params {
		all := b.params[i].storage
		first := memory.Section{Ptr: s.Ptr, Size: max(s.Size, 1)}
		switch {
		case !overlap(first, all):
			continue
		case s.Start() < all.Start() || s.End() > all.End():
			if i >= b.own {
				continue // it was not made from that parameter, of which the block need not know
			}
			return place{}, false, fmt.Errorf("it lies only in part in the slice of parameter %d", i)
		}
		return b.use(i, item, uint64(s.Start()-all.Start())), true, nil
	}
	for i := range b.params {
		// A slice without elements can have a capacity.
		if b.params[i].capacity > 0 && b.params[i].storage == s {
			return b.use(i, item, 0), true, nil
		}
	}
	return place{}, false, nil
}

// pointerPlace returns the place of an item that is a pointer.
func (b *bindings) pointerPlace(item int, p *DevicePtr) (at place, ok bool, err error) {
	if p.d == nil {
		if at, ok, err = b.placeOf(item, p.host); ok || err != nil {
			return at, ok, err
		}
	}
	for i := 0; b != nil && i < len(b.params); i++ {
		if b.params[i].pointsTo(p) {
			return b.use(i, item, p.Address()-b.params[i].arg.at.Address()), true, nil
		}
	}
	return place{}, false, nil
}

// dependPlaces returns the places of depend items.
func (b *bindings) dependPlaces(items []tasks.Depend) (places []place, err error) {
	for i := range items {
		p, ok, err := b.placeOf(i, memory.Section{Ptr: items[i].Ptr, Size: items[i].Size})
		if err != nil {
			return nil, fmt.Errorf("depend item %d: %w", i, err)
		}
		if ok {
			places = append(places, p)
		}
	}
	return places, nil
}

// argPlaces returns the places of arguments.
func (b *bindings) argPlaces(args []Arg, labels *itemLabels) (places []place, err error) {
	if b == nil {
		return nil, nil
	}
	for i := range args {
		a := &args[i]
		if k := b.find(a.param); k >= 0 {
			places = append(places, b.use(k, i, 0))
			continue
		}
		p, ok, err := b.argPlace(i, a)
		for k := 0; k < len(a.members()) && !ok && err == nil; k++ {
			_, ok, err = b.placeOf(i, a.members()[k].arg.at.host)
		}
		if err == nil && ok && a.image() != nil {
			err = fmt.Errorf("a mapped value in the slice of a parameter")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", labels.of(i), err)
		}
		if ok {
			places = append(places, p)
		}
	}
	return places, nil
}

// argPlace returns the place of an argument that is not the value of a parameter.
func (b *bindings) argPlace(item int, a *Arg) (p place, ok bool, err error) {
	switch a.kind {
	case argValue: // the storage, if any, has the value
	case argPointer, argDevicePtr, argDeviceAddr:
		return b.pointerPlace(item, &a.at)
	default:
		p, ok, err = b.placeOf(item, a.at.host)
		if ok && a.kind != argMap {
			p.limit = a.size
			p.limited = a.size < b.params[p.param].capacity-int(p.offset)
		}
	}
	return p, ok, err
}

// pointerAt returns the address of an item in the slices of other bindings.
func (b *bindings) pointerAt(p place) unsafe.Pointer {
	return unsafe.Add(b.params[p.param].storage.Ptr, p.offset)
}

// movePointer makes a pointer that of the parameter's value.
func (b *bindings) movePointer(p *DevicePtr, to place) {
	now := &b.params[to.param]
	if now.arg.kind != argPointer {
		p.host.Ptr = b.pointerAt(to)
		return
	}
	elem := p.elem
	if *p = now.arg.at.Add(int(to.offset)); p.elem == nil {
		p.elem = elem // that of a HasDeviceAddr
	}
}

// moveDepends makes the items those of the parameters' slices.
func (b *bindings) moveDepends(items []tasks.Depend, places []place) {
	for _, p := range places {
		items[p.item].Ptr = b.pointerAt(p)
	}
}

// moveArgs makes the arguments those of the parameters' values.
func (b *bindings) moveArgs(args []Arg, places []place) {
	for _, p := range places {
		a, now := &args[p.item], &b.params[p.param]
		if a.param == now.of {
			*a = now.arg
			a.param = now.of
			continue
		}
		b.movePointer(&a.at, p)
		switch a.kind {
		case argImplicit, argAddress:
			a.size = now.capacity - int(p.offset)
			if p.limited {
				a.size = min(a.size, p.limit)
			}
		}
		if a.kind == argAddress || a.kind == argPointer {
			address := a.at.Address()
			copy(a.data[:], unsafe.Slice((*byte)(unsafe.Pointer(&address)), pointerSize))
		}
	}
}
