package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// newAheadRig returns a rig of which at most limit kernels are compiled ahead at the same time, and
// kernels called k0, k1 and so on, each with a gate of its own.
func newAheadRig(t *testing.T, limit, kernels int) (*rig, []*kernel.Kernel) {
	r := newRig(t)
	r.ahead.limit = limit
	r.d.gates = make(map[string]chan func() error)
	code, err := os.ReadFile(filepath.Join("..", "testdata", "set.spv"))
	if err != nil {
		t.Fatal(err)
	}
	var all []*kernel.Kernel
	for i := range kernels {
		name := fmt.Sprintf("k%d", i)
		k, err := kernel.New(name, code, "main", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.d.gates[name] = make(chan func() error, 10)
		all = append(all, k)
	}
	return r, all
}

func (r *rig) compileAhead(kernels ...*kernel.Kernel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range kernels {
		r.AheadLocked(k, vk.PipelineOptions{Label: k.Name()})
	}
}

func (r *rig) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.DropAheadLocked()
}

// begin waits until the compilations that are named have begun, in any order.
func (r *rig) begin(want ...string) {
	r.Helper()
	var begun []string
	for range want {
		begun = append(begun, <-r.d.begun)
	}
	slices.Sort(begun)
	if !slices.Equal(begun, want) {
		r.Errorf("the compilations of %q begin, want %q", begun, want)
	}
}

// Kernels are compiled side by side, but not more of them than the limit, in the order in which they
// were queued.
func TestKernelsAreCompiledAheadSideBySide(t *testing.T) {
	r, k := newAheadRig(t, 3, 5)
	r.compileAhead(k...)
	r.begin("k0", "k1", "k2")
	r.compiling("k0", "k1", "k2")
	for _, end := range []struct {
		which string
		next  string
		left  []string
	}{{"k1", "k3", []string{"k0", "k2", "k3"}}, {"k0", "k4", []string{"k2", "k3", "k4"}}, {"k4", "", []string{"k2", "k3"}}, {"k2", "", []string{"k3"}}, {"k3", "", nil}} {
		r.d.gates[end.which] <- works
		if c := <-r.ended; c.Name() != end.which {
			t.Errorf("the compilation of %q has ended, want %q", c.Name(), end.which)
		}
		if end.next != "" {
			r.begin(end.next)
		}
		r.compiling(end.left...)
	}
	// They are there now.
	r.compileAhead(k...)
	r.compiling()
	for _, source := range k {
		own := r.use(source)
		if own.Ready(0) == nil || own.Ready(1) != nil {
			t.Errorf("%q: ready are %v and %v", source.Name(), own.Ready(0), own.Ready(1))
		}
	}
	r.pipelines(5)
	r.Destroy()
	r.pipelines(0)
}

// A pipeline that is needed is compiled at once, whatever is under way and queued. One that is under
// way is shared.
func TestNeededPipelineIsCompiledBeforeTheQueue(t *testing.T) {
	r, k := newAheadRig(t, 1, 4)
	r.compileAhead(k...)
	r.begin("k0")
	needed := r.compile(r.use(k[2]), 0)
	r.begin("k2")
	r.compiling("k0", "k2")
	r.d.gates["k2"] <- works
	<-needed.Done()
	if c := <-r.ended; c != needed || c.kernel.Ready(0) == nil {
		t.Error("the pipeline that is needed is not ready")
	}
	r.compiling("k0")
	shared := r.compile(r.use(k[0]), 0)
	r.compiling("k0")
	if needed.ahead || !shared.ahead || !shared.needed {
		t.Errorf("ahead are %v and %v", needed.ahead, shared.ahead)
	}
	for _, name := range []string{"k0", "k1", "k3"} {
		r.d.gates[name] <- works
		if c := <-r.ended; c.Name() != name {
			t.Errorf("the compilation of %q has ended, want %q", c.Name(), name)
		}
	}
	if p, err := shared.Result(); err != nil || p != *shared.kernel.Ready(0) {
		t.Errorf("the shared compilation: %v, %v", p, err)
	}
	r.pipelines(4)
	r.Destroy()
}

// What goes wrong ahead is the error of the first that needs the pipeline, once.
func TestFailureAheadIsTheFirstUsersError(t *testing.T) {
	r, k := newAheadRig(t, 1, 2)
	refused := errors.New("refused by the driver")
	r.d.gates["k0"] <- func() error { return refused }
	r.d.gates["k1"] <- works
	r.compileAhead(k...)
	<-r.ended
	<-r.ended
	r.compiling()
	// It is not tried again ahead.
	r.compileAhead(k...)
	r.compiling()
	own := r.use(k[0])
	c := r.compile(own, 0)
	<-c.Done()
	if _, err := c.Result(); !errors.Is(err, refused) || !strings.Contains(err.Error(), `kernel "k0"`) || own.Ready(0) != nil {
		t.Errorf("the first use: %v", err)
	}
	r.d.gates["k0"] <- works
	again := r.compile(own, 0)
	<-again.Done()
	if _, err := again.Result(); err != nil || again == c {
		t.Errorf("the second use: %v", err)
	}
	r.pipelines(2)
	r.Destroy()
	r.pipelines(0)
}

// Want of memory ahead is nobody's error: the pipeline is compiled again, when it is needed or ahead.
func TestWantOfMemoryAheadIsForgotten(t *testing.T) {
	for _, short := range []error{vk.ErrOutOfHostMemory, vk.ErrOutOfDeviceMemory, vk.ErrOutOfMemory} {
		r, k := newAheadRig(t, 1, 2)
		r.compileAhead(k...)
		for _, name := range []string{"k0", "k1"} {
			r.d.gates[name] <- func() error { return short }
			<-r.ended
			r.d.gates[name] <- works
		}
		if own := r.use(k[0]); own.compilations[0] != nil {
			t.Fatalf("%v is kept", short)
		}
		needed := r.compile(r.use(k[0]), 0)
		r.compileAhead(k[1])
		<-r.ended
		<-r.ended
		if _, err := needed.Result(); err != nil || r.use(k[1]).Ready(0) == nil {
			t.Errorf("after %v: %v", short, err)
		}
		r.pipelines(2)
		r.Destroy()
	}
}

// A failure that somebody waits for is that one's, and not also the next one's.
func TestFailureOfASharedCompilationIsNotKept(t *testing.T) {
	r, k := newAheadRig(t, 1, 1)
	r.compileAhead(k...)
	r.begin("k0")
	own := r.use(k[0])
	c := r.compile(own, 0)
	r.d.gates["k0"] <- func() error { return errors.New("refused by the driver") }
	<-c.Done()
	r.d.gates["k0"] <- works
	again := r.compile(own, 0)
	<-again.Done()
	if _, err := again.Result(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	r.Destroy()
}

// Kernels that are closed, and queues that are dropped, leave nothing behind.
func TestCompilationsAheadAreDropped(t *testing.T) {
	r, k := newAheadRig(t, 1, 4)
	r.compileAhead(k...)
	r.begin("k0")
	r.Release(k[1]) // queued
	r.Release(k[0]) // under way
	r.compiling("k0")
	r.d.gates["k0"] <- works
	r.begin("k2")
	<-r.d.gone
	r.pipelines(0)
	r.drop() // k3 is queued
	r.d.gates["k2"] <- works
	<-r.ended
	<-r.ended
	r.compiling()
	r.pipelines(1)
	r.forgotten()
	// What was dropped can be compiled later, ahead or when it is needed.
	r.compileAhead(k[3])
	r.begin("k3")
	r.d.gates["k3"] <- works
	<-r.ended
	r.pipelines(2)
	r.Destroy()
	r.pipelines(0)
}
