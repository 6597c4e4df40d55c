package sched

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// registers makes a buffer outside of the scheduler's memory and registers it.
func (r *rig) registers(words int, families uint64) Pointer {
	r.t.Helper()
	b, err := r.d.CreateBlock(uint64(4*words), len(r.d.props.MemoryTypes)-1)
	if err != nil {
		r.t.Fatal(err)
	}
	b.Host = nil
	p, err := r.s.Register(b, families)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// A buffer that was registered for some queue families is used only on queues of these.
func TestRegisteredMemoryStaysOnItsFamilies(t *testing.T) {
	for _, placement := range []Placement{PlaceByFinish, PlaceRandom} {
		for family := range 2 {
			t.Run(fmt.Sprintf("placement %d, family %d", placement, family), func(t *testing.T) {
				mode := memoryModes[1]
				mode.queues, mode.placement = manyQueues, placement
				r := newRig(t, mode, uint64(family))
				defer r.close()
				p := r.registers(16, 1<<family)
				x := filled(16, 3)
				if err := r.s.Associate(sectionOf(x), p, 0, "x"); err != nil {
					t.Fatal(err)
				}
				for range 20 {
					r.run(launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 2, out: [][]uint32{x}})
				}
				r.taskwait()
				for i, q := range r.s.Stats().Queues {
					if n := q.Dispatches; n > 0 && r.d.infos[i].Family != family {
						t.Errorf("%d dispatches on queue %d of family %d", n, i, r.d.infos[i].Family)
					}
				}
				if err := r.s.Disassociate(sectionOf(x)); err != nil {
					t.Fatal(err)
				}
				r.unregisters(p)
			})
		}
	}
}

// unregisters ends what registers began.
func (r *rig) unregisters(p Pointer) {
	r.t.Helper()
	b, _, err := r.s.ExportPointer(p, 0)
	if err != nil {
		r.t.Error(err)
	}
	if err := r.s.Unregister(p); err != nil {
		r.t.Error(err)
	}
	r.d.DestroyBlock(vk.Block{Buffer: b.Buffer})
}

func TestRegisteredMemoryThatNoQueueMayUse(t *testing.T) {
	mode := memoryModes[1]
	mode.queues = manyQueues
	r := newRig(t, mode, 1)
	defer r.close()
	// Family 2 has no compute, and no queue is of families 0 and 1 at once.
	transfer, first, second := r.registers(16, 1<<2), r.registers(16, 1<<0), r.registers(16, 1<<1)
	x, y := filled(16, 1), filled(16, 2)
	associate := func(s []uint32, p Pointer) {
		if err := r.s.Associate(sectionOf(s), p, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(l launch) {
		t.Helper()
		l.included = true
		if err := r.s.Run(context.Background(), r.region(l)); !errors.Is(err, vk.ErrUnsupported) || !strings.Contains(err.Error(), "no queue is of a family") {
			t.Errorf("%v, want that no queue may", err)
		}
	}
	associate(x, transfer)
	refused(launch{label: "kernel", kernel: "add", args: []arg{tofrom(x)}, constant: 1})
	if err := r.s.Disassociate(sectionOf(x)); err != nil {
		t.Fatal(err)
	}
	associate(x, first)
	associate(y, second)
	refused(launch{label: "both", kernel: "mix", args: []arg{tofrom(x), to(y), to(y)}})
	r.run(launch{label: "one", kernel: "add", args: []arg{tofrom(x)}, constant: 1, included: true})
	if err := r.s.Unregister(first); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "associated") {
		t.Errorf("Unregister: %v", err)
	}
	for _, s := range [][]uint32{x, y} {
		if err := r.s.Disassociate(sectionOf(s)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []Pointer{transfer, first, second} {
		r.unregisters(p)
	}
}

// Memory that is being taken when the scheduler is closed is the scheduler's, and afterwards none is made.
func TestCloseDestroysWhatIsTakenMeanwhile(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	closed := make(chan error)
	_, err := r.s.Take(func() (vk.Block, error) {
		r.closed = true
		go func() { closed <- r.s.Close() }()
		return r.d.CreateBlock(64, len(r.d.props.MemoryTypes)-1)
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-closed; !errors.Is(err, memory.ErrLeaked) {
		t.Errorf("close: %v", err) // the fake device says which blocks are left
	}
	_, err = r.s.Take(func() (vk.Block, error) {
		t.Error("a block is made on a device that is closed")
		return vk.Block{}, nil
	})
	if !errors.Is(err, ErrClosed) {
		t.Errorf("taken on a device that is closed: %v", err)
	}
}
