package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/tracecheck"
)

// labels returns the labels of the tasks of a path.
func labels(t *Trace, tasks []int32) string {
	var names []string
	for _, task := range tasks {
		names = append(names, t.tasks[task].label)
	}
	return strings.Join(names, " ")
}

func TestPictureWithAndWithoutRecords(t *testing.T) {
	for _, c := range []struct {
		name   string
		device *tracedDevice
		want   string
		time   time.Duration
		uses   []string
	}{
		{"records", &tracedDevice{}, `
host/worker 1: save[70,80) pack[73,77) taskwait[72,78)
host/the program waits: taskwait[18,80)
device 0: test device/queue 0: blur.comp[20,30) edges.comp[30,45) blend.comp[50,60)
device 0: test device/queue 1: x[12,20) side.comp[31,33)
device 0: test device/data, by the host: alloc x[10,11) x[61,64) delete x[64,65)
`, (18 + 15 + (64 - 50) + 10) * time.Microsecond, []string{
			"device 0: test device 43µs of 55µs, longest gap [45µs,50µs)", "queue 0 35µs of 55µs, longest gap [10µs,20µs)", "queue 1 10µs of 55µs, longest gap [33µs,65µs)",
		}},
		{"no records", nil, `
host/worker 1: save[70,80) pack[73,77) taskwait[72,78)
host/the program waits: taskwait[18,80)
device 0: test device/target regions, 1: blur[10,31) alloc x[10,11) x[11,13) submit blur.comp[13,14)
device 0: test device/target regions, 2: edges[14,46) submit edges.comp[14,15)
device 0: test device/target regions, 3: blend[15,65) submit blend.comp[15,16) x[61,64) delete x[64,65)
device 0: test device/target regions, 4: side[16,34) submit side.comp[16,17)
`, (21 + 15 + 19 + 10) * time.Microsecond, []string{"device 0: test device 55µs of 55µs, no gap"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := New(Options{})
			newProgram(collector, c.device).picture()
			if n := len(collector.open); n != 0 {
				t.Errorf("%d operations are still open", n)
			}
			traced := collector.Trace()
			if diff := cmp.Diff(c.want, "\n"+drawn(traced)); diff != "" {
				t.Errorf("slices (-want +got):\n%s", diff)
			}
			if got := labels(traced, traced.critical); got != "blur edges blend save" || traced.criticalTime != c.time {
				t.Errorf("critical path %q of %v, want %v", got, traced.criticalTime, c.time)
			}
			if diff := cmp.Diff([]level{{11 * time.Microsecond, 1000}, {64 * time.Microsecond, 0}}, traced.memory[0]); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
			var uses []string
			for _, u := range traced.uses() {
				gap := "no gap"
				if len(u.Gaps) > 0 {
					gap = fmt.Sprintf("longest gap [%v,%v)", u.Gaps[0].begin, u.Gaps[0].end)
				}
				uses = append(uses, fmt.Sprintf("%s %v of %v, %s", u.Name, u.Busy, u.Window.length(), gap))
			}
			if diff := cmp.Diff(c.uses, uses); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
			counts := checkChrome(t, traced)
			if counts.Phases["s"] != 5 || counts.Phases["C"] != 2 || counts.Names["save"] != 1 {
				t.Errorf("events %+v", counts)
			}
			want := 0
			if c.device != nil {
				want = 4
			}
			if counts.Phases["b"] != want {
				t.Errorf("%d target regions without a box, want %d", counts.Phases["b"], want)
			}
		})
	}
}

// checkChrome checks the output of WriteChrome against the format.
func checkChrome(t *testing.T, traced *Trace) tracecheck.Counts {
	t.Helper()
	var written bytes.Buffer
	if err := traced.WriteChrome(&written); err != nil {
		t.Fatal(err)
	}
	counts, err := tracecheck.Check(written.Bytes())
	if err != nil {
		t.Errorf("%v\n%s", err, written.Bytes())
	}
	return counts
}

func TestArrowsGoToKernels(t *testing.T) {
	collector := New(Options{})
	newProgram(collector, &tracedDevice{}).picture()
	traced := collector.Trace()
	for i := range traced.tasks {
		label := traced.tasks[i].label
		a := traced.anchors[i]
		if label == "initial task" {
			if a != (anchor{none, none}) {
				t.Errorf("the initial task has a box")
			}
			continue
		}
		want := label
		if label != "save" && label != "pack" {
			want += ".comp"
		}
		if a.first == none || traced.slices[a.first].label != want || traced.slices[a.last].label != want {
			t.Errorf("arrows of %s go to slices %+v", label, a)
		}
	}
}

func TestArrowsStayInTheirBoxesWhateverTheClocksSay(t *testing.T) {
	for _, times := range [][4]int{{10, 20, 20, 30}, {10, 20, 15, 30}, {10, 20, 5, 30}, {10, 20, 5, 11}, {10, 10, 10, 10}, {10, 20, 30, 30}, {10, 20, 2, 8}, {10, 20, 20, 20}, {10, 20, 30, 25}, {10, 5, 15, 20}} {
		collector := New(Options{})
		p := newProgram(collector, &tracedDevice{})
		a := p.task("a", ompt.TaskTarget)
		a.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
		b := p.task("b", ompt.TaskTarget, a)
		b.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
		p.did(a, 0, times[0], times[1], 0, ompt.DataOp{}, "a")
		p.did(b, 1, times[2], times[3], 0, ompt.DataOp{}, "b")
		want := 1
		if max(times[2], times[3]) < times[0] {
			want = 0
		}
		if counts := checkChrome(t, collector.Trace()); counts.Phases["s"] != want {
			t.Errorf("times %v: %d arrows, want %d", times, counts.Phases["s"], want)
		}
	}
}

func TestTaskWithoutBoxesTakesAsLongAsItsRegion(t *testing.T) {
	collector := New(Options{})
	p := newProgram(collector, &tracedDevice{})
	p.at(5)
	maps := p.task("maps", ompt.TaskTarget)
	maps.region(ompt.ScopeBegin, ompt.TargetEnterData, 0)
	maps.operate(allocOp(1), 7)
	maps.region(ompt.ScopeEnd, ompt.TargetEnterData, 0)
	p.did(maps, 0, 20, 30, 0, ompt.DataOp{}, "of another")
	p.device.pending[0].TargetID = 0
	traced := collector.Trace()
	if got := traced.spans[1]; got != at(5_000, 7_000) {
		t.Errorf("the task spans %v", got)
	}
}

func TestTraceBeginsWithItsFirstRegionOrBody(t *testing.T) {
	for _, first := range []string{"region", "body"} {
		collector := New(Options{})
		p := newProgram(collector, &tracedDevice{})
		region, body := p.task("region", ompt.TaskTarget), p.task("body", ompt.TaskExplicit)
		p.at(3)
		if first == "body" {
			p.schedule(nil, ompt.TaskSwitch, body)
		}
		p.at(4)
		region.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
		p.at(5)
		if first == "region" {
			p.schedule(nil, ompt.TaskSwitch, body)
		}
		p.did(region, 0, 6, 7, 0, ompt.DataOp{}, "kernel")
		p.at(9)
		want := map[string]time.Duration{"region": 4000, "body": 3000}[first]
		if got := collector.Trace().begin; got != want {
			t.Errorf("a trace that a %s begins does so at %v, want %v", first, got, want)
		}
	}
}

func TestDependencesAreEdgesOnce(t *testing.T) {
	collector := New(Options{})
	p := newProgram(collector, nil)
	a := p.task("a", ompt.TaskExplicit)
	b := p.task("b", ompt.TaskExplicit, a, a)
	p.TaskDependence(ompt.TaskDependenceEvent{Source: &b.data, Sink: &b.data})
	if diff := cmp.Diff([]edge{{1, 2}}, collector.Trace().edges, cmp.AllowUnexported(edge{})); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

func TestSummariesAddUpTasksOfALabel(t *testing.T) {
	collector := New(Options{})
	p := newProgram(collector, nil)
	for i, until := range []int{2, 6} {
		made := p.task("a", ompt.TaskTarget)
		p.at(10 * i)
		made.region(ompt.ScopeBegin, ompt.Target, 0)
		made.operate(toDevice(1), 10*i)
		made.operate(fromDevice(10), 10*i)
		made.operate(ompt.DataOp{Type: ompt.TargetDataMemset, SrcDeviceNum: ompt.NoDevice, Bytes: 100}, 10*i)
		made.operate(allocOp(1000), 10*i+until)
		made.region(ompt.ScopeEnd, ompt.Target, 0)
	}
	p.task("", ompt.TaskExplicit)
	us := time.Microsecond
	want := []labelSummary{
		{Label: "a", Tasks: 2, Total: 8 * us, Mean: 4 * us, Longest: 6 * us, ToDevice: 2, FromDevice: 20, Copied: 200},
		{Label: "(no label)", Tasks: 1},
	}
	if diff := cmp.Diff(want, collector.Trace().summaries()); diff != "" {
		t.Errorf("summaries (-want +got):\n%s", diff)
	}
}

func TestTasksThatNeverRunOrEndInOtherWays(t *testing.T) {
	collector := New(Options{})
	p := newProgram(collector, nil)
	cancelled := p.task("cancelled", ompt.TaskExplicit)
	detached := p.task("detached", ompt.TaskExplicit)
	early := p.task("early", ompt.TaskExplicit)
	empty := p.task("", ompt.TaskExplicit)
	unfinished := p.task("unfinished", ompt.TaskExplicit, detached)
	fallback := p.task("fallback", ompt.TaskTarget|ompt.TaskUndeferred)
	p.at(10)
	p.schedule(cancelled, ompt.TaskCancel, nil)
	p.schedule(nil, 0, detached)
	p.at(20)
	p.schedule(detached, ompt.TaskDetach, nil)
	p.schedule(nil, 0, early)
	p.schedule(early, ompt.TaskEarlyFulfill, nil)
	p.at(25)
	p.schedule(early, ompt.TaskComplete, nil)
	p.at(30)
	p.schedule(detached, ompt.TaskLateFulfill, nil)
	p.schedule(empty, ompt.TaskComplete, unfinished)
	p.at(31)
	p.schedule(unfinished, ompt.TaskSwitch, fallback)
	fallback.region(ompt.ScopeBegin, ompt.Target, hostNum)
	p.at(35)
	fallback.region(ompt.ScopeEnd, ompt.Target, hostNum)
	p.schedule(fallback, ompt.TaskComplete, unfinished)
	p.at(40)
	traced := collector.Trace()
	want := "host/worker 1: detached[10,20) early[20,25) unfinished[30,40) fallback[31,35)\n"
	if diff := cmp.Diff(want, drawn(traced)); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if got := traced.tasks[1].status; got != ompt.TaskCancel {
		t.Errorf("the cancelled task ended as %v", got)
	}
	if got := traced.spans[4]; got != at(30_000, 30_000) {
		t.Errorf("the task without work spans %v", got)
	}
	checkChrome(t, traced)
}

func TestRoutinesOutsideOfTasksAndRepeatedWaits(t *testing.T) {
	collector := New(Options{})
	p := newProgram(collector, nil)
	routine := &madeTask{p: p}
	routine.operate(allocOp(64), 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataTransfer, SrcDeviceNum: 0, DestDeviceNum: 0, Bytes: 64, Label: "y"}, 9)
	// An initial task waits on two goroutines.
	p.wait(&p.initial, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
	p.at(10)
	p.wait(&p.initial, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
	p.wait(&p.initial, ompt.ScopeBegin, ompt.SyncRegionTaskgroup)
	p.at(11)
	p.wait(&p.initial, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
	p.at(12)
	p.wait(&p.initial, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
	p.at(13)
	p.wait(&p.initial, ompt.ScopeEnd, ompt.SyncRegionTaskgroup)
	traced := collector.Trace()
	want := `host/the program waits, 1: taskwait[9,12)
host/the program waits, 2: taskgroup[10,13)
host/the program waits, 3: taskwait[10,11)
device 0: test device/data, by the host: alloc x[0,5) y[5,9)
`
	if diff := cmp.Diff(want, drawn(traced)); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	checkChrome(t, traced)
}

func TestCollectorKeepsNoMoreThanItsLimitAndSaysSo(t *testing.T) {
	all := New(Options{})
	newProgram(all, &tracedDevice{}).picture()
	total := all.Trace()
	if total.dropped != 0 || all.kept == 0 {
		t.Fatalf("%d kept, %d dropped", all.kept, total.dropped)
	}
	for limit := 1; limit <= int(all.kept); limit++ {
		c := New(Options{Limit: limit})
		newProgram(c, &tracedDevice{}).picture()
		traced := c.Trace()
		if c.kept != uint64(limit) {
			t.Fatalf("limit %d: %d kept", limit, c.kept)
		}
		lists := len(traced.tasks) + len(traced.regions) + len(traced.ops) + len(traced.runs) + len(traced.waits) + len(traced.records) + len(traced.edges) + len(traced.loads)
		if lists != limit {
			t.Errorf("limit %d: %d in lists", limit, lists)
		}
		if n := len(c.labels.all); n > limit {
			t.Errorf("limit %d: %d labels", limit, n)
		}
		if limit < int(all.kept) && traced.dropped == 0 {
			t.Errorf("limit %d: nothing dropped of %d", limit, all.kept)
		}
		checkChrome(t, traced)
	}
}

func TestDeviceThatCannotBeTracedIsDrawnFromTheHost(t *testing.T) {
	for _, c := range []struct {
		device *tracedDevice
		want   string
	}{
		{&tracedDevice{startErr: errTrace}, "the trace of device 0: " + errTrace.Error()},
		{&tracedDevice{noRecords: true}, "the trace of device 0: its records cannot be had: ompt_set_never"},
	} {
		collector := New(Options{})
		newProgram(collector, c.device).picture()
		traced := collector.Trace()
		if !strings.Contains(drawn(traced), "target regions, 1: blur[10,31)") {
			t.Errorf("slices:\n%s", drawn(traced))
		}
		if !slices.Equal(traced.problems, []string{c.want}) {
			t.Errorf("problems %q, want %q", traced.problems, c.want)
		}
	}
}

func TestTraceThatCannotBeFlushedIsAProblem(t *testing.T) {
	collector := New(Options{})
	newProgram(collector, &tracedDevice{flushErr: errTrace}).picture()
	if traced := collector.Trace(); len(traced.problems) != 1 || !strings.Contains(traced.problems[0], errTrace.Error()) {
		t.Errorf("problems %q, want %v", traced.problems, errTrace)
	}
}

func TestDeviceThatIsClosedWhileItsTraceIsAskedForIsNoProblem(t *testing.T) {
	collector := New(Options{})
	device := &tracedDevice{flushErr: errTrace}
	p := newProgram(collector, device)
	device.flushing = func() { p.DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: 0}) }
	if traced := collector.Trace(); len(traced.problems) != 0 {
		t.Errorf("problems %q", traced.problems)
	}
}

func TestDeviceThatIsClosedAndOpenedAgainIsOne(t *testing.T) {
	collector := New(Options{})
	device := &tracedDevice{}
	p := newProgram(collector, device)
	p.picture()
	// The runtime stops the trace; afterwards the device is gone.
	if err := device.StopTrace(); err != nil {
		t.Fatal(err)
	}
	p.DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: 0})
	device.flushErr = errTrace
	if traced := collector.Trace(); len(traced.problems) != 0 {
		t.Errorf("problems %q", traced.problems)
	}
	p.device = &tracedDevice{start: device.start}
	p.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 0, Type: "test device", Device: p.device})
	again := p.task("again", ompt.TaskTarget)
	again.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	p.did(again, 0, 90, 95, 0, ompt.DataOp{}, "again.comp")
	traced := collector.Trace()
	if got := drawn(traced); !strings.Contains(got, "blend.comp[50,60) again.comp[90,95)") || len(traced.devices) != 1 {
		t.Errorf("slices:\n%s", got)
	}
	if got := collector.Trace(); drawn(got) != drawn(traced) {
		t.Errorf("a second look differs:\n%s", drawn(got))
	}
}

func TestCollectorHearsOfManyGoroutines(t *testing.T) {
	const goroutines, rounds = 8, 50
	collector := New(Options{})
	c := ompt.Tee(collector.Callbacks(), Labels(), GoTrace(), new(Counters).Callbacks())
	var initial ompt.Data
	c.ImplicitTask(ompt.ImplicitTaskEvent{Endpoint: ompt.ScopeBegin, Task: &initial, Flags: ompt.TaskInitial})
	c.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 0})
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range rounds {
				task := &madeTask{p: &program{Callbacks: c}, id: ompt.ID(1 + 4*(g*rounds+i))}
				task.p.ids = task.id
				c.TaskCreate(ompt.TaskCreateEvent{EncounteringTask: &initial, NewTask: &task.data, Flags: ompt.TaskExplicit, TaskID: task.id})
				task.p.schedule(nil, 0, task)
				task.region(ompt.ScopeBegin, ompt.Target, 0)
				task.operate(toDevice(10), 0)
				task.region(ompt.ScopeEnd, ompt.Target, 0)
				task.p.schedule(task, ompt.TaskComplete, nil)
				if i%10 == 0 {
					collector.Trace()
				}
			}
		})
	}
	all.Wait()
	traced := collector.Trace()
	if n := goroutines * rounds; len(traced.runs) != n || len(traced.ops) != n || traced.taskBytes()[1].to != 10 {
		t.Errorf("%d runs and %d operations, want %d", len(traced.runs), len(traced.ops), n)
	}
	workerTracks := 0
	for _, of := range traced.tracks {
		if of.process == host {
			workerTracks++
		}
	}
	if workerTracks > goroutines {
		t.Errorf("%d workers, of %d goroutines", workerTracks, goroutines)
	}
	checkChrome(t, traced)
}

type fullDisk struct{ room int }

var errFullDisk = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return 0, errFullDisk
	}
	d.room -= len(p)
	return len(p), nil
}

func TestChromeTraceOfNothingAndOfFullDisks(t *testing.T) {
	checkChrome(t, New(Options{}).Trace())
	collector := New(Options{})
	newProgram(collector, nil).picture()
	for _, room := range []int{0, 4096} {
		if err := collector.Trace().WriteChrome(&fullDisk{room}); !errors.Is(err, errFullDisk) {
			t.Errorf("error %v, want %v", err, errFullDisk)
		}
	}
}

func TestChromeTimesKeepNanoseconds(t *testing.T) {
	for ns, want := range map[time.Duration]string{0: "0.000", 1: "0.001", 1500: "1.500", -2001: "-2.001", 3_600_000_000_001: "3600000000.001"} {
		if got, err := json.Marshal(chromeTime(ns)); err != nil || string(got) != want {
			t.Errorf("%d ns: %s (%v), want %s", ns, got, err, want)
		}
	}
}
