package vkomp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// racing is a program under Options.Race, with slices for its tasks. Random programs have memory of the device, too.
type racing struct {
	t       *testing.T
	rt      *vkomp.Runtime
	k       vkomp.Kernel
	x, y, z []float32
	memory  vkomp.DevicePtr
}

// axpy generates y += x, with or without waiting for it.
func (p *racing) axpy(ctx context.Context, noWait bool, x, y []float32, depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.Target(ctx, vkomp.Target{
		Kernel: p.k, Range: vkomp.Range{X: len(y)}, NoWait: noWait, Depend: depend,
		Args: []vkomp.Arg{vkomp.To(x[:len(y)]), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(1))},
	}))
}

// mapped generates y += x, deferred, with these maps of x and y.
func (p *racing) mapped(ctx context.Context, x, y vkomp.Arg) {
	p.t.Helper()
	must(p.t, p.rt.Target(ctx, vkomp.Target{
		Kernel: p.k, Range: vkomp.Range{X: len(p.y)}, NoWait: true, Args: []vkomp.Arg{x, y, vkomp.Value(uint32(len(p.y))), vkomp.Value(float32(1))},
	}))
}

func (p *racing) task(ctx context.Context, body func(ctx context.Context), depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.Task(ctx, vkomp.Task{Depend: depend, Body: func(ctx context.Context) error {
		if body != nil {
			body(ctx)
		}
		return nil
	}}))
}

func (p *racing) enter(ctx context.Context, noWait bool, m vkomp.Arg, depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m}, NoWait: noWait, Depend: depend}))
}

func (p *racing) exit(ctx context.Context, noWait bool, m vkomp.Arg, depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m}, NoWait: noWait, Depend: depend}))
}

func (p *racing) update(ctx context.Context, noWait bool, m vkomp.Arg, depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m}, NoWait: noWait, Depend: depend}))
}

func (p *racing) pause(ctx context.Context) {
	p.t.Helper()
	must(p.t, p.rt.PauseResource(ctx, vkomp.PauseHard, p.rt.DefaultDevice(ctx)))
}

func (p *racing) wait(ctx context.Context, depend ...vkomp.Depend) {
	p.t.Helper()
	must(p.t, p.rt.Taskwait(ctx, depend...))
}

// fulfilledBehindAxpy generates an undeferred detachable task with out(z), whose event is fulfilled by a task that has
// waited for y += x.
func (p *racing) fulfilledBehindAxpy(ctx context.Context) {
	p.t.Helper()
	var event vkomp.Event
	must(p.t, p.rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Detach: &event, Depend: []vkomp.Depend{out(p.z)}, Body: func(context.Context) error { return nil }}))
	p.task(ctx, func(ctx context.Context) {
		p.axpy(ctx, false, p.x, p.y)
		must(p.t, event.Fulfill())
	})
}

// races runs a program and returns the races that were found. Close has to report the same
// ones.
func races(t *testing.T, o vkomp.Options, program func(ctx context.Context, p *racing)) []vkomp.Race {
	t.Helper()
	o.Race = true
	rt, err := vkomp.Open(o)
	must(t, err)
	p := &racing{t: t, rt: rt, k: newKernel(t, rt, shaders.Saxpy), x: constant(64, 1), y: constant(64, 0), z: constant(64, 0)}
	program(t.Context(), p)
	must(t, rt.Taskwait(t.Context()))
	err = rt.Close()
	found := rt.Races()
	if errors.Is(err, vkomp.ErrRace) != (len(found) > 0) {
		t.Errorf("%d races, and Close returns %v", len(found), err)
	}
	for _, r := range found {
		if !strings.Contains(err.Error(), r.Error()) {
			t.Errorf("Close returns %v, which lacks %v", err, r)
		}
	}
	return found
}

var in, out, inout = vkomp.In[float32], vkomp.Out[float32], vkomp.InOut[float32]

// unequal is an error that is not comparable.
type unequal []string

func (u unequal) Error() string { return strings.Join(u, " ") }

// A wait whose context ends first returns the cause, of whatever type it is, and has ordered nothing: what it was to wait for
// races with what comes later.
func TestWaitThatIsGivenUpOrdersNothing(t *testing.T) {
	for name, cause := range map[string]error{"comparable": errors.New("given up"), "not comparable": unequal{"given up"}, "of a comparable type": struct{ error }{unequal{"given up"}}} {
		for construct, wait := range map[string]func(ctx context.Context, p *racing, begin func(ctx context.Context)) error{
			"taskwait": func(ctx context.Context, p *racing, begin func(ctx context.Context)) error {
				begin(p.t.Context())
				return p.rt.Taskwait(ctx)
			},
			"taskgroup": func(ctx context.Context, p *racing, begin func(ctx context.Context)) error {
				return p.rt.Taskgroup(ctx, func(ctx context.Context) error {
					begin(context.WithoutCancel(ctx))
					return nil
				})
			},
		} {
			t.Run(construct+"/"+name, func(t *testing.T) {
				found := races(t, vkomp.Options{}, func(ctx context.Context, p *racing) {
					waiting, cancel := context.WithCancelCause(ctx)
					over := make(chan struct{})
					err := wait(waiting, p, func(ctx context.Context) {
						p.task(ctx, func(ctx context.Context) {
							p.axpy(ctx, false, p.x, p.y)
							cancel(cause)
							<-over
						})
					})
					if err == nil || !strings.Contains(err.Error(), "given up") {
						t.Errorf("got %v", err)
					}
					p.axpy(ctx, true, p.x, p.y)
					close(over)
				})
				if len(found) != 1 {
					t.Errorf("races %v", found)
				}
			})
		}
	}
}

// racePrograms are pairs of programs: clean orders two tasks by a construct, and racy lacks
// what orders them. device says that the pair needs a device with a data environment of its
// own.
var racePrograms = []struct {
	name        string
	device      bool
	racy, clean func(ctx context.Context, p *racing)
}{
	{"depend out, in", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		p.axpy(ctx, true, p.y, p.z)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y))
	}},
	{"depend of one task alone", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.y, p.z)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.x, p.z)
	}},
	{"depend in where the task writes", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, in(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, in(p.x))
		p.axpy(ctx, true, p.x, p.z, in(p.x))
	}},
	{"a path by another slice", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.x, p.z, out(p.z))
		p.axpy(ctx, true, p.z, p.y, in(p.z))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y), out(p.z))
		p.axpy(ctx, true, p.z, p.y, in(p.z))
	}},
	{"storage that is not held after a hard pause", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.pause(ctx)
		p.axpy(ctx, true, p.x, p.y, out(p.z))
		p.task(ctx, nil, in(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.pause(ctx)
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.task(ctx, nil, in(p.y))
	}},
	{"mutexinoutset", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, vkomp.MutexInOutSet(p.y))
		p.axpy(ctx, true, p.z, p.y, vkomp.MutexInOutSet(p.z))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, vkomp.MutexInOutSet(p.y))
		p.axpy(ctx, true, p.z, p.y, vkomp.MutexInOutSet(p.y))
	}},
	{"inoutset", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, vkomp.InOutSet(p.x))
		p.axpy(ctx, true, p.z, p.y, vkomp.InOutSet(p.x))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, vkomp.InOutSet(p.y))
		p.axpy(ctx, true, p.z, p.y, vkomp.InOutSet(p.y))
	}},
	{"omp_all_memory", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		p.axpy(ctx, true, p.z, p.y, vkomp.InOutAllMemory())
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, in(p.x))
		p.axpy(ctx, true, p.z, p.y, vkomp.InOutAllMemory())
		p.axpy(ctx, true, p.y, p.z, in(p.x))
	}},
	{"taskwait", false, func(ctx context.Context, p *racing) {
		p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y) })
		p.wait(ctx) // for the task, and not for its child
		p.axpy(ctx, true, p.z, p.y)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		p.wait(ctx)
		p.axpy(ctx, true, p.z, p.y)
	}},
	{"taskwait with depend", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.x, p.z, out(p.z))
		p.wait(ctx, in(p.z))
		p.axpy(ctx, true, p.x, p.y)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.axpy(ctx, true, p.x, p.z, out(p.z))
		p.wait(ctx, in(p.y))
		p.axpy(ctx, true, p.x, p.y)
	}},
	{"taskwait nowait depend", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		must(p.t, p.rt.TaskwaitNoWait(ctx, in(p.y), out(p.z)))
		p.axpy(ctx, true, p.x, p.y)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		must(p.t, p.rt.TaskwaitNoWait(ctx, in(p.y), out(p.z)))
		p.axpy(ctx, true, p.x, p.y, in(p.z))
	}},
	{"taskgroup", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		must(p.t, p.rt.Taskgroup(ctx, func(ctx context.Context) error { p.axpy(ctx, true, p.x, p.z); return nil }))
		p.axpy(ctx, true, p.z, p.y)
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Taskgroup(ctx, func(ctx context.Context) error {
			p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y) })
			return nil
		}))
		p.axpy(ctx, true, p.z, p.y)
	}},
	{"a child", false, func(ctx context.Context, p *racing) {
		p.task(ctx, func(ctx context.Context) {
			p.axpy(ctx, true, p.x, p.y)
			p.axpy(ctx, true, p.z, p.y)
		}, inout(p.y))
	}, func(ctx context.Context, p *racing) {
		p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y) }, inout(p.y))
	}},
	{"a child that its parent does not wait for", false, func(ctx context.Context, p *racing) {
		p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y) }, out(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y))
	}, func(ctx context.Context, p *racing) {
		p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y); p.wait(ctx) }, out(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y))
	}},
	{"included target", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		p.axpy(ctx, false, p.z, p.y)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, false, p.x, p.y)
		p.axpy(ctx, true, p.z, p.y)
	}},
	{"undeferred task", false, func(ctx context.Context, p *racing) {
		p.task(ctx, nil, out(p.x))
		must(p.t, p.rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y)
			return nil
		}}))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Depend: []vkomp.Depend{out(p.x)}, Body: func(context.Context) error { return nil }}))
		p.axpy(ctx, true, p.x, p.y)
	}},
	{"host task", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		p.task(ctx, nil, in(p.y))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.task(ctx, nil, in(p.y))
	}},
	{"detached task", false, func(ctx context.Context, p *racing) {
		var event vkomp.Event
		must(p.t, p.rt.Task(ctx, vkomp.Task{Detach: &event, Depend: []vkomp.Depend{out(p.x)}, Body: func(context.Context) error { return nil }}))
		p.axpy(ctx, true, p.x, p.y)
		must(p.t, event.Fulfill())
	}, func(ctx context.Context, p *racing) {
		var event vkomp.Event
		must(p.t, p.rt.Task(ctx, vkomp.Task{Detach: &event, Depend: []vkomp.Depend{out(p.z)}, Body: func(context.Context) error { return nil }}))
		// The event is fulfilled by a task that has waited for a task which the detached task's
		// dependent follows.
		p.task(ctx, func(ctx context.Context) {
			p.axpy(ctx, false, p.x, p.y)
			must(p.t, event.Fulfill())
		})
		p.axpy(ctx, true, p.y, p.x, in(p.z))
	}},
	{"undeferred detached task", false, func(ctx context.Context, p *racing) {
		p.fulfilledBehindAxpy(ctx)
		p.axpy(ctx, true, p.y, p.x)
	}, func(ctx context.Context, p *racing) {
		p.fulfilledBehindAxpy(ctx)
		p.axpy(ctx, true, p.y, p.x, in(p.z))
	}},
	{"final task", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		must(p.t, p.rt.Task(ctx, vkomp.Task{Final: true, Body: func(ctx context.Context) error { p.axpy(ctx, true, p.z, p.y); return nil }}))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{Final: true, Body: func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y)
			p.axpy(ctx, true, p.z, p.y)
			return nil
		}}))
	}},
	{"transparent task", false, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{out(p.z)}, Body: func(ctx context.Context) error { p.axpy(ctx, true, p.x, p.y, out(p.y)); return nil }}))
		p.axpy(ctx, true, p.x, p.y, in(p.z), out(p.y))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{Transparent: vkomp.Export, Depend: []vkomp.Depend{out(p.z)}, Body: func(ctx context.Context) error { p.axpy(ctx, true, p.x, p.y, out(p.y)); return nil }}))
		p.axpy(ctx, true, p.x, p.y, in(p.z), out(p.y))
	}},
	{"priority", false, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{Priority: 2, Depend: []vkomp.Depend{out(p.y)}, Body: func(context.Context) error { return nil }}))
		p.axpy(ctx, true, p.x, p.y)
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.Task(ctx, vkomp.Task{Priority: 2, Depend: []vkomp.Depend{out(p.y)}, Body: func(context.Context) error { return nil }}))
		p.axpy(ctx, true, p.x, p.y, out(p.y))
	}},
	{"sub-slices", false, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y[:33])
		p.axpy(ctx, true, p.x, p.y[32:])
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y[:32])
		p.axpy(ctx, true, p.x, p.y[32:])
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"depend items that name parts", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, in(p.x), out(p.y[:33]))
		p.axpy(ctx, true, p.x, p.y, in(p.x), vkomp.InOutSet(p.y[32:]))
		p.axpy(ctx, true, p.x, p.y)
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, in(p.x), out(p.y[:32]))
		p.axpy(ctx, true, p.x, p.y, in(p.x), out(p.y[32:]))
	}},
	{"depend in of a slice, out of a part", false, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y, in(p.y), out(p.y[:32]))
		p.axpy(ctx, true, p.x, p.y[32:]) // writes what the first reads
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y, in(p.y), out(p.y[:32]))
		p.axpy(ctx, true, p.y, p.z, in(p.y[32:]))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"memcpy", false, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		must(p.t, p.rt.MemcpyAsync(ctx, vkomp.HostPtr(p.z), vkomp.HostPtr(p.y), 256))
	}, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		must(p.t, p.rt.MemcpyAsync(ctx, vkomp.HostPtr(p.z), vkomp.HostPtr(p.y), 256, in(p.y)))
	}},
	{"device pointers", false, func(ctx context.Context, p *racing) { p.pointers(ctx) }, func(ctx context.Context, p *racing) {
		p.pointers(ctx, inout(p.x))
	}},
	{"target data", true, func(ctx context.Context, p *racing) {
		p.axpy(ctx, true, p.x, p.y)
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			return nil // the end of the region waits only for tasks of the body
		}))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(p.x), vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.task(ctx, func(ctx context.Context) { p.axpy(ctx, true, p.x, p.y) })
			return nil
		}))
		p.task(ctx, nil, inout(p.y))
	}},
	{"target data nogroup", true, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.update(ctx, true, vkomp.To(p.y)) // an update does not keep the slice mapped
			return nil
		}))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.To(p.x), vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y)
			return nil
		}))
	}},
	{"a map type of less than a target data nogroup", true, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.mapped(ctx, vkomp.To(p.x), vkomp.To(p.y)) // the kernel writes y, and the end of the region copies it back
			return nil
		}))
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.To(p.x), vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.mapped(ctx, vkomp.To(p.x), vkomp.ToFrom(p.y))
			return nil
		}))
	}},
	{"target data nogroup in one that holds the storage", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.ToFrom(p.y).Always()}}, func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y) // the end of the region copies y to the host meanwhile
			return nil
		}))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.update(ctx, true, vkomp.To(p.y))
			return nil
		}))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"target data nowait", true, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoWait: true, Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			return nil
		}))
		p.axpy(ctx, true, p.x, p.y)
	}, func(ctx context.Context, p *racing) {
		must(p.t, p.rt.TargetData(ctx, vkomp.TargetData{NoWait: true, Depend: []vkomp.Depend{vkomp.MutexInOutSet(p.y)}, Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}}, func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y)
			return nil
		}))
		p.task(ctx, nil, vkomp.MutexInOutSet(p.y))
		p.axpy(ctx, true, p.x, p.y, out(p.y))
	}},
	{"target update", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y)
		p.update(ctx, true, vkomp.From(p.y))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		p.update(ctx, true, vkomp.From(p.y), in(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y)) // reads the device's copy, as the update does
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"sections of target update", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.update(ctx, true, vkomp.From(p.y).Shape(8, 8).Section(vkomp.Span{Count: 8}, vkomp.Span{Count: 4}))
		p.update(ctx, true, vkomp.From(p.y).Shape(8, 8).Section(vkomp.Span{Count: 8}, vkomp.Span{Start: 3, Count: 5}))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.update(ctx, true, vkomp.From(p.y).Shape(8, 8).Section(vkomp.Span{Count: 8}, vkomp.Span{Count: 4}))
		p.update(ctx, true, vkomp.From(p.y).Shape(8, 8).Section(vkomp.Span{Count: 8}, vkomp.Span{Start: 4, Count: 4}))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"the host's storage of what is mapped", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.task(ctx, nil, out(p.y))
		p.update(ctx, true, vkomp.To(p.y))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.task(ctx, nil, out(p.y)) // writes the host's copy
		p.axpy(ctx, true, p.x, p.y)
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"target enter data", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, true, vkomp.To(p.y))
		p.axpy(ctx, true, p.x, p.y)
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, true, vkomp.To(p.y), out(p.y))
		p.axpy(ctx, true, p.x, p.y, inout(p.y))
		p.wait(ctx)
		p.exit(ctx, false, vkomp.Release(p.y))
	}},
	{"target exit data", true, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.y, p.z)
		p.exit(ctx, true, vkomp.Release(p.y))
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.y))
		p.enter(ctx, false, vkomp.To(p.y))
		p.axpy(ctx, true, p.y, p.z, in(p.y))
		p.exit(ctx, true, vkomp.Release(p.y)) // lowers the reference count
		p.exit(ctx, true, vkomp.From(p.y), out(p.y))
		p.task(ctx, nil, in(p.y))
	}},
	{"a pointer to mapped storage", true, func(ctx context.Context, p *racing) { p.through(ctx) }, func(ctx context.Context, p *racing) {
		p.through(ctx, inout(p.y))
	}},
	{"memory in front of what is associated", true, func(ctx context.Context, p *racing) {
		p.associated(ctx, 256, func(d vkomp.Device, q vkomp.DevicePtr) {
			p.axpy(ctx, true, p.x, p.y)
			must(p.t, d.MemsetAsync(ctx, q, 0, 260))
		})
	}, func(ctx context.Context, p *racing) {
		p.associated(ctx, 256, func(d vkomp.Device, q vkomp.DevicePtr) {
			p.axpy(ctx, true, p.x, p.y, out(p.y))
			must(p.t, d.MemsetAsync(ctx, q, 0, 256))
			must(p.t, d.MemsetAsync(ctx, q.Add(256), 0, 256, inout(p.y)))
		})
	}},
	{"memory behind what is associated", true, func(ctx context.Context, p *racing) {
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			must(p.t, d.MemsetAsync(ctx, q.Add(256), 0, 256))
			must(p.t, p.rt.MemcpyAsync(ctx, vkomp.HostPtr(constant(128, 0)), q, 260))
		})
	}, func(ctx context.Context, p *racing) {
		w := constant(128, 0)
		p.y, p.z = w[:64], w[64:]
		p.enter(ctx, false, vkomp.To(p.z)) // adjacent on the host alone
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			must(p.t, d.MemsetAsync(ctx, q, 0, 512))
			p.axpy(ctx, true, p.x, p.z)
		})
		p.exit(ctx, false, vkomp.Release(p.z))
	}},
	{"a pointer to memory of which some is associated", true, func(ctx context.Context, p *racing) {
		p.associated(ctx, 256, func(d vkomp.Device, q vkomp.DevicePtr) {
			p.axpy(ctx, true, p.x, p.y)
			p.mapped(ctx, vkomp.To(p.x), vkomp.IsDevicePtr(q))
		})
	}, func(ctx context.Context, p *racing) {
		p.associated(ctx, 256, func(d vkomp.Device, q vkomp.DevicePtr) {
			p.axpy(ctx, true, p.x, p.y)
			p.mapped(ctx, vkomp.To(p.x), vkomp.HasDeviceAddr[float32](q, 64))
		})
	}},
	{"memory that was associated", true, func(ctx context.Context, p *racing) {
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			p.axpy(ctx, true, p.x, p.y)
			must(p.t, d.DisassociatePtr(ctx, vkomp.HostPtr(p.y)))
			must(p.t, d.MemsetAsync(ctx, q, 0, 256))
		})
	}, func(ctx context.Context, p *racing) {
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			must(p.t, d.MemsetAsync(ctx, q, 0, 256))
			must(p.t, d.DisassociatePtr(ctx, vkomp.HostPtr(p.y)))
			p.axpy(ctx, true, p.x, p.y) // in storage of its own
		})
	}},
	{"two slices that are associated with the same memory", true, func(ctx context.Context, p *racing) {
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			must(p.t, d.AssociatePtr(ctx, vkomp.HostPtr(p.z), q, 256, 128))
			p.axpy(ctx, true, p.x, p.y, vkomp.InOutSet(p.y))
			p.axpy(ctx, true, p.x, p.z, vkomp.InOutSet(p.z))
		})
	}, func(ctx context.Context, p *racing) {
		p.enter(ctx, false, vkomp.To(p.x))
		p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
			must(p.t, d.AssociatePtr(ctx, vkomp.HostPtr(p.z), q, 256, 128))
			p.axpy(ctx, true, p.x, p.y[:32])
			p.axpy(ctx, true, p.x, p.z, out(p.z))
			p.axpy(ctx, true, p.x, p.y[32:], in(p.z), vkomp.InOutSet(p.y))
			p.axpy(ctx, true, p.x, p.y[32:], in(p.z), vkomp.InOutSet(p.y))
		})
		p.exit(ctx, false, vkomp.Release(p.x))
	}},
}

// associated runs body with y associated with 256 of 512 bytes of memory of the device, from the
// offset on.
func (p *racing) associated(ctx context.Context, offset int, body func(d vkomp.Device, q vkomp.DevicePtr)) {
	d := p.rt.DefaultDevice(ctx)
	q, err := d.Alloc(ctx, 512)
	must(p.t, err)
	must(p.t, d.AssociatePtr(ctx, vkomp.HostPtr(p.y), q, 256, offset))
	body(d, q)
	p.wait(ctx)
	for _, s := range [][]float32{p.y, p.z} {
		if err := d.DisassociatePtr(ctx, vkomp.HostPtr(s)); err != nil && !errors.Is(err, vkomp.ErrNotPresent) && !errors.Is(err, vkomp.ErrAssociated) {
			p.t.Error(err)
		}
	}
	must(p.t, d.Free(ctx, q))
}

// pointers fills memory of the device and copies it, with these depend items on both tasks.
func (p *racing) pointers(ctx context.Context, depend ...vkomp.Depend) {
	d := p.rt.DefaultDevice(ctx)
	m, err := d.Alloc(ctx, 512)
	must(p.t, err)
	must(p.t, d.MemsetAsync(ctx, m, 1, 260, depend...))
	must(p.t, p.rt.MemcpyAsync(ctx, vkomp.HostPtr(p.y), m.Add(256), 256, depend...))
	p.wait(ctx)
	must(p.t, d.Free(ctx, m))
	// New memory at the same address is other storage.
	m, err = d.Alloc(ctx, 512)
	must(p.t, err)
	must(p.t, d.MemsetAsync(ctx, m, 1, 512))
	p.wait(ctx)
	must(p.t, d.Free(ctx, m))
}

// through copies from mapped storage, by the pointer that a region gives, behind a kernel on
// the slice.
func (p *racing) through(ctx context.Context, depend ...vkomp.Depend) {
	var at vkomp.DevicePtr
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(p.y)}, Use: []vkomp.UseDevice{vkomp.UseDevicePtr(p.y[8:], &at)}}
	must(p.t, p.rt.TargetData(ctx, region, func(ctx context.Context) error {
		p.axpy(ctx, true, p.x, p.y, depend...)
		must(p.t, p.rt.MemcpyAsync(ctx, at, vkomp.HostPtr(p.z), 64, depend...))
		p.wait(ctx)
		return nil
	}))
}

func TestRacesOfProgramsAndNoneOfThoseThatOrder(t *testing.T) {
	vktest.LongConcurrent(t)
	host := vkomp.Options{LookupEnv: environment("OMP_TARGET_OFFLOAD", "disabled", "OMP_NUM_THREADS", "3", "OMP_MAX_TASK_PRIORITY", "5")}
	for _, c := range racePrograms {
		t.Run(c.name, func(t *testing.T) {
			for where, o := range map[string]vkomp.Options{"device": {LookupEnv: environment("OMP_MAX_TASK_PRIORITY", "5")}, "staging": {MemoryPath: vkomp.MemoryStaged}, "host": host} {
				// On the host, Go's own race detector would see these races too. Kernels access
				// more than their tasks declare there, and inoutset orders nothing.
				if (c.device || vktest.GoRaces) && where == "host" {
					continue
				}
				// The path of memory matters only to what a device's data environment does.
				if where == "staging" && !c.device {
					continue
				}
				if !vktest.GoRaces {
					if found := races(t, o, c.racy); len(found) == 0 {
						t.Errorf("%s: no race is found", where)
					}
				}
				if found := races(t, o, c.clean); len(found) != 0 {
					t.Errorf("%s: found %v", where, found)
				}
			}
		})
	}
}

// TestRaceNamesBothPlacesAndTheMissingClause checks the report of a race: two target tasks
// write and read a part of y, and the depend clause of neither, or of only one, names it.
func TestRaceNamesBothPlacesAndTheMissingClause(t *testing.T) {
	for _, c := range []struct {
		first, second func(y []float32) []vkomp.Depend
		advice        string
	}{
		{none, none, "add depend(out: argument 1) to the first and depend(in: argument 0) to the second, or wait in between"},
		{one(out), none, "add depend(in: argument 0) to the second, or wait in between"},
		{one(in), one(in), "add depend(out: argument 1) to the first, or wait in between"},
		{one(inout), one(in), ""},
	} {
		if vktest.GoRaces && c.advice != "" {
			continue
		}
		var log bytes.Buffer
		o := vkomp.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError - 1}))}
		o.Logger = slog.New(onlyRaces{o.Logger.Handler()})
		found := races(t, o, func(ctx context.Context, p *racing) {
			y := p.y[16:48]
			// The first launch compiles the kernel. Tasks that nothing orders could enter in
			// either order while they wait for that, and the larger section does not fit into
			// the block of the smaller one.
			p.axpy(ctx, false, p.x, p.z)
			for range 3 { // it is reported once for all three
				must(t, p.rt.Target(ctx, vkomp.Target{Kernel: p.k, Range: vkomp.Range{X: 64}, Args: saxpyArgs(p.x, p.y), NoWait: true, Depend: c.first(p.y), Label: "first"}))
				must(t, p.rt.Target(ctx, vkomp.Target{Kernel: p.k, Range: vkomp.Range{X: 32}, Args: saxpyArgs(y, p.z[:32]), NoWait: true, Depend: c.second(p.y)}))
				must(t, p.rt.Taskwait(ctx))
			}
		})
		if c.advice == "" {
			if len(found) != 0 || log.Len() != 0 {
				t.Errorf("with the clause: found %v, logged %q", found, log.String())
			}
			continue
		}
		if len(found) != 1 {
			t.Fatalf("found %v, want one race", found)
		}
		want := regexp.MustCompile(`^race between tasks: task "first" \(.*race_test\.go:(\d+)\) writes argument 1, and task "saxpy" \(.*race_test\.go:(\d+)\) reads argument 0, both the 128 bytes at 0x[0-9a-f]+ on the host: ` + regexp.QuoteMeta(c.advice) + `$`)
		m := want.FindStringSubmatch(found[0].Error())
		if m == nil {
			t.Fatalf("the report is\n%v\nwant\n%v", found[0], want)
		}
		var a, b int
		fmt.Sscan(m[1]+" "+m[2], &a, &b)
		if b != a+1 {
			t.Errorf("the places are lines %d and %d", a, b)
		}
		if f := found[0].First; !strings.HasSuffix(f.Function, "TestRaceNamesBothPlacesAndTheMissingClause.func1") || len(f.Stack) < 2 || !strings.HasSuffix(f.Site, fmt.Sprintf("race_test.go:%d", f.Stack[0].Line)) {
			t.Errorf("the first place is %+v", f)
		}
		if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), c.advice) {
			t.Errorf("the log has %q", log.String())
		}
	}
}

// A race on associated storage is reported by the address of the slice that the first task uses.
func TestRaceOnAssociatedStorageNamesTheSlice(t *testing.T) {
	for _, c := range []struct {
		second func(ctx context.Context, p *racing)
		advice string
	}{
		{func(ctx context.Context, p *racing) { p.axpy(ctx, true, p.x, p.y[32:]) }, "add depend(out: argument 1) to the second, or wait in between"},
		{func(ctx context.Context, p *racing) { p.axpy(ctx, true, p.x, p.z) }, "add depend items in common, of a slice that stands for that memory: out for what writes, in for what reads"},
	} {
		var want uint64
		found := races(t, vkomp.Options{}, func(ctx context.Context, p *racing) {
			want = vkomp.HostPtr(p.y).Address() + 128
			p.enter(ctx, false, vkomp.To(p.x))
			p.associated(ctx, 0, func(d vkomp.Device, q vkomp.DevicePtr) {
				must(t, d.AssociatePtr(ctx, vkomp.HostPtr(p.z), q, 256, 128))
				p.axpy(ctx, true, p.x, p.y, out(p.y))
				c.second(ctx, p)
			})
			p.exit(ctx, false, vkomp.Release(p.x))
		})
		if len(found) != 1 || found[0].Address != want || found[0].Size != 128 || found[0].Device == vkomp.InitialDeviceNumber || found[0].Advice != c.advice {
			t.Errorf("found %v, want one race at %#x with the advice %q", found, want, c.advice)
		}
	}
}

func none([]float32) []vkomp.Depend { return nil }

func one(kind func([]float32) vkomp.Depend) func(y []float32) []vkomp.Depend {
	return func(y []float32) []vkomp.Depend { return []vkomp.Depend{kind(y)} }
}

func saxpyArgs(x, y []float32) []vkomp.Arg {
	return []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), vkomp.Value(float32(2))}
}

// onlyRaces passes on what is logged about races.
type onlyRaces struct{ slog.Handler }

func (h onlyRaces) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (h onlyRaces) Handle(ctx context.Context, r slog.Record) error {
	if r.Message != vkomp.ErrRace.Error() {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func TestNothingIsFoundWithoutTheOption(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{})
	must(t, err)
	p := &racing{t: t, rt: rt, k: newKernel(t, rt, shaders.Saxpy), x: constant(64, 1), y: constant(64, 0)}
	p.axpy(t.Context(), true, p.x, p.y)
	p.axpy(t.Context(), true, p.x, p.y)
	p.wait(t.Context())
	if err := rt.Close(); err != nil || len(rt.Races()) != 0 {
		t.Errorf("Close: %v; races %v", err, rt.Races())
	}
}

// A task that was dropped counts as complete: tasks that depend on it come after its
// predecessors.
func TestRaceDetectorTakesDroppedTasksForComplete(t *testing.T) {
	found := races(t, vkomp.Options{LookupEnv: environment("OMP_CANCELLATION", "true")}, func(ctx context.Context, p *racing) {
		gate, w := make(chan struct{}), constant(1, 0)
		p.task(ctx, func(context.Context) { <-gate }, out(w))
		p.axpy(ctx, true, p.x, p.y, out(p.y))
		must(t, p.rt.Taskgroup(ctx, func(ctx context.Context) error {
			p.task(ctx, nil, in(w), in(p.y), out(p.z))
			err := p.rt.CancelTaskgroup(ctx)
			close(gate)
			return err
		}))
		p.axpy(ctx, true, p.x, p.y, in(p.z))
	})
	if len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

// The end of a data region whose copies fail unmaps its slices. A later map copies them anew, which can race.
func TestRaceDetectorSeesTheEndOfADataRegionThatFails(t *testing.T) {
	faults := vktest.InjectFaults(t)
	rt := vktest.Open(t, vktest.Staging, func(o *vkomp.Options) { o.Race = true })
	ctx := t.Context()
	p := &racing{t: t, rt: rt, k: newKernel(t, rt, shaders.Saxpy), x: constant(4000, 1), y: constant(4000, 0)}
	err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.From(p.y)}}, func(context.Context) error {
		faults.Fail("vkQueueSubmit", 1, -1, vk.ErrorOutOfHostMemory)
		return nil
	})
	faults.Mend()
	refused(t, "a region whose copy fails", err, vkomp.ErrOutOfMemory)
	p.axpy(ctx, true, p.x, p.y)
	p.task(ctx, nil, in(p.y))
	must(t, rt.Taskwait(ctx))
	if n := len(rt.Races()); n != 1 {
		t.Errorf("%d races of the copy to the host with the task that reads it", n)
	}
	err = rt.Close()
	refused(t, "Close", err, vkomp.ErrRace)
}
