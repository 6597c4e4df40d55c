package sched

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/memory"
)

// Each task fits the device alone and no two do: those that were made while
// another one had the memory wait for it, rather than fail for having been early.
func TestTaskWithoutMemoryWaitsForThoseInFlight(t *testing.T) {
	for seed := range uint64(4) {
		r := newRig(t, memoryModes[0], seed)
		r.d.create = func(int) error {
			if r.d.live >= 1 {
				return errBlockMemory
			}
			return nil
		}
		r.d.hold()
		const words = 3 << 18 // of a block's 4 MiB, more than half
		slices := make([][]uint32, 5)
		for i := range slices {
			slices[i] = make([]uint32, words)
			r.run(launch{label: fmt.Sprint("task ", i), kernel: "set", args: []arg{from(slices[i])}, constant: uint32(i)})
		}
		r.d.release()
		r.taskwait()
		for i, s := range slices {
			if s[0] != uint32(i) || s[words-1] != uint32(i+words-1) {
				t.Errorf("task %d left %d … %d", i, s[0], s[words-1])
			}
		}
		if n := r.d.creates; n < 2 {
			t.Errorf("%d blocks were asked for: nothing was short", n)
		}

		// With nothing in flight to wait for, what does not fit fails.
		r.d.create = func(int) error { return errBlockMemory }
		r.s.storage.Trim()
		err := r.s.Run(t.Context(), r.region(launch{label: "alone", kernel: "set", args: []arg{from(slices[0])}, included: true}))
		if !errors.Is(err, memory.ErrOutOfMemory) {
			t.Errorf("got %v", err)
		}
		r.close()
	}
}
