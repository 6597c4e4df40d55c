package sched

import (
	"context"
	"errors"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/tasks"
)

var errBody = errors.New("the body's failure")

// dropped generates tasks that must not run: their group is cancelled, their context ends, or a
// task that they depend on fails. They depend on a host task, the gate, which ends only when
// that has happened, so that none of them can have started before.
func (p *program) dropped(s *programScope) {
	const (
		cancelled = "cancelled"
		ended     = "ended"
		failed    = "after a failure"
	)
	cause := rapid.SampledFrom([]string{cancelled, ended, failed}).Draw(p.t, "cause")
	x := p.section(s)
	gateItems := p.items(tasks.DependInOut, x)
	late := cause != failed && rapid.Bool().Draw(p.t, "before the tasks are made")
	ctx, cancel := context.WithCancel(context.Background())
	group := tasks.NewGroup(s.group())
	label := p.say("%s, late %v, on %v:", cause, late, x)

	var deferred, beforeTheGate, afterTheGate []func()
	for range rapid.IntRange(1, 3).Draw(p.t, "tasks") {
		y := x
		y.lo = rapid.IntRange(x.lo, x.hi-1).Draw(p.t, "from cell")
		kind := rapid.SampledFrom([]tasks.DependKind{tasks.DependIn, tasks.DependInOut, tasks.DependMutexInOutSet, tasks.DependInOutSet}).Draw(p.t, "kind")
		depend, array := p.items(kind, y), y.of(y.v.host)
		by := rapid.SampledFrom(carriers).Draw(p.t, "carrier")
		label := p.say("    not run: %s %v of %v", by, kind, y)
		body := func(context.Context) error { p.fail("%s runs", label); return nil }
		g := host.Region{Construct: construct.Construct{Label: label, Scope: s.scope, Depend: depend, NoWait: true, Group: group}, Target: by == onPoolTarget, Body: body}
		l := launch{label: label, kernel: "add", args: []arg{tofrom(array)}, constant: 1000, depend: depend, scope: s.scope, group: group}
		switch {
		case by == onDevice || by.target() && cause != cancelled:
			deferred = append(deferred, func() {
				if err := p.r.s.Run(ctx, p.r.region(l)); err != nil {
					p.fail("%s: %v", label, err)
				}
			})
		case by.target():
			l.included = true
			afterTheGate = append(afterTheGate, func() {
				if err := p.r.s.Run(context.Background(), p.r.region(l)); err != tasks.ErrCancelled {
					p.fail("%s: %v", label, err)
				}
			})
		case by == onCaller || by == onCallerTarget:
			g.NoWait, g.Target = false, by == onCallerTarget
			switch cause {
			case ended:
				beforeTheGate = append(beforeTheGate, func() {
					if err := p.host.Run(ctx, g); !errors.Is(err, context.Canceled) {
						p.fail("%s: %v", label, err)
					}
				})
			case failed:
				afterTheGate = append(afterTheGate, func() {
					if err := p.host.Run(ctx, g); !errors.Is(err, errBody) {
						p.fail("%s: %v", label, err)
					}
				})
			case cancelled:
				afterTheGate = append(afterTheGate, func() {
					if err := p.host.Run(context.Background(), g); err != tasks.ErrCancelled {
						p.fail("%s: %v", label, err)
					}
				})
			}
		default:
			deferred = append(deferred, func() {
				if err := p.host.Run(ctx, g); err != nil {
					p.fail("%s: %v", label, err)
				}
			})
		}
	}
	p.then(s, func() {
		gate := make(chan struct{})
		p.r.addTo(s.scope, &tasks.Task{Label: label, Depend: gateItems, Runner: hostFailure(func() error {
			<-gate
			if cause == failed {
				return errBody
			}
			return nil
		})})
		end := group.Cancel
		if cause == ended {
			end = cancel
		}
		all := [...][]func(){deferred, {end}, beforeTheGate, {func() { close(gate) }}, afterTheGate}
		if late {
			all[0], all[1] = all[1], all[0]
		}
		if cause == failed {
			all[1] = nil
		}
		p.released(func() {
			for _, list := range all {
				for _, f := range list {
					f()
				}
			}
			err := group.Wait(context.Background(), nil)
			if cause == cancelled && err != nil {
				p.fail("%s the group got %v", label, err)
			}
			want := map[string]error{ended: context.Canceled, failed: errBody}[cause]
			if err = errors.Join(err, s.scope.Wait(context.Background(), nil)); !errors.Is(err, want) {
				p.fail("%s got %v, want %v", label, err, want)
			}
		})
		cancel()
	})
}

// hostFailure is the runner of a host task that can fail, on a goroutine of its own.
type hostFailure func() error

func (f hostFailure) Start(n *tasks.Node, _ *tasks.Work) {
	go func() {
		err := f()
		w := tasks.NewWork()
		n.Complete(err, w)
		w.Finish()
	}()
}

func (hostFailure) Recycle() {}
