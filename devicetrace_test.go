package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// deviceTracer is a tool that traces devices. It sets its own numbers for submissions and
// leaves the runtime's numbers for data operations.
type deviceTracer struct {
	history
	// device is the device initialized last, size the capacity of a buffer in records.
	device ompt.Device
	size   int

	mu      sync.Mutex
	ops     map[ompt.ID]ompt.DataOp
	submits map[ompt.ID]ompt.TargetSubmitEMIEvent
	labels  map[ompt.ID]string // of regions
	// numbered counts submits.
	numbered ompt.ID
	records  []ompt.Record
}

func newDeviceTracer() *deviceTracer {
	return &deviceTracer{size: 4, ops: map[ompt.ID]ompt.DataOp{}, submits: map[ompt.ID]ompt.TargetSubmitEMIEvent{}, labels: map[ompt.ID]string{}}
}

func (tr *deviceTracer) request(int) []ompt.Record { return make([]ompt.Record, tr.size) }

func (tr *deviceTracer) complete(device int, records []ompt.Record, owned bool) {
	if owned && len(records) < tr.size {
		tr.add("last buffer of %d", device)
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.records = append(tr.records, records...)
}

func (tr *deviceTracer) tool(t testing.TB) ompt.Callbacks {
	return ompt.Callbacks{
		DeviceInitialize: func(e ompt.DeviceInitializeEvent) {
			if tr.device = e.Device; e.Device == nil {
				t.Fatalf("the device cannot be traced: %s", e.Documentation)
			}
			if got := e.Device.SetTraceOMPT(true, 0); got != ompt.SetSometimes {
				t.Errorf("all records: %v", got)
			}
			if err := e.Device.StartTrace(tr.request, tr.complete); err != nil {
				t.Error(err)
			}
		},
		DeviceFinalize: func(e ompt.DeviceFinalizeEvent) { tr.add("finalize %d", e.DeviceNum) },
		TargetEMI: func(e ompt.TargetEMIEvent) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.labels[e.TargetID] = e.Label
		},
		TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.ops[*e.HostOpID] = e.DataOp
		},
		TargetSubmitEMI: func(e ompt.TargetSubmitEMIEvent) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			if e.Endpoint == ompt.ScopeBegin {
				tr.numbered++
				*e.HostOpID = 1_000_000 + tr.numbered
			}
			tr.submits[*e.HostOpID] = e
		},
	}
}

// kernel returns the record of the one kernel of a region.
func (tr *deviceTracer) kernel(t testing.TB, label string) ompt.Record {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var found []ompt.Record
	for _, r := range tr.records {
		if r.Type == ompt.CallbackTargetSubmitEMI && tr.labels[r.TargetID] == label {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d records of kernel %q", len(found), label)
	}
	return found[0]
}

// check compares the records with the operations that the tool observed and with the
// runtime's statistics.
func (tr *deviceTracer) check(t testing.TB, before, after vkomp.Stats) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	submits, transfers := make([]uint64, len(after.Queues)), make([]uint64, len(after.Queues))
	for _, r := range tr.records {
		if r.Time == 0 || r.EndTime < r.Time {
			t.Errorf("times of %+v", r)
		}
		if r.Type == ompt.CallbackTargetSubmitEMI {
			submits[r.Queue]++
			e, ok := tr.submits[r.HostOpID]
			if !ok || e.TargetID != r.TargetID || e.RequestedNumTeams != r.RequestedNumTeams || r.GrantedNumTeams != r.RequestedNumTeams || r.Label != e.Kernel {
				t.Errorf("record %+v of %+v", r, e)
			}
			continue
		}
		transfers[r.Queue]++
		op, ok := tr.ops[r.HostOpID]
		whole := r.DataOp
		if whole.Bytes = op.Bytes; !ok || r.Type != ompt.CallbackTargetDataOpEMI || whole != op || r.DataOp.Bytes == 0 || tr.labels[r.TargetID] == "" {
			t.Errorf("record %+v of %+v", r, op)
		}
	}
	for i, q := range after.Queues {
		if len(before.Queues) > i {
			q.Dispatches -= before.Queues[i].Dispatches
			q.Copies -= before.Queues[i].Copies
		}
		if submits[i] != q.Dispatches || transfers[i] != q.Copies {
			t.Errorf("queue %d made %d dispatches and %d copies, and left %d and %d records", i, q.Dispatches, q.Copies, submits[i], transfers[i])
		}
	}
}

// chain runs kernels one after the other in a data region, each labelled by its number, and
// then one outside of it.
func chain(t testing.TB, rt *vkomp.Runtime, kernels int, noWait bool) {
	t.Helper()
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(5000), constant(5000, 1)
	must(t, rt.TargetData(t.Context(), vkomp.TargetData{Label: "data", Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}, func(ctx context.Context) error {
		for n := range kernels {
			target := saxpyOn(t, k, 2, x, y)
			target.Label, target.NoWait, target.Depend = fmt.Sprint(n), noWait, []vkomp.Depend{vkomp.InOut(y)}
			if err := rt.Target(ctx, target); err != nil {
				return err
			}
		}
		if err := rt.Taskwait(ctx); err != nil {
			return err
		}
		return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Label: "update", Motions: []vkomp.Arg{vkomp.From(y)}})
	}))
	alone := saxpyOn(t, k, 1, x, constant(5000, 0))
	alone.Label = "alone"
	must(t, rt.Target(t.Context(), alone))
	for i := range y {
		if want := 1 + 2*float32(kernels)*x[i]; y[i] != want {
			t.Fatalf("y[%d] = %v, want %v", i, y[i], want)
		}
	}
}

func TestTraceHasWhatTheDeviceDid(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		t.Run(fmt.Sprintf("nowait %v", noWait), func(t *testing.T) {
			tr := newDeviceTracer()
			rt := vktest.Open(t, withTool(tr.tool(t)), vktest.Staging)
			before := time.Now()
			chain(t, rt, 10, noWait)
			after := time.Now()
			stats := rt.Stats()
			must(t, tr.device.StopTrace())
			tr.check(t, vkomp.Stats{}, stats)
			last := uint64(0)
			for _, label := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "alone"} {
				r := tr.kernel(t, label)
				if r.Time < last {
					t.Errorf("kernel %s began at %d, the one before it ended at %d", label, r.Time, last)
				}
				last = r.EndTime
			}
			// As exact as the calibration, whose error the tool does not know.
			const slack = 50 * time.Millisecond
			for _, r := range tr.records {
				from, to := tr.device.TranslateTime(r.Time), tr.device.TranslateTime(r.EndTime)
				if from.Before(before.Add(-slack)) || to.After(after.Add(slack)) || to.Before(from) {
					t.Errorf("%+v ran from %v to %v of %v", r, from.Sub(before), to.Sub(before), after.Sub(before))
				}
			}
			now, err := tr.device.Time()
			must(t, err)
			if at := tr.device.TranslateTime(now); at.Before(after.Add(-slack)) || at.Before(tr.device.TranslateTime(last).Add(-slack)) {
				t.Errorf("the device's clock is at %d, %v after the program; the last kernel ended at %d", now, at.Sub(after), last)
			}
		})
	}
}

func TestTraceIsPausedFlushedAndStartedAgain(t *testing.T) {
	tr := newDeviceTracer()
	tr.size = 1000
	rt := vktest.Open(t, withTool(tr.tool(t)), vktest.Staging)
	chain(t, rt, 2, true)
	stats := rt.Stats()
	must(t, tr.device.FlushTrace())
	tr.check(t, vkomp.Stats{}, stats)
	must(t, tr.device.PauseTrace(true))
	chain(t, rt, 2, false)
	must(t, tr.device.FlushTrace())
	tr.check(t, vkomp.Stats{}, stats)
	must(t, tr.device.StopTrace())
	for range 2 {
		before := rt.Stats()
		tr.records = nil
		must(t, tr.device.StartTrace(tr.request, tr.complete))
		chain(t, rt, 3, true)
		stats := rt.Stats()
		must(t, tr.device.StopTrace())
		tr.check(t, before, stats)
	}
	must(t, tr.device.StartTrace(func(int) []ompt.Record { return nil }, func(int, []ompt.Record, bool) { t.Error("a buffer that there is not is completed") }))
	chain(t, rt, 2, false)
	must(t, tr.device.StopTrace())
}

// A tool that registers only device callbacks sees the runtime's numbers.
func TestTraceWithoutOtherCallbacksHasNumbers(t *testing.T) {
	tr := newDeviceTracer()
	tool := tr.tool(t)
	rt := vktest.Open(t, withTool(ompt.Callbacks{DeviceInitialize: tool.DeviceInitialize, DeviceFinalize: tool.DeviceFinalize}), vktest.Staging)
	chain(t, rt, 3, true)
	must(t, tr.device.StopTrace())
	seen := map[ompt.ID]bool{}
	for _, r := range tr.records {
		if r.HostOpID == 0 || r.TargetID == 0 || seen[r.HostOpID] {
			t.Errorf("%+v", r)
		}
		seen[r.HostOpID] = true
	}
	if len(seen) < 8 {
		t.Errorf("%d records", len(seen))
	}
}

func TestTraceEndsBeforeItsDevice(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *vkomp.Runtime) error{
		"close":      func(_ *testing.T, rt *vkomp.Runtime) error { return rt.Close() },
		"hard pause": func(t *testing.T, rt *vkomp.Runtime) error { return rt.PauseResourceAll(t.Context(), vkomp.PauseHard) },
		"stop tool": func(t *testing.T, rt *vkomp.Runtime) error {
			return rt.PauseResourceAll(t.Context(), vkomp.PauseStopTool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDeviceTracer()
			tr.size = 1000
			rt := vktest.Open(t, withTool(tr.tool(t)), vktest.Staging)
			chain(t, rt, 3, true)
			must(t, rt.PauseResourceAll(t.Context(), vkomp.PauseSoft))
			chain(t, rt, 3, true)
			stats := rt.Stats()
			must(t, end(t, rt))
			tr.check(t, vkomp.Stats{}, stats)
			tr.history.mu.Lock()
			events := slices.Clone(tr.events)
			tr.history.mu.Unlock()
			if !slices.Equal(events, []string{"last buffer of 0", "finalize 0"}) {
				t.Errorf("events are %q", events)
			}
			_, timeErr := tr.device.Time()
			for call, err := range map[string]error{
				"start": tr.device.StartTrace(tr.request, tr.complete), "pause": tr.device.PauseTrace(true),
				"flush": tr.device.FlushTrace(), "stop": tr.device.StopTrace(), "time": timeErr,
			} {
				if !errors.Is(err, vkomp.ErrClosed) {
					t.Errorf("%s after the device's end: %v", call, err)
				}
			}
			if name == "close" {
				return
			}
			// The next use opens another device.
			tr.records, tr.submits, tr.ops = nil, map[ompt.ID]ompt.TargetSubmitEMIEvent{}, map[ompt.ID]ompt.DataOp{}
			before := rt.Stats()
			chain(t, rt, 3, true)
			if name == "stop tool" {
				if len(tr.records) != 0 {
					t.Errorf("%d records without a tool", len(tr.records))
				}
				return
			}
			stats = rt.Stats()
			must(t, tr.device.StopTrace())
			tr.check(t, before, stats)
		})
	}
}

func TestTraceOfManyQueuesHasThemAll(t *testing.T) {
	vktest.Long(t)
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	vktest.Layers(t, "manyqueue")
	tr := newDeviceTracer()
	rt := vktest.Open(t, withTool(tr.tool(t)), vktest.Staging, vktest.Debug("placement=random,seed=1"))
	chain(t, rt, 20, true)
	stats := rt.Stats()
	must(t, tr.device.StopTrace())
	tr.check(t, vkomp.Stats{}, stats)
	used := map[int]bool{}
	last := uint64(0)
	for n := range 20 {
		r := tr.kernel(t, fmt.Sprint(n))
		used[r.Queue] = true
		if r.Time < last {
			t.Errorf("kernel %d began at %d, the one before it ended at %d", n, r.Time, last)
		}
		last = r.EndTime
	}
	if len(used) < 3 {
		t.Errorf("kernels on queues %v alone", used)
	}
}

func TestTraceOfALostDeviceEnds(t *testing.T) {
	vktest.Long(t)
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT3")
	t.Setenv("VKOMP_MANYQUEUE_LOSE", "12")
	vktest.Layers(t, "manyqueue")
	tr := newDeviceTracer()
	rt := vktest.Open(t, withTool(tr.tool(t)), vktest.Staging, vktest.Debug("placement=random,seed=1"), func(o *vkomp.Options) {
		// Without validation, which would report what the simulated device never did.
		o.Validation = false
	})
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(5000), constant(5000, 1)
	for range 50 {
		target := saxpyOn(t, k, 2, x, y)
		target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
		if err := rt.Target(t.Context(), target); err != nil && !errors.Is(err, vkomp.ErrDeviceLost) {
			t.Fatal(err)
		}
	}
	if err := rt.Taskwait(t.Context()); !errors.Is(err, vkomp.ErrDeviceLost) {
		t.Fatalf("the device is not lost: %v", err)
	}
	if err := tr.device.StopTrace(); err != nil && !errors.Is(err, vkomp.ErrDeviceLost) {
		t.Error(err)
	}
	for _, r := range tr.records {
		if r.Time == 0 || r.EndTime < r.Time || r.HostOpID == 0 {
			t.Errorf("record of what was not done: %+v", r)
		}
	}
	if err := tr.device.StartTrace(tr.request, tr.complete); !errors.Is(err, vkomp.ErrDeviceLost) {
		t.Errorf("started again: %v", err)
	}
}
