package sched

import (
	"testing"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/vk"
)

// Kernels can read and write beyond an argument, up to the end of its VkBuffer, unless the
// device bounds their accesses. The test maps and allocates under each combination of what is
// asked for and what the device can do: storage has a VkBuffer of its own where nothing else
// bounds kernels.
func TestOwnBuffers(t *testing.T) {
	for _, c := range []struct {
		name        string
		own, robust bool
		apart       bool
	}{
		{"asked for, and nothing else bounds kernels", true, false, true},
		{"asked for, and the device bounds at bindings", true, true, false},
		{"not asked for", false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFakeDevice(t, unifiedMemory, 1)
			d.props.Features.RobustBufferAccess2 = c.robust
			s, err := New(d, Options{Domain: rigDomain, Sharing: ShareNothing, OwnBuffers: c.own})
			if err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t, d: d, s: s, kernels: map[string]*kernel.Kernel{"add": loadKernel(t, "add")}}
			r.scope = r.graph.NewScope()
			defer r.close()
			x, y := filled(16, 1), filled(16, 2)
			r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
			p, q := r.allocate(16), r.allocate(16)
			buffers := make(map[vk.Buffer]bool)
			r.s.mu.Lock()
			for _, host := range [][]uint32{x, y} {
				block, _, err := s.presence.table.Lookup(sectionOf(host))
				if err != nil {
					t.Fatal(err)
				}
				buffers[vk.Buffer(block.Storage.Block.ID)] = true
			}
			for _, p := range []Pointer{p, q} {
				m, _, err := s.pointers.Find(p, 0)
				if err != nil {
					t.Fatal(err)
				}
				buffers[vk.Buffer(m.Block.ID)] = true
			}
			r.s.mu.Unlock()
			if apart := len(buffers) == 4; apart != c.apart {
				t.Errorf("4 chunks of storage lie in %d buffers", len(buffers))
			}
			r.run(launch{label: "add", kernel: "add", args: []arg{alloc(x)}, constant: 1, included: true})
			r.free(p)
			r.free(q)
			r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
			r.expect("x", x, filled(16, 2)...)
		})
	}
}

// An argument may end within its last word. That word is bound as a whole if the argument
// reaches the end of a block of the scheduler's own: the rest of the word is padding then, and
// nobody's storage.
func TestOnlyPaddingIsBoundBesidesTheArgument(t *testing.T) {
	own, shared := &allocation.Allocation{}, &allocation.Allocation{Shared: true}
	registered := &allocation.Allocation{Origin: allocation.Registered}
	external := &allocation.Allocation{External: &vk.Block{Buffer: 5}}
	for _, a := range []*allocation.Allocation{own, shared, registered, external} {
		a.Size = 13
	}
	for _, c := range []struct {
		name     string
		memory   *allocation.Allocation
		at, size uint64
		padded   bool
	}{
		{"all of a block", own, 0, 13, true},
		{"the end of a block", own, 8, 5, true},
		{"the beginning of a block", own, 0, 5, false},
		{"all but the last byte", own, 0, 12, false},
		{"the host's own storage", shared, 0, 13, false},
		{"a buffer of the program's", registered, 0, 13, false},
		{"exported memory", external, 0, 13, false},
	} {
		if a := (argument{Allocation: c.memory, at: c.at, size: c.size}); a.padded() != c.padded {
			t.Errorf("%s: padded is %v", c.name, a.padded())
		}
	}
}
