package order

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// standing is a device that takes all submissions and runs nothing.
type standing struct {
	// submitted are the values that the queues are to signal, and waits the waits of the last
	// submission. refuse, if not nil, is the error of the next one.
	submitted []uint64
	waits     []timeline.Point
	refuse    error
	// submitting, if not nil, is called by each submission.
	submitting func(queue int)
}

func (d *standing) Submit(queue int, _ *vk.Stream, waits []timeline.Point, _ Foreign, signal uint64) error {
	if d.submitting != nil {
		d.submitting(queue)
	}
	if err := d.refuse; err != nil {
		d.refuse = nil
		return err
	}
	d.submitted[queue], d.waits = signal, slices.Clone(waits)
	return nil
}

func (d *standing) Completed(int) (uint64, error) { return 0, nil }

func (d *standing) Wait(int, uint64, time.Duration) (bool, error) { panic("nobody waits") }

// newStanding returns queues of a device that runs nothing.
func newStanding(infos []QueueInfo) (*Queues, *standing) {
	d := &standing{submitted: make([]uint64, len(infos))}
	o := new(Queues)
	o.Init(d, infos, new(sync.Mutex), nil, func(*Queue) {})
	return o, d
}

// dispatch is placeLaunch for a kernel of one invocation.
func dispatch(t *testing.T, o *Queues, q *Queue, after ...SyncPoint) *Task {
	t.Helper()
	return placeLaunch(t, o, q, Launch{Invocations: 1}, after...)
}

// placeLaunch places the kernel of a new task on a queue, behind the given points, and submits what that
// closes.
func placeLaunch(t *testing.T, o *Queues, q *Queue, l Launch, after ...SyncPoint) *Task {
	t.Helper()
	var s WaitSet
	for _, p := range after {
		s.Add(p)
	}
	b, at, err := o.Begin(q, &s)
	if err != nil {
		t.Fatal(err)
	}
	b.Level(at.Level).Fill(1, 0, 4, 0)
	o.CountDispatches(q, 1, l)
	task := &Task{At: at}
	b.AddTask(task)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.SubmitClosed()
	return task
}

func submit(t *testing.T, o *Queues, q *Queue) {
	t.Helper()
	if err := submission(o, q); err != nil {
		t.Fatal(err)
	}
}

// submission closes and submits the pending batch of a queue, and returns the error of that.
func submission(o *Queues, q *Queue) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.SubmitNow(q, func() {})
}

// flush closes the pending batch of a queue if it is time for that, and submits it.
func flush(o *Queues, q *Queue, u Urgency) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.Flush(q, u)
	for o.SubmitClosed() {
	}
	return err
}

// complete makes the queue reach a value, and returns the tasks of the batches that are
// complete then.
func complete(o *Queues, q *Queue, value uint64) (tasks []*Task) {
	arrived := o.Arrive(q, value)
	for _, a := range arrived {
		tasks = append(tasks, a.Tasks()...)
	}
	o.Recycle(arrived)
	return tasks
}

// Batches are recycled. The levels of a batch's earlier use must be gone: each would cost a
// barrier.
func TestLevelsDoNotGrowWithRecycling(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	var last SyncPoint
	for range 50 {
		last = dispatch(t, o, q, last).At
	}
	deep := q.Pending()
	if n := len(deep.levels); n != 50 {
		t.Errorf("a chain of 50 commands has %d levels", n)
	}
	submit(t, o, q)
	complete(o, q, q.last)
	deep.reset(deep.value)
	if len(deep.levels) > 0 {
		t.Errorf("%d levels of an empty batch", len(deep.levels))
	}
	if s := deep.Level(1); len(deep.levels) != 2 || s.Len() != 0 {
		t.Errorf("%d levels, %d operations in a new one", len(deep.levels), s.Len())
	}
}

// A recycled batch may not be used again for long. It must not keep its tasks reachable,
// through which the program's slices are.
func TestRecycledBatchLetsGoOfItsTasks(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	for range 10 {
		dispatch(t, o, q)
		dispatch(t, o, q)
		submit(t, o, q)
	}
	if tasks := complete(o, q, q.last); len(tasks) != 20 {
		t.Fatalf("%d tasks are complete, want 20", len(tasks))
	}
	if len(q.spare) == 0 {
		t.Fatal("no batch was recycled")
	}
	for _, b := range q.spare {
		for _, kept := range b.tasks[:cap(b.tasks)] {
			if kept != nil {
				t.Fatal("a batch keeps a task")
			}
		}
	}
}

// A queue needs room for the batches in flight, however many it has submitted.
func TestQueueHasRoomForWhatIsInFlight(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	for range 50 {
		dispatch(t, o, q)
		submit(t, o, q)
		complete(o, q, q.last)
	}
	if room := cap(q.room); room > 4*MaxInFlight {
		t.Errorf("there is room for %d batches, and 1 in flight at most", room)
	}
}

// submitChain submits a batch with a chain of commands.
func submitChain(t *testing.T, o *Queues, q *Queue, links int) {
	t.Helper()
	var last SyncPoint
	for range links {
		last = dispatch(t, o, q, last).At
	}
	submit(t, o, q)
}

// bursts returns a function that has n batches in flight at once, each with a chain of commands, and returns how many
// of them had not been in flight in earlier calls.
func bursts(t *testing.T, o *Queues, q *Queue, links int) func(n int) (made int) {
	seen := make(map[uintptr]bool) // which does not keep them
	return func(n int) (made int) {
		for range n {
			if at := uintptr(unsafe.Pointer(q.pending)); !seen[at] {
				seen[at] = true
				made++
			}
			submitChain(t, o, q, links)
		}
		complete(o, q, q.last)
		return made
	}
}

// What a batch counts is what it has, whichever of its levels it has used.
func TestBatchKnowsItsMemory(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	b := q.pending
	for _, levels := range []int{3, 50, 1, 200, 7} {
		for l := range levels {
			for range 200 / levels {
				b.Level(int32(l)).Fill(1, 0, 4, 0)
			}
		}
		b.memory()
		words := 0
		for _, s := range b.levels[:cap(b.levels)] {
			words += s.Memory()
		}
		if b.bytes != words {
			t.Errorf("after %d levels %d bytes are counted, and there are %d", levels, b.bytes, words)
		}
		b.reset(b.value)
	}
}

// After a burst of large batches the garbage collector takes all but some megabytes of them.
func TestQueueKeepsLittleAfterABurst(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	var all []weak.Pointer[Batch]
	for range 20 {
		all = append(all, weak.Make(q.pending))
		submitChain(t, o, q, 3000)
	}
	complete(o, q, q.last)
	for range 3 {
		runtime.GC()
	}
	kept := 0
	for _, p := range all {
		if b := p.Value(); b != nil {
			kept += b.memory()
		}
	}
	if kept != q.spareBytes || kept > keptBytes || kept < keptBytes/2 {
		t.Errorf("%d bytes are kept, %d counted, %d allowed", kept, q.spareBytes, keptBytes)
	}
	runtime.KeepAlive(o)
	for range len(q.spare) {
		q.takeSpare()
	}
	if q.spareBytes != 0 {
		t.Errorf("%d bytes are counted and none are kept", q.spareBytes)
	}
	for _, b := range q.spare[:cap(q.spare)] {
		if b != nil {
			t.Fatal("a batch that was taken is reachable")
		}
	}
}

// A batch that another one waits for is submitted before that, and only once.
func TestCrossingSubmitsWhatIsWaitedFor(t *testing.T) {
	o, d := newStanding(fourQueues)
	first, second := o.All()[0], o.All()[1]
	x := dispatch(t, o, first)
	collected := dispatch(t, o, second)
	y := dispatch(t, o, second, x.At)
	if d.submitted[0] != 1 || d.submitted[1] != 1 {
		t.Fatalf("submitted %v before the command that waits, want 1 of each queue", d.submitted)
	}
	if collected.At.Value == y.At.Value {
		t.Error("what the queue had collected waits as well")
	}
	dispatch(t, o, second, x.At, y.At)
	submit(t, o, second)
	if want := []timeline.Point{{Queue: 0, Value: 1}}; !slices.Equal(d.waits, want) {
		t.Errorf("the batch waits for %v, want %v", d.waits, want)
	}
	// The end of a batch that waited for x shows that x is complete.
	if tasks := complete(o, second, second.last); len(tasks) != 4 || tasks[0] != x {
		t.Errorf("%d tasks are complete, want 4 with the one that was waited for first", len(tasks))
	}
}

// A batch was refused. Commands behind it have to come after those that it was to follow
// itself.
func TestRefusedBatchStandsForWhatItWasToFollow(t *testing.T) {
	o, d := newStanding(fourQueues)
	a, b, c := o.All()[0], o.All()[1], o.All()[2]
	x := dispatch(t, o, a)
	y := dispatch(t, o, b, x.At)
	d.refuse = errRefused
	if err := submission(o, b); err != errRefused {
		t.Fatalf("the submission gives %v, want %v", err, errRefused)
	}
	refused := o.TakeRefused()
	if len(refused) != 1 || refused[0].Queue() != b || !slices.Contains(refused[0].Tasks(), y) || refused[0].Err() != errRefused {
		t.Fatalf("refused is %v, want the batch of y", refused)
	}
	if again := o.TakeRefused(); len(again) > 0 {
		t.Errorf("%d batches are taken twice", len(again))
	}
	refused[0].Recycle()
	dispatch(t, o, c, y.At)
	submit(t, o, c)
	if want := []timeline.Point{{Queue: 0, Value: 1}}; !slices.Equal(d.waits, want) {
		t.Errorf("who follows the refused batch waits for %v, want %v", d.waits, want)
	}
}

// reaching is a device of which the test says what its queues have reached.
type reaching struct {
	*standing
	reached []uint64
}

func (d *reaching) Completed(queue int) (uint64, error) { return d.reached[queue], nil }

// The device is done with a refused batch when it has reached what that was to follow, on its own queue and on others,
// although nothing is submitted to the queue any more.
func TestRefusedBatchIsOverWhenWhatItWasToFollowIs(t *testing.T) {
	o, d := newStanding(fourQueues)
	r := &reaching{d, make([]uint64, len(fourQueues))}
	o.device = r
	a, b, c := o.All()[0], o.All()[1], o.All()[2]
	over := func(task *Task) bool {
		return o.Over(timeline.Point{Queue: timeline.Queue(task.At.Queue), Value: task.At.Value})
	}
	x, before := dispatch(t, o, a), dispatch(t, o, b)
	submit(t, o, a)
	submit(t, o, b)
	y := place(t, o, b, x.At)
	z := place(t, o, c, y.At) // closes the batch of y
	d.refuse = errRefused
	o.mu.Lock()
	failed := o.SubmitClosed()
	o.mu.Unlock()
	if refused := o.TakeRefused(); !failed || len(refused) != 2 {
		t.Fatalf("%d batches are refused, want 2", len(refused))
	}
	next := place(t, o, b)
	check := func(what string, want bool) {
		t.Helper()
		for name, task := range map[string]*Task{"the first": y, "the second": z} {
			if over(task) != want {
				t.Errorf("%s refused batch is over: %v, when %s", name, !want, what)
			}
		}
		if over(next) {
			t.Errorf("a batch that has not run is over, when %s", what)
		}
	}
	check("nothing is", false)
	r.reached[0] = x.At.Value
	check("one queue is", false)
	r.reached[0], r.reached[1] = 0, before.At.Value
	check("the other queue is", false)
	r.reached[0] = x.At.Value
	check("both are", true)
}

// place is dispatch without the submissions.
func place(t *testing.T, o *Queues, q *Queue, after ...SyncPoint) *Task {
	t.Helper()
	o.submitting = true
	defer func() { o.submitting = false }()
	return dispatch(t, o, q, after...)
}

// A batch was refused, and others were closed or pending behind it. Commands that follow those of the
// batch never run. Others do, but not before the tasks that fail have failed: whatever is placed
// meanwhile has to see that.
func TestWhatIsBehindARefusedBatchIsRefused(t *testing.T) {
	o, d := newStanding(fourQueues)
	a, b, c := o.All()[0], o.All()[1], o.All()[2]
	first := place(t, o, a)
	alone := place(t, o, b)
	behind := place(t, o, c, first.At) // closes the batch of first
	if err := errors.Join(o.Close(b), o.Close(c)); err != nil {
		t.Fatal(err)
	}
	next, afterNext := place(t, o, a), place(t, o, c)
	pending := place(t, o, b)
	d.refuse = errRefused
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.SubmitClosed() {
		t.Fatal("the failure of a submission is not reported")
	}
	var failed []*Task
	for _, r := range o.TakeRefused() {
		failed = append(failed, r.Tasks()...)
		if r.Err() != errRefused {
			t.Errorf("a batch is refused with %v", r.Err())
		}
		r.Recycle()
	}
	if want := []*Task{first, behind, next, afterNext}; !slices.Equal(failed, want) {
		t.Errorf("%v fail, want %v", failed, want)
	}
	if slices.ContainsFunc(d.submitted, func(v uint64) bool { return v > 0 }) {
		t.Errorf("submitted %v before the tasks have failed", d.submitted)
	}
	if o.SubmitClosed() || d.submitted[1] != alone.At.Value || o.UnderWay(pending.At) != b.Pending() {
		t.Errorf("submitted %v, want the batch that follows nothing", d.submitted)
	}
}

// Batches are submitted in the order of their closing, by one goroutine at a time.
func TestBatchesAreSubmittedInTheOrderOfTheirClosing(t *testing.T) {
	o, d := newStanding(fourQueues)
	var order []int32
	for _, i := range []int{2, 0, 1} {
		place(t, o, o.All()[i])
		if err := o.Close(o.All()[i]); err != nil {
			t.Fatal(err)
		}
	}
	d.submitting = func(queue int) {
		order = append(order, int32(queue))
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.SubmitClosed() {
			t.Error("a submission has failed")
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.SubmitClosed() || !slices.Equal(order, []int32{2, 0, 1}) {
		t.Errorf("submitted to the queues %v, want 2, 0 and 1", order)
	}
}

// A batch whose submission is under way is not complete, whatever the timeline of its queue says.
func TestBatchIsNotCompleteBeforeItsSubmissionIsOver(t *testing.T) {
	o, d := newStanding(fourQueues[:1])
	q := o.All()[0]
	x := place(t, o, q)
	d.submitting = func(int) {
		if tasks := complete(o, q, 1); len(tasks) > 0 || o.Complete(x.At) {
			t.Error("the batch is complete and recycled while it is submitted")
		}
	}
	submit(t, o, q)
	if tasks := complete(o, q, 1); !slices.Equal(tasks, []*Task{x}) {
		t.Errorf("%v are complete, want one task", tasks)
	}
}

// A batch whose submission is answered with the loss of the device may still run, and counts as
// in flight. Later batches fail.
func TestLostDeviceRunsNothingMore(t *testing.T) {
	o, d := newStanding(fourQueues)
	q := o.All()[0]
	x := dispatch(t, o, q)
	d.refuse = vk.ErrDeviceLost
	if err := submission(o, q); err == nil || o.Lost() == nil {
		t.Fatalf("the submission gives %v, and the device is lost: %v", err, o.Lost())
	}
	if len(q.InFlight()) != 1 || len(o.TakeRefused()) > 0 {
		t.Errorf("%d batches are in flight, want 1", len(q.InFlight()))
	}
	y := dispatch(t, o, q, x.At)
	if err := submission(o, q); err == nil {
		t.Error("a lost device takes a submission")
	}
	o.RefuseAll(o.Lost())
	var failed []*Task
	for _, r := range o.TakeRefused() {
		failed = append(failed, r.Tasks()...)
	}
	if !slices.Equal(failed, []*Task{y, x}) || len(q.InFlight()) > 0 {
		t.Errorf("%d tasks fail with the device, want 2", len(failed))
	}
}

// A task with commands in several batches ends with the batch that was submitted last.
func TestLastBatchIsTheOneSubmittedLast(t *testing.T) {
	o, _ := newStanding(fourQueues)
	a, b := o.All()[0], o.All()[1]
	task := new(Places)
	task.Placed(dispatch(t, o, a).At)
	submit(t, o, a)
	task.Placed(dispatch(t, o, b, task.At).At)
	if last := o.LastBatch(task); last != b.Pending() {
		t.Error("the last batch is not the one that is pending")
	}
	submit(t, o, b)
	if last := o.LastBatch(task); last != b.InFlight()[0] {
		t.Error("the last batch is not the one submitted last")
	}
	complete(o, b, b.last)
	if last := o.LastBatch(task); last != nil {
		t.Errorf("the last batch is %v after all are complete", last)
	}
}

// A queue without work has no waiter and keeps no memory after a pause, and goes on with the
// next submission.
func TestRetiredQueueKeepsNothing(t *testing.T) {
	o, _ := newStanding(fourQueues[:1])
	q := o.All()[0]
	for range 5 {
		dispatch(t, o, q)
		submit(t, o, q)
		complete(o, q, q.last)
	}
	o.Retire()
	if !o.Retiring() {
		t.Error("the waiter is gone already")
	}
	if w, ok := o.NextWait(q); ok {
		t.Errorf("the waiter is to wait for %d", w.Value)
	}
	if o.Retiring() || q.Waiting() {
		t.Error("the waiter is still there")
	}
	q.more.Put(new(Batch)) // what a burst leaves
	o.Trim()
	if len(q.spare) > 0 || q.room != nil || q.spareBytes != 0 || q.more.Get() != nil {
		t.Errorf("%d batches are kept, and room for %d", len(q.spare), cap(q.room))
	}
	x := dispatch(t, o, q)
	submit(t, o, q)
	if !q.Waiting() {
		t.Error("nobody waits for the submission")
	}
	if w, ok := o.NextWait(q); !ok || w.Queue != q || w.Value != x.At.Value {
		t.Errorf("the waiter is to wait for %d: %v, want %d", w.Value, ok, x.At.Value)
	}
	if tasks := complete(o, q, q.last); !slices.Equal(tasks, []*Task{x}) {
		t.Errorf("%d tasks are complete, want 1", len(tasks))
	}
}

// A waiter that is to end leaves the batches in flight to a driver, and ends when there is no driver any more, whoever has
// found that the batches are complete.
func TestRetiredWaiterEndsAfterTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := newStanding(fourQueues[:1])
		q := o.All()[0]
		locked := func(f func()) {
			o.mu.Lock()
			defer o.mu.Unlock()
			f()
		}
		locked(q.AddDriver)
		dispatch(t, o, q)
		submit(t, o, q)
		locked(func() { o.StartWaiter(q) })
		go locked(func() {
			if w, ok := o.NextWait(q); ok {
				t.Errorf("the waiter is to wait for %d", w.Value)
			}
		})
		synctest.Wait()
		locked(o.Retire)
		synctest.Wait()
		locked(func() {
			complete(o, q, q.last)
			o.StopDriving(q)
		})
		synctest.Wait()
		locked(func() {
			if o.Retiring() {
				t.Error("the waiter is still there")
			}
		})
	})
}

// A goroutine submits a few batches and leaves the others that were closed meanwhile to another one.
func TestOneGoroutineSubmitsFewBatches(t *testing.T) {
	o, d := newStanding(fourQueues[:1])
	q := o.All()[0]
	started := 0
	o.OnBacklog(func() { started++ })
	o.mu.Lock()
	defer o.mu.Unlock()
	const batches = 3*submissionsAtOnce + 1
	for range batches {
		var s WaitSet
		b, at, err := o.Begin(q, &s)
		if err != nil {
			t.Fatal(err)
		}
		b.Level(at.Level).Fill(1, 0, 4, 0)
		if err := o.Close(q); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range []struct {
		takes     bool
		submitted uint64
		started   int
	}{{false, submissionsAtOnce, 1}, {false, 2 * submissionsAtOnce, 1}, {true, 3 * submissionsAtOnce, 2}, {true, batches, 2}} {
		if c.takes {
			o.TakeBacklog()
		}
		if o.SubmitClosed() || d.submitted[0] != c.submitted || started != c.started {
			t.Errorf("call %d: %d batches are submitted, want %d; %d goroutines were started, want %d", i, d.submitted[0], c.submitted, started, c.started)
		}
	}
}

// When its user ends the queues, nobody is there any more to whom batches could be left.
func TestBatchesOfStoppedQueuesAreLeftToNobody(t *testing.T) {
	o, d := newStanding(fourQueues[:1])
	q := o.All()[0]
	o.OnBacklog(func() { t.Error("a goroutine is started") })
	o.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for range submissionsAtOnce + 1 {
		if err := o.Close(q); err != nil {
			t.Fatal(err)
		}
	}
	if o.SubmitClosed() || d.submitted[0] != submissionsAtOnce+1 {
		t.Errorf("%d batches are submitted", d.submitted[0])
	}
}

// While one goroutine submits the batch of another, a third one reports the loss of the device. The submission
// succeeds, and that is what the batch's goroutine hears.
func TestLossDuringASubmissionByAnotherGoroutine(t *testing.T) {
	o, d := newStanding(fourQueues[:2])
	a, b := o.All()[0], o.All()[1]
	heard := make(chan error, 1)
	d.submitting = func(queue int) {
		if queue == 0 {
			go func() { heard <- submission(o, b) }()
			for closed := 0; closed < 2; runtime.Gosched() {
				o.mu.Lock()
				closed = len(o.unsent)
				o.mu.Unlock()
			}
			return
		}
		o.mu.Lock()
		o.Lose(vk.ErrDeviceLost)
		o.mu.Unlock()
		for range 1000 {
			runtime.Gosched()
		}
	}
	submit(t, o, a)
	if err := <-heard; err != nil || d.submitted[1] != 1 {
		t.Errorf("%v, and value %d is submitted", err, d.submitted[1])
	}
}

// A device is lost once, whoever reports it first: the submission that is under way hears of that, too.
func TestLossIsTheOneThatWasReportedFirst(t *testing.T) {
	o, d := newStanding(fourQueues[:1])
	first := errors.New("first")
	d.submitting = func(int) {
		o.mu.Lock()
		o.Lose(first)
		o.mu.Unlock()
	}
	d.refuse = vk.ErrDeviceLost
	if err := submission(o, o.All()[0]); err != first || o.Lost() != first {
		t.Errorf("the submission fails with %v, and the device is lost with %v", err, o.Lost())
	}
}
