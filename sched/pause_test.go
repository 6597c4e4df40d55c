package sched

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/vk"
)

// A soft pause gives back what is kept for later use: staging, empty blocks, waiters. What is
// mapped and allocated stays, and the scheduler goes on afterwards.
func TestRelinquishKeepsWhatIsMapped(t *testing.T) {
	for _, mode := range slices.Concat(memoryModes, queueModes(memoryModes...)) {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, y := filled(16, 1), filled(16, 2)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			p := r.allocate(16)
			work := func(times int) {
				for range times {
					r.mix("mix", x, y, y, 1)
				}
				r.on(launch{label: "allocated", kernel: "set", constant: 5, included: true}, 16, p)
				r.taskwait()
			}
			for round := range 3 {
				work(5)
				if err := r.s.Relinquish(); err != nil {
					t.Fatal(err)
				}
				if n := r.s.Stats().Staging.BlockBytes; n != 0 {
					t.Errorf("%d bytes of staging are left", n)
				}
				r.s.mu.Lock()
				if slices.ContainsFunc(r.s.order.All(), (*order.Queue).Waiting) {
					t.Error("a queue has a waiter")
				}
				r.s.mu.Unlock()
				if r.d.trimmed != round+1 {
					t.Errorf("the device was trimmed %d times", r.d.trimmed)
				}
			}
			work(1)
			want := uint32(1)
			for range 16 {
				want = 3*want + 2*2 + 1
			}
			got := array32(16)
			r.transfer(launch{included: true}, transfer.Request{Kind: transfer.CopyToHost, Host: sectionOf(got), Src: p, Size: 64})
			for i := range got {
				if got[i] != 5+uint32(i) {
					t.Fatalf("the allocation has %v", got)
				}
			}
			r.free(p)
			r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, in: [][]uint32{x, y}, included: true})
			r.expect("x", x, filled(16, want)...)
		})
	}
}

// A soft pause can be the first to learn that the device is lost.
func TestRelinquishOfALostDevice(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	r.s.loss.recovery = "the way back"
	r.run(launch{label: "before", kernel: "add", args: []arg{tofrom(filled(16, 1))}, constant: 1, included: true})
	r.d.set(r.d.lose)
	for range 2 {
		if err := r.s.Relinquish(); !errors.Is(err, vk.ErrDeviceLost) || err != r.s.Lost() || !strings.HasSuffix(err.Error(), r.s.loss.recovery) {
			t.Errorf("Relinquish: %v, Lost: %v", err, r.s.Lost())
		}
	}
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPauseWithATaskUnderWay(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	r.d.hold()
	r.run(launch{label: "under way", kernel: "add", args: []arg{tofrom(x)}, constant: 1, out: [][]uint32{x}})
	if err := r.s.Relinquish(); !errors.Is(err, ErrBusy) {
		t.Errorf("Relinquish: %v, want %v", err, ErrBusy)
	}
	if _, err := r.s.Discard(); !errors.Is(err, ErrBusy) {
		t.Errorf("Discard: %v, want %v", err, ErrBusy)
	}
	if r.d.trimmed > 0 {
		t.Error("the device was trimmed")
	}
	r.d.release()
	r.taskwait()
	r.expect("x", x, filled(16, 2)...)
}

// A hard pause is followed by a new scheduler on the device, to which pointers of the old one
// are invalid, even where the same memory has been allocated again.
func TestDiscardMakesPointersStale(t *testing.T) {
	mode := memoryModes[0]
	first := newRig(t, mode, 1)
	first.closed = true
	x := filled(16, 1)
	first.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	old := first.allocate(16)
	for range 3 {
		first.free(first.allocate(16))
	}
	generation, err := first.s.Discard()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.s.Free(old); err == nil {
		t.Error("a scheduler that was discarded frees")
	}

	r := newRig(t, mode, 2)
	defer r.close()
	r.s.pointers.Init(generation)
	for range 3 {
		p := r.allocate(16)
		defer r.free(p)
		if p == old {
			t.Errorf("%+v is a pointer to what is not there any more", p)
		}
	}
	if err := r.s.Free(old); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("Free: %v, want %v", err, ErrInvalidPointer)
	}
	if _, _, err := r.s.Export(sectionOf(x)); !errors.Is(err, memory.ErrNotPresent) {
		t.Errorf("what was mapped: %v, want %v", err, memory.ErrNotPresent)
	}
}

// A submission that the device refuses is the last to its queue. The memory that its tasks had is given back
// nevertheless.
func TestMemoryOfARefusedSubmissionIsGivenBack(t *testing.T) {
	for _, mode := range slices.Concat(memoryModes, queueModes(memoryModes...)) {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode, 1)
			defer r.close()
			x, y := filled(1<<16, 1), filled(1<<16, 2)
			for round := range 3 {
				if round > 0 {
					r.mix("before", x, y, y, 1)
					r.taskwait()
				}
				r.d.set(func() { r.d.submit = func(int) error { return errSubmitMemory } })
				for range round + 1 {
					r.mix("refused", x, y, y, 1)
					if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
						t.Errorf("the wait reports %v", err)
					}
				}
				r.d.set(func() { r.d.submit = nil })
				if err := r.s.Relinquish(); err != nil {
					t.Fatal(err)
				}
				if s := r.s.Stats(); s.Staging.BlockBytes != 0 || s.Storage.BlockBytes != 0 {
					t.Errorf("round %d: %d bytes of staging and %d of storage are left", round, s.Staging.BlockBytes, s.Storage.BlockBytes)
				}
			}
		})
	}
}
