package tests

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	checker "github.com/vkomp/vkomp/tests/order"
	"github.com/vkomp/vkomp/tests/vktest"
)

// grid runs a graph of target tasks in which each point adds two neighbours of the previous step
// to itself, modulo 2^32. hold, if not empty, is the file for held: then all of the graph is
// generated before the device begins.
func grid(t *testing.T, rt *vkomp.Runtime, width, steps int, hold string) (got, want []uint32) {
	t.Helper()
	k := newCompiledAffine(t, rt)
	const n = 64
	rows := [2][][]uint32{}
	var maps []vkomp.Arg
	for r := range rows {
		for p := range width {
			cell := make([]uint32, n)
			for i := range cell {
				cell[i] = uint32(p + 1)
			}
			rows[r] = append(rows[r], cell)
			maps = append(maps, vkomp.ToFrom(cell))
		}
	}
	model := [2][]uint32{}
	for r := range model {
		for p := range width {
			model[r] = append(model[r], uint32(p+1))
		}
	}
	ctx := t.Context()
	if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: maps}); err != nil {
		t.Fatal(err)
	}
	generate := func() {
		for s := range steps {
			from, to := rows[s%2], rows[(s+1)%2]
			for p := range width {
				for i, q := range []int{p, (p + 1) % width} {
					mul := uint32(0)
					if i == 1 {
						mul = 3
					}
					err := rt.Target(ctx, vkomp.Target{
						Kernel: k.Kernel, Range: vkomp.Range{X: n}, NoWait: true,
						Args: []vkomp.Arg{vkomp.To(from[q]), vkomp.ToFrom(to[p]), vkomp.Value(uint32(n)), vkomp.Value(mul),
							vkomp.Value(uint32(1)), vkomp.Value(uint32(s))},
						Depend: []vkomp.Depend{vkomp.In(from[q]), vkomp.InOut(to[p])},
					})
					if err != nil {
						t.Fatal(err)
					}
					model[(s+1)%2][p] = mul*model[(s+1)%2][p] + model[s%2][q] + uint32(s)
				}
			}
		}
	}
	if hold != "" {
		held(ctx, t, rt, hold, generate)
	} else {
		generate()
		succeed(t, rt.Taskwait(ctx))
	}
	if err := rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: maps}); err != nil {
		t.Fatal(err)
	}
	for p := range width {
		got, want = append(got, rows[steps%2][p]...), append(want, make([]uint32, n)...)
		for i := range n {
			want[p*n+i] = model[steps%2][p]
		}
	}
	return got, want
}

// Dependences between queues are kept by the device: while the graph is generated, the goroutine
// waits for nothing, however many edges lead from one queue to another.
func TestEdgesBetweenQueuesMakeNoHostWait(t *testing.T) {
	vktest.Long(t)
	vktest.Layers(t, "record", "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("VKOMP_RECORD", log)
	// None of the graph is complete before all of it is generated.
	hold := filepath.Join(t.TempDir(), "hold")
	t.Setenv("VKOMP_MANYQUEUE_HOLD", hold)
	// This goroutine makes all its calls on one thread, on which no other goroutine runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o := vkomp.Options{InteropQueues: -1, MemoryPath: vkomp.MemoryNonCoherent}
	vktest.Debug("placement=random,seed=1")(&o)
	rt, err := vkomp.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	got, want := grid(t, rt, 16, 20, hold)
	queues := rt.Stats().Queues
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("element %d is %d, want %d", i, got[i], want[i])
		}
	}
	if len(queues) != 7 {
		t.Errorf("%d queues, want the layer's 7", len(queues))
	}
	for _, q := range queues {
		if q.Transfer != (q.Family == 2) || !q.Transfer && q.Dispatches == 0 {
			t.Errorf("queue %+v", q)
		}
	}
	waits, between := waitsOfFirstThread(t, log)
	if waits < 200 || between != 0 {
		t.Errorf("%d waits of queues for each other, the host waited %d times between them", waits, between)
	}
	keptOrder(t, log)
}

// Each log names all queues of its device: later devices can get the handles of earlier ones' queues,
// for other queues, and two queues that the log takes for one seem to be ordered.
func TestLogsOfDevicesInTurnNameAllQueues(t *testing.T) {
	vktest.Once(t)
	vktest.Layers(t, "record", "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	for i := range 20 {
		folder := t.TempDir()
		t.Setenv("VKOMP_RECORD", filepath.Join(folder, "log-%d"))
		rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1})
		if err != nil {
			t.Fatal(err)
		}
		at, err := rt.DefaultDevice(t.Context()).Alloc(t.Context(), 4)
		if err == nil {
			err = rt.DefaultDevice(t.Context()).Free(t.Context(), at)
		}
		queues := rt.Stats().Queues
		if err := errors.Join(err, rt.Close()); err != nil {
			t.Fatal(err)
		}
		logs, err := filepath.Glob(filepath.Join(folder, "log-*"))
		if err != nil || len(logs) != 1 {
			t.Fatalf("%d logs: %v", len(logs), err)
		}
		if named := keptOrder(t, logs[0]).Queues; len(named) != 7 || len(queues) != 7 {
			t.Errorf("device %d: the log names %d queues, the runtime has %d, want 7 of the layer's", i, len(named), len(queues))
		}
	}
}

// keptOrder checks the recorded log, and returns what the checker has found in it.
func keptOrder(t *testing.T, log string) *checker.Report {
	t.Helper()
	return keptOrderBy(t, log, checker.Options{})
}

// keptOrderWithForeignWork checks the log of a program whose foreign work, and with it an interop object's own
// queue, gets submissions before what they wait for.
func keptOrderWithForeignWork(t *testing.T, log string) *checker.Report {
	t.Helper()
	return keptOrderBy(t, log, checker.Options{Foreign: true})
}

func keptOrderBy(t *testing.T, log string, o checker.Options) *checker.Report {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	report, err := checker.Check(f, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Violations) > 0 {
		t.Errorf("%d violations of order, the first: %v", len(report.Violations), report.Violations[0])
	}
	return report
}

// waitsOfFirstThread counts the queue waits in submissions of a log's first thread, and how often
// that thread itself waited between the first and the last of these submissions.
func waitsOfFirstThread(t *testing.T, log string) (waits, between int) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, host := true, 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 0:
		case fields[0] == "thread":
			first = fields[1] == "1"
		case !first:
		case fields[0] == "wait" && waits > 0:
			host++
		case fields[0] == "submit":
			found := 0
			for _, field := range fields[2:] {
				if field == "c" || field == "s" {
					break
				}
				if field != "w" {
					found++
				}
			}
			if found > 0 {
				waits, between = waits+found, host
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return waits, between
}
