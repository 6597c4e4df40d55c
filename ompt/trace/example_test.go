package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/ompt/trace"
	"github.com/vkomp/vkomp/shaders"
)

// A collector is the tool of a runtime. Its trace is written when the work is done,
// or while it goes on.
func Example() {
	collector := trace.New(trace.Options{})
	rt, err := vkomp.Open(vkomp.Options{Tool: collector.Callbacks()})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		log.Fatal(err)
	}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	target, err := shaders.SaxpyTarget(saxpy, 2, x, y)
	if err != nil {
		log.Fatal(err)
	}
	target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.Out(y)}
	if err := rt.Target(ctx, target); err != nil {
		log.Fatal(err)
	}
	err = rt.Task(ctx, vkomp.Task{Label: "print", Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(context.Context) error {
		fmt.Println(y)
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	if err := rt.Taskwait(ctx); err != nil {
		log.Fatal(err)
	}
	var page, events bytes.Buffer // files, elsewhere
	traced := collector.Trace()
	if err := traced.WriteReport(&page, "an example"); err != nil {
		log.Fatal(err)
	}
	if err := traced.WriteChrome(&events); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(page.String(), "Critical path"), strings.Contains(events.String(), `"name":"print"`))
	// Output:
	// [12 24 36]
	// true true
}

// Several tools can be combined. Only the counters have output here, because
// neither Go's execution tracer nor its profiler is running.
func ExampleCounters() {
	counters := new(trace.Counters)
	tools := ompt.Tee(counters.Callbacks(), trace.GoTrace(), trace.Labels())
	rt, err := vkomp.Open(vkomp.Options{Tool: tools})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for range 3 {
		if err := rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }}); err != nil {
			log.Fatal(err)
		}
	}
	if err := rt.Close(); err != nil { // waits for the tasks
		log.Fatal(err)
	}
	fmt.Println(counters)
	// Output: {"tasks":3,"completed":3,"notRun":0,"targetRegions":0,"submits":0,"bytesToDevice":0,"bytesFromDevice":0,"bytesCopied":0,"deviceMemoryInUse":0}
}
