package sched

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
)

// carried names the fields of a record for a new block, besides its own allocation, that say something
// of the block it had before.
func carried(b *blockState) (left []string) {
	for f, v := range reflect.ValueOf(b).Elem().Fields() {
		switch {
		case f.Name == "own":
		case v.Kind() == reflect.Slice:
			for i := range v.Cap() {
				if !v.Slice3(0, v.Cap(), v.Cap()).Index(i).IsZero() {
					left = append(left, fmt.Sprintf("%s[%d]", f.Name, i))
				}
			}
			if v.Len() > 0 {
				left = append(left, f.Name)
			}
		case !v.IsZero():
			left = append(left, f.Name)
		}
	}
	return left
}

// Whatever has happened to a block, its record says nothing of that when it is used for another one.
func TestRecordsOfGoneBlocksCarryNothingOver(t *testing.T) {
	ways := map[string]func(r *rig, x []uint32){
		"round trip": func(r *rig, x []uint32) {
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		},
		"targets in flight": func(r *rig, x []uint32) {
			r.d.hold()
			for range 3 {
				r.run(launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, out: [][]uint32{x}})
			}
			r.d.release()
			r.taskwait()
		},
		"entry is undone": func(r *rig, x []uint32) {
			y := filled(16, 1)
			r.run(launch{label: "enter", enter: []arg{to(y[:8])}, included: true})
			if err := r.s.Run(context.Background(), r.region(launch{label: "overlaps", kernel: "mix", args: []arg{tofrom(x), tofrom(y), to(filled(4, 1))}, included: true})); err == nil {
				r.t.Error("a slice was mapped that is present in part")
			}
			r.run(launch{label: "exit", exit: []arg{from(y[:8])}, included: true})
		},
		"exit meets a later block": func(r *rig, x []uint32) {
			r.d.hold()
			r.run(launch{label: "enter", enter: []arg{to(x)}, out: [][]uint32{x}})
			r.run(launch{label: "exit", exit: []arg{from(x)}, out: [][]uint32{x}})
			r.run(launch{label: "exit again", exit: []arg{{s: x, kind: memory.MapDelete}}})
			r.run(launch{label: "enter again", enter: []arg{to(x)}, out: [][]uint32{x}})
			r.run(launch{label: "last exit", exit: []arg{from(x)}, out: [][]uint32{x}})
			r.d.release()
			r.taskwait()
		},
		"device is lost": func(r *rig, x []uint32) {
			r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
			r.failNext()
			r.s.Run(context.Background(), r.region(launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, included: true}))
			r.s.Run(context.Background(), r.region(launch{label: "exit", exit: []arg{from(x)}, included: true}))
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			found := 0
			for _, mode := range memoryModes {
				r := newRig(t, mode, 1)
				for k := range uint32(3) {
					way(r, filled(16, k))
				}
				r.s.mu.Lock()
				r.s.presence.reclaimLocked()
				for _, state := range r.s.presence.spare {
					found++
					if left := carried(state); len(left) > 0 {
						t.Errorf("%s: a record carries over %v", mode.name, left)
					}
				}
				r.s.mu.Unlock()
				r.close()
			}
			if found == 0 {
				t.Error("no record was kept")
			}
		})
	}
}

// A burst of blocks leaves few records.
func TestFewRecordsOfGoneBlocksAreKept(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	var enter, exit []arg
	for range mostGoneBlocks + 500 {
		x := filled(1, 1)
		enter, exit = append(enter, to(x)), append(exit, arg{s: x, kind: memory.MapRelease})
	}
	for range 3 {
		r.run(launch{label: "enter", enter: enter, included: true})
		r.run(launch{label: "exit", exit: exit, included: true})
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.presence.reclaimLocked()
	if n := len(r.s.presence.spare); n > mostGoneBlocks {
		t.Errorf("%d records are kept, at most %d should be", n, mostGoneBlocks)
	}
}

// Memory that is given back is that of no block: the record of its allocation is that of the next one.
func TestMemoryOfAGoneBlockIsNotGivenBackTwice(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	var first *allocation.Allocation
	for k := range 3 {
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.s.mu.Lock()
		block := r.s.touchedLocked(sectionOf(x))
		own := stateOf(block).Allocation
		if k == 0 {
			first = own
		} else if own != first {
			t.Error("the record was not used again")
		}
		if own.Keepers() != 1 || own.Of != block || len(own.Blocks) != 1 {
			t.Errorf("round %d: kept %d times, of block %p, which is %p, blocks %v", k, own.Keepers(), own.Of, block, own.Blocks)
		}
		r.s.mu.Unlock()
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	}
}
