package tasks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"
)

// crew runs the tasks of a stress test, each on a goroutine of its own.
type crew struct{ busy sync.WaitGroup }

// crewed is a runner whose body uses the storage of its depend items as they say, so that Go's
// race detector sees an order that is missing.
type crewed struct {
	crew   *crew
	device bool
	body   func() error
}

func (r *crewed) Start(n *Node, w *Work) {
	if r.device {
		// Later tasks of the device may start before this one is complete; the device runs them
		// one after the other.
		r.crew.busy.Go(func() {
			var w Work
			n.Placed(&w)
			w.Run()
			n.Complete(nil, &w)
			w.Run()
		})
		return
	}
	r.crew.busy.Go(func() {
		err := r.body()
		var w Work
		n.Complete(err, &w)
		w.Run()
	})
}

func (*crewed) Recycle() {}

func TestConcurrentTasksOfAllKindsNeverMeet(t *testing.T) {
	const makers, each, width = 6, 400, 24
	var g Graph
	s := g.NewScope()
	var c crew
	var cells [width]int
	var sets [width]atomic.Int64
	var want [width]atomic.Int64
	groups := [2]*Group{NewGroup(nil), nil}
	groups[1] = NewGroup(groups[0])
	var adding sync.WaitGroup
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
				for _, e := range g.Snapshot().Edges {
					// Two tasks that exclude each other can run in either order.
					if e.From >= e.To && !e.Exclusion {
						t.Errorf("edge from task %d to %d", e.From, e.To)
					}
				}
				runtime.Gosched()
			}
		}
	}()
	for maker := range makers {
		adding.Go(func() {
			choices := rand.New(rand.NewPCG(uint64(maker), 7))
			for i := range each {
				r := &crewed{crew: &c, device: choices.IntN(8) == 0}
				task := Task{Label: fmt.Sprint(maker, "/", i), Runner: r}
				if r.device {
					task.Domain = 1
				}
				kinds := []DependKind{DependIn, DependIn, DependOut, DependMutexInOutSet, DependInOutSet}
				kind := kinds[choices.IntN(len(kinds))]
				from := choices.IntN(width)
				to := from + 1 + choices.IntN(min(6, width-from))
				task.Depend = []Depend{{Kind: kind, Ptr: unsafe.Pointer(&cells[from]), Size: uint64(to-from) * 8}}
				if choices.IntN(100) == 0 {
					kind, from, to = DependOut, 0, width
					task.Depend = []Depend{{Kind: DependOutAllMemory}}
				}
				if k := choices.IntN(4); k < 2 {
					task.Group = groups[k]
				}
				if !r.device && kind != DependIn {
					for k := from; k < to; k++ {
						want[k].Add(1)
					}
				}
				r.body = func() error {
					sum := 0
					for k := from; k < to; k++ {
						switch kind {
						case DependIn:
							sum += cells[k]
						case DependInOutSet:
							sum += cells[k]
							sets[k].Add(1)
						default:
							cells[k]++
						}
					}
					if sum < 0 {
						return errBroken
					}
					return nil
				}
				var event Event
				if choices.IntN(10) == 0 {
					task.Event = &event
				}
				var w Work
				if _, err := s.Add(&task, &w); err != nil {
					t.Error(err)
				}
				w.Run()
				if task.Event != nil {
					c.busy.Go(func() {
						var w Work
						if err := event.Fulfill(&w); err != nil {
							t.Error(err)
						}
						w.Run()
					})
				}
				switch i % 100 {
				case 50:
					if err := s.Wait(context.Background(), nil); err != nil {
						t.Error(err)
					}
				case 75:
					if err := groups[0].Wait(context.Background(), nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	adding.Wait()
	if err := s.Wait(context.Background(), nil); err != nil {
		t.Error(err)
	}
	c.busy.Wait()
	close(stop)
	<-watched
	for k := range cells {
		if got := int64(cells[k]) + sets[k].Load(); got != want[k].Load() {
			t.Errorf("cell %d was written %d times, want %d", k, got, want[k].Load())
		}
	}
	if err := s.Wait(context.Background(), nil); err != nil || remembered(s) != 0 {
		t.Errorf("%v, %d locations at rest", err, remembered(s))
	}
}

// Failures, waits for scopes and groups, waits that are cut short, cancelled groups and
// contexts that end, all at once. A wait reports only what has failed, and nothing is left at
// the end.
func TestConcurrentFailuresLeaveNothing(t *testing.T) {
	const makers, each = 4, 300
	var g Graph
	s := g.NewScope()
	var c crew
	var failed sync.Map
	var reports atomic.Int64
	note := func(err error) {
		if errors.Is(err, errCut) {
			return
		}
		for _, label := range roots(err) {
			reports.Add(1)
			if _, ok := failed.Load(label); !ok && !errors.Is(err, errEnded) {
				t.Errorf("%s has not failed: %v", label, err)
			}
		}
	}
	var last sync.Mutex
	var lasts []func()
	atEnd := func(f func()) {
		last.Lock()
		defer last.Unlock()
		lasts = append(lasts, f)
	}
	memory := lane(8)
	var adding sync.WaitGroup
	for maker := range makers {
		adding.Go(func() {
			choices := rand.New(rand.NewPCG(uint64(maker), 9))
			for i := range each {
				group := NewGroup(nil)
				ends, end := context.WithCancelCause(context.Background())
				atEnd(func() { end(nil) })
				short, cut := context.WithCancelCause(context.Background())
				for k := range 3 {
					label := fmt.Sprint(maker, "/", i, "/", k)
					fails := choices.IntN(5) == 0
					task := Task{Label: label, Context: ends, Depend: []Depend{cell(DependInOut, &memory[choices.IntN(len(memory))])}}
					if k > 0 {
						task.Group = group
					}
					task.Runner = &crewed{crew: &c, body: func() error {
						if fails {
							failed.Store(label, true)
							return errBroken
						}
						return nil
					}}
					var w Work
					if _, err := s.Add(&task, &w); err != nil {
						t.Error(err)
					}
					w.Run()
				}
				if choices.IntN(4) == 0 {
					c.busy.Go(func() { end(errEnded) })
				}
				c.busy.Go(func() { cut(errCut) })
				switch choices.IntN(6) {
				case 0:
					group.Cancel()
				case 1:
					note(group.Wait(context.Background(), nil))
				case 2:
					note(group.Wait(short, nil))
				case 3:
					note(s.Wait(short, nil))
				case 4:
					note(s.Wait(context.Background(), nil))
				}
			}
		})
	}
	adding.Wait()
	c.busy.Wait()
	note(s.Wait(context.Background(), nil))
	for _, f := range lasts {
		f()
	}
	if !s.Settled() || remembered(s) != 0 {
		t.Errorf("%d locations at rest, settled %v", remembered(s), s.Settled())
	}
	if reports.Load() == 0 {
		t.Error("nothing was reported")
	}
}
