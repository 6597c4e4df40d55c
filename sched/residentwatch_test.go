package sched

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// leaver is a watch that does something at the first event of a kind.
type leaver struct {
	*watch
	at string
	do func()
}

func (l *leaver) happens(event string) {
	if l.at == event {
		l.at = ""
		l.do()
	}
}

func (l *leaver) Created(*tasks.Node, []tasks.Depend) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.created = true
}

func (l *leaver) Begin() {
	l.watch.Begin()
	l.happens("begin")
}

func (l *leaver) Map(items []ompt.MapItem) {
	l.watch.Map(items)
	l.happens("map")
}

func (l *leaver) Op(end ompt.ScopeEndpoint, o *construct.Op) {
	if end == ompt.ScopeEnd {
		l.happens("placed")
	}
	l.watch.Op(end, o)
	returned := false
	defer func() {
		if !returned {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.open, o) // it does not hear of the end
		}
	}()
	l.happens(fmt.Sprint("operation ", end == ompt.ScopeEnd))
	returned = true
}

func (l *leaver) End(err error) {
	l.watch.End(err)
	l.happens("end")
}

// doing gives the constructs with the label "leaves" an observer that does something at an event, and
// those with the label "alone" none.
func (r *rig) doing(at string, do func()) {
	r.observe = func(label string) construct.Observer {
		r.watches = label != "alone"
		by := r.watched(label)
		r.watches = false
		if label == "leaves" {
			return &leaver{by.(*watch), at, do}
		}
		return by
	}
}

// An observer that ends the goroutine fails its task if the task is not placed. Otherwise the task goes
// on, and so do those that are complete at the same time.
func TestObserverThatLeavesAResidentTask(t *testing.T) {
	for at, fails := range map[string]bool{"begin": true, "map": true, "operation false": true, "operation true": false, "end": false} {
		for _, general := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, general %v", at, general), func(t *testing.T) {
				mode := memoryModes[1]
				mode.general = general
				r := newRig(t, mode, 1)
				defer r.close()
				r.doing(at, runtime.Goexit)
				x, y := filled(16, 1), filled(16, 1)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
				r.busy() // they all are in one batch
				for _, l := range []launch{
					{label: "before", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 1},
					{label: "leaves", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 2},
					{label: "after", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 4},
					{label: "alone", kernel: "add", args: []arg{tofrom(y)}, out: [][]uint32{y}, constant: 8},
					{label: "beside", kernel: "add", args: []arg{tofrom(y)}, out: [][]uint32{y}, constant: 16},
				} {
					over := make(chan struct{})
					go func() {
						defer close(over)
						_ = r.s.Run(t.Context(), r.region(l))
					}()
					<-over
					if l.label == "before" {
						r.resides(x)
					}
				}
				r.d.release()
				want := uint32(8)
				if err := r.scope.Wait(t.Context(), nil); errors.Is(err, protect.ErrGoexit) != fails || err != nil != fails {
					t.Errorf("got %v", err)
				}
				if fails {
					want = 2
				}
				r.s.mu.Lock()
				block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
				if n, _ := block.Count(); n != 1 || stateOf(block).residents != 0 {
					t.Errorf("%d references, %d tasks", n, stateOf(block).residents)
				}
				r.s.mu.Unlock()
				r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
				r.expect("x", x, filled(16, want)...)
				r.expect("y", y, filled(16, 25)...)
			})
		}
	}
}

// While the observer hears of a task that has entered, the task's storage loses its other references.
func TestStorageChangesWhileTheObserverHearsOfIt(t *testing.T) {
	for _, at := range []string{"map", "operation false", "operation true"} {
		inBothWays(t, func(t *testing.T, r *rig) {
			x, called := filled(16, 1), false
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.d.hold()
			r.doing(at, func() {
				called = true
				r.resides(x)
				r.run(launch{label: "release", exit: []arg{{s: x, kind: memory.MapRelease}}, scope: r.graph.NewScope()})
				r.eventually("the kernel has the last reference", func() bool {
					block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
					n, _ := block.Count()
					return n == 1
				})
			})
			r.run(launch{label: "leaves", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 2})
			r.d.release()
			r.taskwait()
			r.expect("x", x, filled(16, 3)...)
			if !called {
				t.Error("the observer did not hear of it")
			}
		})
	}
}

// The task can be complete before its observer has heard that it was placed. It hears of the end after
// that.
func TestObserverHearsOfTheEndLast(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x := filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.doing("placed", func() {
			r.eventually("its command has run", func() bool { return len(r.s.order.All()[0].InFlight()) == 0 })
			for range 1000 {
				runtime.Gosched() // whoever tells of the end may do so now
			}
		})
		r.run(launch{label: "leaves", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 2})
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 3)...)
	})
}

// While the observer hears of a task that has entered, the task that it follows fails.
func TestFailureReachesATaskOfWhichTheObserverHears(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *rig) {
		x := filled(16, 1)
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.busy()
		r.run(launch{label: "fails", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 2})
		r.doing("map", func() {
			r.failNext()
			r.d.release()
			r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
		})
		before := r.dispatches()
		r.run(launch{label: "leaves", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}, constant: 4})
		if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) || r.graph.Counts().Failures != 2 {
			t.Errorf("got %v, %d failures", err, r.graph.Counts().Failures)
		}
		if n := r.dispatches() - before; n != 0 {
			t.Errorf("%d dispatches of a task that was to be dropped", n)
		}
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 1)...)
	})
}
