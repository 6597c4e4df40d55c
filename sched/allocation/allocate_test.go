//go:build !race && !invariants

package allocation

import (
	"testing"

	"github.com/vkomp/vkomp/sched/internal/softdevice"
)

// The race detector makes pools drop memory at random, and the recording of locks allocates.
func TestMemoryThatComesAndGoesTakesNoHeap(t *testing.T) {
	m, _ := open(t, softdevice.Unified, Options{})
	kept, err := m.New(1 << 10)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Unpin()
	run := func() {
		a, err := m.New(1 << 10)
		if err != nil {
			t.Fatal(err)
		}
		a.Unpin()
	}
	run()
	if n := testing.AllocsPerRun(500, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
