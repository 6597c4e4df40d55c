package vkomp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
)

// targetOnHost generates a task that runs the kernel's Host variant on the initial device.
func (rt *Runtime) targetOnHost(ctx context.Context, c *current, t *Target, args []Arg, passed *clauses) error {
	told := c.encounter(&passed.Construct, &passed.directive)
	if told != nil {
		told.Data = passed.does
	}
	return told.done(ctx, rt.runOnHost(ctx, t, args, passed.Construct))
}

// runOnHost runs the kernel's Host variant.
func (rt *Runtime) runOnHost(ctx context.Context, t *Target, args []Arg, c construct.Construct) error {
	k := t.Kernel.k
	if k.host == nil {
		why := ""
		if rt.NumDevices() == 0 {
			why = ", and there is no other: " + rt.noDevices
		}
		return fmt.Errorf("target %q: %w: kernel %q has no Host variant for the initial device%s", c.Label, ErrUnsupported, k.name, why)
	}
	l := newHostLaunch(k.host)
	empty, err := l.bind(rt, t, args)
	if err != nil {
		l.giveBack()
		return fmt.Errorf("target %q: %w", c.Label, err)
	}
	r := host.Region{Construct: c, Target: true}
	if empty {
		l.giveBack()
	} else {
		r.Body = l.body
		var users pinnedUsers
		for i := range l.call.buffers {
			users = rt.pinned.use(users, l.call.buffers[i].storage)
		}
		if users != nil {
			r.Ender = users
		}
	}
	return rt.host.Run(ctx, r)
}

// hostLaunch is one launch of a Host variant. It is used again for later ones.
type hostLaunch struct {
	call HostCall
	host func(*HostCall) error
	// body is run as a function value, which is made once.
	body func(context.Context) error
}

var spareHostLaunches sync.Pool

func newHostLaunch(host func(*HostCall) error) *hostLaunch {
	l, _ := spareHostLaunches.Get().(*hostLaunch)
	if l == nil {
		l = new(hostLaunch)
		l.body = l.run
	}
	l.host = host
	return l
}

// bind sets the arguments of the call, and reports whether there is nothing to run.
func (l *hostLaunch) bind(rt *Runtime, t *Target, args []Arg) (empty bool, err error) {
	k, call := t.Kernel.k, &l.call
	call.name, call.Range = k.name, t.Range
	call.Range.Y = max(call.Range.Y, 1)
	call.Range.Z = max(call.Range.Z, 1)
	empty = t.Range.X == 0
	var few [16]uint64 // most kernels have no more arguments
	sizes := few[:0]
	for i := range args {
		a, err := args[i].hostArg(rt, argumentLabels.of(i))
		if err != nil {
			return false, err
		}
		if a.isValue() {
			call.values = append(call.values, a)
			continue
		}
		call.buffers = append(call.buffers, a)
		size := a.storage.Size
		if image := a.image(); image != nil {
			size = image.size // the value has another
		}
		sizes = append(sizes, size)
	}
	if k.shader != nil {
		var few [16][]byte
		values := few[:0]
		for i := range call.values { // args may be on a stack, which values must not refer to
			a := &call.values[i]
			if err := k.checkValue(i, &a.Arg); err != nil {
				return false, err
			}
			values = append(values, a.bytes())
		}
		if err := k.shader.Fits(nil, sizes, values); err != nil {
			return false, err
		}
		if !empty {
			err = k.shader.Bindable(sizes)
		}
	}
	return empty, err
}

// run runs the Host variant. If that panics or ends the goroutine, the launch is not used again.
func (l *hostLaunch) run(context.Context) error {
	err := errors.Join(l.host(&l.call), l.call.err)
	l.giveBack()
	return err
}

// giveBack lets go of everything that the launch refers to, and keeps its memory for another.
func (l *hostLaunch) giveBack() {
	clear(l.call.buffers)
	clear(l.call.values)
	l.call = HostCall{buffers: l.call.buffers[:0], values: l.call.values[:0]}
	l.host = nil
	spareHostLaunches.Put(l)
}
