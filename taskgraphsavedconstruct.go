package vkomp

import (
	"context"
	"slices"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// slice returns a part of the storage, nil for one that is in none.
func (r *savedRun) slice(at *savedPlace) []byte {
	if at.Storage < 0 {
		return nil
	}
	return r.storage[at.Storage][at.Offset : at.Offset+at.Size]
}

// generate generates the task of a construct.
func (r *savedRun) generate(ctx context.Context, c *savedConstruct) error {
	var depend []Depend
	for i := range c.Depend {
		at := sectionOf(r.slice(&c.Depend[i].savedPlace))
		depend = append(depend, Depend{tasks.Depend{Kind: tasks.DependKind(c.Depend[i].Kind), Ptr: at.Ptr, Size: at.Size}})
	}
	var items []Arg
	for i := range c.Items {
		items = append(items, r.item(&c.Items[i]))
	}
	for i := range c.Values {
		items = append(items, r.value(&c.Values[i]))
	}
	switch c.Kind {
	case savedTarget:
		return r.rt.Target(ctx, Target{
			Device: r.devices[c.Device], Kernel: r.kernels[c.Kernel], Args: items, Depend: depend, NoWait: true,
			Range: Range{int(c.Range[0]), int(c.Range[1]), int(c.Range[2])}, Priority: c.Priority, Label: c.Label,
		})
	case savedEnter:
		return r.rt.TargetEnterData(ctx, TargetEnterData{Device: r.devices[c.Device], Maps: items, Depend: depend, NoWait: true, Label: c.Label})
	case savedExit:
		return r.rt.TargetExitData(ctx, TargetExitData{Device: r.devices[c.Device], Maps: items, Depend: depend, NoWait: true, Label: c.Label})
	case savedUpdate:
		return r.rt.TargetUpdate(ctx, TargetUpdate{Device: r.devices[c.Device], Motions: items, Depend: depend, NoWait: true, Label: c.Label})
	case savedMemcpy:
		return r.rt.MemcpyAsync(ctx, r.end(c.Dst), r.end(c.Src), int(c.Bytes), depend...)
	case savedMemset:
		dst := r.end(c.Dst)
		d := dst.Device()
		if d == (Device{}) {
			d = r.rt.InitialDevice()
		}
		return d.MemsetAsync(ctx, dst, c.Value, int(c.Bytes), depend...)
	}
	if slices.ContainsFunc(depend, func(d Depend) bool { return d.item.Kind == tasks.DependMutexInOutSet }) {
		// It stands for a construct that has moved nothing: a taskwait does not take such items. The copy of nothing is a
		// task on the host, for which later tasks on devices wait.
		return r.rt.MemcpyAsync(ctx, DevicePtr{}, DevicePtr{}, 0, depend...)
	}
	return r.rt.TaskwaitNoWait(ctx, depend...)
}

// item returns an item of a clause.
func (r *savedRun) item(i *savedItem) Arg {
	if i.Memory != nil {
		p := r.pointer(i.Memory)
		if i.Bound {
			return HasDeviceAddr[byte](p, int(i.Size))
		}
		return IsDevicePtr(p)
	}
	s := r.slice(&i.savedPlace)
	if i.Implicit {
		return Implicit(s)
	}
	a := mapSlice(s, memory.MapType(i.Type))
	a.always, a.deletes, a.presence = i.Always, i.Delete, memory.Presence(i.Presence)
	return a
}

// value returns a value argument.
func (r *savedRun) value(v *savedValue) Arg {
	switch {
	case v.Host != nil:
		return AddressOf(r.slice(v.Host))
	case v.Memory != nil:
		return Value(r.pointer(v.Memory))
	}
	a := Arg{kind: argValue, size: len(v.Bytes)}
	if a.size <= inlineValue {
		copy(a.data[:], v.Bytes)
	} else {
		a.at.host = sectionOf(v.Bytes)
	}
	return a
}

func (r *savedRun) pointer(p *savedPointer) DevicePtr { return r.memory[p.Memory].Add(int(p.Offset)) }

// end returns an end of a copy or a fill.
func (r *savedRun) end(e *savedEnd) DevicePtr {
	if e.Host != nil {
		return HostPtr(r.slice(e.Host))
	}
	return r.pointer(e.Memory)
}
