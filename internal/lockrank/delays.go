//go:build delays && !invariants

package lockrank

import (
	"math/rand/v2"
	"runtime"
	"sync"
)

// Mutex is a sync.Mutex of rank R that lets other goroutines run first now and then.
type Mutex[R any] struct{ mu sync.Mutex }

// Lock locks m.
func (m *Mutex[R]) Lock() {
	delay()
	m.mu.Lock()
}

// TryLock locks m if nobody else has.
func (m *Mutex[R]) TryLock() bool {
	delay()
	return m.mu.TryLock()
}

// Unlock unlocks m.
func (m *Mutex[R]) Unlock() {
	m.mu.Unlock()
	delay()
}

// RWMutex is a sync.RWMutex of rank R that lets other goroutines run first now and then.
type RWMutex[R any] struct{ mu sync.RWMutex }

// Lock locks m for writing.
func (m *RWMutex[R]) Lock() {
	delay()
	m.mu.Lock()
}

// TryLock locks m for writing if nobody else has it.
func (m *RWMutex[R]) TryLock() bool {
	delay()
	return m.mu.TryLock()
}

// Unlock unlocks m for writing.
func (m *RWMutex[R]) Unlock() {
	m.mu.Unlock()
	delay()
}

// RLock locks m for reading.
func (m *RWMutex[R]) RLock() {
	delay()
	m.mu.RLock()
}

// RUnlock unlocks m for reading.
func (m *RWMutex[R]) RUnlock() {
	m.mu.RUnlock()
	delay()
}

// delay has the calling goroutine go on later: mostly at once, one time in eight after those that are ready, and in
// rare cases after many turns of theirs, some milliseconds. It does not sleep, because in a test with a clock of its own
// (testing/synctest) that would last until all other goroutines wait, too, and they may wait for a lock of the caller.
func delay() {
	turns := 0
	switch r := rand.Uint32N(4096); {
	case r < 2:
		turns = 50_000
	case r < 32:
		turns = 1_000
	case r < 512:
		turns = 1
	}
	for range turns {
		runtime.Gosched()
	}
}
