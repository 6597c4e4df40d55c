package sched

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// faultyQueues is a device whose n-th submission fails, and the following ones until many have
// failed. It notes the tasks of those batches, and of those behind them.
type faultyQueues struct {
	*fakeDevice
	s      *Scheduler
	n      int
	many   int
	err    error
	calls  int
	struck map[string]bool
	// spared are the tasks that must not fail: the last of their commands were in other batches then, and
	// they had not failed. Those are not among them that may be running and still have copies to the host
	// to place, because these may come behind the submission while that is under way.
	spared map[string]bool
	queue  int
	fell   bool
	// late says that a failed batch had a copy to the host that was made at the end of its
	// task: other tasks that depend on it were in flight or complete already.
	late bool
}

func (d *faultyQueues) Submit(queue int, stream *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) error {
	d.s.mu.Lock() // which the caller does not have
	defer d.s.mu.Unlock()
	d.calls++
	if d.n == 0 || d.calls < d.n || d.calls >= d.n+d.many {
		return d.fakeDevice.Submit(queue, stream, waits, foreign, signal)
	}
	d.queue, d.fell = queue, true
	clear(d.spared) // of those in a batch before, some have come to their exits
	for _, q := range d.s.order.All() {
		for _, b := range append(slices.Clone(q.InFlight()), q.Pending()) {
			runs := b.Value() <= d.submittedTo(int(q.Index()))
			for _, task := range b.Tasks() {
				t, ok := task.Owner.(*target)
				if !ok || t.failed == nil && !(runs && t.state != taskLate && (t.Structured || len(t.Exit) > 0)) {
					d.spared[labelOf(task)] = true
				}
			}
		}
	}
	d.strike(queue, signal)
	if errors.Is(d.err, vk.ErrDeviceLost) {
		d.set(func() { d.submit = func(int) error { return d.err } })
		return d.fakeDevice.Submit(queue, stream, waits, foreign, signal)
	}
	return d.err
}

// strike notes the tasks of the batches that are refused with one whose submission fails: those that were
// placed behind it on its queue, or on a queue that waits for one of them.
func (d *faultyQueues) strike(queue int, value uint64) {
	queues := d.s.order.All()
	for _, b := range append(slices.Clone(queues[queue].InFlight()), queues[queue].Pending()) {
		if b.Value() < value {
			continue
		}
		for _, task := range b.Tasks() {
			d.struck[labelOf(task)] = true
			delete(d.spared, labelOf(task))
			t, ok := task.Owner.(*target)
			d.late = d.late || ok && t.state == taskLate
		}
	}
	for i, q := range queues {
		for _, b := range append(slices.Clone(q.InFlight()), q.Pending()) {
			if i != queue && b.WaitsFor(int32(queue)) >= value {
				d.strike(i, b.Value())
				break
			}
		}
	}
}

// over reports whether a submission has failed. From now on none does.
func (d *faultyQueues) over() bool {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.n = 0
	return d.fell
}

// spread is a program over many queues that notes of each task which others it depends on.
type spread struct {
	r *rig
	// arrays are the host's storage, and want what is there at the end if nothing fails.
	arrays, want [][]uint32
	// on[label] are the labels of a task and of all that it depends on.
	on map[string]map[string]bool
	// writers are the tasks that wrote an array last, and readers those that have read it
	// since.
	writers, readers []map[string]bool
	// touched are all tasks that have written an array.
	touched []map[string]bool
}

const spreadArrays = 6

func newSpread(r *rig) *spread {
	p := &spread{r: r, on: make(map[string]map[string]bool)}
	for i := range spreadArrays {
		n := 16
		if i == spreadArrays-1 {
			n = 96 // larger than a ring, where chunks are small
		}
		p.arrays = append(p.arrays, filled(n, uint32(i)))
		p.want = append(p.want, filled(n, uint32(i)))
		for _, s := range []*[]map[string]bool{&p.writers, &p.readers, &p.touched} {
			*s = append(*s, make(map[string]bool))
		}
	}
	return p
}

// task notes what a task depends on.
func (p *spread) task(label string, in, out []int) string {
	on := map[string]bool{label: true}
	follow := func(labels map[string]bool) {
		for l := range labels {
			maps.Copy(on, p.on[l])
		}
	}
	for _, i := range append(in, out...) {
		follow(p.writers[i])
	}
	for _, i := range out {
		follow(p.readers[i])
		p.writers[i], p.readers[i] = map[string]bool{label: true}, make(map[string]bool)
		p.touched[i][label] = true
	}
	for _, i := range in {
		p.readers[i][label] = true
	}
	p.on[label] = on
	return label
}

// mix generates a task that computes out = 3 out + a + b + 1, with maps of its own.
func (p *spread) mix(label string, out, a, b int) {
	label = p.task(label, []int{a, b}, []int{out})
	x := p.arrays
	p.r.t.Helper()
	p.run(p.r.region(launch{label: label, kernel: "mix", args: []arg{tofrom(x[out]), to(x[a]), to(x[b])}, constant: 1,
		in: [][]uint32{x[a], x[b]}, out: [][]uint32{x[out]}}))
	for i := range min(len(x[out]), len(x[a]), len(x[b])) {
		p.want[out][i] = 3*p.want[out][i] + p.want[a][i] + p.want[b][i] + 1
	}
}

func (p *spread) run(g *Region) { _ = p.r.s.Run(context.Background(), g) }

// generate makes the tasks: chains and a diamond with maps of their own, a data region with
// kernels in it, a join, an update, and copies that go through a ring.
func (p *spread) generate() error {
	region, stream := 4, 5
	x := p.arrays
	p.run(p.r.region(launch{label: p.task("enter", nil, []int{region}), enter: []arg{to(x[region])}, out: [][]uint32{x[region]}}))
	for i := range 3 {
		p.mix(fmt.Sprint("chain 0.", i), 0, 3, 3)
		p.mix(fmt.Sprint("chain 1.", i), 1, 3, 3)
		p.mix(fmt.Sprint("diamond ", i), 2, 0, 1)
		p.mix(fmt.Sprint("region ", i), region, 3, 0)
		p.mix(fmt.Sprint("stream ", i), stream, stream, stream)
	}
	join := p.task("join", []int{0}, []int{1})
	p.r.join(join, append(depends(tasks.DependIn, x[0]), depends(tasks.DependInOut, x[1])...)...)
	p.mix("after the join", 1, 2, 3)
	g := p.r.region(launch{label: p.task("update", nil, []int{region}), out: [][]uint32{x[region]}})
	g.Transfers = []transfer.Request{update(transfer.UpdateFrom, x[region])}
	p.run(g)
	p.mix("last", 0, region, 2)
	p.run(p.r.region(launch{label: p.task("exit", nil, []int{region}), exit: []arg{from(x[region])}, out: [][]uint32{x[region]}}))
	return p.r.scope.Wait(context.Background(), nil)
}

// failed returns the tasks that have to fail when those in roots do.
func (p *spread) failed(roots []string) map[string]bool {
	failed := make(map[string]bool)
	for label, on := range p.on {
		for _, root := range roots {
			if on[root] {
				failed[label] = true
			}
		}
	}
	return failed
}

var taskName = regexp.MustCompile(`task "([^"]*)"`)

// rootsOf returns the tasks that the text of a failure names.
func rootsOf(err error) (roots []string) {
	if err == nil {
		return nil
	}
	for _, m := range taskName.FindAllStringSubmatch(err.Error(), -1) {
		roots = append(roots, m[1])
	}
	return roots
}

// checkRest checks the arrays that no failed task has written, and returns how many they are.
func (p *spread) checkRest(failed map[string]bool) (checked int) {
	p.r.t.Helper()
	for i := range p.arrays {
		if slices.ContainsFunc(slices.Collect(maps.Keys(p.touched[i])), func(l string) bool { return failed[l] }) {
			continue
		}
		checked++
		if !slices.Equal(p.arrays[i], p.want[i]) {
			p.r.t.Errorf("array %d is %v, want %v", i, p.arrays[i], p.want[i])
		}
	}
	return checked
}

// leave deletes what a failure has left mapped by the data region.
func (p *spread) leave() {
	p.run(p.r.region(launch{label: "give up", exit: []arg{{s: p.arrays[4], kind: memory.MapDelete}}, included: true}))
}

// inEveryQueueFault runs a test with the n-th submission failing, and the following ones until
// many have failed, for every n up to the number of submissions, in modes with many queues.
func inEveryQueueFault(t *testing.T, failure error, many int, test func(t *testing.T, r *rig, d *faultyQueues)) {
	var mu sync.Mutex
	queues := make(map[int]bool)
	chunks := chunkModes[0]
	chunks.chunk = 64 // only the last of the arrays is larger than a chunk
	for _, mode := range append(queueModes(memoryModes[0]), queueModes(memoryModes[1], chunks)[1:]...) {
		for n := 1; n <= 200; n += faultStep {
			more := false
			t.Run(fmt.Sprintf("%s/call %d", mode.name, n), func(t *testing.T) {
				d := &faultyQueues{fakeDevice: newFakeDeviceWith(t, mode.queues, mode.memory, uint64(n)), n: n, many: many, err: failure, struck: make(map[string]bool), spared: make(map[string]bool)}
				s, err := New(d, Options{Domain: rigDomain, HideHostVisible: mode.hidden, Sharing: mode.share, Chunk: mode.chunk, Placement: mode.placement, Seed: uint64(n)})
				if err != nil {
					t.Fatal(err)
				}
				d.s = s
				r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"mix": loadKernel(t, "mix"), "set": loadKernel(t, "set")}}
				r.scope = r.graph.NewScope()
				r.compile()
				test(t, r, d)
				if more = d.fell; more {
					mu.Lock()
					queues[d.queue] = true
					mu.Unlock()
				}
			})
			if !more {
				break
			}
		}
	}
	for i := range manyQueues {
		if !queues[i] {
			t.Errorf("no submission of queue %d has failed", i)
		}
	}
}

func TestFailedSubmissionOfAnyQueueFailsItsTasksAndTheirDependents(t *testing.T) {
	failedSubmissions(t, 1)
}

func TestSuccessiveFailedSubmissionsFailTheirTasksAndTheirDependents(t *testing.T) {
	failedSubmissions(t, 2)
}

func failedSubmissions(t *testing.T, many int) {
	rest := 0
	inEveryQueueFault(t, errSubmitMemory, many, func(t *testing.T, r *rig, d *faultyQueues) {
		defer r.close()
		r.graph.Keep()
		p := newSpread(r)
		err := p.generate()
		roots := rootsOf(err)
		fell := d.over()
		if fell && (len(roots) == 0 || !errors.Is(err, vk.ErrOutOfMemory)) {
			t.Errorf("a submission of queue %d failed, the program learned of %v", d.queue, err)
		}
		// Besides the tasks of the batch and of those behind it, two kinds may be named: tasks of which
		// another goroutine placed something behind them while the submission was under way, and tasks
		// that share storage whose copy to the device was in the batch.
		others := slices.DeleteFunc(slices.Clone(roots), func(root string) bool {
			return d.struck[root] || strings.Contains(err.Error(), fmt.Sprintf("task %q: the copy to storage that it shares failed", root))
		})
		spared := slices.ContainsFunc(others, func(root string) bool { return d.spared[root] })
		if spared || !fell && len(roots) > 0 {
			t.Errorf("%v failed, which are none of %v: %v", others, d.struck, err)
		}
		failed := p.failed(roots)
		n := 0
		for _, task := range r.graph.Snapshot().Tasks {
			if task.Failure != nil {
				n++
			}
			if task.Failure != nil && !failed[task.Label] {
				t.Errorf("%q follows none of the tasks that failed, and got %v", task.Label, task.Failure)
			}
		}
		// When a copy to the host fails at the end of its task, tasks that depend on it may
		// have run before: then fewer fail than the graph would have it.
		if late := d.late || len(others) > 0; n != len(failed) && !late {
			t.Errorf("%d tasks failed, want %d: %v", n, len(failed), err)
		}
		checked := p.checkRest(failed)
		if fell {
			rest += checked
		}
		p.leave()
		r.checkEmpty()
		again := newSpread(r)
		if err := again.generate(); err != nil {
			t.Errorf("the scheduler is not usable afterwards: %v", err)
		}
		again.checkRest(nil)
	})
	if rest == 0 {
		t.Error("no failure has left anything right: nothing was checked")
	}
}

func TestDeviceLostByAnyQueueEndsAllTasks(t *testing.T) {
	inEveryQueueFault(t, errLost, 1, func(t *testing.T, r *rig, d *faultyQueues) {
		p := newSpread(r)
		err := p.generate()
		if d.over() {
			if !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("the program learned of %v", err)
			}
			x := filled(16, 1)
			late := r.s.Run(context.Background(), r.region(launch{label: "late", kernel: "set", args: []arg{tofrom(x)}, included: true}))
			if !errors.Is(late, vk.ErrDeviceLost) {
				t.Errorf("a later construct got %v", late)
			}
			r.expect("x", x, filled(16, 1)...)
		} else if err != nil {
			t.Errorf("nothing was lost: %v", err)
		}
		// Close reports what is still mapped: it was lost with the device.
		_ = r.s.Close()
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		for _, q := range r.s.order.All() {
			if r.s.life.live != 0 || len(q.InFlight()) > 0 || !q.Pending().Empty() {
				t.Errorf("%d tasks live, %d batches of queue %d in flight", r.s.life.live, len(q.InFlight()), q.Index())
			}
		}
	})
}
