package trace

import (
	"testing"

	"github.com/vkomp/vkomp/ompt"
)

// task12 reports a target task with a kernel and a copy: twelve events.
func task12(p *program, made *madeTask) {
	*made = madeTask{p: p, id: p.id(), label: "kernel"}
	p.TaskCreate(ompt.TaskCreateEvent{EncounteringTask: &p.initial, NewTask: &made.data, Flags: ompt.TaskTarget, TaskID: made.id, Label: "kernel"})
	p.schedule(nil, ompt.TaskSwitch, made)
	made.region(ompt.ScopeBegin, ompt.TargetNowait, 0)
	made.operate(toDevice(1000), 0)
	made.submit("kernel", 0)
	p.TaskDependence(ompt.TaskDependenceEvent{Source: &made.data, Sink: &made.data})
	p.wait(&made.data, ompt.ScopeBegin, ompt.SyncRegionTaskwait)
	p.wait(&made.data, ompt.ScopeEnd, ompt.SyncRegionTaskwait)
	made.region(ompt.ScopeEnd, ompt.TargetNowait, 0)
	p.schedule(made, ompt.TaskComplete, nil)
}

func benchmark(b *testing.B, start func() *program) {
	b.ReportAllocs()
	var p *program
	made := make([]madeTask, 1<<10)
	for i := 0; b.Loop(); i++ {
		if i%(1<<14) == 0 {
			// The retained trace is garbage.
			b.StopTimer()
			p = start()
			b.StartTimer()
		}
		task12(p, &made[i%len(made)])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/12, "ns/event")
}

// BenchmarkCollector reports one target task of twelve events an iteration.
func BenchmarkCollector(b *testing.B) {
	benchmark(b, func() *program { return with(New(Options{}).Callbacks()) })
}

// BenchmarkCollectorFull does the same for a collector without room.
func BenchmarkCollectorFull(b *testing.B) {
	benchmark(b, func() *program { return with(New(Options{Limit: 1}).Callbacks()) })
}

func BenchmarkCounters(b *testing.B) {
	benchmark(b, func() *program { return with(new(Counters).Callbacks()) })
}

// BenchmarkGoTrace does the same while Go's execution tracer is off.
func BenchmarkGoTrace(b *testing.B) { benchmark(b, func() *program { return with(GoTrace()) }) }

func BenchmarkLabels(b *testing.B) { benchmark(b, func() *program { return with(Labels()) }) }
