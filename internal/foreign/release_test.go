package foreign_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/vk"
)

// ticks gives the machine a semaphore whose value a goroutine raises n times, once in each interval.
// Work that takes time waits for it.
func (r *rig) ticks(interval time.Duration, n int) vk.Semaphore {
	s := vk.Semaphore(1)
	r.semaphores[s] = &semaphore{changed: make(chan struct{})}
	go func() {
		for range n {
			time.Sleep(interval)
			r.mu.Lock()
			r.raise(vk.SemaphoreValue{Semaphore: s, Value: r.semaphores[s].value + 1})
			r.mu.Unlock()
			r.steps()
		}
	}()
	return s
}

// explicit gives an object foreign work on a queue, which ends after a value of ticks.
func (r *rig) explicit(t *testing.T, o interop.Object, q *queue, ticks vk.Semaphore, at int) {
	t.Helper()
	s, _ := o.Semaphore()
	wait, signal := announce(t, o)
	q.submit(append(values(s, wait), values(ticks, uint64(at))...), nil, &job{}, values(s, signal))
	succeed(t, o.Submitted(signal))
}

// lent gives an object such work with Submit.
func (r *rig) lent(t *testing.T, o interop.Object, ticks vk.Semaphore, at int) {
	t.Helper()
	succeed(t, o.Submit(t.Context(), func(queue uintptr) error {
		r.queueOf(queue).submit(values(ticks, uint64(at)), nil, &job{}, nil)
		return nil
	}))
}

// While a runtime is closed, the host signals in place of no foreign work that takes less than the
// timeout from when everything before it has come, however long all of it takes. Work whose signal
// is the runtime's own submission may take longer.
func TestReleaseLeavesWorkThatIsOnItsWay(t *testing.T) {
	const rounds = 5
	for name, c := range map[string]struct {
		own int
		// interval is what each work takes; give gives the objects their work, of which lost never
		// signals.
		interval time.Duration
		give     func(t *testing.T, r *rig, a, b interop.Object, ticks vk.Semaphore)
		lost     int
	}{
		"a backlog": {interval: foreignTimeout * 9 / 10, give: func(t *testing.T, r *rig, a, _ interop.Object, ticks vk.Semaphore) {
			q := r.newQueue("foreign")
			for k := range rounds {
				r.use(t, a)
				r.explicit(t, a, q, ticks, k+1)
			}
		}},
		"behind another object's work on one queue": {interval: foreignTimeout * 9 / 10, give: func(t *testing.T, r *rig, a, b interop.Object, ticks vk.Semaphore) {
			q := r.newQueue("foreign")
			for k := range rounds {
				r.explicit(t, a, q, ticks, k+1)
				r.use(t, a)
			}
			r.explicit(t, b, q, ticks, rounds)
			r.use(t, b)
		}},
		"behind a task that takes long": {interval: foreignTimeout * 9 / 10, give: func(t *testing.T, r *rig, a, _ interop.Object, ticks vk.Semaphore) {
			var x uint64
			h := r.hostTask(&x)
			r.use(t, a, inOut(&x))
			go func() {
				time.Sleep(foreignTimeout * 36 / 10)
				h.complete(nil)
			}()
			r.explicit(t, a, r.newQueue("foreign"), ticks, rounds)
			r.use(t, a)
		}},
		"behind work that never signals": {interval: foreignTimeout * 9 / 10, lost: 1, give: func(t *testing.T, r *rig, a, b interop.Object, ticks vk.Semaphore) {
			_, signal := announce(t, a)
			succeed(t, a.Submitted(signal))
			succeed(t, r.generate(part(a, foreign.ActionUse), part(b, foreign.ActionUse)))
			q := r.newQueue("foreign")
			for k := range rounds - 1 {
				r.explicit(t, b, q, ticks, k+2)
				r.use(t, b)
			}
		}},
		"given to Submit": {interval: 3 * foreignTimeout, give: func(t *testing.T, r *rig, a, b interop.Object, ticks vk.Semaphore) {
			for k := range rounds {
				r.lent(t, a, ticks, k+1)
				r.use(t, a)
				r.lent(t, b, ticks, k+1)
			}
		}},
		"on the object's own queue": {own: 1, interval: 3 * foreignTimeout, give: func(t *testing.T, r *rig, a, _ interop.Object, ticks vk.Semaphore) {
			for k := range rounds {
				r.lent(t, a, ticks, k+1)
				r.use(t, a)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(c.own)
				a, b := initialise(t, r.device, interop.TypeTargetSync), initialise(t, r.device, interop.TypeTargetSync)
				ticks := r.ticks(c.interval, rounds)
				c.give(t, r, a, b, ticks)
				succeed(t, r.device.Withdraw())
				var said strings.Builder
				for end := time.Now().Add(c.interval*rounds + foreignTimeout); time.Now().Before(end); time.Sleep(foreignTimeout / 500) {
					if err := r.device.Release(); err != nil {
						fmt.Fprintln(&said, err)
					}
					r.settle()
				}
				if n := strings.Count(said.String(), interop.ErrNeverSignalled.Error()); n != c.lost {
					t.Errorf("the host signals for %d works, want %d: %s", n, c.lost, &said)
				}
				r.awaits(t)
				succeed(t, r.scope.Wait(t.Context(), nil))
				delete(r.semaphores, ticks)
				r.free(t)
			})
		})
	}
}

// Foreign work for which no task waits has the time of its own too, however much of it there is.
func TestFreeLeavesWorkThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		s, _ := o.Semaphore()
		ticks, q := r.ticks(foreignTimeout*9/10, 6), r.newQueue("foreign")
		for k := range 4 {
			r.explicit(t, o, q, ticks, k+1)
		}
		r.lent(t, o, ticks, 6)
		r.settle()
		r.device.Close()
		freed := make(chan error)
		go func() { freed <- r.device.Free() }()
		time.Sleep(foreignTimeout * 4)
		synctest.Wait()
		r.awaits(t, "interop object 1 of device 3 awaits value 5, which foreign work was submitted to signal: its semaphore is at 4")
		succeed(t, <-freed)
		if last := r.destroyed[s]; last != 5 || len(r.failures) > 0 {
			t.Errorf("the semaphore ends with %d: %v", last, r.failures)
		}
	})
}

// Between the calls of somebody who closes a runtime again and again nobody looks, and foreign work
// is to signal all the same.
func TestReleaseCountsTheTimeBetweenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(0)
		o := initialise(t, r.device, interop.TypeTargetSync)
		_, signal := announce(t, o)
		succeed(t, o.Submitted(signal))
		succeed(t, r.device.Release())
		time.Sleep(foreignTimeout - time.Second)
		succeed(t, r.device.Release())
		time.Sleep(time.Second)
		refused(t, r.device.Release(), interop.ErrNeverSignalled, "value 1 of interop object 1 of device 3")
		// What is submitted after a long time without any has the whole of it too.
		time.Sleep(foreignTimeout)
		succeed(t, r.device.Release())
		time.Sleep(foreignTimeout)
		_, signal = announce(t, o)
		succeed(t, o.Submitted(signal))
		succeed(t, r.device.Release())
		refused(t, r.release(), interop.ErrNeverSignalled, "value 2 of interop object 1 of device 3")
		r.free(t)
	})
}
