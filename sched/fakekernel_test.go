package sched

import (
	"github.com/vkomp/vkomp/sched/kernel"
	"os"
	"path/filepath"
)

// fakeKernel does in Go what a kernel of testdata does, for the fake device and for the
// sequential oracle. It works on as many elements of each argument as push[0] says.
type fakeKernel struct {
	// arguments are those of the bindings that the kernel uses, in ascending order.
	arguments []fakeArgument
	// run does the work of the invocations from ≤ i < to.
	run func(b [][]uint32, push []uint32, from, to uint64)
}

type fakeArgument struct {
	writes bool
	// offset is the index of the push-constant word that has the number of elements before the
	// argument, -1 if there is none.
	offset int
}

func rangeOf(push []uint32, from, to uint64) (lo, hi uint64) {
	return from, min(to, uint64(push[0]))
}

// fakeCopy is the kernel that copies within the device, which is the scheduler's own. It goes over
// all words at its first invocation.
var fakeCopy = fakeKernel{
	arguments: []fakeArgument{{false, -1}, {true, -1}},
	run: func(b [][]uint32, push []uint32, from, to uint64) {
		if from == 0 {
			copy(b[1][:push[0]], b[0][:push[0]])
		}
	},
}

// fakeKernelOf returns the kernel of that name.
func fakeKernelOf(name string) (k fakeKernel, ok bool) {
	if name == "vkomp copy" {
		return fakeCopy, true
	}
	k, ok = fakeKernels[name]
	return k, ok
}

// fakeAdd is what the kernels add and addloop do.
var fakeAdd = fakeKernel{
	arguments: []fakeArgument{{true, 2}},
	run: func(b [][]uint32, push []uint32, from, to uint64) {
		for i, hi := rangeOf(push, from, to); i < hi; i++ {
			b[0][i] += push[1]
		}
	},
}

// fakeKernels are those of testdata, by name.
var fakeKernels = map[string]fakeKernel{
	"mix": {
		arguments: []fakeArgument{{true, 2}, {false, 3}, {false, 4}},
		run: func(b [][]uint32, push []uint32, from, to uint64) {
			for i, hi := rangeOf(push, from, to); i < hi; i++ {
				b[0][i] = 3*b[0][i] + b[1][i] + b[2][i] + push[1]
			}
		},
	},
	"wide": {
		arguments: []fakeArgument{{true, 18}, {false, 19}, {false, 20}, {false, 21}, {false, 22}, {false, 23}, {false, 24}, {false, 25}},
		run: func(b [][]uint32, push []uint32, from, to uint64) {
			for i, hi := rangeOf(push, from, to); i < hi; i++ {
				for _, a := range b[1:] {
					b[0][i] += a[i]
				}
				b[0][i] += push[1] + push[2+3]
			}
		},
	},
	"set": {
		arguments: []fakeArgument{{true, 2}},
		run: func(b [][]uint32, push []uint32, from, to uint64) {
			for i, hi := rangeOf(push, from, to); i < hi; i++ {
				b[0][i] = push[1] + uint32(i)
			}
		},
	},
	"add":     fakeAdd,
	"addloop": fakeAdd,
	"stencil": {
		arguments: []fakeArgument{{true, -1}, {false, -1}, {false, -1}, {false, -1}},
		run: func(b [][]uint32, push []uint32, from, to uint64) {
			for i, hi := rangeOf(push, from, to); i < hi; i++ {
				b[0][i] = b[1][i] + 2*b[2][i] + b[3][i] + 1
			}
		},
	},
	"read": {
		arguments: []fakeArgument{{false, -1}, {true, -1}},
		run: func(b [][]uint32, push []uint32, from, to uint64) {
			for i, hi := rangeOf(push, from, to); i < hi; i++ {
				b[1][i] = b[0][i] + 1
			}
		},
	},
}

// loadKernel loads the kernel of that name in testdata.
func loadKernel(t reporter, name string) *kernel.Kernel {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", name+".spv"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(name, code, "main", nil)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
