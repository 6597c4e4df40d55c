package tests

import (
	"context"
	_ "embed"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/affine.spv testdata/affine.comp

//go:embed testdata/affine.spv
var affineModule []byte

// affineSource computes dst = mul·dst + fac·src + add element by element. Two runs in the wrong
// order give a wrong result.
var affineSource = vkomp.KernelSource{
	Name:  "affine",
	SPIRV: affineModule,
	Host: func(c *vkomp.HostCall) error {
		src, dst := vkomp.HostSlice[uint32](c, 0), vkomp.HostSlice[uint32](c, 1)
		mul, fac, add := vkomp.HostValue[uint32](c, 1), vkomp.HostValue[uint32](c, 2), vkomp.HostValue[uint32](c, 3)
		for i := range dst {
			dst[i] = mul*dst[i] + fac*src[i] + add
		}
		return nil
	},
}

// affine is a kernel of affineSource.
type affine struct{ vkomp.Kernel }

func newAffine(t testing.TB, rt *vkomp.Runtime) affine {
	t.Helper()
	k, err := rt.NewKernel(affineSource)
	if err != nil {
		t.Fatal(err)
	}
	return affine{k}
}

// newCompiledAffine is newAffine for tests of what the device orders. Without it the host would
// hold a deferred task until its pipeline is compiled.
func newCompiledAffine(t testing.TB, rt *vkomp.Runtime) affine {
	t.Helper()
	k := newAffine(t, rt)
	one := k.on(make([]uint32, 1), make([]uint32, 1), 0, 0, 0)
	one.NoWait = false
	if err := rt.Target(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	return k
}

// on returns a deferred region that sets dst to mul·dst + fac·src + add.
func (k affine) on(dst, src []uint32, mul, fac, add uint32, depend ...vkomp.Depend) vkomp.Target {
	return vkomp.Target{
		Kernel: k.Kernel,
		Range:  vkomp.Range{X: len(dst)},
		Args: []vkomp.Arg{
			vkomp.To(src), vkomp.ToFrom(dst),
			vkomp.Value(uint32(len(dst))), vkomp.Value(mul), vkomp.Value(fac), vkomp.Value(add),
		},
		NoWait: true,
		Depend: depend,
	}
}

// set returns a deferred region that fills dst with v, add one that adds v to dst.
func (k affine) set(dst []uint32, v uint32, depend ...vkomp.Depend) vkomp.Target {
	return k.on(dst, dst, 0, 0, v, depend...)
}

func (k affine) add(dst []uint32, v uint32, depend ...vkomp.Depend) vkomp.Target {
	return k.on(dst, dst, 1, 0, v, depend...)
}

// environment returns an option that sets variables, given as pairs of name and value, and no
// others.
func environment(pairs ...string) func(*vkomp.Options) {
	return func(o *vkomp.Options) {
		before := o.LookupEnv
		o.LookupEnv = func(name string) (string, bool) {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1], true
				}
			}
			if before != nil {
				return before(name)
			}
			return "", false
		}
	}
}

// places is the number of places in the runtimes of taskModes: while one body is blocked there is
// one place left, on which ready tasks run in the order of their generation.
const places = "2"

// taskModes are the ways in which target tasks can run.
var taskModes = []struct {
	name    string
	options []func(*vkomp.Options)
}{
	{"device", nil},
	{"staging", []func(*vkomp.Options){vktest.Staging}},
	{"initial device", []func(*vkomp.Options){vktest.Host}},
}

// inTaskModes runs f on a runtime of each mode.
func inTaskModes(t *testing.T, f func(t *testing.T, rt *vkomp.Runtime)) {
	for _, m := range taskModes {
		t.Run(m.name, func(t *testing.T) {
			f(t, vktest.Open(t, append(m.options[:len(m.options):len(m.options)], environment("OMP_NUM_THREADS", places))...))
		})
	}
}

// openHost returns a runtime without non-host devices.
func openHost(t testing.TB, pairs ...string) *vkomp.Runtime {
	t.Helper()
	return vktest.Open(t, vktest.Host, environment(pairs...))
}

// generate generates a host task.
func generate(t testing.TB, rt *vkomp.Runtime, task vkomp.Task) {
	t.Helper()
	if err := rt.Task(context.Background(), task); err != nil {
		t.Fatal(err)
	}
}

// offload generates a target task.
func offload(t testing.TB, rt *vkomp.Runtime, target vkomp.Target) {
	t.Helper()
	if err := rt.Target(context.Background(), target); err != nil {
		t.Fatal(err)
	}
}

func wait(t testing.TB, rt *vkomp.Runtime, depend ...vkomp.Depend) {
	t.Helper()
	if err := rt.Taskwait(context.Background(), depend...); err != nil {
		t.Fatal(err)
	}
}

// body returns a task body that calls f.
func body(f func()) func(context.Context) error {
	return func(context.Context) error { f(); return nil }
}

// letReadyRun returns when every task that was ready at the call has run. It is for a runtime
// with one free place, on which tasks of equal priority start in the order in which they became
// ready.
func letReadyRun(t testing.TB, rt *vkomp.Runtime) {
	t.Helper()
	ran := make(chan struct{})
	generate(t, rt, vkomp.Task{Label: "after all that is ready", Body: body(func() { close(ran) })})
	<-ran
}

// awaitState waits until a task with that label is in the graph in that state.
func awaitState(rt *vkomp.Runtime, label string, state vkomp.GraphState) {
	for {
		for _, task := range rt.Graph().Tasks {
			if task.Label == label && task.State == state {
				return
			}
		}
		runtime.Gosched()
	}
}

// checkAll compares every element of s with want.
func checkAll(t testing.TB, name string, s []uint32, want uint32) {
	t.Helper()
	for i, v := range s {
		if v != want {
			t.Errorf("%s[%d] = %d, want %d", name, i, v, want)
			return
		}
	}
}

// order records events, to be compared with the expected ones.
type order struct{ events chan string }

func newOrder(n int) order { return order{make(chan string, n)} }

func (o order) add(event string) { o.events <- event }

// so returns the events so far.
func (o order) so() []string {
	var events []string
	for len(o.events) > 0 {
		events = append(events, <-o.events)
	}
	return events
}
