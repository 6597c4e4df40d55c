package sched

import (
	"context"
	"sync"
	"testing"
)

// A task that was handed to the device may be over, and its target used for another task,
// before Start returns. Start must read nothing of the target then; Go's race detector would
// see it.
func TestTargetIsNotReadOnceItWasHandedOver(t *testing.T) {
	for seed := range uint64(10) {
		r := newRig(t, memoryModes[0], seed)
		r.watches = false
		var programs sync.WaitGroup
		for range 4 {
			programs.Go(func() {
				x, scope := filled(4, 1), r.graph.NewScope()
				// An exit that came before its enter would find nothing to unmap.
				for range 100 {
					for _, l := range []launch{
						{label: "enter", enter: []arg{to(x)}, out: [][]uint32{x}, scope: scope},
						{label: "exit", exit: []arg{from(x)}, out: [][]uint32{x}, scope: scope},
					} {
						if err := r.s.Run(context.Background(), r.region(l)); err != nil {
							t.Error(err)
						}
					}
				}
				if err := scope.Wait(context.Background(), nil); err != nil {
					t.Error(err)
				}
			})
		}
		programs.Wait()
		r.close()
	}
}
