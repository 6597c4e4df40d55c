package sched

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// slowCompiler is a device that makes no pipeline until the test lets it, except of the kernel that is
// called quick.
type slowCompiler struct {
	*fakeDevice
	begun, gate chan struct{}
	quick       string

	mu       sync.Mutex
	compiled int
	// fails, if not nil, is the error of all compilations. exits makes their goroutines end in
	// the driver's call, as a Goexit does.
	fails error
	exits bool
}

func (d *slowCompiler) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	d.begun <- struct{}{}
	if o.Label != d.quick {
		<-d.gate
	}
	d.mu.Lock()
	d.compiled++
	fails, exits := d.fails, d.exits
	d.mu.Unlock()
	if exits {
		runtime.Goexit()
	}
	if fails != nil {
		return vk.Pipeline{}, fails
	}
	return d.fakeDevice.CreatePipeline(o)
}

func (d *slowCompiler) compilations() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.compiled
}

func newSlowRig(t *testing.T) (*rig, *slowCompiler) { return newSlowRigWith(t, Options{}) }

func newSlowRigWith(t *testing.T, o Options) (*rig, *slowCompiler) {
	return newSlowRigOn(t, newFakeDevice(t, unifiedMemory, 1), o)
}

func newSlowRigOn(t *testing.T, fake *fakeDevice, o Options) (*rig, *slowCompiler) {
	d := &slowCompiler{fakeDevice: fake, begun: make(chan struct{}, 1000), gate: make(chan struct{})}
	o.Domain = rigDomain
	s, err := New(d, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, d: d.fakeDevice, s: s, kernels: map[string]*kernel.Kernel{"set": loadKernel(t, "set"), "add": loadKernel(t, "add")}}
	r.scope = r.graph.NewScope()
	return r, d
}

// pipelines returns how many pipelines the device has.
func (r *rig) pipelines() int {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	return len(r.d.pipelines)
}

// release closes kernels of the rig, and checks that left pipelines remain: nobody uses those of the
// kernels any more.
func (r *rig) release(left int, names ...string) {
	r.t.Helper()
	for _, name := range names {
		r.kernels[name].Close()
		r.s.Release(r.kernels[name])
	}
	r.eventually("the pipelines are destroyed", func() bool { return r.pipelines() <= left })
	if n := r.pipelines(); n != left {
		r.t.Errorf("%d pipelines are left, want %d", n, left)
	}
}

// The context of an included construct ends while its kernel is being compiled. The construct
// returns and has done nothing. The compilation goes on, and the next construct uses its
// result.
func TestContextEndsTheWaitForACompilation(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	x := filled(8, 1)
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	g := r.region(launch{label: "task", kernel: "set", args: []arg{tofrom(x)}, constant: 7, included: true, out: [][]uint32{x}})
	go func() { ended <- r.s.Run(ctx, g) }()
	<-d.begun
	cancel(late)
	err := <-ended
	if !errors.Is(err, late) || !strings.Contains(err.Error(), `"set"`) || !strings.Contains(err.Error(), "compiled") {
		t.Errorf("the construct returned %v", err)
	}
	if n := r.graph.Counts().Tasks; n != 0 {
		t.Errorf("%d tasks were made", n)
	}
	// The context has ended before the construct begins: it returns the context's cause, and
	// nothing about the kernel.
	if err := r.s.Run(ctx, g); !errors.Is(err, late) {
		t.Errorf("the second construct returned %v", err)
	}
	if labels := r.s.Compiling(); len(labels) != 1 || labels[0] != "set" {
		t.Errorf("being compiled are %q", labels)
	}
	if err := r.s.Idle(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), `"set"`) {
		t.Errorf("Idle: %v", err)
	}
	if _, err := r.s.Discard(); !errors.Is(err, ErrBusy) {
		t.Errorf("Discard: %v", err)
	}
	if err := r.s.Relinquish(); err != nil {
		t.Errorf("Relinquish: %v", err)
	}
	close(d.gate)
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Errorf("the construct after the compilation: %v", err)
	}
	r.expect("x", x, 7, 8, 9, 10, 11, 12, 13, 14)
	if n := d.compilations(); n != 1 {
		t.Errorf("the kernel was compiled %d times", n)
	}
	if labels := r.s.Compiling(); labels != nil {
		t.Errorf("being compiled are still %q", labels)
	}
	r.release(0, "set")
}

// A deferred construct does not wait for the compilation of its kernel. Its task does, and so
// do the tasks that depend on it. Constructs that use one kernel share one compilation.
func TestDeferredTasksWaitForTheirPipeline(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	x, y := filled(4, 1), filled(4, 1)
	r.run(launch{label: "first", kernel: "set", args: []arg{tofrom(x)}, constant: 7, out: [][]uint32{x}})
	r.run(launch{label: "second", kernel: "set", args: []arg{tofrom(y)}, constant: 9, out: [][]uint32{y}})
	r.run(launch{label: "third", kernel: "add", args: []arg{tofrom(x)}, constant: 100, out: [][]uint32{x}})
	<-d.begun
	<-d.begun
	included := make(chan error)
	z := filled(4, 1)
	g := r.region(launch{label: "included", kernel: "set", args: []arg{tofrom(z)}, constant: 5, included: true})
	go func() { included <- r.s.Run(context.Background(), g) }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.scope.Wait(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait returned %v", err)
	}
	if n := r.dispatches(); n != 0 {
		t.Errorf("%d kernels were dispatched without a pipeline", n)
	}
	close(d.gate)
	if err := <-included; err != nil {
		t.Error(err)
	}
	r.taskwait()
	r.expect("x", x, 107, 108, 109, 110)
	r.expect("y", y, 9, 10, 11, 12)
	r.expect("z", z, 5, 6, 7, 8)
	if n := d.compilations(); n != 2 {
		t.Errorf("two kernels were compiled %d times", n)
	}
	r.release(0, "set", "add")
}

// The driver refuses a kernel: the deferred tasks that wait for the compilation fail with its
// error. A later construct tries again, since the reason may have been want of memory.
func TestCompilationThatFails(t *testing.T) {
	for _, exits := range []bool{false, true} {
		r, d := newSlowRig(t)
		x := filled(4, 1)
		refused := errors.New("refused by the driver")
		d.fails, d.exits = refused, exits
		r.run(launch{label: "first", kernel: "set", args: []arg{tofrom(x)}, constant: 7, out: [][]uint32{x}})
		r.run(launch{label: "dependent", kernel: "set", args: []arg{tofrom(x)}, constant: 8, in: [][]uint32{x}})
		<-d.begun
		close(d.gate)
		err := r.scope.Wait(t.Context(), nil)
		if err == nil || !exits && !errors.Is(err, refused) || !strings.Contains(err.Error(), `kernel "set"`) || !strings.Contains(err.Error(), `"first"`) {
			t.Errorf("the wait returned %v", err)
		}
		r.expect("x", x, 1, 1, 1, 1)
		d.mu.Lock()
		d.fails, d.exits = nil, false
		d.mu.Unlock()
		r.run(launch{label: "again", kernel: "set", args: []arg{tofrom(x)}, constant: 7, included: true})
		r.expect("x", x, 7, 8, 9, 10)
		r.close()
	}
}

// The context of a deferred task ends while its kernel is being compiled: the task is dropped.
func TestContextEndsBeforeTheCompilationOfADeferredTask(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	x := filled(4, 1)
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.s.Run(ctx, r.region(launch{label: "first", kernel: "set", args: []arg{tofrom(x)}, constant: 7})); err != nil {
		t.Fatal(err)
	}
	<-d.begun
	cancel()
	close(d.gate)
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait returned %v", err)
	}
	r.expect("x", x, 1, 1, 1, 1)
}

// The pipelines of a closed kernel are destroyed when the last task that uses them is complete.
func TestReleasedKernelLastsAsLongAsItsTasks(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(4, 1)
	before := r.pipelines()
	k := r.kernels["add"]
	r.d.hold()
	r.run(launch{label: "accepted", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
	r.run(launch{label: "behind it", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
	k.Close()
	r.s.Release(k)
	r.s.Release(k)
	for _, included := range []bool{false, true} {
		err := r.s.Run(t.Context(), r.region(launch{label: "late", kernel: "add", args: []arg{tofrom(x)}, constant: 1, included: included}))
		if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), `kernel "add"`) {
			t.Errorf("a construct after the kernel's Close: %v", err)
		}
	}
	if n := r.pipelines(); n != before {
		t.Errorf("%d of %d pipelines are left while tasks use them", n, before)
	}
	r.d.release()
	r.taskwait()
	r.expect("x", x, 3, 3, 3, 3)
	r.release(before - 1)
	// A kernel that no task uses is destroyed at once.
	r.kernels["set"].Close()
	r.s.Release(r.kernels["set"])
	if n := r.pipelines(); n != before-3 {
		t.Errorf("%d pipelines are left, want %d", n, before-3)
	}
}

// A kernel is closed while it is being compiled. The tasks that were accepted before get their
// pipeline, which is destroyed when they are complete.
func TestKernelReleasedWhileItIsCompiled(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	x := filled(4, 1)
	r.run(launch{label: "accepted", kernel: "set", args: []arg{tofrom(x)}, constant: 7})
	<-d.begun
	r.kernels["set"].Close()
	r.s.Release(r.kernels["set"])
	if labels := r.s.Compiling(); len(labels) != 1 {
		t.Errorf("being compiled are %q", labels)
	}
	close(d.gate)
	r.taskwait()
	r.expect("x", x, 7, 8, 9, 10)
	r.release(0)
}

// The device is lost while a kernel is being compiled. Tasks and constructs that wait for the
// compilation fail at once, and do not wait for the driver.
func TestLossEndsTheWaitForACompilation(t *testing.T) {
	r, d := newSlowRig(t)
	defer func() {
		close(d.gate)
		if err := r.s.Close(); err != nil {
			t.Error(err)
		}
	}()
	x, y, z := filled(4, 1), filled(4, 1), filled(4, 1)
	r.run(launch{label: "deferred", kernel: "set", args: []arg{tofrom(x)}, out: [][]uint32{x}})
	r.run(launch{label: "behind it", kernel: "set", args: []arg{tofrom(x)}, out: [][]uint32{x}})
	// The kernel of this task is closed while it is being compiled.
	r.run(launch{label: "released", kernel: "add", args: []arg{tofrom(y)}, out: [][]uint32{y}})
	<-d.begun
	<-d.begun
	r.kernels["add"].Close()
	r.s.Release(r.kernels["add"])
	included := make(chan error)
	g := r.region(launch{label: "included", kernel: "set", args: []arg{tofrom(z)}, included: true})
	g.Place = make(tellingPlace, 1)
	go func() { included <- r.s.Run(context.Background(), g) }()
	<-g.Place.(tellingPlace)
	r.s.Lose(errLost)
	if err := <-included; !errors.Is(err, vk.ErrDeviceLost) || !strings.Contains(err.Error(), `kernel "set"`) {
		t.Errorf("the included construct returned %v", err)
	}
	err := r.scope.Wait(context.Background(), nil)
	for _, label := range []string{`"deferred"`, `"released"`} {
		if !errors.Is(err, vk.ErrDeviceLost) || !strings.Contains(err.Error(), label) {
			t.Errorf("the wait returned %v, want the loss of %s", err, label)
		}
	}
	if n := d.compilations(); n != 0 {
		t.Errorf("%d compilations have ended", n)
	}
}

// tellingPlace is a place that says when it is left.
type tellingPlace chan struct{}

func (p tellingPlace) Leave()  { p <- struct{}{} }
func (p tellingPlace) Return() {}

// compileAhead compiles more kernels ahead than are compiled at the same time, and waits until these
// are under way. It returns how many they are, and the labels of all.
func (r *rig) compileAhead(d *slowCompiler) (underWay int, all []*kernel.Kernel) {
	r.t.Helper()
	underWay = runtime.GOMAXPROCS(0)
	for range underWay + 2 {
		k := loadKernel(r.t, "set")
		all = append(all, k)
		r.s.CompileAhead(k)
	}
	for range underWay {
		<-d.begun
	}
	if labels := r.s.Compiling(); !slices.Equal(labels, []string{"set"}) {
		r.t.Errorf("being compiled are %q", labels)
	}
	return underWay, all
}

// The launch of a kernel waits for its own pipeline and no other, however many are compiled and
// queued before it.
func TestLaunchWaitsForItsOwnPipelineAlone(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	d.quick = "add"
	underWay, slow := r.compileAhead(d)
	r.s.CompileAhead(r.kernels["add"])
	x, y := filled(4, 1), filled(4, 1)
	r.run(launch{label: "included", kernel: "add", args: []arg{tofrom(x)}, constant: 100, included: true})
	r.run(launch{label: "deferred", kernel: "add", args: []arg{tofrom(y)}, constant: 10})
	r.taskwait()
	r.expect("x", x, 101, 101, 101, 101)
	r.expect("y", y, 11, 11, 11, 11)
	if n := d.compilations(); n != 1 {
		t.Errorf("%d kernels are compiled, want the one that is quick", n)
	}
	close(d.gate)
	// The last of the queue is compiled without its use.
	r.eventually("all kernels are compiled", func() bool { return d.compilations() == underWay+3 && r.s.kernels.CompilingLocked() == nil })
	r.kernels["set"] = slow[len(slow)-1]
	r.run(launch{label: "compiled ahead", kernel: "set", args: []arg{tofrom(x)}, constant: 7, included: true})
	r.expect("x", x, 7, 8, 9, 10)
	if n := d.compilations(); n != underWay+3 {
		t.Errorf("%d compilations after the launch, want %d", n, underWay+3)
	}
}

// Kernels that nobody has launched keep no device from being given up. What has not begun is dropped,
// and the rest is waited for, until the context ends.
func TestKernelsThatNobodyLaunchedDoNotKeepTheDevice(t *testing.T) {
	r, d := newSlowRig(t)
	underWay, _ := r.compileAhead(d)
	if err := r.s.Idle(); err != nil {
		t.Errorf("Idle: %v", err)
	}
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := r.s.StopCompiling(ctx); !errors.Is(err, ErrBusy) || !errors.Is(err, late) || !strings.Contains(err.Error(), `kernel "set"`) {
		t.Errorf("StopCompiling: %v", err)
	}
	stopped := make(chan error)
	go func() { stopped <- r.s.StopCompiling(context.Background()) }()
	close(d.gate)
	if err := <-stopped; err != nil {
		t.Errorf("StopCompiling: %v", err)
	}
	if _, err := r.s.Discard(); err != nil {
		t.Errorf("Discard: %v", err)
	}
	if n := d.compilations(); n != underWay {
		t.Errorf("%d kernels were compiled, want the %d that were under way", n, underWay)
	}
	// Too late: the fake device fails the test if a pipeline is made now.
	r.s.CompileAhead(r.kernels["add"])
}

// A stop that gives up, and is undone, leaves those queued that have not begun.
func TestStopThatGivesUpKeepsTheQueue(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	underWay, all := r.compileAhead(d)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.s.StopCompiling(ctx); !errors.Is(err, ErrBusy) {
		t.Errorf("StopCompiling: %v", err)
	}
	d.gate <- struct{}{}
	r.eventually("one compilation is over", func() bool { return d.compilations() == 1 && len(r.s.kernels.CompilingLocked()) == underWay-1 })
	r.s.CompileAhead(r.kernels["add"])
	if n := len(d.begun); n != 0 {
		t.Errorf("%d compilations begin after the stop", n)
	}
	r.s.ResumeCompiling()
	close(d.gate)
	r.eventually("all kernels are compiled", func() bool { return r.pipelines() == len(all)+1 })
}

// Discard and Close wait for the kernels that are being compiled, and for no other.
func TestTheEndOfADeviceWaitsForItsCompiler(t *testing.T) {
	for name, end := range map[string]func(*Scheduler) error{
		"close":   (*Scheduler).Close,
		"discard": func(s *Scheduler) error { _, err := s.Discard(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newSlowRig(t)
			underWay, _ := r.compileAhead(d)
			ended := make(chan error, 1)
			go func() { ended <- end(r.s) }()
			r.eventually("the end has begun", func() bool { return r.s.life.closing })
			select {
			case err := <-ended:
				t.Errorf("the device ended while it compiled: %v", err)
			default:
			}
			close(d.gate)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n := d.compilations(); n != underWay {
				t.Errorf("%d kernels were compiled, want the %d that were under way", n, underWay)
			}
		})
	}
}

// Nothing more is compiled ahead on a lost device.
func TestLossDropsTheKernelsThatAreQueued(t *testing.T) {
	r, d := newSlowRig(t)
	underWay, _ := r.compileAhead(d)
	r.s.Lose(errLost)
	r.s.CompileAhead(r.kernels["add"])
	close(d.gate)
	r.eventually("nothing is compiled", func() bool { return r.s.kernels.CompilingLocked() == nil })
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
	if n := d.compilations(); n != underWay {
		t.Errorf("%d kernels were compiled, want the %d that were under way", n, underWay)
	}
}

// What is wrong with a kernel is an error of its launch, and not of the call that has it compiled
// ahead.
func TestFailureAheadIsAnErrorOfTheLaunch(t *testing.T) {
	r, d := newSlowRig(t)
	defer r.close()
	refused := errors.New("refused by the driver")
	d.fails = refused
	close(d.gate)
	r.s.CompileAhead(r.kernels["set"])
	r.eventually("the compilation is over", func() bool { return d.compilations() == 1 && r.s.kernels.CompilingLocked() == nil })
	d.mu.Lock()
	d.fails = nil
	d.mu.Unlock()
	x := filled(4, 1)
	set := launch{label: "set", kernel: "set", args: []arg{tofrom(x)}, constant: 7, included: true}
	if err := r.s.Run(t.Context(), r.region(set)); !errors.Is(err, refused) || !strings.Contains(err.Error(), `kernel "set"`) {
		t.Errorf("the first launch: %v", err)
	}
	r.run(set)
	r.expect("x", x, 7, 8, 9, 10)

	// What the device cannot run, and what is closed, is not compiled.
	r.kernels["add"].Close()
	r.s.CompileAhead(r.kernels["add"])
	limits := r.d.props.Limits
	r.d.props.Limits.MaxComputeWorkGroupInvocations = 1
	unsupported := loadKernel(t, "set")
	r.s.CompileAhead(unsupported)
	if err := unsupported.Supported(r.s.props); err == nil {
		t.Error("the device supports the kernel")
	}
	r.d.props.Limits = limits
	if n := d.compilations(); n != 2 || r.s.Compiling() != nil {
		t.Errorf("%d compilations, want 2", n)
	}
}

// The kernel for copies within the device is compiled while nobody waits: commands copy until it is
// there. If memory was short for it, a later copy has it compiled again.
func TestCopiesDoNotWaitForTheirKernel(t *testing.T) {
	r, d := newSlowRigOn(t, newFakeDevice(t, discreteMemory, 1), Options{})
	defer r.close()
	r.s.memory.Profile().KernelCopies = 64
	const words = 1024
	p, q, x := r.allocate(words), r.allocate(words), filled(words, 3)
	r.transfer(launch{label: "in", included: true}, toDevice(p, x))
	byKernel := func() int { return len(r.commands("vkomp copy")) }
	r.s.CompileOwn()
	<-d.begun
	for i, included := range []bool{false, true} {
		r.transfer(launch{label: "copy", included: included}, within(q, p, words))
		r.taskwait()
		if n := byKernel(); n != 0 || d.compilations() != 0 {
			t.Errorf("copy %d: %d by a kernel, after %d compilations", i, n, d.compilations())
		}
	}
	if labels := r.s.Compiling(); !slices.Equal(labels, []string{"vkomp copy"}) {
		t.Errorf("being compiled are %q", labels)
	}
	idle := func() bool { return r.s.kernels.CompilingLocked() == nil }
	d.mu.Lock()
	d.fails = vk.ErrOutOfDeviceMemory
	d.mu.Unlock()
	d.gate <- struct{}{}
	r.eventually("the first compilation is over", idle)
	r.transfer(launch{label: "begins again", included: true}, within(q, p, words))
	r.eventually("the second compilation has begun", func() bool { return !idle() })
	d.mu.Lock()
	d.fails = nil
	d.mu.Unlock()
	close(d.gate)
	r.eventually("the second compilation is over", idle)
	r.transfer(launch{label: "by the kernel", included: true}, within(q, p, words))
	if n := byKernel(); n != 1 || d.compilations() != 2 {
		t.Errorf("%d copies by a kernel after %d compilations, want 1 after 2", n, d.compilations())
	}
	clear(x)
	r.transfer(launch{label: "out", included: true}, toHost(x, q))
	r.expect("x", x, filled(words, 3)...)
	r.free(p)
	r.free(q)
}
