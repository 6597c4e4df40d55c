package sched

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/vk"
)

// hits calls Hit for a construct with these items, and reports whether it was one that only counts.
func (r *rig) hits(leaving bool, items ...arg) bool {
	var maps []memory.Map
	for _, a := range items {
		maps = append(maps, a.item(""))
	}
	return r.s.Hit(r.scope, nil, maps, leaving)
}

// counts returns the reference count of the block with a slice.
func (r *rig) counts(x []uint32) uint32 {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
	if block == nil {
		return 0
	}
	n, _ := block.Count()
	return n
}

// dormant reports whether the block with a slice is dormant.
func (r *rig) dormant(x []uint32) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.s.presence.table.Dormant(sectionOf(x), false) != nil
}

// A block is dormant after the construct that created it, and once a construct has found it without tasks. A
// task that comes to use the block ends
// that, and a construct that would have to come before or after what the task does is none that only
// counts.
func TestConstructOnlyCountsUnlessATaskInFlightIsAboutToChangeTheBlock(t *testing.T) {
	for name, c := range map[string]struct {
		launch launch
		enters bool // whether an entry only counts while the task is in flight
		leaves int  // how many exits do after that: the reference that remains is not a task's
	}{
		"no task":           {launch{}, true, 2},
		"kernel":            {launch{kernel: "mix"}, true, 2},
		"entry":             {launch{enter: []arg{{kind: memory.MapAlloc}}}, true, 3},
		"exit":              {launch{exit: []arg{{kind: memory.MapRelease}}}, true, 1},
		"exit that copies":  {launch{exit: []arg{{kind: memory.MapFrom, always: true}}}, false, 0},
		"exit that removes": {launch{exit: []arg{{kind: memory.MapDelete}}}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBothWays(t, func(t *testing.T, r *rig) {
				x, zero := filled(16, 1), filled(16, 0)
				r.run(launch{label: "enter", enter: []arg{to(x), to(zero)}, included: true})
				if !r.dormant(x) {
					t.Error("a block is not dormant after the construct that created it")
				}
				r.s.mu.Lock()
				r.s.presence.table.Lookup(sectionOf(x))
				r.s.mu.Unlock()
				if r.dormant(x) {
					t.Error("a block that was looked up is dormant")
				}
				if !r.hits(false, to(x)) || !r.dormant(x) {
					t.Error("a block without tasks that was entered is not dormant")
				}
				if !r.hits(false, alloc(x[4:8])) || r.counts(x) != 3 {
					t.Errorf("an entry with a part of the block is not counted: %d", r.counts(x))
				}
				if !r.hits(true, from(x)) || r.counts(x) != 2 {
					t.Errorf("an exit is not counted: %d", r.counts(x))
				}
				r.d.hold()
				l, kernel := c.launch, launch{label: "kernel", kernel: "mix", args: []arg{tofrom(x), to(zero), alloc(zero)}, constant: 1, out: [][]uint32{x}}
				inFlight := l.kernel != "" || len(l.enter)+len(l.exit) > 0
				if inFlight {
					r.run(kernel)
				}
				if len(l.enter)+len(l.exit) > 0 {
					// It follows the kernel.
					l.label, l.out = name, [][]uint32{x}
					l.enter, l.exit = slices.Clone(l.enter), slices.Clone(l.exit)
					for i := range l.enter {
						l.enter[i].s = x
					}
					for i := range l.exit {
						l.exit[i].s = x
					}
					r.run(l)
				}
				if inFlight && r.dormant(x) {
					t.Error("a block that a task uses is dormant")
				}
				want := r.counts(x)
				if got := r.hits(false, to(x)); got != c.enters {
					t.Errorf("an entry only counts: %t", got)
				} else if got {
					want++
				}
				leaves := 0
				for r.hits(true, from(x)) {
					leaves++
				}
				if leaves != c.leaves {
					t.Errorf("%d exits only count, want %d", leaves, c.leaves)
				}
				if n := r.counts(x); n != want-uint32(leaves) {
					t.Errorf("the count is %d, want %d", n, want-uint32(leaves))
				}
				r.d.release()
				r.taskwait()
				r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}, {s: zero, kind: memory.MapDelete}}, included: true})
			})
		})
	}
}

// Items of one construct that lie in one block count once.
func TestItemsOfOneBlockCountOnce(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(16, 1), filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
	for range 2 {
		if !r.hits(false, to(x[:8]), to(y), alloc(x[8:]), to(x)) {
			t.Fatal("an entry of present slices does more than count")
		}
	}
	if !r.hits(true, from(x[8:]), from(x[:4]), from(y)) {
		t.Error("an exit of slices that stay does more than count")
	}
	if nx, ny := r.counts(x), r.counts(y); nx != 2 || ny != 2 {
		t.Errorf("the counts are %d and %d, want 2", nx, ny)
	}
	absent := filled(16, 1)
	if r.hits(false, to(x), to(absent)) || r.hits(true, from(x), from(absent)) || r.hits(false, to(x), arg{s: y, kind: memory.MapTo, always: true}) {
		t.Error("a construct with an absent slice, or a copy, only counts")
	}
	if r.hits(false) || r.hits(true) {
		t.Error("a construct without items only counts")
	}
	if nx, ny := r.counts(x), r.counts(y); nx != 2 || ny != 2 {
		t.Errorf("the counts are %d and %d after constructs that were none that only count", nx, ny)
	}
	for range 2 {
		r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
	}
	if n := r.counts(x); n != 0 {
		t.Errorf("the count is %d after all exits", n)
	}
}

// A block can become dormant while the task that creates it is in flight. When its first contents do not come,
// constructs fail that use the block, and none only counts it.
func TestDormantBlockWhoseContentsDoNotComeIsNotCounted(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	r.watches = false
	x := filled(16, 1)
	r.busy()
	r.run(launch{label: "enter", enter: []arg{to(x)}})
	for range 2 {
		if !r.hits(false, to(x)) {
			t.Fatal("an entry of a present slice does more than count")
		}
	}
	if !r.dormant(x) {
		t.Error("the block is not dormant")
	}
	r.failNext()
	r.d.release()
	r.eventually("failure", func() bool { return r.graph.Counts().Failures > 0 })
	if err := r.scope.Wait(context.Background(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	if n := r.counts(x); n != 2 {
		t.Errorf("the count is %d, want 2", n)
	}
	if r.hits(false, to(x)) || r.hits(true, from(x)) {
		t.Error("a construct only counts a block without contents")
	}
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
}
