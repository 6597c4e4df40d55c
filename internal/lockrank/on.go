//go:build invariants

package lockrank

import (
	"bytes"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// Mutex is a sync.Mutex of rank R that panics when it is taken against the order.
type Mutex[R any] struct {
	mu sync.Mutex
}

// Lock locks m.
func (m *Mutex[R]) Lock() {
	hold(m, rankOf[R](), true, m.mu.Lock)
}

// TryLock locks m if nobody else has, whatever the caller holds: it cannot deadlock.
func (m *Mutex[R]) TryLock() bool {
	return m.mu.TryLock() && hold(m, rankOf[R](), false, func() {})
}

// Unlock unlocks m.
func (m *Mutex[R]) Unlock() {
	release(m)
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex of rank R that panics when it is taken against the order.
type RWMutex[R any] struct {
	mu sync.RWMutex
}

// Lock locks m for writing.
func (m *RWMutex[R]) Lock() {
	hold(m, rankOf[R](), true, m.mu.Lock)
}

// TryLock locks m for writing if nobody else has it.
func (m *RWMutex[R]) TryLock() bool {
	return m.mu.TryLock() && hold(m, rankOf[R](), false, func() {})
}

// Unlock unlocks m for writing.
func (m *RWMutex[R]) Unlock() {
	release(m)
	m.mu.Unlock()
}

// RLock locks m for reading.
func (m *RWMutex[R]) RLock() {
	hold(m, rankOf[R](), true, m.mu.RLock)
}

// RUnlock unlocks m for reading.
func (m *RWMutex[R]) RUnlock() {
	release(m)
	m.mu.RUnlock()
}

// ranks are the places of ranks in Table.
var ranks = func() map[reflect.Type]int {
	ranks := make(map[reflect.Type]int)
	for i, l := range Table {
		ranks[reflect.TypeOf(l.Rank)] = i
	}
	return ranks
}()

func rankOf[R any]() int {
	rank, ok := ranks[reflect.TypeFor[R]()]
	if !ok {
		panic(fmt.Sprintf("lockrank: %v has no place in the table", reflect.TypeFor[R]()))
	}
	return rank
}

// held is a lock that a goroutine holds.
type held struct {
	lock any
	rank int
}

// holders are the locks held, by goroutine.
var holders = struct {
	sync.Mutex
	of map[uint64][]held
}{of: make(map[uint64][]held)}

// hold takes a lock of that rank and records it; inOrder says that the order is checked.
func hold(lock any, rank int, inOrder bool, take func()) bool {
	g := goroutine()
	if inOrder {
		check(g, rank)
	}
	take()
	holders.Lock()
	defer holders.Unlock()
	holders.of[g] = append(holders.of[g], held{lock, rank})
	return true
}

// check panics if goroutine g holds a lock that is not taken before one of that rank.
func check(g uint64, rank int) {
	holders.Lock()
	defer holders.Unlock()
	for _, h := range holders.of[g] {
		if h.rank > rank || h.rank == rank && !Table[rank].Several {
			panic(fmt.Sprintf("lockrank: %v (rank %d) is taken while %v (rank %d) is held", Table[rank].Fields, rank, Table[h.rank].Fields, h.rank))
		}
	}
}

// release takes a lock off the record of the goroutine that has it: mostly the caller, but
// a lock may be released by another goroutine than the one that took it.
func release(lock any) {
	g := goroutine()
	holders.Lock()
	defer holders.Unlock()
	if releaseFrom(g, lock) {
		return
	}
	for g := range holders.of {
		if releaseFrom(g, lock) {
			return
		}
	}
}

func releaseFrom(g uint64, lock any) bool {
	list := holders.of[g]
	for i, h := range slices.Backward(list) {
		if h.lock == lock {
			if list = slices.Delete(list, i, i+1); len(list) == 0 {
				delete(holders.of, g)
			} else {
				holders.of[g] = list
			}
			return true
		}
	}
	return false
}

// goroutine returns the number of the caller's goroutine, which the runtime tells nobody
// but in stack traces.
func goroutine() uint64 {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	field, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("goroutine ")), []byte(" "))
	g, err := strconv.ParseUint(string(field), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("lockrank: no goroutine in %q", line))
	}
	return g
}
