package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

var errBody = errors.New("the body's failure")

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// heldTask is a runner whose task is complete when the test says so.
type heldTask struct{ node atomic.Pointer[tasks.Node] }

func (h *heldTask) Start(n *tasks.Node, _ *tasks.Work) { h.node.Store(n) }
func (*heldTask) Recycle()                             {}

func (h *heldTask) complete(err error) {
	w := tasks.NewWork()
	h.node.Load().Complete(err, w)
	w.Finish()
}

// depends returns depend items for slices.
func depends(kind tasks.DependKind, slices ...[]uint32) (d []tasks.Depend) {
	for _, s := range slices {
		d = append(d, tasks.Depend{Kind: kind, Ptr: unsafe.Pointer(unsafe.SliceData(s)), Size: 4 * uint64(len(s))})
	}
	return d
}

// hostRig is an initial device, with a scope and with storage for depend clauses.
type hostRig struct {
	t     *testing.T
	h     *Device
	graph tasks.Graph
	scope *tasks.Scope
	x     []uint32
}

func newHostRig(t *testing.T) *hostRig {
	r := &hostRig{t: t, h: NewDevice(2), x: make([]uint32, 1)}
	r.scope = r.graph.NewScope()
	return r
}

// region returns a construct whose task depends on x.
func (r *hostRig) region(label string, body func(context.Context) error) Region {
	return Region{Construct: construct.Construct{Label: label, Scope: r.scope, Depend: depends(tasks.DependInOut, r.x)}, Body: body}
}

// gate generates a task on x that ends when the test completes it.
func (r *hostRig) gate() *heldTask {
	r.t.Helper()
	g := &heldTask{}
	w := tasks.NewWork()
	defer w.Finish()
	if _, err := r.scope.Add(&tasks.Task{Label: "gate", Depend: depends(tasks.DependInOut, r.x), Runner: g}, w); err != nil {
		r.t.Fatal(err)
	}
	return g
}

func (r *hostRig) wait() error { return r.scope.Wait(context.Background(), nil) }

// goroutine returns the number of the calling goroutine.
func goroutine() string {
	b := make([]byte, 64)
	return string(bytes.Fields(b[:runtime.Stack(b, false)])[1])
}

func TestUndeferredBodyRunsOnTheCallersGoroutine(t *testing.T) {
	r := newHostRig(t)
	for _, target := range []bool{false, true} {
		caller, in := goroutine(), ""
		g := r.region("undeferred", func(context.Context) error {
			if n := r.h.Pool().stats().Running; n != 0 {
				t.Errorf("%d places are held", n)
			}
			in = goroutine()
			return nil
		})
		g.Target = target
		if err := r.h.Run(context.Background(), g); err != nil || in != caller {
			t.Errorf("on goroutine %s, the caller is %s (%v)", in, caller, err)
		}
	}
	if n := r.h.Regions(); n != 1 {
		t.Errorf("%d target regions", n)
	}
}

func TestDeferredBodyRunsOnThePool(t *testing.T) {
	r := newHostRig(t)
	in := ""
	g := r.region("deferred", func(context.Context) error {
		if n := r.h.Pool().stats().Running; n != 1 {
			t.Errorf("%d places are held", n)
		}
		in = goroutine()
		return nil
	})
	g.NoWait = true
	if err := errors.Join(r.h.Run(context.Background(), g), r.wait()); err != nil || in == goroutine() || in == "" {
		t.Errorf("on goroutine %s, the caller is %s (%v)", in, goroutine(), err)
	}
}

func TestRegionWithoutABodyKeepsItsDependences(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		r := newHostRig(t)
		gate := r.gate()
		g := r.region("empty", nil)
		g.NoWait, g.Target = true, true
		after := r.region("after", func(context.Context) error { r.x[0]++; return nil })
		after.NoWait = noWait
		if err := r.h.Run(context.Background(), g); err != nil {
			t.Error(err)
		}
		if !r.scope.Pending() {
			t.Error("the empty task did not wait")
		}
		gate.complete(nil)
		if n := r.h.Pool().stats().Hired; n != 0 {
			t.Errorf("%d goroutines ran it", n)
		}
		if err := errors.Join(r.h.Run(context.Background(), after), r.wait()); err != nil || r.x[0] != 1 || r.h.Regions() != 0 {
			t.Errorf("x = %d, %d regions ran, %v", r.x[0], r.h.Regions(), err)
		}
	}
}

var errEnded = errors.New("no more time")

func TestContextThatEndsBeforeTheStartDropsTheTask(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("noWait %v early %v", noWait, early), func(t *testing.T) {
				r := newHostRig(t)
				gate := r.gate()
				ctx, cancel := context.WithCancelCause(context.Background())
				if early {
					cancel(errEnded)
				}
				g := r.region("dropped", func(context.Context) error { t.Error("the body runs"); return nil })
				ended := 0
				g.NoWait, g.Ender = noWait, enderFunc(func() { ended++ })
				place := &countingPlace{leave: func() { cancel(errEnded) }}
				g.Place = place
				err := r.h.Run(ctx, g)
				if want := map[bool]error{false: errEnded, true: nil}[noWait]; !errors.Is(err, want) {
					t.Errorf("Run returned %v", err)
				}
				if want := map[bool]int{false: 1, true: 0}[noWait]; place.left != want || place.returned != want {
					t.Errorf("the place was left %d times and taken %d times", place.left, place.returned)
				}
				cancel(errEnded)
				gate.complete(nil)
				if err := r.wait(); err == nil || !strings.Contains(err.Error(), `"dropped"`) {
					t.Errorf("the wait returned %v", err)
				}
				if ended != 1 {
					t.Errorf("Ended was called %d times", ended)
				}
				// The task that was not run holds no place for which a later one would wait.
				after := r.region("after", func(context.Context) error { r.x[0]++; return nil })
				if err := r.h.Run(context.Background(), after); err != nil || r.x[0] != 1 {
					t.Errorf("x = %d, %v", r.x[0], err)
				}
			})
		}
	}
}

func TestContextThatEndsAfterTheStartLetsTheBodyEnd(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		r := newHostRig(t)
		ctx, cancel := context.WithCancelCause(context.Background())
		started := make(chan struct{})
		g := r.region("runs on", func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			r.x[0]++
			return nil
		})
		g.NoWait = noWait
		go func() {
			<-started
			cancel(errEnded)
		}()
		if err := errors.Join(r.h.Run(ctx, g), r.wait()); err != nil || r.x[0] != 1 {
			t.Errorf("x = %d, %v", r.x[0], err)
		}
	}
}

// countingPlace counts how often it is left and taken again, and calls leave when it is left.
type countingPlace struct {
	left, returned int
	leave          func()
}

func (p *countingPlace) Leave() {
	p.left++
	if p.leave != nil {
		p.leave()
	}
}
func (p *countingPlace) Return() { p.returned++ }

func TestPlaceIsLeftWhileAnUndeferredTaskWaitsAndTakenForItsBody(t *testing.T) {
	r := newHostRig(t)
	gate := r.gate()
	place := &countingPlace{}
	place.leave = func() { go gate.complete(nil) }
	g := r.region("waits", func(context.Context) error {
		if place.left != 1 || place.returned != 1 {
			t.Errorf("the body runs with the place left %d times and taken %d times", place.left, place.returned)
		}
		return nil
	})
	g.Place = place
	if err := r.h.Run(context.Background(), g); err != nil {
		t.Error(err)
	}
	g.Label, g.Body = "waits for nothing", func(context.Context) error { return nil }
	if err := r.h.Run(context.Background(), g); err != nil || place.left != 1 || place.returned != 1 {
		t.Errorf("the place was left %d times and taken %d times, %v", place.left, place.returned, err)
	}

	// The construct of a detachable task does not wait for the event.
	var event tasks.Event
	g.Label, g.Event = "detached", &event
	if err := r.h.Run(context.Background(), g); err != nil || place.left != 1 || place.returned != 1 {
		t.Errorf("the place was left %d times and taken %d times, %v", place.left, place.returned, err)
	}
	if !r.scope.Pending() {
		t.Error("the task is complete before its event was fulfilled")
	}
	w := tasks.NewWork()
	defer w.Finish()
	if err := event.Fulfill(w); err != nil || r.scope.Pending() {
		t.Errorf("the event is fulfilled: %v, and the task is not complete: %t", err, r.scope.Pending())
	}
}

func TestFailureOfABody(t *testing.T) {
	bodies := map[string]struct {
		body  func(context.Context) error
		check func(error) bool
	}{
		"error": {func(context.Context) error { return errBody }, func(err error) bool { return errors.Is(err, errBody) }},
		"panic": {func(context.Context) error { panic("at the disco") }, func(err error) bool {
			var p *protect.PanicError
			return errors.As(err, &p) && p.Value == "at the disco" && strings.Contains(string(p.Stack), "TestFailureOfABody") &&
				strings.Contains(err.Error(), "panic: at the disco")
		}},
		"panic with an error": {func(context.Context) error { panic(errBody) }, func(err error) bool { return errors.Is(err, errBody) }},
	}
	for name, c := range bodies {
		for _, noWait := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s noWait %v", name, noWait), func(t *testing.T) {
				r := newHostRig(t)
				g := r.region("fails", c.body)
				g.NoWait = noWait
				err := r.h.Run(context.Background(), g)
				if !noWait {
					if !c.check(err) || !strings.Contains(err.Error(), `"fails"`) {
						t.Errorf("Run returned %v", err)
					}
					err = r.wait()
					if err != nil {
						t.Errorf("the wait returned it once more: %v", err)
					}
				} else if err = r.wait(); !c.check(err) || !strings.Contains(err.Error(), `"fails"`) {
					t.Errorf("the wait returned %v", err)
				}
				after := r.region("after", func(context.Context) error { r.x[0]++; return nil })
				if err := r.h.Run(context.Background(), after); err != nil || r.x[0] != 1 {
					t.Errorf("a task after it: x = %d, %v", r.x[0], err)
				}
			})
		}
	}
}

func TestBodyThatLeavesByGoexitCompletesItsTask(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		r := newHostRig(t)
		ended := 0
		g := r.region("leaves", func(context.Context) error { runtime.Goexit(); return nil })
		g.NoWait, g.Ender = noWait, enderFunc(func() { ended++ })
		returned := false
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.h.Run(context.Background(), g); err != nil {
				t.Error(err)
			}
			returned = true
		})
		wg.Wait()
		if returned != noWait {
			t.Errorf("Run returned: %v", returned)
		}
		if err := r.wait(); noWait != errors.Is(err, protect.ErrGoexit) {
			t.Errorf("the wait returned %v", err)
		}
		if ended != 1 {
			t.Errorf("Ended was called %d times", ended)
		}
		after := r.region("after", func(context.Context) error { r.x[0]++; return nil })
		after.NoWait = true
		if err := errors.Join(r.h.Run(context.Background(), after), r.wait()); err != nil || r.x[0] != 1 {
			t.Errorf("a task after it: x = %d, %v", r.x[0], err)
		}
	}
}

type enderFunc func()

func (f enderFunc) Ended() { f() }

// A body that returns the error of a cancelled taskgroup has not failed if its taskgroup is
// cancelled. In any other taskgroup it has.
func TestCancelledBodyHasNotFailed(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		for _, noWait := range []bool{false, true} {
			r := newHostRig(t)
			group := tasks.NewGroup(nil)
			g := r.region("cancels", func(context.Context) error {
				if cancelled {
					group.Cancel()
				}
				return fmt.Errorf("told: %w", tasks.ErrCancelled)
			})
			g.NoWait, g.Group = noWait, group
			err := errors.Join(r.h.Run(context.Background(), g), r.wait())
			if cancelled != (err == nil) {
				t.Errorf("cancelled %v, noWait %v: %v", cancelled, noWait, err)
			}
		}
	}
}

func TestCancelledGroupDropsTasksThatHaveNotStarted(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		r := newHostRig(t)
		gate, group := r.gate(), tasks.NewGroup(nil)
		g := r.region("dropped", func(context.Context) error { t.Error("the body runs"); return nil })
		g.NoWait, g.Group = noWait, group
		var cancel sync.Once // the construct can leave its place once more, to wait for the drop
		g.Place = &countingPlace{leave: func() {
			cancel.Do(func() {
				group.Cancel()
				go gate.complete(nil)
			})
		}}
		// A construct that waits for its task returns the error; a deferred one does not.
		if err := r.h.Run(context.Background(), g); noWait && err != nil || !noWait && err != tasks.ErrCancelled {
			t.Error(err)
		}
		if noWait {
			g.Place.Leave()
		}
		if err := errors.Join(group.Wait(context.Background(), nil), r.wait()); err != nil {
			t.Error(err)
		}
	}
}

// startedByHand is a runner that does nothing: the test itself starts the task.
type startedByHand struct{}

func (startedByHand) Start(*tasks.Node, *tasks.Work) {}
func (startedByHand) Recycle()                       {}

// The goroutine that starts an undeferred task sets the task's state and then sends a token to
// the construct. If the construct returned between the two, the next task in the same record
// would take the token for its own.
func TestUndeferredTaskIsNotOverBeforeItIsTold(t *testing.T) {
	for _, state := range []int32{hostStarted, hostDropped} {
		synctest.Test(t, func(t *testing.T) {
			r := newHostRig(t)
			ran := 0
			g := r.region("told", func(context.Context) error { ran++; return nil })
			task := &hostTask{device: r.h, Region: g, ready: make(chan struct{}, 1)}
			task.Context = ended
			var w tasks.Work
			n, err := r.scope.Add(&tasks.Task{Label: "told", Included: true, Runner: startedByHand{}}, &w)
			if err != nil {
				t.Fatal(err)
			}
			w.Run()
			task.state.Store(state)
			if state == hostDropped {
				n.Complete(nil, &w)
			}
			over := false
			go func() {
				if err := task.include(ended, n); err != nil {
					t.Error(err)
				}
				over = true
			}()
			synctest.Wait()
			if over {
				t.Fatal("the task is over, and its token is on the way")
			}
			task.ready <- struct{}{}
			synctest.Wait()
			if want := map[int32]int{hostStarted: 1, hostDropped: 0}[state]; !over || ran != want {
				t.Errorf("over %v, the body ran %d times", over, ran)
			}
		})
	}
}

// Records of host tasks are used again for later tasks. In whatever way a task ends, the next
// one in its record runs its own body, once, and returns its own error.
func TestHostTasksAreUsedAgainSafely(t *testing.T) {
	h := NewDevice(3)
	var graph tasks.Graph
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 2))
			scope := graph.NewScope()
			x := make([]uint32, 1)
			var ran, dropped atomic.Int64
			deferred, expected := 0, int64(0)
			for i := range 1500 {
				ctx, cancel := context.WithCancel(context.Background())
				want := fmt.Errorf("%d %d", worker, i)
				mine := atomic.Int64{}
				g := Region{
					Construct: construct.Construct{Label: "task", Scope: scope, NoWait: rng.IntN(2) == 0, Depend: depends([]tasks.DependKind{tasks.DependInOut, tasks.DependMutexInOutSet}[rng.IntN(2)], x)},
				}
				switch {
				case g.NoWait:
					deferred++
					g.Body = func(context.Context) error { ran.Add(1); return nil }
					if err := h.Run(context.Background(), g); err != nil {
						t.Error(err)
					}
				default:
					g.Body = func(context.Context) error { mine.Add(1); return want }
					cut := rng.IntN(3)
					switch cut {
					case 1:
						cancel()
					case 2:
						go cancel()
					}
					err := h.Run(ctx, g)
					switch n := mine.Load(); {
					case errors.Is(err, want) && n == 1:
					case errors.Is(err, context.Canceled) && !errors.As(err, new(*tasks.Error)) && n == 0 && cut > 0:
						dropped.Add(1)
						// The failure is reported here, so that the storage can be used by the
						// next tasks.
						if err := scope.Wait(context.Background(), nil); !errors.Is(err, context.Canceled) {
							t.Errorf("task %d %d was dropped, the wait returned %v", worker, i, err)
						}
						if n := mine.Load(); n != 0 {
							t.Errorf("task %d %d was dropped and ran %d times", worker, i, n)
						}
					default:
						t.Errorf("task %d %d ran %d times and returned %v", worker, i, n, err)
					}
				}
				cancel()
			}
			expected = int64(deferred)
			if err := scope.Wait(context.Background(), nil); err != nil {
				t.Error(err)
			}
			if ran.Load() != expected {
				t.Errorf("%d of %d deferred tasks ran", ran.Load(), expected)
			}
		})
	}
	wg.Wait()
	for !h.Pool().Idle() {
		runtime.Gosched()
	}
}
