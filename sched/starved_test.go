package sched

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
)

// Every task fits into the device's memory alone, and no two do at once. Tasks that find no
// memory wait for those in flight to give theirs back, and do not fail.
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
		const words = 3 << 18 // more than half of a block of 4 MiB
		slices := make([][]uint32, 5)
		for i := range slices {
			slices[i] = array32(words)
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

		// Nothing is in flight whose memory could be waited for: what does not fit fails.
		r.d.create = func(int) error { return errBlockMemory }
		r.s.memory.Storage.Trim()
		err := r.s.Run(t.Context(), r.region(launch{label: "alone", kernel: "set", args: []arg{from(slices[0])}, included: true}))
		if !errors.Is(err, memory.ErrOutOfMemory) {
			t.Errorf("got %v", err)
		}
		r.close()
	}
}

// However many tasks wait for memory, each end of a task makes only a few of them try again:
// otherwise their cost would grow with the square of their number.
func TestStarvedTasksDoNotAllAskAgainAtEachCompletion(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	r.d.create = func(int) error {
		if r.d.live >= 1 {
			return errBlockMemory
		}
		return nil
	}
	r.d.hold()
	const n, words = 200, 1 << 18 // four at most in a block of 4 MiB
	memory := array32(n * words)
	for i := range n {
		g := r.region(launch{label: fmt.Sprint("task ", i), kernel: "set", args: []arg{alloc(memory[i*words:][:words])}})
		g.Range = [3]uint64{1, 1, 1}
		if err := r.s.Run(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	asked := r.d.creates
	r.d.release()
	r.taskwait()
	// A request that fails tries blocks of several sizes.
	if again := r.d.creates - asked; again == 0 || again > 8*n {
		t.Errorf("%d tasks asked the device for memory %d times more", n, again)
	}
	if got := r.s.Stats().Dispatches; got != n {
		t.Errorf("%d tasks ran of %d", got, n)
	}
	r.close()
}

// A task that waits for memory is dropped because its predecessor has failed. The tasks that
// wait behind it must still get memory and run.
func TestStarvedTasksOutliveOneWhosePredecessorFailed(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	r.d.hold()
	const words = 3 << 18
	a, b, c, x := array32(words), array32(words), array32(words), filled(16, 0)
	r.busy()
	r.run(launch{label: "fails", kernel: "set", args: []arg{alloc(a)}, out: [][]uint32{a}})
	r.d.create = func(int) error { return errBlockMemory }
	r.run(launch{label: "dropped", kernel: "set", args: []arg{alloc(b)}, in: [][]uint32{a}})
	r.run(launch{label: "runs", kernel: "set", args: []arg{alloc(c)}, out: [][]uint32{x}})
	if n := r.starved(); n != 2 {
		t.Errorf("%d tasks are starved", n)
	}
	r.failNext()
	r.d.release()
	err := r.scope.Wait(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), "(1 dependent tasks not run)") || strings.Contains(err.Error(), `"runs"`) {
		t.Errorf("got %v", err)
	}
	r.close()
}
