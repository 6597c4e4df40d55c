package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/vktest"
)

// with returns a simulated program that reports to tools.
func with(tools ...ompt.Callbacks) *program {
	p := &program{Callbacks: ompt.Tee(tools...)}
	if p.SyncRegionWait == nil {
		p.SyncRegionWait = func(ompt.SyncRegionEvent) {}
	}
	if p.TargetDataOpEMI == nil {
		p.TargetDataOpEMI = func(ompt.TargetDataOpEMIEvent) {}
	}
	if p.TargetSubmitEMI == nil {
		p.TargetSubmitEMI = func(ompt.TargetSubmitEMIEvent) {}
	}
	if p.TaskDependence == nil {
		p.TaskDependence = func(ompt.TaskDependenceEvent) {}
	}
	p.DeviceInitialize(ompt.DeviceInitializeEvent{DeviceNum: 0})
	return p
}

// executionTrace runs do under Go's tracer and returns the events in the format of
// go tool trace, which checks that regions end in the order in which they began.
func executionTrace(t *testing.T, do func()) string {
	t.Helper()
	goTool := vktest.GoTool(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Start(file); err != nil {
		t.Fatal(err)
	}
	do()
	trace.Stop()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	events, err := exec.Command(goTool, "tool", "trace", "-d=parsed", file.Name()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, events)
	}
	return string(events)
}

func TestGoTraceHasTasksRegionsAndLogs(t *testing.T) {
	var host, detached *madeTask
	events := executionTrace(t, func() {
		p := with(GoTrace(), New(Options{}).Callbacks())
		p.picture()
		host = p.task("on the host", ompt.TaskTarget)
		p.schedule(nil, ompt.TaskSwitch, host)
		host.region(ompt.ScopeBegin, ompt.TargetNowait, hostNum)
		host.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
		p.schedule(host, ompt.TaskComplete, nil)
		detached = p.task("detached", ompt.TaskExplicit)
		p.schedule(nil, ompt.TaskSwitch, detached)
		p.schedule(detached, ompt.TaskDetach, nil)
		p.schedule(detached, ompt.TaskLateFulfill, nil)
		unfulfilled := p.task("unfulfilled", ompt.TaskExplicit)
		p.schedule(nil, ompt.TaskSwitch, unfulfilled)
		p.schedule(unfulfilled, ompt.TaskDetach, nil)
		// These events may be reported on any goroutine.
		p.wait(&unfulfilled.data, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
		p.wait(&unfulfilled.data, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
		included := p.taskIn(&unfulfilled.data, "included", ompt.TaskExplicit|ompt.TaskUndeferred)
		p.schedule(unfulfilled, ompt.TaskSwitch, included)
		p.schedule(included, ompt.TaskComplete, unfulfilled)
		dropped := p.task("dropped", ompt.TaskExplicit)
		p.schedule(dropped, ompt.TaskCancel, nil)
		// Its body ends after tracing has stopped.
		late := p.task("late", ompt.TaskExplicit)
		p.schedule(nil, ompt.TaskSwitch, late)
	})
	count := func(what, name string) int {
		return len(regexp.MustCompile(`(?m)`+what+`\b.*"`+regexp.QuoteMeta(name)+`"`).FindAllString(events, -1))
	}
	for _, c := range []struct {
		name                       string
		tasks, regions, ends, logs int
	}{
		{"blur", 1, 0, 0, 0}, {"edges", 1, 0, 0, 0}, {"save", 1, 1, 1, 0}, {"pack", 1, 1, 1, 0}, {"on the host", 1, 1, 1, 0},
		{"detached", 1, 1, 1, 0}, {"unfulfilled", 1, 1, 1, 0}, {"included", 1, 1, 1, 0}, {"dropped", 1, 0, 0, 0}, {"late", 1, 1, 0, 0},
		{"taskwait", 0, 0, 0, 0}, {"taskwait begins", 0, 0, 0, 3}, {"taskwait ends", 0, 0, 0, 3},
		{"submit blur.comp", 0, 0, 0, 1}, {"alloc x, 1000 bytes, device 1 to 0", 0, 0, 0, 1},
	} {
		got := []int{count("TaskBegin", c.name), count("RegionBegin", c.name), count("RegionEnd", c.name), count("Log", c.name)}
		if diff := cmp.Diff([]int{c.tasks, c.regions, c.ends, c.logs}, got); diff != "" {
			t.Errorf("%s: tasks, begins and ends of regions, logs (-want +got):\n%s", c.name, diff)
		}
	}
	if ends := strings.Count(events, "TaskEnd"); ends != 10 {
		t.Errorf("%d tasks end, of 10 that do", ends)
	}
	if t.Failed() {
		t.Log(events)
	}
}

// Waits of several goroutines of one body end in any order, each on its own goroutine, and
// the body ends while one of them still waits.
func TestGoTraceOfWaitsThatOverlapInOneBody(t *testing.T) {
	events := executionTrace(t, func() {
		p := with(GoTrace())
		made := p.task("body", ompt.TaskExplicit)
		p.schedule(nil, ompt.TaskSwitch, made)
		p.wait(&made.data, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
		var all sync.WaitGroup
		begun, ended := make(chan bool), make(chan bool)
		for kind := ompt.SyncRegionTaskwait; kind <= ompt.SyncRegionTaskgroup; kind++ {
			all.Go(func() {
				p.wait(&made.data, ompt.ScopeBegin, kind)
				begun <- true
				<-ended
				p.wait(&made.data, ompt.ScopeEnd, kind)
			})
			<-begun
		}
		p.wait(&made.data, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
		ended <- true
		p.schedule(made, ompt.TaskComplete, nil)
		ended <- true
		all.Wait()
	})
	for what, want := range map[string]int{`RegionBegin`: 1, `RegionEnd`: 1, ` begins"`: 3, ` ends"`: 3} {
		if got := strings.Count(events, what); got != want {
			t.Errorf("%d of %s, want %d, in\n%s", got, what, want, events)
		}
	}
}

func TestGoTraceKeepsNothingWhileNobodyTraces(t *testing.T) {
	p := with(GoTrace())
	made := p.task("a", ompt.TaskExplicit)
	p.schedule(nil, ompt.TaskSwitch, made)
	p.schedule(made, ompt.TaskComplete, nil)
	if made.data.Ptr != nil {
		t.Errorf("the task has %v", made.data.Ptr)
	}
}

// labelled returns this goroutine's labels in the goroutine profile.
func labelled(t *testing.T) string {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	for _, stack := range strings.Split(profile.String(), "\n\n") {
		if strings.Contains(stack, "trace.labelled") {
			match := regexp.MustCompile(`(?m)^# labels: (.*)$`).FindStringSubmatch(stack)
			if match == nil {
				return ""
			}
			return match[1]
		}
	}
	t.Fatalf("this goroutine is not in\n%s", profile.String())
	return ""
}

func TestLabelsAreThoseOfTheBodyThatRuns(t *testing.T) {
	expect := func(when, label string) {
		t.Helper()
		want := ""
		if label != "" {
			want = fmt.Sprintf("{%q:%q}", labelKey, label)
		}
		if got := labelled(t); got != want {
			t.Errorf("%s: labels %s, want %s", when, got, want)
		}
	}
	p := with(Labels())
	body, inner := p.task("body", ompt.TaskExplicit), p.task("inner", ompt.TaskExplicit|ompt.TaskUndeferred)
	p.schedule(nil, ompt.TaskSwitch, body)
	expect("in the body", "body")
	p.schedule(body, ompt.TaskSwitch, inner)
	expect("in an undeferred task of the body", "body")
	p.schedule(inner, ompt.TaskComplete, body)
	expect("back in the body", "body")
	p.schedule(body, ompt.TaskComplete, nil)
	expect("behind the body", "")

	detached := p.task("detached", ompt.TaskExplicit)
	p.schedule(nil, ompt.TaskSwitch, detached)
	p.schedule(detached, ompt.TaskDetach, nil)
	expect("behind the body of a task that is not complete", "")

	for device, label := range map[int]string{0: "", hostNum: "kernel"} {
		kernel := p.task("kernel", ompt.TaskTarget)
		p.schedule(nil, ompt.TaskSwitch, kernel)
		kernel.region(ompt.ScopeBegin, ompt.TargetNowait, device)
		expect(fmt.Sprint("in a kernel of device ", device), label)
		kernel.region(ompt.ScopeEnd, ompt.TargetNowait, device)
		p.schedule(kernel, ompt.TaskComplete, nil)
		expect("behind a kernel", "")
	}

	// The goroutine of the program keeps its own labels.
	pprof.Do(t.Context(), pprof.Labels("mine", "1"), func(context.Context) {
		undeferred := p.task("undeferred", ompt.TaskTarget|ompt.TaskUndeferred)
		p.schedule(nil, ompt.TaskSwitch, undeferred)
		undeferred.region(ompt.ScopeBegin, ompt.Target, hostNum)
		undeferred.region(ompt.ScopeEnd, ompt.Target, hostNum)
		p.schedule(undeferred, ompt.TaskComplete, nil)
		if got := labelled(t); got != `{"mine":"1"}` {
			t.Errorf("the program's labels are %s", got)
		}
	})
}

func TestLabelsOfManyTasksAreNotKept(t *testing.T) {
	l := &labeller{known: map[string]context.Context{}}
	for i := range 2 * mostLabels {
		l.taskCreate(ompt.TaskCreateEvent{NewTask: &ompt.Data{}, Flags: ompt.TaskExplicit, Label: fmt.Sprint(i)})
	}
	if len(l.known) != mostLabels {
		t.Errorf("%d labels are kept", len(l.known))
	}
}

func TestCountersCount(t *testing.T) {
	c, err := Publish("vkomp-test")
	if err != nil {
		t.Fatal(err)
	}
	p := with(c.Callbacks())
	p.picture()
	routine := &madeTask{p: p}
	routine.operate(allocOp(64), 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataTransfer, SrcDeviceNum: hostNum, DestDeviceNum: 0, Bytes: 3}, 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataTransferAsync, SrcDeviceNum: 0, DestDeviceNum: hostNum, Bytes: 5}, 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataTransfer, SrcDeviceNum: 0, DestDeviceNum: 0, Bytes: 7}, 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataMemset, SrcDeviceNum: ompt.NoDevice, DestDeviceNum: 0, Bytes: 11}, 5)
	routine.operate(ompt.DataOp{Type: ompt.TargetDataAssociate, SrcDeviceNum: hostNum, DestDeviceNum: 0, Bytes: 13}, 5)
	dropped := p.task("dropped", ompt.TaskExplicit)
	p.schedule(dropped, ompt.TaskCancel, nil)
	var got map[string]int
	if err := json.Unmarshal([]byte(c.String()), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"tasks": 7, "completed": 6, "notRun": 1, "targetRegions": 4, "submits": 4,
		"bytesToDevice": 1003, "bytesFromDevice": 505, "bytesCopied": 18, "deviceMemoryInUse": 64,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	c.Callbacks().DeviceFinalize(ompt.DeviceFinalizeEvent{DeviceNum: 0})
	if !strings.Contains(c.String(), `"deviceMemoryInUse":0`) {
		t.Errorf("memory of a device that is closed: %s", c)
	}
	if again, err := Publish("vkomp-test"); err == nil || again != nil || !strings.Contains(err.Error(), "vkomp-test") {
		t.Errorf("a name that is taken: %v", err)
	}
}
