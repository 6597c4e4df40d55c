package vkomp

import (
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
)

// What listeners are told that constructs do to storage.

// argumentData is what a kernel on d does to its arguments.
func argumentData(k *sharedKernel, args []Arg, d *device) *observe.Data {
	data := &observe.Data{}
	binding := -1
	for i := range args {
		arg := &args[i]
		if arg.isValue() {
			continue
		}
		binding++
		a := observe.Argument{Reads: true, Writes: true, Label: argumentLabels.of(i)}
		switch {
		case k.shader != nil:
			a.Reads, a.Writes = k.shader.Access(binding)
		case arg.kind == argMap:
			a.Writes = arg.mapType != memory.MapTo
		}
		if !arg.describe(&a, d) {
			continue
		}
		data.Arguments = append(data.Arguments, a)
		for k := range arg.members() {
			m := arg.member(k)
			member := observe.Argument{Reads: true, Writes: m.mapType != memory.MapTo, Label: a.Label}
			if m.describe(&member, d) {
				data.Arguments = append(data.Arguments, member)
			}
		}
	}
	return data
}

// describe says how a kernel on d gets at the argument's storage. It reports whether there
// is any, as far as it is known.
func (a *Arg) describe(u *observe.Argument, d *device) bool {
	onHost := d.physical == nil
	switch a.kind {
	case argMap:
		u.Kind = observe.Mapped
		u.Map, _ = a.item(u.Label) // else the argument was refused
	case argImplicit:
		u.Kind = observe.Implicit
		u.Map.Section = memory.Section{Ptr: a.at.host.Ptr, Size: uint64(a.size)}
	default:
		u.Kind, u.Pointer, u.ToEnd = observe.ByPointer, a.at.p, a.kind == argDevicePtr
		if a.kind == argDeviceAddr {
			u.Size = uint64(max(a.size, 0))
		}
		if !onHost {
			break
		}
		at, err := d.rt.endpoint(&a.at, 0, u.Size)
		if err != nil || at.d != nil {
			return false
		}
		u.Map.Section = at.host
		if a.kind == argDeviceAddr {
			u.Map.Size = u.Size
		}
	}
	if onHost {
		u.Kind = observe.OnHost
	}
	return true
}

// data is what a data directive without a body does.
func (c *clauses) data() *observe.Data {
	return &observe.Data{Enter: c.Enter, Exit: c.Exit, Updates: c.Transfers}
}

// data is what the beginning of the region does, or its end.
func (r *dataRegion) data(ending bool) *observe.Data {
	if !ending {
		return &observe.Data{Enter: r.enter}
	}
	return &observe.Data{Exit: r.exit, Ends: true, NoGroup: r.noGroup}
}

// data is what the routine does.
func (r *routine) data() *observe.Data {
	if r.rows.RowBytes == 0 {
		return nil
	}
	return &observe.Data{Copy: &observe.Copy{Rows: r.rows, Dst: r.dst.described(), Src: r.src.described(), Fill: r.fills != nil}}
}

func (e *endpoint) described() observe.Side {
	if e.d == nil {
		return observe.Side{Host: e.host.Ptr}
	}
	return observe.Side{Device: e.d.number, Pointer: e.p}
}
