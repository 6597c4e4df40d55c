package vkomp_test

import (
	"context"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
)

// toolToMeasure is a tool whose callbacks count. events is how many callbacks one construct
// calls: a target construct with a depend clause and an empty range.
type toolToMeasure struct {
	name   string
	tool   ompt.Callbacks
	events float64
}

func toolsToMeasure(count *uint64) []toolToMeasure {
	target := func(ompt.TargetEMIEvent) { *count++ }
	create := func(ompt.TaskCreateEvent) { *count++ }
	schedule := func(ompt.TaskScheduleEvent) { *count++ }
	maps := func(ompt.TargetMapEMIEvent) { *count++ }
	return []toolToMeasure{
		{"none", ompt.Callbacks{}, 0},
		{"unconcerned", ompt.Callbacks{DeviceLoad: func(ompt.DeviceLoadEvent) { *count++ }}, 0},
		{"create", ompt.Callbacks{TaskCreate: create}, 1},
		{"target", ompt.Callbacks{TargetEMI: target}, 2},
		{"all", ompt.Callbacks{
			TaskCreate: create, TaskSchedule: schedule, TargetEMI: target, TargetMapEMI: maps,
			Dependences: func(ompt.DependencesEvent) { *count++ }, TaskDependence: func(ompt.TaskDependenceEvent) { *count++ },
			TargetDataOpEMI: func(ompt.TargetDataOpEMIEvent) { *count++ }, TargetSubmitEMI: func(ompt.TargetSubmitEMIEvent) { *count++ },
		}, 7},
	}
}

// BenchmarkTool measures what the callbacks of a tool cost, with an included target construct
// on mapped data whose range is empty, so that no work of the device hides the cost. The tools
// take turns, and the quickest turn of each counts: ns/callback is the cost of one callback
// beyond that of the construct without a tool. Runtimes are opened anew for each iteration,
// because the addresses of their memory make more of a difference than a callback.
func BenchmarkTool(b *testing.B) {
	var count uint64
	tools := toolsToMeasure(&count)
	best := make([]time.Duration, len(tools))
	for i := range best {
		best[i] = time.Hour
	}
	for b.Loop() {
		measureTools(b, tools, &count, best)
	}
	b.ReportMetric(float64(best[0])/toolTurn, "ns/construct")
	for i, tool := range tools[1:] {
		beyond := float64(best[i+1]-best[0]) / toolTurn
		if tool.events == 0 {
			b.ReportMetric(beyond, tool.name+"-ns/construct")
			continue
		}
		b.ReportMetric(beyond/tool.events, tool.name+"-ns/callback")
	}
}

// toolTurn is the number of constructs that are measured at a time.
const toolTurn = 200

// measureTools measures each tool once and keeps the shortest times in best.
func measureTools(b *testing.B, tools []toolToMeasure, count *uint64, best []time.Duration) {
	ctx := context.Background()
	steps := make([]func() error, len(tools))
	for i, tool := range tools {
		rt, err := vkomp.Open(vkomp.Options{Tool: tool.tool})
		if err != nil {
			b.Fatal(err)
		}
		defer rt.Close()
		k := newKernel(b, rt, shaders.Saxpy)
		x, y := constant(64, 1), constant(64, 0)
		if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}); err != nil {
			b.Fatal(err)
		}
		defer func() {
			_ = rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x), vkomp.Delete(y)}})
		}()
		steps[i] = func() error {
			return rt.Target(ctx, vkomp.Target{
				Kernel: k, Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(0)), vkomp.Value(float32(1))},
				Depend: []vkomp.Depend{vkomp.InOut(y)},
			})
		}
	}
	for range 100 {
		for i := range tools {
			before, start := *count, time.Now()
			for range toolTurn {
				if err := steps[i](); err != nil {
					b.Fatal(err)
				}
			}
			best[i] = min(best[i], time.Since(start))
			if got := float64(*count-before) / toolTurn; got != tools[i].events {
				b.Fatalf("%s: %v callbacks a construct, want %v", tools[i].name, got, tools[i].events)
			}
		}
	}
}
