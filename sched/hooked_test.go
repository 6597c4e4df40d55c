package sched

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// hookedDevice calls functions of the test in the middle of what a task does, each of them
// once.
type hookedDevice struct {
	*fakeDevice
	// wait is called after a wait for a value of 3 or more; flush and invalidate are called
	// before a flush and an invalidation.
	wait, flush, invalidate func()
}

func once(f *func()) {
	if g := *f; g != nil {
		*f = nil
		g()
	}
}

func (h *hookedDevice) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	ok, err := h.fakeDevice.Wait(queue, value, timeout)
	if value >= 3 {
		once(&h.wait)
	}
	return ok, err
}

func (h *hookedDevice) Flush(r []vk.MemoryRange) error {
	once(&h.flush)
	return h.fakeDevice.Flush(r)
}

func (h *hookedDevice) Invalidate(r []vk.MemoryRange) error {
	once(&h.invalidate)
	return h.fakeDevice.Invalidate(r)
}

func newHookedRig(t *testing.T, memory fakeMemory, o Options) (*rig, *hookedDevice) {
	return newHookedRigOn(t, newFakeDevice(t, memory, 1), o)
}

func newHookedRigOn(t *testing.T, d *fakeDevice, o Options) (*rig, *hookedDevice) {
	h := &hookedDevice{fakeDevice: d}
	o.Domain = rigDomain
	s, err := New(h, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, d: h.fakeDevice, s: s, kernels: make(map[string]*kernel.Kernel)}
	r.scope = r.graph.NewScope()
	return r, h
}

// A copy to the device goes through a ring, and fails half way. The block has no contents then,
// and a task that found it present and waits for the copy must fail too.
func TestHalfStreamedBlockIsBroken(t *testing.T) {
	r, h := newHookedRig(t, discreteMemory, Options{Chunk: 64})
	defer r.close()
	x := filled(256, 7) // 16 chunks
	shared := make(chan error, 1)
	// The test counts as a driver of the queue, so that nobody waits for the device but the
	// copy itself.
	q := r.s.order.All()[0]
	r.s.mu.Lock()
	q.AddDriver()
	r.s.mu.Unlock()
	h.look = func() error { return errLookMemory } // the copy's waits block
	h.wait = func() {
		go func() {
			shared <- r.s.Run(t.Context(), r.region(launch{label: "sharer", enter: []arg{to(x)}, included: true, scope: r.graph.NewScope()}))
		}()
		for waiting := 0; waiting == 0; runtime.Gosched() {
			r.s.mu.Lock()
			waiting = r.s.presence.fillWaiters
			r.s.mu.Unlock()
		}
		r.d.set(func() { r.d.submit = func(int) error { return errSubmitMemory } })
		// The failed task ends when its chunks are complete: now the queue's waiter may wait
		// for them.
		r.s.mu.Lock()
		r.s.order.StopDriving(q)
		r.s.mu.Unlock()
	}
	if err := r.s.Run(t.Context(), r.region(launch{label: "first", enter: []arg{to(x)}, included: true})); err == nil {
		t.Error("the first did not fail")
	}
	r.d.set(func() { r.d.submit = nil })
	if err := <-shared; err == nil {
		t.Error("the sharer did not hear that the copy failed")
	}
}

// A task fails while chunks of its copy are in flight. It ends only when they are complete, and
// other goroutines can use the scheduler in the meantime.
func TestFailedTaskIsCompleteWhenItsChunksAre(t *testing.T) {
	r, h := newHookedRig(t, discreteMemory, Options{Chunk: 64})
	defer r.close()
	x, y := filled(256, 7), filled(256, 8) // 16 chunks
	ended := make(chan error, 2)
	enter := func(label string, args ...arg) {
		ended <- r.s.Run(t.Context(), r.region(launch{label: label, enter: args, included: true, scope: r.graph.NewScope()}))
	}
	q := r.s.order.All()[0]
	r.s.mu.Lock()
	q.AddDriver()
	r.s.mu.Unlock()
	h.look = func() error { return errLookMemory } // the copy's waits block
	h.wait = func() {
		ofX := r.d.submitted
		go enter("shares x, and copies y", to(x), to(y))
		r.eventually("y is on its way", func() bool { return r.s.presence.fillWaiters > 0 })
		r.d.advance(ofX)
		r.d.set(func() { r.d.submit = func(int) error { return errSubmitMemory } })
		r.s.mu.Lock()
		r.s.order.StopDriving(q)
		r.s.mu.Unlock()
	}
	go enter("copies x", to(x))
	if err := <-ended; !errors.Is(err, errSubmitMemory) {
		t.Errorf("the first to end got %v", err)
	}
	used := make(chan int, 1)
	go func() {
		live := 0
		r.eventually("who shares x has failed", func() bool {
			live = r.s.life.live
			return slices.ContainsFunc(q.InFlight(), func(b *order.Batch) bool { return len(b.Tasks()) > 0 && targetOf(b.Tasks()[0]).failed != nil })
		})
		used <- live
	}()
	select {
	case live := <-used:
		if live != 1 {
			t.Errorf("%d tasks are live while the device has chunks of one", live)
		}
	case <-time.After(20 * time.Second):
		t.Error("somebody waits for the device with the scheduler's lock")
	}
	r.d.set(func() { r.d.submit = nil })
	r.d.release()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the copy to storage that it shares failed") {
		t.Errorf("who shares x got %v", err)
	}
}

// An exit construct reads associated memory while it is disassociated and freed. The memory
// must not be given to anybody else before the exit is done.
func TestExitKeepsAssociatedMemory(t *testing.T) {
	r, h := newHookedRig(t, incoherentMemory, Options{Sharing: ShareNothing})
	defer r.close()
	x := filled(256, 7)
	p := r.allocate(256)
	if err := r.s.Associate(sectionOf(x), p, 0, "x"); err != nil {
		t.Fatal(err)
	}
	r.run(launch{label: "fill", enter: []arg{{s: x, kind: memory.MapTo, always: true}}, included: true})
	r.s.mu.Lock()
	before, _, _ := r.s.pointers.Find(p, 0)
	had := before.Storage
	r.s.mu.Unlock()
	called := false
	h.invalidate = func() {
		// The exit's task is in flight: none of these calls waits for it.
		called = true
		if err := r.s.Disassociate(sectionOf(x)); err != nil {
			t.Error(err)
		}
		r.free(p)
		q := r.allocate(256)
		r.s.mu.Lock()
		m, _, _ := r.s.pointers.Find(q, 0)
		if m.Block.ID == had.Block.ID && m.Offset == had.Offset {
			t.Error("the memory is another's while the task reads it")
		}
		r.s.mu.Unlock()
		r.free(q)
	}
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapFrom, always: true}}, included: true})
	if !called {
		t.Error("nothing was invalidated")
	}
}

// Two goroutines copy to allocations that share a unit of non-coherent memory. A flush writes
// the whole unit, so that the one could overwrite what the other has copied.
func TestCopiesToNeighboursInOneUnit(t *testing.T) {
	for seed := range uint64(8) {
		r, h := newHookedRigOn(t, newFakeDevice(t, incoherentMemory, seed), Options{})
		p := r.allocate(8)
		a, b, out := filled(4, 1), filled(4, 2), filled(8, 0)
		called := false
		h.flush = func() {
			called = true
			r.transfer(launch{label: "b", included: true, scope: r.graph.NewScope()}, toDevice(p.Add(16), b))
		}
		r.transfer(launch{label: "a", included: true}, toDevice(p, a))
		if !called {
			t.Fatal("nothing was flushed")
		}
		r.transfer(launch{label: "out", included: true}, toHost(out, p))
		r.expect("out", out, 1, 1, 1, 1, 2, 2, 2, 2)
		r.free(p)
		r.close()
	}
}

// A task fails after its copy to the device has gone through a ring, or in the middle of that. The
// chunks of the ring are given back only when the device has read them.
func TestRingOfAFailedTaskIsNotUsedUnderItsCopies(t *testing.T) {
	for seed := range uint64(16) {
		d := newFakeDevice(t, discreteMemory, seed)
		r := newRigOn(t, d, memoryMode{memory: discreteMemory, share: ShareNothing, chunk: 64})
		x := filled(64, 7)
		l := launch{label: "streams", kernel: "mix", args: []arg{tofrom(x), to(x), to(x)}, constant: 1, included: true}
		// Four submissions with chunks come before that of the kernel. The one that fails is the
		// kernel's or, with every other seed, that of the last chunk.
		fails := d.submits + 5 - int(seed%2)
		d.submit = func(call int) error {
			if call == fails {
				return errSubmitMemory
			}
			return nil
		}
		if err := r.s.Run(t.Context(), r.region(l)); !errors.Is(err, vk.ErrOutOfMemory) {
			t.Fatalf("got %v", err)
		}
		r.expect("x", x, filled(64, 7)...)
		for i := range x {
			x[i] = 9
		}
		r.run(l)
		r.expect("x", x, filled(64, 46)...)
		r.close()
	}
}
