package sched

import (
	"errors"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
)

// The commands of a task are complete, and its exit still waits for its turn behind the exit of
// a slow task. A task that depends on it by way of another queue finds nothing to wait for on
// the device. It must not share the block that the exit is about to remove, since its results
// would not be copied to the host; nor must it map storage anew that the exit, which had found
// it absent, would remove.
func TestTaskWaitsForALateExitByWhateverWayItFollows(t *testing.T) {
	for _, c := range []struct {
		name         string
		join, absent bool
	}{
		{"through a task", false, false},
		{"through a join", true, false},
		{"through a task, block absent", false, true},
		{"through a join, block absent", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, h := newHookedRigOn(t, newFakeDeviceWith(t, manyQueues, incoherentMemory, 1), Options{Sharing: ShareNothing})
			r.kernels["add"] = loadKernel(t, "add")
			defer r.close()
			x, u, v, slow := filled(16, 1), filled(16, 1), filled(16, 1), filled(16, 1)
			var first, between [1]uint32
			r.run(launch{label: "enter", enter: []arg{to(u), to(v)}, included: true})
			begun, end := make(chan bool), make(chan bool)
			h.invalidate = func() { close(begun); <-end }
			add := func(queue int, label string, a arg, c uint32, depend ...tasks.Depend) {
				r.use(queue)
				r.run(launch{label: label, kernel: "add", args: []arg{a}, constant: c, depend: depend})
			}
			add(0, "slow", tofrom(slow), 1)
			<-begun
			last, want, done := to(x), uint32(2), 1
			if c.absent {
				r.d.hold()
				add(2, "before", alloc(u), 1, depends(tasks.DependOut, u)...)
				r.run(launch{label: "first", exit: []arg{from(x)}, in: [][]uint32{u}, out: [][]uint32{first[:]}})
				r.d.release()
				last, want, done = tofrom(x), 11, 2
			} else {
				add(2, "first", tofrom(x), 1, depends(tasks.DependOut, first[:])...)
			}
			r.eventually("the commands of the first are complete", func() bool { return len(r.s.exits.done) == done })
			r.d.hold()
			depend := append(depends(tasks.DependIn, first[:]), depends(tasks.DependOut, between[:])...)
			if c.join {
				add(1, "other", alloc(v), 1, depends(tasks.DependOut, v)...)
				r.join("between", append(depend, depends(tasks.DependIn, v)...)...)
			} else {
				add(1, "between", alloc(v), 1, depend...)
			}
			add(1, "last", last, 10, depends(tasks.DependIn, between[:])...)
			left := 2
			if c.join {
				left = 3
			}
			close(end)
			r.eventually("the exit comes though the device stands still", func() bool { return r.s.life.live == left })
			r.d.release()
			r.taskwait()
			r.use(0)
			r.run(launch{label: "exit", exit: []arg{from(u), from(v)}, included: true})
			r.expect("x", x, filled(16, want)...)
			r.expect("v", v, filled(16, 2)...)
		})
	}
}

// A task gives back the last reference to a block because it has failed, while another task that used the
// block has told its observer of its own end and not ended. The observer of the task that failed hears
// that the storage is gone, once.
func TestObserverOfAFailedTaskHearsThatStorageIsGone(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, y, shared, zero := filled(16, 1), filled(16, 1), filled(16, 7), filled(16, 0)
		entered, ending, failed, over := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.observe = func(label string) construct.Observer {
			r.watches = true
			by := &leaver{watch: r.watched(label).(*watch)}
			r.watches = false
			switch label {
			case "ends":
				by.at, by.do = "end", func() {
					close(ending)
					<-failed
				}
			case "fails":
				by.at, by.do = "map", func() {
					by.at, by.do = "end", func() { close(failed) }
					close(entered)
					<-ending
					runtime.Goexit()
				}
			}
			return by
		}
		r.busy()
		r.run(launch{label: "ends", kernel: "mix", args: []arg{tofrom(x), to(shared), to(zero)}})
		go func() {
			defer close(over)
			_ = r.s.Run(t.Context(), r.region(launch{label: "fails", kernel: "mix", args: []arg{tofrom(y), to(shared), to(zero)}}))
		}()
		<-entered
		r.d.release()
		if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, protect.ErrGoexit) {
			t.Errorf("got %v", err)
		}
		<-over
		r.checkEmpty()
		r.expect("x", x, filled(16, 10)...)
		r.expect("y", y, filled(16, 1)...)
	})
}
