package sched

import (
	"fmt"
	"slices"
	"testing"
)

// Several readers that nothing orders find storage present whose copy to the device one of them
// has placed. All of them come after that copy.
func TestSharersComeAfterTheCopyThatTheyFind(t *testing.T) {
	staged := slices.DeleteFunc(slices.Clone(memoryModes), func(m memoryMode) bool { return m.memory != discreteMemory && !m.hidden })
	for _, mode := range append(staged, queueModes(staged...)...) {
		for seed := range uint64(deviceOrders) {
			t.Run(fmt.Sprintf("%s/%d", mode.name, seed), func(t *testing.T) {
				r := newRig(t, mode, seed)
				defer r.close()
				x := filled(64, 7)
				// So many that random placement puts some on a queue that the copy is not on.
				var outs [16][]uint32
				for i := range outs {
					outs[i] = filled(64, 0)
					r.run(launch{label: "enter", enter: []arg{to(outs[i])}, included: true})
				}
				r.d.hold()
				for i := range outs {
					r.run(launch{label: fmt.Sprint("reader ", i), kernel: "mix", args: []arg{alloc(outs[i]), to(x), to(x)}, constant: 1})
				}
				r.d.release()
				r.taskwait()
				for i := range outs {
					r.run(launch{label: "exit", exit: []arg{from(outs[i])}, included: true})
					r.expect(fmt.Sprint("out ", i), outs[i], filled(64, 15)...)
				}
			})
		}
	}
}
