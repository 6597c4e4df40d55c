package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/kernel"
	checker "github.com/vkomp/vkomp/tests/order"
	"github.com/vkomp/vkomp/tests/order/cost"
	"github.com/vkomp/vkomp/tests/vktest"
)

// priced is a runtime below which a device has the shape of an NVIDIA H100, and which is recorded.
type priced struct {
	t   *testing.T
	ctx context.Context
	rt  *vkomp.Runtime
	d   vkomp.Device
	k   affine
	// allocations are freed when the program is over.
	allocations []vkomp.DevicePtr
	// hold is the file that holds all batches back while it exists.
	hold string
}

// held runs work whose submissions the device does not begin before this goroutine waits for it, so
// that what is recorded does not depend on how fast the driver is.
func (p *priced) held(work func()) {
	p.t.Helper()
	held(p.ctx, p.t, p.rt, p.hold, work)
}

// held runs work whose submissions the device does not begin before this goroutine waits for it: until then there is the file
// that VKOMP_MANYQUEUE_HOLD names. If work itself waits for the device, it goes on after a minute.
func held(ctx context.Context, t *testing.T, rt *vkomp.Runtime, file string, work func()) {
	t.Helper()
	succeed(t, os.WriteFile(file, nil, 0o600))
	begins := sync.OnceFunc(func() {
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	})
	defer time.AfterFunc(time.Minute, begins).Stop()
	work()
	succeed(t, rt.Taskwait(&waiting{Context: ctx, begins: begins}))
}

// waiting is a context that tells when the runtime has nothing left to do but wait.
type waiting struct {
	context.Context
	once   sync.Once
	begins func()
}

// Done implements context.Context.
func (w *waiting) Done() <-chan struct{} {
	w.once.Do(w.begins)
	return w.Context.Done()
}

func (p *priced) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// target returns a deferred region whose kernel, of one workgroup, reads 64 elements of device memory
// and changes others, or the same.
func (p *priced) target(dst, src vkomp.DevicePtr, depend ...vkomp.Depend) vkomp.Target {
	const n = 64
	return vkomp.Target{
		Kernel: p.k.Kernel, Range: vkomp.Range{X: n}, NoWait: true, Depend: depend,
		Args: []vkomp.Arg{
			vkomp.HasDeviceAddr[uint32](src, n), vkomp.HasDeviceAddr[uint32](dst, n),
			vkomp.Value(uint32(n)), vkomp.Value(uint32(1)), vkomp.Value(uint32(0)), vkomp.Value(uint32(1)),
		},
	}
}

// targetBytes is the size of what target reads and changes.
const targetBytes = 256

// included returns a region that changes device memory, and for which its construct waits.
func (p *priced) included(at vkomp.DevicePtr) vkomp.Target {
	region := p.target(at, at)
	region.NoWait = false
	return region
}

// allocated returns device memory.
func (p *priced) allocated(bytes int) vkomp.DevicePtr {
	p.t.Helper()
	at, err := p.d.Alloc(p.ctx, bytes)
	p.must(err)
	p.allocations = append(p.allocations, at)
	return at
}

// merged launches kernels of which one dispatch could do several, and waits until the pipeline for that
// is compiled. It is the first that is made after the kernel's own.
func (p *priced) merged() {
	p.t.Helper()
	pipelines, limit := p.rt.Stats().Pipelines, time.Now().Add(time.Minute)
	p.held(func() {
		for range 2 * 16 { // some queue has two of them side by side
			at := p.allocated(targetBytes)
			p.must(p.rt.Target(p.ctx, p.target(at, at)))
		}
	})
	for p.rt.Stats().Pipelines == pipelines {
		if time.Now().After(limit) {
			p.t.Fatal("the pipeline for several launches is not compiled")
		}
		runtime.Gosched()
	}
}

// costs records a program and returns what its calls cost on an H100 whose workgroups take so long.
// The kernel is compiled before, also for several launches in a dispatch.
func costs(t *testing.T, workgroup time.Duration, program func(*priced)) *cost.Report {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("VKOMP_RECORD", filepath.Join(folder, "log-%d"))
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT16,T2,CT8")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "0")
	t.Setenv("VKOMP_DISCRETE_PROFILE", "bar")
	hold := filepath.Join(folder, "hold")
	t.Setenv("VKOMP_MANYQUEUE_HOLD", hold)
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &priced{t: t, ctx: t.Context(), rt: rt, d: rt.DefaultDevice(t.Context()), k: newAffine(t, rt), hold: hold}
	p.must(rt.Target(p.ctx, p.included(p.allocated(targetBytes))))
	p.merged()
	warm := rt.Stats().Submissions
	program(p)
	for _, at := range p.allocations {
		p.must(p.d.Free(p.ctx, at))
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(folder, "log-*"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%d logs: %v", len(logs), err)
	}
	keptOrderWithForeignWork(t, logs[0])
	run := readLog(t, logs[0])
	// All was complete before the program's first command buffer, and before its first submission: that of an interop object can wait
	// for what is recorded later.
	recorded, submitted := uint64(0), uint64(0)
	before := slices.IndexFunc(run.Calls, func(c checker.Call) bool {
		switch c.Kind {
		case checker.CallRecord:
			recorded++
		case checker.CallSubmit:
			submitted++
		}
		return recorded > warm || submitted > warm
	})
	if before < 0 {
		t.Fatal("nothing is recorded")
	}
	return less(costOf(t, run, workgroup), costOf(t, &checker.Run{Calls: run.Calls[:before]}, workgroup))
}

func readLog(t *testing.T, name string) *checker.Run {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := checker.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func costOf(t *testing.T, run *checker.Run, workgroup time.Duration) *cost.Report {
	t.Helper()
	r, err := cost.Of(run, cost.Options{Workgroup: workgroup})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// less subtracts the cost of the beginning of a run.
func less(whole, begin *cost.Report) *cost.Report {
	whole.Makespan -= begin.Makespan
	for i := range whole.Parts {
		for _, b := range begin.Parts {
			if p := &whole.Parts[i]; p.Name == b.Name {
				p.Count -= b.Count
				p.Bytes -= b.Bytes
				p.Total -= b.Total
				p.Critical -= b.Critical
			}
		}
	}
	for i := range whole.Queues {
		for _, b := range begin.Queues {
			if q := &whole.Queues[i]; q.Name == b.Name {
				q.Submissions -= b.Submissions
				q.Busy -= b.Busy
			}
		}
	}
	return whole
}

const (
	mibibyte = 1 << 20
	// long is a kernel that computes for 3.6 ms.
	long = 3600 * time.Microsecond
)

// rows are programs like those with which vkomp is compared with others on real devices, and the most
// that they may cost, in microseconds.
var rows = []struct {
	name      string
	tasks     int
	workgroup time.Duration
	program   func(p *priced, n int)
	most      float64
	foreign   bool // whether foreign work is part of it
}{
	{"synchronous target", 50, 0, synchronous, 50 * 42, false},
	{"chain", 1000, 0, chained, 1000 * 4.4, false},
	{"independent", 1000, 0, independent, 1000 * 0.4, false},
	{"1 kernel of 3.6 ms", 1, long, independent, 3700, false},
	{"16 kernels of 3.6 ms", 16, long, independent, 1.2 * 3700, false},
	{"16 kernels of 3.6 ms, ready at once", 16, long, released, 1.2 * 3700, false},
	{"1-D stencil, 64 wide", 64 * 20, 0, stencil, 64 * 20 * 0.5, false},
	{"fill of 64 MiB", 1, 0, fills, 66, false},
	{"copy of 64 MiB within the device", 1, 0, copies, 100, false},
	{"copy of 16 MiB to the device", 1, 0, toDevice, 700, false},
	{"copy of 16 MiB to the host", 1, 0, toHost, 700, false},
	{"a kernel of 3.6 ms beside a copy", 1, long, func(p *priced, _ int) { beside(p, 4*mibibyte) }, 3800, false},
	{"use of an interop object in a chain", 50, 0, uses, 50 * 40, true},
}

func synchronous(p *priced, n int) {
	at := p.allocated(targetBytes)
	for range n {
		p.must(p.rt.Target(p.ctx, p.included(at)))
	}
}

func chained(p *priced, n int) {
	at, key := p.allocated(targetBytes), make([]byte, 1)
	p.held(func() {
		for range n {
			p.must(p.rt.Target(p.ctx, p.target(at, at, vkomp.InOut(key))))
		}
	})
}

func independent(p *priced, n int) {
	at := p.allocated(n * targetBytes)
	p.held(func() {
		for i := range n {
			cell := at.Add(i * targetBytes)
			p.must(p.rt.Target(p.ctx, p.target(cell, cell)))
		}
	})
}

// released is independent, but the tasks become ready at once, when a task of the host is complete.
func released(p *priced, n int) {
	at, key := p.allocated(n*targetBytes), make([]byte, 1)
	p.held(func() {
		open := make(chan struct{})
		p.must(p.rt.Task(p.ctx, vkomp.Task{Body: func(context.Context) error { <-open; return nil }, Depend: []vkomp.Depend{vkomp.Out(key)}}))
		for i := range n {
			cell := at.Add(i * targetBytes)
			p.must(p.rt.Target(p.ctx, p.target(cell, cell, vkomp.In(key))))
		}
		before := p.rt.Stats().Dispatches
		close(open)
		// Another goroutine starts them, and a wait lets the device begin.
		for p.rt.Stats().Dispatches < before+uint64(n) && p.ctx.Err() == nil {
			runtime.Gosched()
		}
	})
}

// stencil is 64 wide: each task depends on three neighbours.
func stencil(p *priced, n int) {
	const wide = 64
	at, keys := p.allocated(2*wide*targetBytes), make([]byte, 2*wide)
	cell := func(step, i int) (vkomp.DevicePtr, []byte) {
		k := step%2*wide + (i+wide)%wide
		return at.Add(k * targetBytes), keys[k : k+1]
	}
	p.held(func() {
		for step := 1; step <= n/wide; step++ {
			for i := range wide {
				_, left := cell(step-1, i-1)
				from, middle := cell(step-1, i)
				_, right := cell(step-1, i+1)
				to, own := cell(step, i)
				p.must(p.rt.Target(p.ctx, p.target(to, from, vkomp.In(left), vkomp.In(middle), vkomp.In(right), vkomp.Out(own))))
			}
		}
	})
}

func fills(p *priced, _ int) {
	at := p.allocated(64 * mibibyte)
	p.must(p.d.Memset(p.ctx, at, 7, 64*mibibyte))
}

func copies(p *priced, _ int) {
	from, to := p.allocated(64*mibibyte), p.allocated(64*mibibyte)
	p.must(p.rt.Memcpy(p.ctx, to, from, 64*mibibyte))
}

func toDevice(p *priced, _ int) {
	at := p.allocated(16 * mibibyte)
	p.must(p.rt.Memcpy(p.ctx, at, vkomp.HostPtr(make([]byte, 16*mibibyte)), 16*mibibyte))
}

func toHost(p *priced, _ int) {
	at := p.allocated(16 * mibibyte)
	p.must(p.rt.Memcpy(p.ctx, vkomp.HostPtr(make([]byte, 16*mibibyte)), at, 16*mibibyte))
}

// beside is a kernel, and copies to the device that have nothing to do with it.
func beside(p *priced, size int) {
	host := make([]byte, size)
	to, at := p.allocated(len(host)), p.allocated(targetBytes)
	p.held(func() {
		before := p.rt.Stats().Submissions
		p.must(p.rt.MemcpyAsync(p.ctx, to, vkomp.HostPtr(host), len(host)))
		// Another goroutine fills the staging memory.
		for p.rt.Stats().Submissions == before && p.ctx.Err() == nil {
			runtime.Gosched()
		}
		p.must(p.rt.Target(p.ctx, p.target(at, at)))
	})
}

func uses(p *priced, n int) {
	at, key := p.allocated(targetBytes), make([]byte, 1)
	var o interop.Object
	p.must(p.rt.Interop(p.ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}}))
	p.held(func() {
		for range n {
			p.must(p.rt.Target(p.ctx, p.target(at, at, vkomp.InOut(key))))
			p.must(p.rt.Interop(p.ctx, vkomp.Interop{Use: []interop.Object{o}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(key)}}))
		}
	})
	p.must(p.rt.Interop(p.ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
}

// asOnH100 puts layers between the driver and the test's runtimes that show it as an NVIDIA H100, and
// record what reaches it.
func asOnH100(t *testing.T) {
	t.Helper()
	vktest.Once(t)
	vktest.Long(t)
	if d := openDevice(t); !kernel.MergesOwn(d.Properties()) {
		t.Skipf("device %q cannot do several launches in a dispatch, as an H100 does", d.Properties().Name)
	}
	vktest.Layers(t, "record", "discrete", "manyqueue")
}

// With -v it prints what programs cost, a row for each.
func TestProgramsCostNoMoreThanTheyHaveTo(t *testing.T) {
	asOnH100(t)
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROGRAM\tTASKS\tµS IN ALL\tµS A TASK\tSUBMISSIONS\tBARRIERS\tWAITS\tFAMILIES")
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := costs(t, row.workgroup, func(p *priced) { row.program(p, row.tasks) })
			// On a busy machine this goroutine may be preempted while it creates tasks. What was gathered
			// until then is submitted meanwhile, and there are many small submissions.
			for try := 0; try < 4 && float64(r.Makespan)/1e3 > row.most; try++ {
				r = costs(t, row.workgroup, func(p *priced) { row.program(p, row.tasks) })
			}
			var families []int
			for _, q := range r.Queues {
				families = append(families, q.Family)
				// An interop object has such a queue, for foreign work that draws.
				if !cost.H100.Families[q.Family].SideBySide && !row.foreign && q.Submissions > 0 {
					t.Errorf("%s, of a family whose queues take turns, has %d submissions", q.Name, q.Submissions)
				}
			}
			slices.Sort(families)
			µs := float64(r.Makespan) / 1e3
			fmt.Fprintf(w, "%s\t%d\t%.1f\t%.2f\t%d\t%d\t%d\t%v\n", row.name, row.tasks, µs, µs/float64(row.tasks),
				r.Part("submit").Count, r.Part("barriers").Count, r.Part("wait").Count+r.Part("change").Count, slices.Compact(families))
			if r.Unknown > 0 {
				t.Errorf("%d commands that the model does not know", r.Unknown)
			}
			if n := r.Part("barriers with ALL_COMMANDS").Count; n > 0 {
				t.Errorf("%d barriers with ALL_COMMANDS or MEMORY", n)
			}
			if µs > row.most {
				t.Errorf("%.1f µs, want %.1f at most:", µs, row.most)
				if err := r.Print(t.Output()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s:\n%s", cost.H100.Source, table.String())
}

// Of kernels that leave most of the device idle, many take as long as one: they share a submission, or
// are on queues that run side by side.
func TestIndependentKernelsTakeAsLongAsOne(t *testing.T) {
	asOnH100(t)
	makespan := func(n int, program func(*priced, int)) time.Duration {
		return costs(t, long, func(p *priced) { program(p, n) }).Makespan
	}
	one := makespan(1, independent)
	for name, program := range map[string]func(*priced, int){"one after the other": independent, "at once": released} {
		many := makespan(16, program)
		// The goroutine may be preempted while it creates tasks, as in the table above: then they share no submission.
		for try := 0; try < 4 && float64(many) > 1.2*float64(one); try++ {
			many = makespan(16, program)
		}
		if float64(many) > 1.2*float64(one) {
			t.Errorf("16 kernels that become ready %s take %v, one %v", name, many, one)
		}
	}
}

// A link of a chain costs its barrier, and the barrier is no wider than it has to be.
func TestChainCostsItsBarriers(t *testing.T) {
	asOnH100(t)
	const links = 1000
	r := costs(t, 0, func(p *priced) { chained(p, links) })
	var busy time.Duration
	for _, q := range r.Queues {
		busy += q.Busy
	}
	if want := cost.H100.Dispatch + cost.H100.Barriers.Memory; float64(busy/links) > 1.1*float64(want) {
		t.Errorf("a link takes %v on the device, want %v", busy/links, want)
	}
	if n := r.Part("barriers with HOST").Count; n > 1 {
		t.Errorf("%d barriers with HOST, want one at the end", n)
	}
	if n := r.Part("wait").Count; n > 0 {
		t.Errorf("%d waits of queues for each other", n)
	}
}

// Queues that only transfer are slow within the device.
func TestTransferFamilyMovesNothingWithinTheDevice(t *testing.T) {
	asOnH100(t)
	for _, size := range []int{4, 4096, 64 * mibibyte} {
		r := costs(t, 0, func(p *priced) {
			from, to, key := p.allocated(size), p.allocated(size), make([]byte, 1)
			for range 3 {
				p.must(p.d.MemsetAsync(p.ctx, from, 7, size, vkomp.InOut(key)))
				p.must(p.rt.MemcpyAsync(p.ctx, to, from, size, vkomp.InOut(key)))
			}
			p.must(p.rt.Taskwait(p.ctx))
		})
		for _, what := range []string{"fills", "copies within the device"} {
			if n := r.Part(what + ", family 1").Count; n > 0 {
				t.Errorf("%d %s of %d bytes on the transfer family", n, what, size)
			}
		}
		if r.Part("fills").Count == 0 {
			t.Errorf("no fill of %d bytes", size)
		}
	}
}

// Copies between host and device have queues of their own, beside those of kernels.
func TestCopiesOverlapKernels(t *testing.T) {
	asOnH100(t)
	const size = 4 * mibibyte
	// As long as the copy.
	workgroup := time.Duration(size / float64(cost.H100.Bus))
	copied := costs(t, workgroup, func(p *priced) {
		to := p.allocated(size)
		p.held(func() { p.must(p.rt.MemcpyAsync(p.ctx, to, vkomp.HostPtr(make([]byte, size)), size)) })
	}).Makespan
	computed := costs(t, workgroup, func(p *priced) { independent(p, 1) }).Makespan
	both := costs(t, workgroup, func(p *priced) { beside(p, size) }).Makespan
	if longer := max(copied, computed); float64(longer) < 0.9*float64(both) {
		t.Errorf("a copy takes %v, a kernel %v, both %v", copied, computed, both)
	}
}

// Tasks that follow each other stay on few queues: a wait for another queue costs more than they do. How many waits
// there are depends on when the goroutines get a processor, which other programs can delay: a run in which they are
// few is enough.
func TestStencilHasFewWaits(t *testing.T) {
	asOnH100(t)
	const tasks, runs = 64 * 40, 5
	for run := 1; ; run++ {
		r := costs(t, 0, func(p *priced) { stencil(p, tasks) })
		if n := r.Part("change").Count; n > 0 {
			t.Errorf("queues that take turns are changed %d times", n)
		}
		n := r.Part("wait").Count
		if n <= tasks/100 {
			return
		}
		if run == runs {
			t.Fatalf("%d waits of queues for each other in %d tasks, and many in %d runs before", n, tasks, runs-1)
		}
	}
}
