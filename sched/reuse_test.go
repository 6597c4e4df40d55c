package sched

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// leftovers names what a target that was given back would carry over to its next task: every
// field that is not zero, and every reference in slices that it keeps for their memory.
func leftovers(t *target) (left []string) { return leftoversOf(reflect.ValueOf(t).Elem()) }

// leftoversOf is leftovers for a record of either kind.
func leftoversOf(record reflect.Value) (left []string) {
	keeps := func(path string, v reflect.Value) {
		if v.Len() > 0 {
			left = append(left, fmt.Sprintf("%d %s", v.Len(), path))
		}
		switch path {
		case "dispatch.push", "dispatch.ranges", "dispatch.plan.Calls", "items":
			// These hold numbers, which are written before they are read.
			return
		case "ops":
			for i := range v.Cap() {
				if op := v.Slice3(0, v.Cap(), v.Cap()).Index(i); !op.IsNil() && !op.Elem().IsZero() {
					left = append(left, fmt.Sprintf("%s[%d]", path, i))
				}
			}
			return
		}
		if all := v.Slice3(0, v.Cap(), v.Cap()); v.Cap() > 0 {
			for i := range all.Len() {
				if !all.Index(i).IsZero() {
					left = append(left, fmt.Sprintf("%s[%d]", path, i))
				}
			}
		}
	}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), path+v.Type().Field(i).Name
			switch {
			case name == "s" || name == "end" || name == "wake" || name == "order.Task.Owner":
			case name == "observed":
				if !f.IsNil() {
					walk("", f.Elem())
				}
			case f.Kind() == reflect.Slice:
				keeps(strings.TrimPrefix(name, "Region."), f)
			case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[order.SyncPoint]() && f.Type() != reflect.TypeFor[vk.Pipeline]():
				walk(name+".", f)
			case !f.IsZero():
				left = append(left, name)
			}
		}
	}
	walk("", record)
	return left
}

// spares takes all targets that the scheduler keeps for later tasks.
func (s *Scheduler) spares() (targets []*target) {
	for {
		t, _ := s.spare.Get().(*target)
		if t == nil {
			return targets
		}
		targets = append(targets, t)
	}
}

// Whatever way a task ends, its target has nothing of it left when it is used for another task.
func TestRecycledTargetCarriesNothingOver(t *testing.T) {
	ways := map[string]func(r *rig){
		"success":          func(r *rig) { newWorkload().run(r) },
		"submission fails": func(r *rig) { r.failNext(); p := newWorkload(); p.run(r); p.leave(r) },
		"late failure":     func(r *rig) { f := newLateFailure(r); f.successor(); f.fail() },
		"launch is refused": func(r *rig) {
			r.s.Run(context.Background(), r.region(launch{label: "none", kernel: "mix", args: []arg{to(nil), to(nil), to(nil)}}))
		},
		"entry fails": func(r *rig) {
			x := filled(32, 1)
			r.run(launch{label: "enter", enter: []arg{to(x[:16])}, included: true})
			for _, included := range []bool{false, true} {
				r.s.Run(context.Background(), r.region(launch{label: "overlaps", kernel: "add", args: []arg{tofrom(x)}, included: included}))
			}
			r.run(launch{label: "exit", exit: []arg{from(x[:16])}, included: true})
		},
		"memory is short": func(r *rig) {
			r.d.hold()
			r.d.create = func(int) error {
				if r.d.live >= 2 {
					return errBlockMemory
				}
				return nil
			}
			for range 4 {
				g := r.region(launch{label: "large", kernel: "set", args: []arg{alloc(array32(3 << 18))}})
				g.Range[0] = 1
				r.s.Run(context.Background(), g)
			}
		},
		"wait is cut short": func(r *rig) {
			x := filled(16, 0)
			r.d.hold()
			for range 4 {
				r.s.Run(ended, r.region(launch{label: "cut", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, included: true}))
			}
		},
		"task is dropped": func(r *rig) {
			x := filled(16, 0)
			for range 4 {
				r.s.Run(ended, r.region(launch{label: "dropped", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, priority: 1}))
			}
		},
		"join": func(r *rig) {
			x, token := filled(16, 0), array32(1)
			r.d.hold()
			for range 4 {
				r.run(launch{label: "before", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}})
				r.joined(x, token)
			}
		},
		"foreign work has failed": func(r *rig) {
			x := filled(16, 0)
			f := &foreignWork{r: r, semaphore: 77}
			for range 4 {
				if err := f.order(false, errors.New("foreign"), x); err != nil {
					r.t.Fatal(err)
				}
			}
		},
		"exit finds nothing": func(r *rig) {
			r.run(launch{label: "exit", exit: []arg{{s: filled(16, 0), kind: memory.MapDelete}}, included: true})
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, mode := range memoryModes {
				for k := range poolTries {
					r := newRig(t, mode, 1)
					r.watches = k%2 == 0
					way(r)
					r.d.release()
					r.scope.Wait(context.Background(), nil)
					for _, spare := range r.s.spares() {
						found++
						if left := leftovers(spare); len(left) > 0 {
							t.Fatalf("%s: a target carries over %v", mode.name, left)
						}
					}
					r.close()
				}
			}
			if found == 0 && name != "wait is cut short" {
				t.Error("no target was kept")
			}
		})
	}
}

// Contexts of included tasks end at random moments, among deferred tasks. Tasks whose construct
// no longer waits go on: each does its work once, and no target is taken for that of another
// task.
func TestTargetsWhoseWaitIsCutShortAreNotMistaken(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 5)
			defer r.close()
			onHost := host.NewDevice(2)
			var wg sync.WaitGroup
			for worker := range 4 {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(worker), 3))
					scope := r.graph.NewScope()
					x, token := filled(16, 0), array32(1)
					want := uint32(0)
					for i := range uint32(120) {
						want += i
						ctx, cancel := context.WithCancel(context.Background())
						l := launch{label: fmt.Sprint(worker, " ", i), kernel: "add", args: []arg{tofrom(x)}, constant: i, scope: scope,
							depend: depends([]tasks.DependKind{tasks.DependInOut, tasks.DependMutexInOutSet}[rng.IntN(2)], x)}
						switch rng.IntN(6) {
						case 0:
							cancel()
							l.included = true
						case 1, 2:
							l.included = true
							yields := rng.IntN(30)
							go func() {
								for range yields {
									runtime.Gosched()
								}
								cancel()
							}()
						case 3:
							r.addTo(scope, &tasks.Task{Label: "join", Domain: tasks.AnyDomain, Runner: joiner{r.s},
								Depend: append(depends(tasks.DependIn, x), depends(tasks.DependInOut, token)...)})
							l.depend = depends(tasks.DependInOut, x, token)
						case 4:
							if err := onHost.Run(context.Background(), host.Region{
								Construct: construct.Construct{Label: l.label, Scope: scope, Depend: l.depend, NoWait: rng.IntN(2) == 0},
								Body: func(context.Context) error {
									for k := range x {
										x[k] += i
									}
									return nil
								},
							}); err != nil {
								t.Error(err)
							}
							cancel()
							continue
						}
						if err := r.s.Run(ctx, r.region(l)); err != nil && !(l.included && errors.Is(err, context.Canceled)) {
							t.Errorf("%s: %v", l.label, err)
						}
						if l.included {
							cancel()
						} else {
							// The task is deferred: the end of its context would drop it.
							defer cancel()
						}
					}
					if err := scope.Wait(context.Background(), nil); err != nil {
						t.Error(err)
					}
					if x[0] != want || x[15] != want {
						t.Errorf("worker %d: x is %d … %d, want %d", worker, x[0], x[15], want)
					}
				})
			}
			wg.Wait()
		})
	}
}
