package sched

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// newIntakeRig returns a rig with x present, whose tasks are not observed. The intake is open from so many tasks in
// flight on.
func newIntakeRig(t *testing.T, many int, x ...[]uint32) *rig {
	t.Helper()
	return newIntakeRigOn(t, nil, many, x...)
}

// newIntakeRigOn is newIntakeRig on a device with these queues.
func newIntakeRigOn(t *testing.T, queues []order.QueueInfo, many int, x ...[]uint32) *rig {
	t.Helper()
	mode := memoryModes[1]
	mode.queues = queues
	r := newRig(t, mode, 1)
	r.watches = false
	var enter []arg
	for _, s := range x {
		enter = append(enter, to(s))
	}
	r.run(launch{label: "enter", enter: enter, included: true})
	r.s.intake.many = many
	return r
}

// leaveAll opens the intake, without a sweeper and a timer, so that the tasks that are created stay there, until a
// group of so many is complete or start is called.
func (r *rig) leaveAll(group uint32) (start func()) {
	in := &r.s.intake
	in.group = group
	r.s.mu.Lock()
	in.sweeping, r.s.order.patience = true, math.MaxInt64
	r.s.mu.Unlock()
	in.open.Store(true)
	return func() {
		r.t.Helper()
		in.open.Store(false)
		r.s.startIntake(false).Finish()
		r.s.mu.Lock()
		in.sweeping, in.started = false, 0
		r.s.mu.Unlock()
		if size, turning := in.size.Load(), in.turning.Load(); size+turning != 0 {
			r.t.Errorf("%d tasks are in the intake, %d becoming targets", size, turning)
		}
	}
}

// leaveTasks is leaveAll without groups, and leaves so many tasks that add 1 to x.
func (r *rig) leaveTasks(x []uint32, many int) (start func()) {
	r.t.Helper()
	start = r.leaveAll(math.MaxUint32)
	for range many {
		r.run(add1(x))
	}
	return start
}

// add1 is a deferred task that adds 1 to x.
func add1(x []uint32) launch {
	return launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}}
}

// unobserved is add1 with the label to which rig.doing gives no observer.
func unobserved(x []uint32) launch {
	l := add1(x)
	l.label = "alone"
	return l
}

// awaitSubmission waits until the submitter has submitted what it was given.
func (r *rig) awaitSubmission() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.order.AwaitSubmission()
}

// createUntil runs l until a state is reached, and returns how often. After each group it waits for the submitter, and the
// device executes what it has.
func (r *rig) createUntil(l launch, group int, what string, reached func() bool) (n uint32) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		for range group {
			r.run(l)
			n++
		}
		r.awaitSubmission()
		r.d.run()
		if reached() {
			return n
		}
		runtime.Gosched()
	}
	r.t.Errorf("%s: not reached while %d tasks were created", what, n)
	return n
}

// intakeCloses waits until the intake is closed and there is no sweeper.
func (r *rig) intakeCloses() {
	r.t.Helper()
	r.eventually("the intake is closed", func() bool { return !r.s.intake.open.Load() && !r.s.intake.sweeping })
}

func TestTasksThatAreLeftAreNotComplete(t *testing.T) {
	x, y := filled(16, 1), filled(16, 0)
	r := newIntakeRig(t, 0, x, y)
	defer r.close()
	start := r.leaveTasks(x, 1)
	if n := r.s.Stats().Dispatches; n != 0 {
		t.Errorf("%d dispatches", n)
	}
	for name, f := range map[string]func() error{
		"Idle": r.s.Idle, "Relinquish": r.s.Relinquish, "Discard": func() error { _, err := r.s.Discard(); return err },
	} {
		if err := f(); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	start()
	r.taskwait()
	if err := r.s.Idle(); err != nil {
		t.Error(err)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// Tasks in the intake start in the order in which they were created, also where they are more than are started
// in a row.
func TestTasksThatAreLeftStartInOrder(t *testing.T) {
	const n = 3*groupTasks + 5
	x := filled(16*n, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveAll(math.MaxUint32)
	for i := range n {
		r.run(add1(x[16*i : 16*i+16]))
	}
	var queue []*resident
	r.s.intake.takeLocked()
	for l := r.s.intake.rest; l != nil; l = l.next {
		queue = append(queue, l)
	}
	if len(queue) != n {
		t.Fatalf("%d tasks", len(queue))
	}
	for i := 1; i < n; i++ {
		if queue[i-1].node.ID() > queue[i].node.ID() {
			t.Fatalf("task %d comes after task %d", queue[i-1].node.ID(), queue[i].node.ID())
		}
	}
	start()
	if got := r.s.Stats().Dispatches; got != n {
		t.Errorf("%d dispatches, want %d", got, n)
	}
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*n, 2)...)
}

// serialOrNot calls f as where goroutines run at the same time, and as where they run one at a time.
func serialOrNot(t *testing.T, f func(t *testing.T, serial bool)) {
	for name, serial := range map[string]bool{"at the same time": false, "one at a time": true} {
		t.Run(name, func(t *testing.T) { f(t, serial) })
	}
}

// The device gets what is in the intake when so many tasks as are started in a row have started, or all.
func TestTasksThatAreLeftAreSubmittedInRows(t *testing.T) {
	for _, atOnce := range []int{groupTasks, groupTasksSerial} {
		const n = 5 * groupTasks
		x := filled(16*n, 1)
		r := newIntakeRig(t, 0, x)
		r.s.intake.atOnce = atOnce
		r.d.hold()
		start, before := r.leaveAll(math.MaxUint32), r.d.submissions()
		for i := range n {
			r.run(add1(x[16*i : 16*i+16]))
		}
		r.s.startIntake(true).Finish()
		r.awaitSubmission()
		if got := r.s.Stats().Dispatches; got != n {
			t.Errorf("%d dispatches, want %d", got, n)
		}
		if got := r.d.submissions() - before; (got == 1) != (atOnce >= n) {
			t.Errorf("%d submissions of %d tasks in rows of %d", got, n, atOnce)
		}
		r.d.release()
		start()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16*n, 2)...)
		r.close()
	}
}

// A device that needs the only processor itself gets all tasks of a group at once.
func TestIntakeOfDevices(t *testing.T) {
	for _, c := range []struct {
		placement Placement
		device    vk.DeviceType
		serial    bool
		want      [3]int // many, group and atOnce
	}{
		{PlaceByFinish, vk.DeviceSoftware, false, [3]int{32, 64, 64}},
		{PlaceByFinish, vk.DeviceSoftware, true, [3]int{32, 1024, 1024}},
		{PlaceByFinish, vk.DeviceDiscrete, false, [3]int{32, 64, 64}},
		{PlaceByFinish, vk.DeviceDiscrete, true, [3]int{32, 1024, 64}},
		{PlaceRandom, vk.DeviceSoftware, true, [3]int{0, 0, 1024}},
		{PlaceRandom, vk.DeviceIntegrated, false, [3]int{0, 0, 64}},
	} {
		var in intake
		in.init(c.placement, c.device, c.serial)
		if got := [3]int{in.many, int(in.group), in.atOnce}; got != c.want || in.serial != c.serial {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A goroutine that has created a group of tasks starts them, with those that wait for one of them, and leaves the
// next ones again. They are submitted together.
func TestGoroutineThatCreatesAGroupStartsIt(t *testing.T) {
	serialOrNot(t, func(t *testing.T, serial bool) {
		const group = 40
		x := filled(16, 1)
		r := newIntakeRig(t, 0, x)
		defer r.close()
		r.s.intake.serial = serial
		r.d.hold()
		start, before := r.leaveAll(group), r.d.submissions()
		for i := range group {
			if n := r.s.Stats().Dispatches; n != 0 {
				t.Fatalf("%d dispatches when %d tasks have been created", n, i)
			}
			r.run(add1(x))
		}
		for range 2 {
			if n := r.s.Stats().Dispatches; n != group {
				t.Errorf("%d dispatches, want %d", n, group)
			}
			r.run(add1(x))
		}
		r.eventually("the group is submitted", func() bool { return r.d.submissions() > before })
		if n := r.d.submissions() - before; n != 1 {
			t.Errorf("%d submissions", n)
		}
		r.d.release()
		start()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 1+group+2)...)
	})
}

// On a device with several queues there is one submission to each queue that has got tasks of the group.
func TestGroupIsOneSubmissionOfEachQueue(t *testing.T) {
	const size, arrays, group = 1 << 16, 6, 60
	var x [][]uint32
	for range arrays {
		x = append(x, filled(size, 1))
	}
	r := newIntakeRigOn(t, manyQueues, 0, x...)
	defer r.close()
	r.d.hold()
	start, before := r.leaveAll(group), make([]order.Stats, len(manyQueues))
	stats := func(i int) order.Stats { return r.s.order.All()[i].Stats() }
	for i := range before {
		before[i] = stats(i)
	}
	for i := range group {
		r.run(add1(x[i%arrays]))
	}
	r.awaitSubmission()
	busy, total := 0, uint64(0)
	for i := range before {
		dispatches, submissions := stats(i).Dispatches-before[i].Dispatches, stats(i).Submissions-before[i].Submissions
		if submissions > 1 || (submissions == 1) != (dispatches > 0) {
			t.Errorf("%d submissions with %d dispatches to queue %d", submissions, dispatches, i)
		}
		busy, total = busy+int(submissions), total+dispatches
	}
	if busy < 2 || total != group {
		t.Errorf("%d dispatches to %d queues", total, busy)
	}
	r.d.release()
	start()
	r.taskwait()
	for i := range x {
		r.run(launch{label: "exit", exit: []arg{from(x[i])}, included: true})
		r.expect("x", x[i], filled(size, 1+group/arrays)...)
	}
}

// So does one in a taskgroup, whose tasks are not run when the taskgroup is cancelled before they start.
func TestGroupOfTasksThatCanBeCancelled(t *testing.T) {
	const group = 40
	for _, stopped := range []string{"not", "cancelled", "context"} {
		t.Run(stopped, func(t *testing.T) {
			x := filled(16, 1)
			r := newIntakeRig(t, 0, x)
			defer r.close()
			r.d.hold()
			start, before := r.leaveAll(group), r.d.submissions()
			taskgroup := tasks.NewGroup(nil)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			for i := range group {
				l := add1(x)
				l.group = taskgroup
				if i == group-1 {
					switch stopped {
					case "cancelled":
						taskgroup.Cancel()
					case "context":
						end()
					}
				}
				if err := r.s.Run(ctx, r.region(l)); err != nil && i < group-1 {
					t.Error(err)
				}
			}
			// The first one is in the intake, and the others have not started.
			want := uint64(group)
			if stopped != "not" {
				want = 1
				start()
			}
			if n := r.s.Stats().Dispatches; n != want {
				t.Errorf("%d dispatches, want %d", n, want)
			}
			r.eventually("the group is submitted", func() bool { return r.d.submissions() > before })
			if n := r.d.submissions() - before; n != 1 {
				t.Errorf("%d submissions", n)
			}
			r.d.release()
			if stopped == "not" {
				start()
			}
			if err := r.scope.Wait(context.Background(), nil); (err != nil) != (stopped == "context") {
				t.Error(err)
			}
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
			r.expect("x", x, filled(16, 1+uint32(want))...)
		})
	}
}

// gatedDevice is a device whose calls do not return while their gates are closed. Looks at the timeline see nothing
// new while that of waits is, except those of noticeLocked.
type gatedDevice struct {
	*fakeDevice
	submit, wait sync.RWMutex
}

func (d *gatedDevice) Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) error {
	d.submit.RLock()
	defer d.submit.RUnlock()
	return d.fakeDevice.Submit(queue, s, waits, foreign, signal)
}

func (d *gatedDevice) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	d.wait.RLock()
	defer d.wait.RUnlock()
	return d.fakeDevice.Wait(queue, value, timeout)
}

func (d *gatedDevice) Completed(queue int) (uint64, error) {
	if caller() != "noticeLocked" {
		if !d.wait.TryRLock() {
			return 0, nil
		}
		defer d.wait.RUnlock()
	}
	return d.fakeDevice.Completed(queue)
}

// caller returns the name of the function that calls the one which calls caller.
func caller() string {
	at, _, _, _ := runtime.Caller(2)
	name := runtime.FuncForPC(at).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// newGatedRig is newIntakeRig on such a device, whose gates are open.
func newGatedRig(t *testing.T, x ...[]uint32) (*rig, *gatedDevice) {
	t.Helper()
	d := &gatedDevice{fakeDevice: newFakeDeviceWith(t, oneQueue, discreteMemory, 1)}
	r := newWrappedRig(t, d, d.fakeDevice, Options{})
	for _, s := range x {
		r.run(launch{label: "enter", enter: []arg{to(s)}, included: true})
	}
	return r, d
}

// newWrappedRig returns a rig on a device that is a fake one with some other methods, with copies between host and device.
func newWrappedRig(t *testing.T, d Device, fake *fakeDevice, o Options) *rig {
	t.Helper()
	o.Domain, o.Sharing = rigDomain, ShareNothing
	s, err := New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	s.intake.many, s.intake.serial = 0, false
	r := &rig{t: t, d: fake, s: s, kernels: map[string]*kernel.Kernel{"add": loadKernel(t, "add")}, memory: make(map[uint64]uint64)}
	r.scope = r.graph.NewScope()
	r.compile()
	return r
}

// A goroutine that creates tasks does not wait for the driver, where goroutines run at the same time.
func TestGroupIsSubmittedByAnotherGoroutine(t *testing.T) {
	const group, groups = 10, 5
	x := filled(16, 1)
	r, d := newGatedRig(t, x)
	defer r.close()
	start, before := r.leaveAll(group), r.d.submissions()
	d.submit.Lock()
	for range group * groups {
		r.run(add1(x))
	}
	if n := r.s.Stats().Dispatches; n != group*groups {
		t.Errorf("%d dispatches, want %d", n, group*groups)
	}
	if n := r.d.submissions(); n != before {
		t.Errorf("%d submissions", n-before)
	}
	d.submit.Unlock()
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+group*groups)...)
}

// A goroutine that starts a group of tasks ends those that are complete, and submits what has collected, while those
// who wait for the device have not noticed.
func TestGoroutineThatStartsAGroupNoticesWhatIsComplete(t *testing.T) {
	const group, most = 10, 1000
	x := filled(16, 1)
	r, d := newGatedRig(t, x)
	defer r.close()
	start, before := r.leaveAll(group), r.d.submissions()
	d.wait.Lock()
	var created uint32
	noticed := func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		ended := int(r.s.order.All()[0].Stats().Dispatches) - r.s.life.live
		return ended > 0 && r.d.submissions() > before+order.MaxInFlight
	}
	for created < group || !noticed() && created < most {
		r.run(add1(x))
		if created++; created%group == 0 {
			r.awaitSubmission()
		}
	}
	if created == most {
		t.Errorf("%d tasks of %d have not ended, after %d submissions", r.s.life.live, created, r.d.submissions()-before)
	}
	d.wait.Unlock()
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+created)...)
}

// It leaves to others what may take long: the ends of tasks that are no resident tasks, or have observers, and the
// beginnings of those that have become ready.
func TestGoroutineThatStartsAGroupCallsNoFunctionOfTheProgram(t *testing.T) {
	for _, at := range []string{"begin", "end"} {
		for _, resides := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resident %t", at, resides), func(t *testing.T) {
				serialOrNot(t, func(t *testing.T, serial bool) { groupWithObserver(t, at, resides, serial) })
			})
		}
	}
}

func groupWithObserver(t *testing.T, at string, resides, serial bool) {
	const group = 10
	x, y, z := filled(16, 1), filled(16, 1), filled(16, 1)
	r, d := newGatedRig(t, x, z)
	defer r.close()
	r.s.intake.serial = serial
	resume, called := make(chan struct{}), make(chan struct{})
	r.doing(at, func() {
		close(called)
		<-resume
	})
	start := r.leaveAll(group)
	d.wait.Lock()
	r.run(unobserved(x))
	// This one follows one in the intake.
	observed := launch{label: "leaves", kernel: "add", args: []arg{tofrom(y)}, in: [][]uint32{x}, out: [][]uint32{y}, constant: 1}
	if resides {
		observed.args = []arg{alloc(x)}
		y[0] = 2 // as the other one leaves it
	}
	r.run(observed)
	inZ := r.createUntil(unobserved(z), group, "the observer is called", func() bool {
		select {
		case <-called:
			return true
		default:
			return false
		}
	})
	groups := 0
	inZ += r.createUntil(unobserved(z), group, "others start groups", func() bool { groups++; return groups == 3 })
	close(resume)
	d.wait.Unlock()
	<-called
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(z)}, included: true})
	inX := uint32(2)
	if resides {
		inX++
	}
	r.expect("x", x, filled(16, inX)...)
	r.expect("y", y[:1], 2)
	r.expect("z", z, filled(16, 1+inZ)...)
}

// Tasks of a goroutine that creates them faster than they are started have to wait, even if another one is starting
// some.
func TestOnlySomeTasksAreLeft(t *testing.T) {
	const n = 4 * mostInIntake
	x := filled(16*n, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveAll(groupTasks)
	r.s.intake.running.Add(1) // as that goroutine does
	most := int64(0)
	for i := range n {
		r.run(add1(x[16*i : 16*i+16]))
		most = max(most, r.s.intake.size.Load())
	}
	if most != mostInIntake-1 {
		t.Errorf("%d tasks were in the intake, want %d", most, mostInIntake-1)
	}
	r.s.intake.running.Add(-1)
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16*n, 2)...)
}

// A task that becomes ready when others end is started by the goroutine that ends these: nobody may create another
// one for long.
func TestTaskThatWaitsForTheHostIsNotLeft(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	hold := make(chan struct{})
	start := r.leaveAll(math.MaxUint32)
	r.host("host", nil, [][]uint32{x}, func() { <-hold })
	r.run(add1(x))
	r.run(add1(x))
	close(hold)
	r.eventually("the tasks have started", func() bool { return r.s.order.All()[0].Stats().Dispatches == 2 })
	if size := r.s.intake.size.Load(); size != 0 {
		t.Errorf("%d tasks are in the intake", size)
	}
	r.taskwait()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 3)...)
}

// A goroutine that is about to wait starts all that is in the intake, with what becomes ready by that.
func TestGoroutineThatWaitsStartsWhatIsLeft(t *testing.T) {
	const links = 3*groupTasks + 5
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveTasks(x, links)
	r.s.SubmitGathered()
	if n := r.s.Stats().Dispatches; n != links {
		t.Errorf("%d dispatches, want %d", n, links)
	}
	r.taskwait()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 1+links)...)
}

// A compound task comes behind what is in the intake: its constructs need not be run one by one.
func TestCompoundTaskComesBehindWhatIsLeft(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	c := r.s.NewCompound([]*Region{r.region(add1(x)), r.region(add1(x))})
	start := r.leaveTasks(x, 2)
	if ran, err := r.s.RunCompound(t.Context(), c, construct.Construct{Scope: r.scope}); !ran || err != nil {
		t.Errorf("ran: %v, %v", ran, err)
	}
	r.taskwait()
	start()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 5)...)
}

// A task in the intake can turn out to be a target, because its storage has gone meanwhile.
func TestTaskThatIsLeftBecomesATarget(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	start := r.leaveTasks(x, 1)
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	start()
	r.taskwait()
	r.expect("x", x, filled(16, 2)...)
}

func TestTasksThatAreLeftFailWithTheScheduler(t *testing.T) {
	for name, end := range map[string]func(r *rig){
		"closed": func(r *rig) {
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			r.s.life.closing = true
			r.s.refuses.Store(true)
		},
		"lost": func(r *rig) { r.s.Lose(errLostInTest) },
	} {
		t.Run(name, func(t *testing.T) {
			x := filled(16, 1)
			r := newIntakeRig(t, 0, x)
			start := r.leaveTasks(x, 2)
			end(r)
			start()
			if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) && !errors.Is(err, errLostInTest) {
				t.Errorf("got %v", err)
			}
			r.s.mu.Lock()
			r.s.life.closing = false
			r.s.mu.Unlock()
			_ = r.s.Close()
		})
	}
}

var errLostInTest = errors.New("lost in a test")

// Goroutines create chains of tasks, and one after another ends, without a call that starts what is in the intake.
func TestSweeperLeavesNothingBehind(t *testing.T) {
	const chains, links = 4, 300
	serialOrNot(t, func(t *testing.T, serial bool) {
		for _, many := range []int{1, 3, manyTasks} {
			var x [][]uint32
			for range chains {
				x = append(x, filled(16, 0))
			}
			r := newIntakeRig(t, many, x...)
			r.s.intake.serial, r.s.intake.group = serial, 20
			before := r.s.Stats().Dispatches
			var all sync.WaitGroup
			for i := range chains {
				all.Go(func() {
					for k := range links - 50*i {
						r.run(add1(x[i]))
						if k%50 == i {
							runtime.Gosched()
						}
					}
				})
			}
			all.Wait()
			if err := r.scope.Wait(t.Context(), nil); err != nil { // without SubmitGathered
				t.Error(err)
			}
			if n := r.s.Stats().Dispatches - before; n != chains*links-50*(0+1+2+3) {
				t.Errorf("%d dispatches", n)
			}
			r.intakeCloses()
			for i := range x {
				r.run(launch{label: "exit", exit: []arg{from(x[i])}, included: true})
				r.expect("x", x[i], filled(16, uint32(links-50*i))...)
			}
			r.close()
		}
	})
}

// When the device has done what it had to do, the sweeper starts what is in the intake.
func TestSweeperStartsWhatIsLeftWhenTheDeviceIsIdle(t *testing.T) {
	serialOrNot(t, func(t *testing.T, serial bool) {
		const n, many = 20, 5
		x := filled(16*n, 1)
		r := newIntakeRig(t, many, x)
		defer r.close()
		r.s.intake.serial, r.s.intake.group, r.s.order.patience = serial, math.MaxUint32, math.MaxInt64
		before := r.s.Stats().Dispatches
		r.d.hold()
		for i := range n {
			r.run(add1(x[16*i : 16*i+16]))
		}
		if size := r.s.intake.size.Load(); size != n-many {
			t.Errorf("%d tasks are in the intake", size)
		}
		r.d.release()
		r.intakeCloses()
		if got := r.s.Stats().Dispatches - before; got != n {
			t.Errorf("%d tasks of %d have started", got, n)
		}
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16*n, 2)...)
	})
}

// What is in the intake is started also when the device was refused what it had to do.
func TestLeftTasksStartWhenABatchIsRefused(t *testing.T) {
	x, y := filled(16, 1), filled(16, 1)
	r := newIntakeRig(t, 0, x, y)
	defer r.close()
	start, submitted := r.leaveAll(math.MaxUint32), r.d.submissions()
	r.failNext()
	r.run(add1(x))
	r.s.startIntake(true).Finish()
	r.eventually("the batch is refused", func() bool { return r.d.submissions() > submitted && r.s.order.Idle() })
	r.s.mu.Lock()
	r.s.intake.sweeping, r.s.order.patience = false, 0
	r.s.order.holding.Store(false)
	r.s.mu.Unlock()
	r.run(add1(y))
	r.intakeCloses()
	if size := r.s.intake.size.Load(); size != 0 {
		t.Errorf("%d tasks are in the intake", size)
	}
	start()
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, errSubmitMemory) {
		t.Errorf("got %v", err)
	}
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16, 1)...)
	r.expect("y", y, filled(16, 2)...)
}

// A function of the program that the start of a task calls does not keep the sweeper from others.
func TestSweeperCallsNoFunctionOfTheProgram(t *testing.T) {
	x, y, z := filled(16, 1), filled(16, 1), filled(16*30, 1)
	r := newIntakeRig(t, 0, x, z)
	defer r.close()
	begun, resume := make(chan struct{}), make(chan struct{})
	r.doing("begin", func() {
		close(begun)
		<-resume
	})
	start := r.leaveAll(math.MaxUint32)
	sweep := func() {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		r.s.intake.sweeping = false
		r.s.intake.open.Store(true)
		r.s.sweepIdleLocked()
	}
	r.run(unobserved(x))
	r.run(launch{label: "leaves", kernel: "add", args: []arg{tofrom(y)}, in: [][]uint32{x}, out: [][]uint32{y}, constant: 1})
	sweep()
	<-begun
	r.eventually("the sweeper has ended", func() bool { return !r.s.intake.sweeping })
	for i := range 30 {
		r.run(unobserved(z[16*i : 16*i+16]))
	}
	r.eventually("the device is idle", func() bool { return r.s.order.Idle() })
	sweep()
	r.eventually("all have started", func() bool { return r.s.intake.size.Load() == 0 })
	close(resume)
	r.eventually("the sweeper has ended", func() bool { return !r.s.intake.sweeping })
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(z)}, included: true})
	r.expect("x", x, filled(16, 2)...)
	r.expect("y", y, filled(16, 2)...)
	r.expect("z", z, filled(16*30, 2)...)
}

// Constructs that wait for their task start what is in the intake, on which it may depend.
func TestConstructThatWaitsStartsWhatIsLeft(t *testing.T) {
	const links = 5
	t.Run("of the device", func(t *testing.T) {
		x := filled(16, 1)
		r := newIntakeRig(t, 0, x)
		defer r.close()
		start := r.leaveTasks(x, links)
		l := add1(x)
		l.included = true
		r.run(l)
		start()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 1+links+1)...)
	})
	t.Run("of the host", func(t *testing.T) {
		x := filled(16, 1)
		r := newIntakeRig(t, 0, x)
		defer r.close()
		r.graph.OnWait(r.s.SubmitGathered)
		start := r.leaveTasks(x, links)
		ran := false
		err := host.NewDevice(1).Run(t.Context(), host.Region{
			Construct: construct.Construct{Label: "host", Scope: r.scope, Depend: dependOn(nil, [][]uint32{x})},
			Body:      func(context.Context) error { ran = true; return nil },
		})
		if err != nil || !ran {
			t.Errorf("ran: %v, %v", ran, err)
		}
		start()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect("x", x, filled(16, 1+links)...)
	})
}

// A task of another device that becomes ready when tasks of this one start, or fail, runs there.
func TestTaskOfAnotherDeviceIsNotStartedWithAGroup(t *testing.T) {
	mode := memoryModes[1]
	x, token := filled(16, 1), filled(1, 0)
	a := newRig(t, mode, 1)
	b := newSecondRig(t, a, mode, 2)
	a.watches, a.open, b.watches, b.open = false, false, false, false
	a.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	b.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	start, before := a.leaveAll(math.MaxUint32), b.s.Stats().Dispatches
	a.failNext()
	l := launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 1, depend: depends(tasks.DependMutexInOutSet, token)}
	a.run(l)
	b.run(l)
	start()
	if err := a.scope.Wait(t.Context(), nil); !errors.Is(err, errSubmitMemory) {
		t.Errorf("got %v", err)
	}
	if n := b.s.Stats().Dispatches - before; n != 1 {
		t.Errorf("%d dispatches", n)
	}
	b.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	a.expect("x", x, filled(16, 2)...)
	a.run(launch{label: "exit", exit: []arg{alloc(x)}, included: true})
	b.close()
	a.close()
}

// What is in the intake does not wait for a queue that is busy for long, or waits for something that the program does
// only when it has seen what the task leaves.
func TestLeftTasksDoNotWaitForABusyQueue(t *testing.T) {
	serialOrNot(t, func(t *testing.T, serial bool) {
		const n, rounds = 5, 3
		x, y := filled(16*n, 1), filled(16, 1)
		r := newRig(t, onQueues, 1)
		defer r.close()
		r.watches = false
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		r.d.hold()
		r.use(0)
		r.run(add1(y))
		resume := r.stall(0)
		r.use(1)
		r.s.intake.many, r.s.intake.group, r.s.intake.serial = 2, math.MaxUint32, serial
		for round := range rounds {
			for i := range n {
				// Its commands are not kept for more to come, which would start the timer.
				r.heavy("heavy", x[16*i:16*i+16], long)
			}
			if !r.s.intake.open.Load() {
				t.Errorf("the intake is closed in round %d", round)
			}
			done := make(chan struct{})
			r.host("host", [][]uint32{x}, nil, func() { close(done) })
			<-done
		}
		resume()
		r.taskwait()
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
		r.expect("x", x, filled(16*n, 1+rounds)...)
		r.expect("y", y, filled(16, 2)...)
	})
}

// An intake that opens although the device has nothing to do, since all tasks in flight wait for something else, is
// closed again.
func TestIntakeThatOpensWhileTheDeviceIsIdle(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 2, x)
	defer r.close()
	r.eventually("the device is idle", func() bool { return r.s.order.Idle() })
	r.s.mu.Lock()
	r.s.life.live += 2
	r.s.startedAloneLocked()
	r.s.startedAloneLocked()
	opened := r.s.intake.open.Load()
	r.s.life.live -= 2
	r.s.mu.Unlock()
	if !opened {
		t.Error("it has not opened")
	}
	r.s.SubmitGathered() // as a goroutine that is about to wait, which starts nothing
	r.intakeCloses()
	r.run(add1(x))
	r.intakeCloses()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// The sweeper does not end while something is in the intake and the device has nothing to do.
func TestSweeperGoesOn(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	defer r.close()
	in := &r.s.intake
	start := r.leaveTasks(x, 1)
	r.eventually("the device is idle", func() bool { return r.s.order.Idle() })
	if !r.s.sweepMore() || !in.open.Load() || !in.sweeping {
		t.Errorf("open %t, sweeping %t", in.open.Load(), in.sweeping)
	}
	r.d.hold()
	r.s.startIntake(false).Finish()
	if r.s.sweepMore() || !in.open.Load() || in.sweeping {
		t.Errorf("with a busy device: open %t, sweeping %t", in.open.Load(), in.sweeping)
	}
	r.s.mu.Lock()
	in.sweeping = true // as before
	r.s.mu.Unlock()
	r.d.release()
	r.eventually("the device is idle", func() bool { return r.s.order.Idle() })
	if r.s.sweepMore() || in.open.Load() || in.sweeping {
		t.Errorf("without tasks: open %t, sweeping %t", in.open.Load(), in.sweeping)
	}
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	r.expect("x", x, filled(16, 2)...)
}

// A goroutine that starts a group finds a task complete that has the last reference to its storage. It leaves the copy
// to the host, and all that comes behind it, to another goroutine.
func TestGroupAfterATaskWithTheLastReference(t *testing.T) {
	const group = 10
	x, z := filled(16, 1), filled(16, 1)
	r, d := newGatedRig(t, x, z)
	defer r.close()
	d.wait.Lock() // before anybody waits for a device that is held
	r.d.hold()
	r.run(add1(x))
	r.resides(x)
	r.releaseAllButLast(x)
	start := r.leaveAll(group)
	r.d.release()
	r.d.run()
	r.d.set(func() {
		r.d.submit = func(int) error {
			if stack := make([]byte, 1<<14); bytes.Contains(stack[:runtime.Stack(stack, false)], []byte(".finishResidents(")) {
				t.Error("the goroutine that starts the group submits the copy")
			}
			return nil
		}
	})
	r.s.finishApart(r.s.startIntake(true)) // there is nothing to start
	n := r.createUntil(add1(z), group, "x is no longer present", func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		_, there := r.residents(x)
		return !there
	})
	d.wait.Unlock()
	start()
	r.taskwait()
	r.expect("x", x, filled(16, 2)...)
	r.run(launch{label: "exit", exit: []arg{from(z)}, included: true})
	r.expect("z", z, filled(16, 1+n)...)
}

// A construct whose task is placed does not break up the groups of others.
func TestPlacedConstructStartsNothing(t *testing.T) {
	const n = 5
	x, y := filled(16*n, 1), filled(16, 1)
	r := newIntakeRig(t, 0, x, y)
	defer r.close()
	r.open = false
	start := r.leaveAll(math.MaxUint32)
	for i := range n {
		r.run(add1(x[16*i : 16*i+16]))
	}
	l := add1(y)
	l.included = true
	r.d.hold()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		r.run(l)
	}()
	q := r.s.order.All()[0]
	r.eventually("the construct waits for its queue", func() bool { return q.Drivers() == 1 && len(q.InFlight()) > 0 })
	r.d.release()
	<-returned
	if size := r.s.intake.size.Load(); size != n {
		t.Errorf("%d tasks are in the intake, want %d", size, n)
	}
	start()
	r.taskwait()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	r.expect("x", x, filled(16*n, 2)...)
	r.expect("y", y, filled(16, 2)...)
}

// Close fails what is in the intake.
func TestCloseWithTasksLeft(t *testing.T) {
	x := filled(16, 1)
	r := newIntakeRig(t, 0, x)
	r.leaveTasks(x, 2)
	if err := r.s.Close(); !errors.Is(err, memory.ErrLeaked) {
		t.Errorf("Close: %v", err)
	}
	if n := r.s.intake.size.Load(); n != 0 {
		t.Errorf("%d tasks are in the intake", n)
	}
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}
