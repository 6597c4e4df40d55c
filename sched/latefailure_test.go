package sched

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// lateFailure is a program with a task "fails" on x, whose copy to the host fails after its
// kernel has run, and a task "successor", which depends on x and adds 1 to y.
type lateFailure struct {
	r    *rig
	x, y []uint32
	// last is the number of the last submission that has no part of the successor.
	last uint64
}

// newLateFailure generates the task that fails, on a device that is held. A reader maps x as
// well, so that the copy to the host is not placed with the kernel: it gets a submission of its
// own at the end, which fails.
func newLateFailure(r *rig) *lateFailure {
	f := &lateFailure{r: r, x: filled(16, 1), y: filled(16, 1)}
	r.d.hold()
	r.run(launch{label: "reader", kernel: "mix", args: []arg{tofrom(filled(16, 0)), to(f.x), to(f.x)}, in: [][]uint32{f.x}})
	r.run(launch{label: "fails", kernel: "add", args: []arg{tofrom(f.x)}, constant: 1, out: [][]uint32{f.x}})
	f.last = r.d.submitted
	return f
}

func (f *lateFailure) successor() {
	f.r.run(launch{label: "successor", kernel: "add", args: []arg{tofrom(f.y)}, constant: 1, in: [][]uint32{f.x}, out: [][]uint32{f.y}})
}

// fail lets the device go on until the copy has failed.
func (f *lateFailure) fail() {
	d := f.r.d
	d.set(func() {
		pending := d.submitted
		d.submit = func(int) error {
			// The pending batch, with the successor, is submitted before the copy.
			if d.submitted > pending {
				return errSubmitMemory
			}
			return nil
		}
	})
	d.advance(f.last)
	f.r.eventually("failure", func() bool { return f.r.graph.Counts().Failures > 0 })
	d.set(func() { d.submit = nil })
}

// A task fails in its copy to the host, after its kernel. Tasks of the device that depend on it
// are in flight and run. Host tasks that depend on it do not, whether they are generated before
// the failure or after it, and whether they depend on the failed task itself or on the
// successor that has run.
func TestFailureOfAHostPartReachesWhatTheHostKeeps(t *testing.T) {
	for _, mode := range memoryModes {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s early %v", mode.name, early), func(t *testing.T) {
				r := newRig(t, mode, 1)
				defer r.close()
				f := newLateFailure(r)
				f.successor()
				never := func(label string, of []uint32) {
					r.host(label, [][]uint32{of}, nil, func() { t.Errorf("%q runs", label) })
				}
				made := func() {
					never("follows the failed task", f.x)
					never("follows its successor", f.y)
				}
				if early {
					made()
				}
				f.fail()
				if !early {
					made()
				}
				r.d.release()
				err := r.scope.Wait(context.Background(), nil)
				if want := `task "fails": ` + errSubmitMemory.Error() + " (2 dependent tasks not run)"; err == nil || err.Error() != want {
					t.Errorf("got %v", err)
				}
				r.expect("x", f.x, filled(16, 1)...)
				r.expect("y", f.y, filled(16, 2)...)
			})
		}
	}
}

// A task that is generated after a task on which it depends has failed does not run, and
// neither do the tasks that depend on it, until a wait has reported the failure.
func TestFailureOfAHostPartReachesWhatIsMadeAfterIt(t *testing.T) {
	for _, mode := range memoryModes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			f := newLateFailure(r)
			f.successor()
			f.fail()
			z, zero := filled(16, 1), filled(16, 0)
			r.mix("made later", z, f.x, zero, 0)
			r.mix("follows that", zero, z, z, 0)
			r.d.release()
			err := r.scope.Wait(context.Background(), nil)
			if want := `task "fails": ` + errSubmitMemory.Error() + " (2 dependent tasks not run)"; err == nil || err.Error() != want {
				t.Errorf("got %v", err)
			}
			r.mix("made after the wait", z, f.x, zero, 0)
			r.taskwait()
			r.expect("z", z, filled(16, 4)...)
		})
	}
}

// A host task that depends only on the successor does not run either. It makes no difference
// whether it is generated before the successor has ended or after.
func TestHostDependentOfASuccessorThatRanIsNotRunWheneverMade(t *testing.T) {
	for _, afterwards := range []bool{false, true} {
		t.Run(fmt.Sprint("made after the successor ended ", afterwards), func(t *testing.T) {
			r := newRig(t, memoryModes[1], 1)
			defer r.close()
			f := newLateFailure(r)
			f.successor()
			f.fail()
			made := func() { r.host("host", [][]uint32{f.y}, nil, func() { t.Error("it ran") }) }
			if !afterwards {
				made()
			}
			r.d.release()
			if afterwards {
				r.eventually("end", func() bool { return r.s.life.live == 0 })
				made()
			}
			if err := r.scope.Wait(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "(1 dependent tasks not run)") {
				t.Errorf("the wait reports %v", err)
			}
		})
	}
}
