package sched

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/tasks"
)

// newSecondRig returns a rig on another device, for tasks of the first one's graph and scope.
func newSecondRig(t reporter, first *rig, mode memoryMode, seed uint64) *rig {
	t.Helper()
	queues := mode.queues
	if queues == nil {
		queues = oneQueue
	}
	d := newFakeDeviceWith(t, queues, mode.memory, seed)
	s, err := New(d, Options{Domain: rigDomain + 1, HideHostVisible: mode.hidden, Sharing: mode.share, Chunk: mode.chunk, Threads: mode.threads, Staging: mode.staging, Placement: mode.placement, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, d: d, s: s, scope: first.scope, kernels: first.kernels}
	r.compile()
	return r
}

// A task that depends on a task of another device is submitted only after the host has seen the
// end of that: devices do not wait for each other's timelines.
func TestEdgesBetweenDevicesAreKeptByTheHost(t *testing.T) {
	for _, mode := range append(slices.Clone(memoryModes), queueModes(memoryModes...)...) {
		t.Run(mode.name, func(t *testing.T) {
			a := newRig(t, mode, 1)
			b := newSecondRig(t, a, mode, 2)
			defer a.close()
			defer b.close()
			x, y, zero := filled(16, 1), filled(16, 1), filled(16, 0)
			devices := []*rig{a, b}
			for i := range 6 {
				holder, other := devices[i%2], devices[1-i%2]
				a.taskwait()
				holder.d.hold()
				before := other.dispatches()
				holder.mix("holds", x, zero, zero, 1)
				other.mix("follows", x, zero, zero, 2)
				if got := other.dispatches(); got != before {
					t.Fatalf("%d kernels were submitted before what they follow was complete on the other device", got-before)
				}
				other.mix("follows nothing", y, zero, zero, 3)
				if got := other.dispatches() - before; got != 1 {
					t.Errorf("%d kernels are submitted that follow nothing", got)
				}
				holder.d.release()
			}
			a.taskwait()
			want, wantY := uint32(1), uint32(1)
			for range 6 {
				want, wantY = 3*(3*want+1)+2, 3*wantY+3
			}
			a.expect("x", x, filled(16, want)...)
			a.expect("y", y, filled(16, wantY)...)
		})
	}
}

// A task without work that depends on tasks of two devices is completed by the host, when it
// has seen the end of both.
func TestJoinOfTwoDevicesIsKeptByTheHost(t *testing.T) {
	a := newRig(t, memoryModes[0], 1)
	b := newSecondRig(t, a, memoryModes[0], 2)
	defer a.close()
	defer b.close()
	x, y, z, zero, token := filled(16, 1), filled(16, 2), filled(16, 0), filled(16, 0), array32(1)
	a.d.hold()
	b.d.hold()
	a.mix("x", x, zero, zero, 0)
	b.mix("y", y, zero, zero, 0)
	before := a.dispatches() + b.dispatches()
	a.join("join", append(depends(tasks.DependIn, x, y), depends(tasks.DependOut, token)...)...)
	a.run(launch{label: "after", kernel: "mix", args: []arg{tofrom(z), to(x), to(y)}, in: [][]uint32{token}, out: [][]uint32{z}})
	a.d.release()
	if got := a.dispatches() + b.dispatches(); got != before {
		t.Errorf("%d kernels were submitted before both devices were done", got-before)
	}
	b.d.release()
	a.taskwait()
	a.expect("z", z, filled(16, 9)...)
}

// deviceProgram is a random program over two devices and the host. Its tasks name every array
// that they use in their depend clauses.
type deviceProgram struct {
	mu       sync.Mutex
	failures []string
}

func (p *deviceProgram) fail(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, what)
}

// deviceReporter collects the failures that the rigs find.
type deviceReporter struct {
	*rapid.T
	p *deviceProgram
}

func (r deviceReporter) Error(args ...any)            { r.p.fail(fmt.Sprint(args...)) }
func (r deviceReporter) Errorf(f string, args ...any) { r.p.fail(fmt.Sprintf(f, args...)) }

func TestRandomProgramsOverTwoDevicesMeanWhatTheyMeanInOrder(t *testing.T) {
	modes := append(append(slices.Clone(memoryModes), chunkModes...), queueModes(memoryModes...)...)
	rapid.Check(t, func(t *rapid.T) {
		p := &deviceProgram{}
		anyMode := rapid.SampledFrom(modes)
		a := newRig(deviceReporter{t, p}, anyMode.Draw(t, "mode"), rapid.Uint64().Draw(t, "seed"))
		b := newSecondRig(deviceReporter{t, p}, a, anyMode.Draw(t, "other mode"), rapid.Uint64().Draw(t, "seed"))
		devices := []*rig{a, b}
		const arrays = 4
		var x, want [arrays][]uint32
		for i := range x {
			x[i], want[i] = filled(16, uint32(i)), filled(16, uint32(i))
		}
		anyArray := rapid.IntRange(0, arrays-1)
		var log []string
		for n := range rapid.IntRange(1, 25).Draw(t, "tasks") {
			out, in, c := anyArray.Draw(t, "out"), anyArray.Draw(t, "in"), uint32(n)
			if in == out {
				in = (out + 1) % arrays
			}
			third := 6 - out - in
			for third == out || third == in || third >= arrays || third < 0 {
				third = (max(third, 0) + 1) % arrays
			}
			carrier := rapid.IntRange(0, 2).Draw(t, "carrier")
			label := fmt.Sprintf("%d by %d: %d from %d and %d", n, carrier, out, in, third)
			log = append(log, label)
			compute := func(x *[arrays][]uint32) {
				for i := range x[out] {
					x[out][i] = 3*x[out][i] + x[in][i] + x[third][i] + c
				}
			}
			if carrier == 2 {
				a.host(label, [][]uint32{x[in], x[third]}, [][]uint32{x[out]}, func() { compute(&x) })
			} else {
				devices[carrier].mix(label, x[out], x[in], x[third], c)
			}
			compute(&want)
		}
		if err := a.scope.Wait(context.Background(), nil); err != nil {
			p.fail(err.Error())
		}
		for i := range x {
			a.expect(fmt.Sprint("array ", i), x[i], want[i]...)
		}
		b.close()
		a.close()
		if len(p.failures) > 0 {
			t.Fatalf("%s\nin\n%s", strings.Join(p.failures, "\n"), strings.Join(log, "\n"))
		}
	})
}
