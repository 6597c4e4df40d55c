package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// fakeDevice compiles no kernel before it is let, and counts its pipelines.
type fakeDevice struct {
	t *testing.T
	// begun has the label of each compilation that begins, which then takes a function from the
	// gate of its label, or from gate if there is none: what it does.
	begun chan string
	gate  chan func() error
	gates map[string]chan func() error
	// gone has each pipeline that was destroyed.
	gone chan vk.Pipeline

	mu   sync.Mutex
	made uint64
	live map[uint64]bool // by handle
	// merges are the numbers that those which merge were made for.
	merges []uint32
	// found is Pipeline.Found of the next pipeline.
	found bool
}

func (d *fakeDevice) CreatePipeline(o vk.PipelineOptions) (vk.Pipeline, error) {
	d.begun <- o.Label
	gate := d.gates[o.Label]
	if gate == nil {
		gate = d.gate
	}
	if err := (<-gate)(); err != nil {
		return vk.Pipeline{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made++
	p := vk.Pipeline{Handle: d.made, Found: d.found}
	if o.Merges.Handle != 0 {
		p.Merging = uint32(d.made)
		d.merges = append(d.merges, o.Merges.Merging)
	}
	d.live[p.Handle] = true
	return p, nil
}

func (d *fakeDevice) DestroyPipeline(p vk.Pipeline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.live[p.Handle] {
		d.t.Errorf("pipeline %v is destroyed and is not there", p)
	}
	delete(d.live, p.Handle)
	d.gone <- p
}

// works is a compilation that does its work.
func works() error { return nil }

// rig is a cache of a fake device.
type rig struct {
	*testing.T
	d  *fakeDevice
	mu sync.Mutex
	Cache
	// ended has each compilation that has ended.
	ended chan *Compilation
}

func newRig(t *testing.T) *rig {
	d := &fakeDevice{t: t, begun: make(chan string, 10), gate: make(chan func() error, 10), gone: make(chan vk.Pipeline, 10), live: map[uint64]bool{}}
	r := &rig{T: t, d: d, ended: make(chan *Compilation, 10)}
	r.Cache.Init(d, &r.mu, func(c *Compilation) {
		r.mu.Lock() // it is not held
		defer r.mu.Unlock()
		if !c.OverLocked() {
			t.Error("a compilation has ended and is not over")
		}
		r.ended <- c
	})
	return r
}

// load loads a kernel of the scheduler's tests.
func load(t *testing.T, name string) *kernel.Kernel {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("..", "testdata", name+".spv"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(name, code, "main", nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (r *rig) use(k *kernel.Kernel) *Kernel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.UseLocked(k)
}

func (r *rig) compile(k *Kernel, fold int) *Compilation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return k.CompileLocked(fold, vk.PipelineOptions{Label: k.Name()})
}

func (r *rig) compiling(want ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for _, c := range r.CompilingLocked() {
		got = append(got, c.Name())
	}
	if !slices.Equal(got, want) {
		r.Errorf("being compiled are %q, want %q", got, want)
	}
}

// pipelines checks how many pipelines there are.
func (r *rig) pipelines(want int) {
	r.Helper()
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if got := len(r.d.live); got != want {
		r.Errorf("%d pipelines, want %d", got, want)
	}
}

// forgotten waits until the cache has forgotten the kernels that were released.
func (r *rig) forgotten() {
	r.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		r.mu.Lock()
		n := len(r.released)
		r.mu.Unlock()
		if n == 0 {
			return
		}
		runtime.Gosched()
	}
	r.Error("released kernels are not forgotten")
}

func TestPipelineIsCompiledOnceForAllThatNeedIt(t *testing.T) {
	r := newRig(t)
	set, add := r.use(load(t, "set")), r.use(load(t, "add"))
	if again := r.use(set.Kernel); again != set {
		t.Error("a kernel is there twice")
	}
	first := r.compile(set, 0)
	if again := r.compile(set, 0); again != first {
		t.Error("a pipeline is compiled twice at once")
	}
	folded, other := r.compile(set, 1), r.compile(add, 0)
	if folded == first || other == first {
		t.Error("two pipelines share a compilation")
	}
	for range 3 {
		<-r.d.begun
	}
	r.compiling("add", "set", "set")
	if set.Ready(0) != nil {
		t.Error("a pipeline is ready that is being compiled")
	}
	select {
	case <-first.Done():
		t.Error("a compilation is done that has not ended")
	default:
	}
	seen := map[vk.Pipeline]bool{}
	for range 3 {
		r.d.gate <- works
		c := <-r.ended
		<-c.Done()
		p, err := c.Result()
		if ready := c.kernel.Ready(c.fold); err != nil || seen[p] || ready == nil || *ready != p {
			t.Errorf("result %v, %v, ready is %v", p, err, ready)
		}
		seen[p] = true
	}
	r.compiling()
	// Whoever comes too late for a compilation has one that is over.
	late := r.compile(set, 0)
	<-late.Done()
	if p, err := late.Result(); err != nil || p != *set.Ready(0) || late == first {
		t.Errorf("late: %v, %v", p, err)
	}
	r.pipelines(3)
	r.Destroy()
	r.pipelines(0)
}

func TestPipelinesAreCounted(t *testing.T) {
	r := newRig(t)
	k := r.use(load(t, "set"))
	for fold, way := range []func() error{works, func() error { r.d.found = true; return nil }} {
		r.d.gate <- way
		<-r.compile(k, fold).Done()
		<-r.ended
	}
	r.d.gate <- func() error { return errors.New("refused by the driver") }
	<-r.compile(r.use(load(t, "add")), 0).Done()
	<-r.ended
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := Stats{Pipelines: 1, Found: 1}
	if sum.Add(r.StatsLocked()); sum != (Stats{Pipelines: 3, Found: 2}) {
		t.Errorf("%+v with one pipeline before", sum)
	}
}

// A compilation that fails, or that never returns, is over with an error, and the next one tries
// again.
func TestCompilationThatFailsIsTriedAgain(t *testing.T) {
	refused := errors.New("refused by the driver")
	for name, fails := range map[string]func() error{
		"error": func() error { return refused },
		"panic": func() error { panic(refused) },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			k := r.use(load(t, "set"))
			r.d.gate <- fails
			c := r.compile(k, 0)
			<-c.Done()
			_, err := c.Result()
			if err == nil || !strings.Contains(err.Error(), `kernel "set"`) || name != "exit" && !errors.Is(err, refused) {
				t.Errorf("result %v", err)
			}
			if <-r.ended != c || k.Ready(0) != nil {
				t.Error("a pipeline is ready")
			}
			r.compiling()
			r.d.gate <- works
			next := r.compile(k, 0)
			<-next.Done()
			if _, err := next.Result(); err != nil || next == c {
				t.Errorf("the next compilation: %v", err)
			}
			r.Destroy()
			r.pipelines(0)
		})
	}
}

// A kernel's pipelines last until the cache, the last task and the last compilation have given them
// up, in whatever order.
func TestPipelinesLastAsLongAsTheirUsers(t *testing.T) {
	const cache, task, compilation = 0, 1, 2
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			r := newRig(t)
			k := r.compiled()
			source := k.Kernel
			r.compile(k, 1)
			<-r.d.begun
			pipelines := 1
			for i, who := range order {
				r.pipelines(pipelines)
				switch who {
				case cache:
					r.Release(source)
					r.Release(source)
				case task:
					k.Release()
				case compilation:
					r.d.gate <- works
					<-r.ended
					pipelines++
				}
				if i < 2 && len(r.d.gone) > 0 {
					t.Errorf("pipelines are destroyed after %v", order[:i+1])
				}
			}
			<-r.d.gone
			<-r.d.gone
			r.pipelines(0)
			r.forgotten()
			// Whoever uses the kernel now has pipelines of its own.
			if again := r.use(source); again == k {
				t.Error("a kernel is used whose pipelines are destroyed")
			}
			r.Destroy()
		})
	}
}

// Destroy takes what is left, whoever still has it, and nothing is destroyed twice.
func TestDestroyTakesAllPipelines(t *testing.T) {
	r := newRig(t)
	known, released := load(t, "set"), load(t, "add")
	users := []*Kernel{r.use(known), r.use(released)}
	for _, k := range users {
		r.d.gate <- works
		<-r.compile(k, 0).Done()
		<-r.ended
	}
	r.Release(released)
	r.pipelines(2)
	r.Destroy()
	r.pipelines(0)
	for _, k := range users {
		k.Release()
	}
	r.Release(known)
	r.Destroy()
	r.pipelines(0)
	r.forgotten()
}

// The end of a compilation can start tasks, whose observers may end the goroutine.
func TestCompilationIsGivenUpThoughItsGoroutineEnds(t *testing.T) {
	r := newRig(t)
	r.Cache.Init(r.d, &r.mu, func(*Compilation) { runtime.Goexit() })
	source := load(t, "set")
	k := r.use(source)
	r.d.gate <- works
	<-r.compile(k, 0).Done()
	k.Release()
	r.Release(source)
	<-r.d.gone
	r.pipelines(0)
	r.forgotten()
}

// Goroutines use a kernel while it is released. Its pipeline is there as long as one of them uses it, and then
// goes.
func TestKernelIsReleasedWhileItIsUsed(t *testing.T) {
	for range 100 {
		r := newRig(t)
		k := r.compiled()
		source := k.Kernel
		var users, released sync.WaitGroup
		for range 3 {
			kept := r.Use(source)
			released.Add(1)
			users.Go(func() {
				for more := r.Use(source); more != nil; more = r.Use(source) {
					more.Release()
				}
				if kept.retain() {
					t.Error("a kernel that was released has got a reference")
				}
				released.Done()
				released.Wait()
				for range 100 {
					runtime.Gosched() // whoever destroys the pipeline gets the time to
				}
				r.pipelines(1)
				kept.Release()
			})
		}
		k.Release()
		r.Release(source)
		users.Wait()
		<-r.d.gone
		r.pipelines(0)
		r.forgotten()
	}
}

// A goroutine has found a kernel without the lock, and another one releases it. The first one gets no reference,
// and takes nobody's.
func TestReleasedKernelGetsNoMoreReferences(t *testing.T) {
	r := newRig(t)
	k := r.compiled()
	r.Release(k.Kernel)
	if k.retain() {
		t.Fatal("a kernel that was released has got a reference")
	}
	// Nor is it destroyed for somebody who has missed its user in a sum.
	k.destroyUnused()
	r.pipelines(1)
	k.Release()
	<-r.d.gone
	r.pipelines(0)
	r.forgotten()
}
