package sched

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/vk"
)

// The end of a data region runs even if a task that it depends on has failed. It must still
// come after the predecessors of the failed task, which are in flight.
func TestEndOfDataRegionFollowsWhatAFailedTaskWasToFollow(t *testing.T) {
	r := newRig(t, onQueues, 1)
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	r.d.hold()
	r.use(1)
	r.run(launch{label: "under way", kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
	r.use(2)
	r.failNext()
	r.run(launch{label: "fails", kernel: "add", args: []arg{alloc(x)}, constant: 1, out: [][]uint32{x}})
	g := r.region(launch{label: "exit", exit: []arg{from(x)}, in: [][]uint32{x}})
	g.Always = true
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	r.s.mu.Lock()
	if r.s.life.live != 2 {
		t.Errorf("%d tasks are live", r.s.life.live)
	}
	r.s.mu.Unlock()
	r.d.release()
	if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, vk.ErrOutOfMemory) {
		t.Errorf("got %v", err)
	}
	r.expect("x", x, filled(16, 2)...)
}
