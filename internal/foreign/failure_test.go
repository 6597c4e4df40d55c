package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// A call of Vulkan that fails for want of memory is made again later: the object goes on, and
// nothing is lost.
func TestCallsThatFailEndNoStream(t *testing.T) {
	for name, c := range map[string]struct {
		// do is what the program does while calls fail, and then what happens later. last is
		// the semaphore's value at the end, and never says that Free reports work that never
		// signalled.
		do    func(t *testing.T, r *rig, o interop.Object)
		then  func(t *testing.T, r *rig, s vk.Semaphore)
		last  uint64
		never bool
	}{
		"the host's signal": {last: 1, do: func(t *testing.T, r *rig, o interop.Object) {
			_, signal := announce(t, o)
			succeed(t, o.Withdraw(signal))
		}},
		"the host's signal behind foreign work": {last: 2, do: func(t *testing.T, r *rig, o interop.Object) {
			_, first := announce(t, o)
			_, second := announce(t, o)
			succeed(t, o.Submitted(first))
			succeed(t, o.Withdraw(second))
		}, then: func(t *testing.T, r *rig, s vk.Semaphore) {
			r.newQueue("foreign").submit(nil, nil, nil, values(s, 1))
			r.steps()
		}},
		"a construct that is refused": {last: 1, do: func(t *testing.T, r *rig, o interop.Object) {
			refusal := errors.New("refused")
			r.scheduler.refuse = refusal
			succeed(t, r.construct(o, foreign.ActionUse, true))
			refused(t, r.scope.Wait(context.Background(), nil), refusal)
		}},
		"foreign work that comes": {last: 1, do: func(t *testing.T, r *rig, o interop.Object) {
			_, signal := announce(t, o)
			succeed(t, o.Submitted(signal))
		}, then: func(t *testing.T, r *rig, s vk.Semaphore) {
			r.newQueue("foreign").submit(nil, nil, nil, values(s, 1))
			r.steps()
		}},
		"foreign work that never comes": {last: 1, never: true, do: func(t *testing.T, r *rig, o interop.Object) {
			_, signal := announce(t, o)
			succeed(t, o.Submitted(signal))
		}},
		"a construct behind foreign work that never comes": {last: 2, never: true, do: func(t *testing.T, r *rig, o interop.Object) {
			_, signal := announce(t, o)
			succeed(t, o.Submitted(signal))
			succeed(t, r.construct(o, foreign.ActionUse, true))
		}},
	} {
		for _, call := range []string{looks, waits, signals, ""} {
			t.Run(name+"/"+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(0)
					o := initialise(t, r.device, interop.TypeTargetSync)
					s, _ := o.Semaphore()
					fail := func() {
						if call == "" {
							r.failCalls(3, looks, waits, signals)
						} else {
							r.failCalls(3, call)
						}
					}
					fail()
					c.do(t, r, o)
					synctest.Wait()
					if c.then != nil {
						time.Sleep(time.Second)
						c.then(t, r, s)
					}
					time.Sleep(time.Second)
					fail()
					r.device.Close()
					over := make(chan struct{})
					go func() {
						defer close(over)
						for range 3000 {
							time.Sleep(10 * time.Millisecond)
							r.steps()
						}
					}()
					err := r.device.Free()
					<-over
					if never := errors.Is(err, interop.ErrNeverSignalled); never != c.never || errors.Is(err, vk.ErrOutOfMemory) {
						t.Errorf("Free: %v", err)
					}
					if last := r.destroyed[s]; last != c.last {
						t.Errorf("the semaphore was at %d in the end, want %d", last, c.last)
					}
					for _, failure := range r.failures {
						t.Error(failure)
					}
				})
			})
		}
	}
}

// The host signals in place of work that was withdrawn, however many calls fail before it
// succeeds: it waits for the semaphore's value, asks for it and raises it, and makes each of
// these calls again until it succeeds. So the failures come one after the other, and the
// construct behind the signal is in flight all that time.
func TestHostSignalsAfterManyFailures(t *testing.T) {
	for _, own := range []int{0, 1} {
		t.Run(fmt.Sprint(own, " own queues"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, bad := range runHistory(own, []action{
					{Kind: doInit},
					{Kind: doAnnounce},
					{Kind: doUse, How: 1}, // with nowait, behind the announced work
					{Kind: doSteps, How: 15},
					{Kind: doFaultCalls, How: 7}, // eight calls of each kind fail
					{Kind: doWithdraw},           // the host has to signal in place of the work
				}, 0) {
					t.Error(bad)
				}
			})
		})
	}
}

// The foreign work that a device waits for is named, and waited for, although asking for the
// semaphore's value fails.
func TestCallsThatFailHideNothingThatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		r.use(t, o) // This construct waits for whatever the program has put on the object's queue.
		succeed(t, r.device.Destroy(foreign.Object(o)))
		r.failCalls(1, looks)
		r.awaits(t, "interop object 1 of device 3 awaits value 1, which foreign work was submitted to signal: "+
			"whether it has, is not known: vk: vkGetSemaphoreCounterValue: VK_ERROR_OUT_OF_HOST_MEMORY")
		r.failCalls(1, looks, waits)
		go func() {
			time.Sleep(time.Second)
			r.steps()
		}()
		began := time.Now()
		r.device.Settle(context.Background())
		if took := time.Since(began); took != time.Second {
			t.Errorf("Settle has waited %v, want a second", took)
		}
		r.awaits(t)
		r.free(t)
	})
}

// A semaphore is destroyed only when no goroutine is in a call with it any more, and no call is
// made afterwards.
func TestSemaphoresGoWhenNobodyUsesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(1)
		o := initialise(t, r.device, interop.TypeTargetSync)
		r.use(t, o)
		succeed(t, r.device.Destroy(foreign.Object(o)))
		lingers, settled := make(chan struct{}), make(chan struct{})
		r.lingers = lingers
		go func() {
			r.device.Settle(context.Background())
			close(settled)
		}()
		synctest.Wait()
		r.steps()
		r.device.Close()
		freed := make(chan error, 1)
		go func() { freed <- r.device.Free() }()
		synctest.Wait()
		if n := len(r.destroyed); n != 0 {
			t.Errorf("%d semaphores are destroyed while one is waited for", n)
		}
		// This call comes after Free has begun.
		if _, err := r.device.Timelines.SemaphoreValue(1001); !errors.Is(err, vk.ErrClosed) {
			t.Errorf("a look after the beginning of the end: %v", err)
		}
		close(lingers)
		<-settled
		succeed(t, <-freed)
		r.free(t)
	})
}

// leaver is an observer that ends its goroutine when the task ends.
type leaver struct{ made *[]*tasks.Node }

func (leaver) Interest() (run, operations bool)          { return true, false }
func (o leaver) Created(n *tasks.Node, _ []tasks.Depend) { *o.made = append(*o.made, n) }
func (leaver) Follows(tasks.Witness)                     {}
func (leaver) Dropped()                                  {}
func (leaver) Begin()                                    {}
func (leaver) Map([]ompt.MapItem)                        {}
func (leaver) Op(ompt.ScopeEndpoint, *construct.Op)      {}
func (leaver) End(error)                                 { runtime.Goexit() }
func (leaver) Release()                                  {}

// A construct destroys an object of a lost device, and its observer ends the goroutine. The
// construct's task must be released all the same: the graph uses its memory for the next one.
func TestObserverThatLeavesAtTheEndOfADestroy(t *testing.T) {
	r := newRig(0)
	all := []interop.Object{initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)}
	r.lose(errLost)
	r.scheduler.Lose(errLost)
	var made []*tasks.Node
	for _, o := range all {
		generated := make(chan struct{})
		go func() {
			defer close(generated)
			_, err := r.device.Generate(foreign.Task{
				Construct:  construct.Construct{Scope: r.scope, NoWait: true},
				Parts:      []foreign.Part{{Object: foreign.Object(o), Action: foreign.ActionDestroy}},
				ObserverOf: func(int) construct.Observer { return leaver{&made} },
			})
			t.Errorf("the construct returned %v", err)
		}()
		<-generated
		succeed(t, r.scope.Wait(context.Background(), nil))
		succeed(t, r.device.Destroy(foreign.Object(o)))
	}
	if len(made) != 2 || made[0] != made[1] {
		t.Errorf("tasks %p have not been let go of", made)
	}
	r.free(t)
}
