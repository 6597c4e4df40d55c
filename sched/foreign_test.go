package sched

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// foreignWork stands for code that uses the rig's device beside the scheduler, with a queue and
// a semaphore of its own.
type foreignWork struct {
	r         *rig
	queue     int
	value     uint64
	semaphore vk.Semaphore
	// signalled is the last value that a submission signals, or is to signal, on the semaphore.
	signalled uint64
}

// withForeign returns a rig whose device has one queue more than the scheduler uses.
func withForeign(t *testing.T, mode memoryMode, seed uint64) *foreignWork {
	queues := mode.queues
	if queues == nil {
		queues = oneQueue
	}
	d := newFakeDeviceWith(t, append(append([]order.QueueInfo(nil), queues...), order.QueueInfo{Compute: true}), mode.memory, seed)
	d.foreign = 1
	return &foreignWork{r: newRigOn(t, d, mode), queue: len(queues), semaphore: 77}
}

// copies copies storage that is mapped, with a submission to the foreign queue.
func (f *foreignWork) copies(to, from []uint32) {
	var s vk.Stream
	at := func(x []uint32) vk.BufferRange {
		b, _, err := f.r.s.Export(sectionOf(x))
		if err != nil {
			f.r.t.Fatal(err)
		}
		return b
	}
	src, dst := at(from), at(to)
	s.Copy(src.Buffer, dst.Buffer, src.Offset, dst.Offset, src.Size)
	wait := vk.SemaphoreValue{Semaphore: f.semaphore, Value: f.signalled}
	f.signalled++
	f.value++
	foreign := order.Foreign{Waits: []vk.SemaphoreValue{wait}, Signals: []vk.SemaphoreValue{{Semaphore: f.semaphore, Value: f.signalled}}}
	if err := f.r.d.Submit(f.queue, &s, nil, foreign, f.value); err != nil {
		f.r.t.Fatal(err)
	}
}

// ordering is the runner of a task that puts the scheduler's work and foreign work in order.
type ordering struct {
	f       *foreignWork
	foreign Foreign
	// placed gets the result of Order.
	placed chan error
}

func (o *ordering) Start(n *tasks.Node, w *tasks.Work) {
	if !o.f.r.s.Postpone(n) {
		o.placed <- o.f.r.s.Order(n, o.foreign, w)
	}
}

func (*ordering) Recycle() {}

// order generates a task that comes before later foreign work and, with waits, after the
// foreign work so far. It returns when the task is placed.
func (f *foreignWork) order(waits bool, failure error, inout ...[]uint32) error {
	return <-f.orderLater(waits, failure, inout...)
}

// orderLater is order that does not wait until the task is placed. The channel gets the result then.
func (f *foreignWork) orderLater(waits bool, failure error, inout ...[]uint32) <-chan error {
	o := &ordering{f: f, placed: make(chan error, 1)}
	o.foreign.Failure = failure
	if waits {
		o.foreign.Waits = []vk.SemaphoreValue{{Semaphore: f.semaphore, Value: f.signalled}}
	}
	f.signalled++
	o.foreign.Signals = []vk.SemaphoreValue{{Semaphore: f.semaphore, Value: f.signalled}}
	w := tasks.NewWork()
	defer w.Finish()
	if _, err := f.r.scope.Add(&tasks.Task{Label: "order", Domain: rigDomain, Depend: dependOn(nil, inout), Runner: o, Always: true}, w); err != nil {
		f.r.t.Fatal(err)
	}
	w.Run()
	return o.placed
}

// Foreign work copies a slice that tasks write before and read after it.
func TestForeignWorkComesBetweenTasks(t *testing.T) {
	for _, mode := range append(append([]memoryMode(nil), memoryModes...), queueModes(memoryModes...)...) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprintf("%s/%d", mode.name, seed), func(t *testing.T) {
				f := withForeign(t, mode, seed)
				r := f.r
				defer r.close()
				x, y, z := filled(16, 1), filled(16, 2), filled(16, 3)
				r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z)}, included: true})
				for i := range 5 {
					r.run(launch{label: "make", kernel: "add", args: []arg{tofrom(x)}, constant: 10, out: [][]uint32{x}})
					if err := f.order(i > 0, nil, x, y); err != nil {
						t.Fatal(err)
					}
					f.copies(y, x)
					if err := f.order(true, nil, x, y); err != nil {
						t.Fatal(err)
					}
					r.run(launch{label: "take", kernel: "mix", args: []arg{tofrom(z), to(y), to(x)}, in: [][]uint32{x, y}, out: [][]uint32{z}})
				}
				// The host copy of y has to be what the foreign work wrote, although no task of
				// the scheduler has written y.
				if err := f.order(true, nil, x, y); err != nil {
					t.Fatal(err)
				}
				f.copies(y, x)
				if err := f.order(true, nil, y); err != nil {
					t.Fatal(err)
				}
				r.run(launch{label: "exit of y", exit: []arg{from(y)}, in: [][]uint32{y}, included: true})
				r.run(launch{label: "exit", exit: []arg{from(x), from(z)}, in: [][]uint32{x, z}, included: true})
				sum := uint32(3)
				for i := range uint32(5) {
					sum = 3*sum + 2*(11+10*i)
				}
				for i := range x {
					if x[i] != 51 || y[i] != 51 || z[i] != sum {
						t.Fatalf("element %d: x, y and z are %d, %d and %d; want 51, 51 and %d", i, x[i], y[i], z[i], sum)
					}
				}
			})
		}
	}
}

// overwrites copies y to x behind a task of orderLater. It fails the test if that task is placed while the device is held, which
// it releases: the host does not have x yet.
func (f *foreignWork) overwrites(x, y []uint32, placed <-chan error) {
	f.r.t.Helper()
	early := len(placed) > 0
	f.r.d.release()
	if early {
		f.r.t.Fatal("foreign work can begin before the slice is on the host")
	}
	if err := <-placed; err != nil {
		f.r.t.Fatal(err)
	}
	f.copies(x, y)
}

// wasOverwritten fails the test unless the host has 11 in x, which a task has brought there, and 2 when foreign work has
// overwritten it. x and others are unmapped then.
func (f *foreignWork) wasOverwritten(x []uint32, others ...[]uint32) {
	f.r.t.Helper()
	f.r.expect("the slice behind the task", x, filled(len(x), 11)...)
	if err := f.order(true, nil, x); err != nil {
		f.r.t.Fatal(err)
	}
	exit := []arg{from(x)}
	for _, o := range others {
		exit = append(exit, from(o))
	}
	f.r.run(launch{label: "exit", exit: exit, in: append(others, x), included: true})
	f.r.expect("the slice behind the foreign work", x, filled(len(x), 2)...)
}

// Foreign work overwrites a slice of which an earlier task brings another content to the host. The copy is
// complete before the foreign work begins.
func TestForeignWorkComesAfterCopiesToTheHost(t *testing.T) {
	for _, mode := range slices.Concat(memoryModes, pinnedModes, queueModes(memoryModes...)) {
		for _, between := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", mode.name, between), func(t *testing.T) {
				f := withForeign(t, mode, 1)
				r := f.r
				defer r.close()
				x, y, z := filled(16, 1), filled(16, 2), filled(16, 3)
				if mode.pinned {
					x = r.pinnedArray(mode, 16, 1)
					defer r.unpin(x)
				}
				r.run(launch{label: "enter", enter: []arg{to(x), to(y), to(z)}, included: true})
				if _, _, err := r.s.Export(sectionOf(x)); err != nil {
					t.Fatal(err)
				}
				r.d.hold()
				r.run(launch{label: "make", kernel: "add", args: []arg{{s: x, kind: memory.MapFrom, always: true}}, constant: 10, out: [][]uint32{x, z}})
				behind := x
				if between {
					// The foreign work follows the task through another one, which does not use x.
					r.run(launch{label: "between", kernel: "add", args: []arg{tofrom(z)}, constant: 1, out: [][]uint32{z}})
					behind = z
				}
				if apart := f.orderLater(false, nil); len(apart) == 0 {
					t.Error("a construct that follows nothing is not placed")
				}
				f.overwrites(x, y, f.orderLater(false, nil, behind))
				if err := r.scope.Wait(context.Background(), nil); err != nil {
					t.Fatal(err)
				}
				f.wasOverwritten(x, y, z)
			})
		}
	}
}

// A construct that waits for its task has the host read the slice itself, while another goroutine generates the foreign work
// behind it.
func TestForeignWorkComesAfterAReadByTheHost(t *testing.T) {
	f := withForeign(t, memoryModes[0], 1)
	r := f.r
	defer r.close()
	x, y := filled(16, 1), filled(16, 2)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	if _, _, err := r.s.Export(sectionOf(x)); err != nil {
		t.Fatal(err)
	}
	r.d.hold()
	r.run(launch{label: "make", kernel: "add", args: []arg{tofrom(x)}, constant: 10, out: [][]uint32{x}})
	var updating sync.WaitGroup
	updating.Go(func() {
		r.transfer(launch{label: "update", out: [][]uint32{x}, included: true}, update(transfer.UpdateFrom, x))
	})
	reading := func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
		return len(stateOf(block).Readers) > 0
	}
	for !reading() {
		runtime.Gosched()
	}
	f.overwrites(x, y, f.orderLater(false, nil, x))
	updating.Wait()
	f.wasOverwritten(x, y)
}

// Commands that are pending when a task has to wait for foreign work go to the device in a
// batch of their own, which does not wait.
func TestForeignWorkHoldsUpNothingBeforeIt(t *testing.T) {
	f := withForeign(t, memoryModes[0], 1)
	r := f.r
	defer r.close()
	x, y := filled(16, 1), filled(16, 2)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	if err := f.order(false, nil, x); err != nil {
		t.Fatal(err)
	}
	r.d.hold()
	f.copies(x[:8], x[8:])
	for range order.MaxInFlight + 3 {
		r.run(launch{label: "beside", kernel: "add", args: []arg{tofrom(y)}, constant: 1, out: [][]uint32{y}})
	}
	if r.s.order.All()[0].Pending().Empty() {
		t.Fatal("nothing has collected")
	}
	if err := f.order(true, nil, x); err != nil {
		t.Fatal(err)
	}
	r.d.mu.Lock()
	for _, b := range r.d.queues[0].all {
		if len(b.waits) > 0 && b.left > 0 {
			t.Errorf("submission %d waits for foreign work and has %d commands", b.number, b.left)
		}
	}
	r.d.mu.Unlock()
	r.d.release()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, in: [][]uint32{x, y}, included: true})
}

// Storage that foreign work may have written must not be taken up again when its last holder is
// complete: the next construct that maps it gets the host's contents.
func TestWhatForeignWorkWroteIsNotMappedAgain(t *testing.T) {
	for _, mode := range memoryModes {
		if mode.share != ShareNothing {
			continue
		}
		t.Run(mode.name, func(t *testing.T) {
			f := withForeign(t, mode, 1)
			r := f.r
			defer r.close()
			x, y, z, sum := filled(16, 1), filled(16, 2), filled(16, 3), filled(16, 4)
			r.run(launch{label: "enter", enter: []arg{to(y)}, included: true})
			r.d.hold()
			r.run(launch{label: "holds", kernel: "mix", args: []arg{tofrom(z), to(y), to(x)}, in: [][]uint32{y}, out: [][]uint32{z}})
			if err := f.order(false, nil, x); err != nil {
				t.Fatal(err)
			}
			f.copies(x, y)
			if err := f.order(true, nil, x); err != nil {
				t.Fatal(err)
			}
			r.run(launch{label: "maps anew", kernel: "mix", args: []arg{tofrom(sum), to(y), to(x)}, in: [][]uint32{x, y, z}, out: [][]uint32{sum}})
			r.d.release()
			r.taskwait()
			r.expect("sum", sum, filled(16, 3*4+2+1)...)
			r.run(launch{label: "exit", exit: []arg{from(y)}, in: [][]uint32{y}, included: true})
		})
	}
}

// With several queues, a task that does not depend on foreign work goes to a queue that does
// not wait for it.
func TestWorkKeepsAwayFromAQueueThatWaitsForForeignWork(t *testing.T) {
	mode := memoryModes[0]
	mode.queues = onQueues.queues
	f := withForeign(t, mode, 1)
	r := f.r
	defer r.close()
	x, y := filled(16, 1), filled(16, 2)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	if err := f.order(false, nil, x); err != nil {
		t.Fatal(err)
	}
	r.d.hold()
	f.copies(x[:8], x[8:])
	if err := f.order(true, nil, x); err != nil {
		t.Fatal(err)
	}
	behind := slices.IndexFunc(r.s.order.All(), func(q *order.Queue) bool {
		return len(q.InFlight()) > 0 && len(q.InFlight()[len(q.InFlight())-1].Foreign().Waits) > 0
	})
	before := r.kernelsOn()[behind]
	for range 10 {
		r.run(launch{label: "beside", kernel: "add", args: []arg{tofrom(y)}, constant: 1, out: [][]uint32{y}})
	}
	if n := r.kernelsOn()[behind] - before; n > 0 {
		t.Errorf("%d of 10 kernels are behind the foreign work", n)
	}
	r.run(launch{label: "after", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
	if n := r.kernelsOn()[behind] - before; n != 1 {
		t.Errorf("what follows the foreign work is on another queue")
	}
	r.d.release()
	r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, in: [][]uint32{x, y}, included: true})
	r.expect("y", y, filled(16, 12)...)
}

// A submission between foreign work and tasks can fail: it signals nothing, and its task fails.
// The task also fails when it is told that the foreign side has failed.
func TestOrderWithForeignWorkFails(t *testing.T) {
	f := withForeign(t, memoryModes[0], 1)
	r := f.r
	defer r.close()
	n := 0
	r.d.submit = func(int) error {
		if n++; n == 1 {
			return &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorOutOfDeviceMemory}
		}
		return nil
	}
	if err := f.order(false, nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("Order: %v, want an error of memory", err)
	}
	if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("the task: %v, want an error of memory", err)
	}
	if all := r.d.semaphores[f.semaphore]; len(all) > 0 {
		t.Errorf("signalled: %v", all)
	}
	r.d.submit = nil
	broken := errors.New("broken")
	if err := f.order(false, broken); err != nil {
		t.Errorf("Order: %v", err)
	}
	if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, broken) {
		t.Errorf("the task: %v, want %v", err, broken)
	}
}

func TestExportOfWhatIsNotThere(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	if _, _, err := r.s.Export(sectionOf(x)); !errors.Is(err, memory.ErrNotPresent) {
		t.Errorf("storage that is not mapped: %v", err)
	}
	if _, _, err := r.s.ExportPointer(Pointer{}, 4); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("nil: %v", err)
	}
	p, err := r.s.Allocate(64)
	if err != nil {
		t.Fatal(err)
	}
	if b, _, err := r.s.ExportPointer(p.Add(16), 48); err != nil || b.Size != 48 {
		t.Errorf("the last 48 bytes of an allocation: %+v, %v", b, err)
	}
	if _, _, err := r.s.ExportPointer(p.Add(16), 49); err == nil || !strings.Contains(err.Error(), "49 bytes") {
		t.Errorf("a byte too many: %v", err)
	}
	if err := r.s.Free(p); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.s.ExportPointer(p, 4); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("freed: %v", err)
	}
	// The allocation was freed: the scheduler no longer counts it among the storage that
	// foreign work can write.
	r.s.mu.Lock()
	r.s.wroteExportedLocked(order.SyncPoint{Value: 1})
	exported := slices.Collect(r.s.memory.Exported())
	r.s.mu.Unlock()
	if n := len(exported); n != 0 {
		t.Errorf("%d allocations are exported", n)
	}
}
