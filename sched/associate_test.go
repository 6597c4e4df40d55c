package sched

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
)

// The associations of one allocation are ended in every order. Each knows its index in the
// allocation's list, so that ending one moves at most one other: this checks the indices after
// each.
func TestDisassociateTouchesOneOtherBlock(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	const n = 300
	p, host := r.allocate(n), make([]uint32, n)
	r.s.mu.Lock()
	m, _, err := r.s.pointers.Find(p, 0)
	r.s.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	places := func() []*memory.Present {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		for i, block := range m.Blocks {
			if at := stateOf(block).place; int(at) != i {
				t.Errorf("block %d takes itself for block %d", i, at)
			}
		}
		return slices.Clone(m.Blocks)
	}
	for i := range host {
		if err := r.s.Associate(sectionOf(host[i:i+1]), p, 4*uint64(i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	before := places()
	if len(before) != n {
		t.Fatalf("the allocation has %d blocks, want %d", len(before), n)
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		if err := r.s.Disassociate(sectionOf(host[i : i+1])); err != nil {
			t.Fatal(err)
		}
		after, moved := places(), 0
		for k, block := range after {
			if block != before[k] {
				moved++
			}
		}
		if len(after) != len(before)-1 || moved > 1 {
			t.Fatalf("%d of %d blocks have another place after one was disassociated, which leaves %d", moved, len(before), len(after))
		}
		before = after
	}
	r.free(p)
}

// BenchmarkAssociate associates host storage with an allocation and disassociates it, beside so
// many other associations of the same allocation.
func BenchmarkAssociate(b *testing.B) {
	for _, n := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprint("others=", n), func(b *testing.B) {
			r, _ := newLatchRig(b)
			p, host := r.allocate(n+1), make([]uint32, n+1)
			at := func(i int) memory.Section {
				return memory.Section{Ptr: unsafe.Pointer(&host[i]), Size: 4}
			}
			associate := func(i int) {
				if err := r.s.Associate(at(i), p, 4*uint64(i), "x"); err != nil {
					b.Fatal(err)
				}
			}
			disassociate := func(i int) {
				if err := r.s.Disassociate(at(i)); err != nil {
					b.Fatal(err)
				}
			}
			for i := range host {
				associate(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				// Indices are taken from both ends by turns, and from between.
				k := i * 7919 % len(host)
				disassociate(k)
				associate(k)
			}
			b.StopTimer()
			for i := range host {
				disassociate(i)
			}
			r.free(p)
			r.close()
		})
	}
}
