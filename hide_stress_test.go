package vkomp_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// stackStress is set in the process that TestStackThatMovesInAConstruct starts.
const stackStress = "VKOMP_TEST_STACK_STRESS"

// A construct's clauses are on the caller's stack, which moves when the construct needs a larger
// one. A pointer on the heap to the old stack ends the process as soon as the garbage collector
// finds it ("found bad pointer in Go heap"). So the test runs in a process of its own, in which
// the collector runs all the time.
func TestStackThatMovesInAConstruct(t *testing.T) {
	vktest.Once(t)
	vktest.LongConcurrent(t)
	if os.Getenv(stackStress) != "" {
		moveStacks(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	// With this setting a collection is not spread over time, so that it hits the construct
	// in between.
	child.Env = append(os.Environ(), stackStress+"=1", "GODEBUG=gcstoptheworld=1", "OMP_TARGET_OFFLOAD=disabled")
	if out, err := child.CombinedOutput(); err != nil {
		_, fatal, _ := strings.Cut(string(out), "fatal error: ")
		t.Errorf("%v: %s", err, fatal[:min(len(fatal), 1000)])
	}
}

func moveStacks(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := rt.NewKernel(vkomp.KernelSource{Name: "nothing", Host: func(*vkomp.HostCall) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for !over.Load() {
			runtime.GC()
		}
	}()
	x := make([]float32, 256)
	// At some depth the stack is large enough for everything except the evaluation of the
	// sections, which is the deepest call of the construct.
	calls := 4000
	if vktest.GoRaces {
		calls = 2000
	}
	for k := range calls {
		depth := k % 2000
		done := make(chan error)
		go func() {
			var err error
			deeper(depth, func() { err = manyClauses(rt, nothing, x) })
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	<-collected
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

// manyClauses launches a kernel with arguments on its stack.
//
//go:noinline
func manyClauses(rt *vkomp.Runtime, k vkomp.Kernel, x []float32) error {
	var args [600]vkomp.Arg
	for i := range args {
		if args[i] = vkomp.Value(uint32(i)); i >= 50 {
			args[i] = vkomp.To(x).Shape(4, 4, 4, 4).Section(vkomp.Span{Count: 4})
		}
	}
	return rt.Target(context.Background(), vkomp.Target{Kernel: k, Device: rt.InitialDevice(), Range: vkomp.Range{X: 1}, Args: args[:]})
}

// deeper calls f with that many more stack frames of about 64 bytes.
//
//go:noinline
func deeper(frames int, f func()) byte {
	var pad [32]byte
	pad[frames%32] = byte(frames)
	if frames == 0 {
		f()
		return 0
	}
	return deeper(frames-1, f) + pad[frames*7%32]
}
