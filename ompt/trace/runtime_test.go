package trace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	gotrace "runtime/trace"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/ompt/trace"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/tracecheck"
	"github.com/vkomp/vkomp/tests/vktest"
)

// onHost runs a program with a tool and without non-host devices.
func onHost(t *testing.T, tool ompt.Callbacks, program func(context.Context, *vkomp.Runtime) error) {
	t.Helper()
	rt, err := vkomp.Open(vkomp.Options{Tool: tool, LookupEnv: func(name string) (string, bool) {
		value, ok := map[string]string{"OMP_TARGET_OFFLOAD": "disabled", "OMP_CANCELLATION": "true", "OMP_NUM_THREADS": "4"}[name]
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(program(t.Context(), rt), rt.Close()); err != nil {
		t.Error(err)
	}
}

// everything makes tasks of all kinds on the host, on several goroutines at once.
func everything(ctx context.Context, rt *vkomp.Runtime) error {
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		return err
	}
	nothing := func(context.Context) error { return nil }
	var mu sync.Mutex
	var errs []error
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			x, y := []float32{1, 2, 3}, []float32{1, 2, 3}
			for range 20 {
				target, err := shaders.SaxpyTarget(saxpy, 2, x, y)
				note(err)
				target.NoWait, target.Depend = true, []vkomp.Depend{vkomp.InOut(y)}
				note(rt.Target(ctx, target))
				target.NoWait = false
				note(rt.Target(ctx, target))
				note(rt.Task(ctx, vkomp.Task{Label: "outer", Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(ctx context.Context) error {
					for range 2 {
						note(rt.Task(ctx, vkomp.Task{Label: "inner", Body: nothing}))
					}
					note(rt.Task(ctx, vkomp.Task{Label: "included", If: vkomp.If(false), Body: nothing}))
					return rt.Taskwait(ctx)
				}}))
				var event vkomp.Event
				note(rt.Task(ctx, vkomp.Task{Label: "detached", Detach: &event, Depend: []vkomp.Depend{vkomp.Out(x)}, Body: nothing}))
				note(event.Fulfill())
				note(rt.Task(ctx, vkomp.Task{Label: "waits on several goroutines", Depend: []vkomp.Depend{vkomp.In(y)}, Body: func(ctx context.Context) error {
					var both sync.WaitGroup
					for range 2 {
						both.Go(func() {
							note(rt.Taskgroup(ctx, nothing))
							note(rt.Taskwait(ctx))
						})
					}
					both.Wait()
					return nil
				}}))
				note(rt.Taskgroup(ctx, func(ctx context.Context) error {
					note(rt.Task(ctx, vkomp.Task{Label: "in a group", Body: nothing}))
					return nil
				}))
			}
			note(rt.Taskwait(ctx))
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func TestAllToolsOnARuntime(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	if err != nil {
		t.Fatal(err)
	}
	if err := gotrace.Start(file); err != nil {
		t.Fatal(err)
	}
	collector, counters := trace.New(trace.Options{}), new(trace.Counters)
	onHost(t, ompt.Tee(collector.Callbacks(), trace.GoTrace(), trace.Labels(), counters.Callbacks(), ompt.Log(slog.New(slog.DiscardHandler))), everything)
	gotrace.Stop()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("go tool trace", func(t *testing.T) {
		if printed, err := exec.Command(vktest.GoTool(t), "tool", "trace", "-d=parsed", file.Name()).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, printed)
		} else if n := strings.Count(string(printed), `Type="outer"`); n < 2*60 {
			t.Errorf("%d mentions of a task that ran 60 times", n)
		}
	})

	traced := collector.Trace()
	var written bytes.Buffer
	if err := traced.WriteChrome(&written); err != nil {
		t.Fatal(err)
	}
	counts, err := tracecheck.Check(written.Bytes())
	if err != nil {
		t.Error(err)
	}
	for label, want := range map[string]int{"outer": 60, "inner": 120, "included": 60, "waits on several goroutines": 60, "detached": 60, "in a group": 60, "saxpy": 120} {
		if counts.Names[label] != want {
			t.Errorf("%d boxes of %s, want %d", counts.Names[label], label, want)
		}
	}
	if counts.Phases["s"] == 0 {
		t.Error("no dependences")
	}
	if want := `"tasks":540,"completed":540,"notRun":0,"targetRegions":120`; !strings.Contains(counters.String(), want) {
		t.Errorf("counts %s, want %s", counters, want)
	}
	written.Reset()
	if err := traced.WriteReport(&written, t.Name()); err != nil || !strings.Contains(written.String(), "<td>outer</td><td class=\"n\">60</td>") {
		t.Errorf("the report does not count 60 tasks: %v", err)
	}
}

func TestBodiesAreLabelledInProfiles(t *testing.T) {
	onHost(t, trace.Labels(), func(ctx context.Context, rt *vkomp.Runtime) error {
		look := func(label string) func(context.Context) error {
			return func(context.Context) error {
				var profile bytes.Buffer
				if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
					return err
				}
				if want := fmt.Sprintf("# labels: {\"vkomp\":%q}", label); !strings.Contains(profile.String(), want) {
					return fmt.Errorf("no %s in\n%s", want, profile.String())
				}
				return nil
			}
		}
		kernel, err := rt.NewKernel(vkomp.KernelSource{Name: "look", Host: func(*vkomp.HostCall) error { return look("look")(ctx) }})
		return errors.Join(err,
			rt.Task(ctx, vkomp.Task{Label: "body", Body: look("body")}),
			rt.Target(ctx, vkomp.Target{Kernel: kernel, Range: vkomp.Range{X: 1}, NoWait: true}),
			rt.Taskwait(ctx))
	})
}

// Memory that a program did not free is released with its device; a failed
// allocation is not counted.
func TestMemoryGoesWithItsDevice(t *testing.T) {
	collector, counters := trace.New(trace.Options{}), new(trace.Counters)
	rt := vktest.Open(t, func(o *vkomp.Options) { o.Tool = ompt.Tee(collector.Callbacks(), counters.Callbacks()) })
	d := rt.DefaultDevice(t.Context())
	if _, err := d.Alloc(t.Context(), 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Alloc(t.Context(), 1<<60); err == nil {
		t.Fatal("an exabyte was allocated")
	}
	inUse := func(want string) {
		t.Helper()
		var out bytes.Buffer
		if err := collector.Trace().WriteChrome(&out); err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(`"device memory in use"[^}]*"bytes":(\d+)\}`).FindAllStringSubmatch(out.String(), -1)
		if len(all) == 0 || all[len(all)-1][1] != want || !strings.Contains(counters.String(), `"deviceMemoryInUse":`+want+"}") {
			t.Errorf("memory in use %v, %s; want %s", all, counters, want)
		}
	}
	inUse("4096")
	if err := rt.PauseResource(t.Context(), vkomp.PauseHard, d); err != nil {
		t.Fatal(err)
	}
	inUse("0")
}
