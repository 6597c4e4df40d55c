package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// dataRegions is a kind of data regions: included or deferred, on a device or on the initial
// one.
type dataRegions struct {
	rt               *vkomp.Runtime
	onDevice, noWait bool
}

// eachDataRegion calls f for each form.
func eachDataRegion(t *testing.T, f func(t *testing.T, r dataRegions)) {
	for _, onDevice := range []bool{true, false} {
		for _, noWait := range []bool{false, true} {
			t.Run(fmt.Sprintf("on device %v nowait %v", onDevice, noWait), func(t *testing.T) {
				f(t, dataRegions{vktest.Open(t, cancellation), onDevice, noWait})
			})
		}
	}
}

// run runs a region to its end, and returns the error of the region or of the wait for it.
func (r dataRegions) run(ctx context.Context, d vkomp.TargetData, body func(context.Context) error) error {
	d.NoWait, d.If = r.noWait, vkomp.If(r.onDevice)
	err := r.rt.TargetData(ctx, d, body)
	if r.noWait && err == nil {
		return r.rt.Taskwait(ctx)
	}
	return err
}

// OpenMP 6.0 §15.7: without nogroup the structured block is in a taskgroup.
func TestTargetDataEndsAfterAllTasksOfItsBody(t *testing.T) {
	eachDataRegion(t, func(t *testing.T, r dataRegions) {
		rt := r.rt
		x := constant(64, 1)
		var once sync.Once
		gate, present := make(chan struct{}), false
		open := func() { once.Do(func() { close(gate) }) }
		// Only the wait at the region's end lets the grandchild go on.
		ctx := vkomp.WithProgress(t.Context(), time.Nanosecond, func(vkomp.Progress) { open() })
		ended := false
		err := r.run(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Body: func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error {
					<-gate
					present, ended = rt.DefaultDevice(ctx).IsPresent(vkomp.HostPtr(x)), true
					return nil
				}})
			}})
		})
		if err != nil || !ended {
			t.Errorf("the region has ended and the grandchild %v: %v", ended, err)
		}
		open()
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Error(err)
		}
		if r.onDevice && !present {
			t.Error("the slice was unmapped before the grandchild ended")
		}
	})
}

// With nogroup the region ends while tasks of its body have not started; a task that starts
// later maps the slice anew.
func TestTargetDataWithoutAGroupDoesNotWait(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	x, y, order := constant(64, 1), constant(64, 0), []int{0}
	release := make(chan struct{})
	must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(order)}, Body: func(context.Context) error { <-release; return nil }}))
	region := vkomp.TargetData{NoGroup: true, Maps: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y)}}
	must(t, rt.TargetData(t.Context(), region, func(ctx context.Context) error {
		late := saxpyOn(t, k, 2, x, y)
		late.NoWait, late.Depend = true, []vkomp.Depend{vkomp.In(order)}
		return rt.Target(ctx, late)
	}))
	d := rt.DefaultDevice(t.Context())
	if !d.IsInitial() && d.IsPresent(vkomp.HostPtr(y)) {
		t.Error("the region has ended, and its slice is still present")
	}
	close(release)
	must(t, rt.Taskwait(t.Context()))
	if want := constant(64, 2); !slices.Equal(y, want) {
		t.Errorf("y is %v…, want 2", y[0])
	}
}

// The region reports the failures of its tasks.
func TestTargetDataReportsTheFailuresOfItsTasks(t *testing.T) {
	boom := errors.New("boom")
	eachDataRegion(t, func(t *testing.T, r dataRegions) {
		rt := r.rt
		x := constant(64, 1)
		err := r.run(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Label: "inside", Body: func(context.Context) error { return boom }})
		})
		var failed *vkomp.TaskError
		if !errors.Is(err, boom) || !errors.As(err, &failed) {
			t.Errorf("got %v", err)
		}
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Errorf("reported again: %v", err)
		}
	})
}

// In the body of a region the innermost taskgroup is the region's own, except with nogroup.
func TestCancelInATargetDataBodyCancelsTheRegionsGroup(t *testing.T) {
	for _, noGroup := range []bool{false, true} {
		eachDataRegion(t, func(t *testing.T, r dataRegions) {
			rt := r.rt
			x := constant(64, 1)
			err := rt.Taskgroup(t.Context(), func(outer context.Context) error {
				err := r.run(outer, vkomp.TargetData{NoGroup: noGroup, Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
					return rt.CancelTaskgroup(ctx)
				})
				around := rt.CancellationPoint(outer)
				if cancelled := errors.Is(around, vkomp.ErrCancelled); cancelled != noGroup {
					t.Errorf("nogroup %v: the group around: %v", noGroup, around)
				}
				if !noGroup && err != nil {
					t.Errorf("the cancelled region returned %v", err)
				}
				return nil
			})
			if err != nil {
				t.Errorf("nogroup %v: %v", noGroup, err)
			}
		})
	}
}

// When the context ends the region ends too, and its tasks keep what they have mapped.
func TestTargetDataEndsWithItsContext(t *testing.T) {
	rt := vktest.Open(t)
	x, why := constant(64, 1), errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	started, release := make(chan struct{}), make(chan struct{})
	err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
		must(t, rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { close(started); <-release; return nil }}))
		<-started
		cancel(why)
		return nil
	})
	d := rt.DefaultDevice(t.Context())
	if !errors.Is(err, why) || !d.IsInitial() && d.IsPresent(vkomp.HostPtr(x)) {
		t.Errorf("got %v", err)
	}
	close(release)
	must(t, rt.Taskwait(t.Context()))
}

// A region that has mapped its storage calls its body even if the context has ended, so that
// its end copies the body's results to the host.
func TestTargetDataThatHasBegunCallsItsBody(t *testing.T) {
	for _, noGroup := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		rt := vktest.Open(t, withTool(ompt.Callbacks{TargetEMI: func(e ompt.TargetEMIEvent) {
			if e.Kind == ompt.TargetEnterData && e.Endpoint == ompt.ScopeBegin {
				cancel()
			}
		}}))
		x, called := constant(64, 1), false
		err := rt.TargetData(ctx, vkomp.TargetData{NoGroup: noGroup, Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
			called = true
			return nil
		})
		if !called || ctx.Err() == nil {
			t.Errorf("nogroup %v: the body was called: %v; the region returned %v", noGroup, called, err)
		}
	}
}

// A region whose copies to the host cannot be made has ended all the same: nothing stays mapped that nobody would
// unmap, and the next region copies its slices anew.
func TestTargetDataWhoseEndFailsUnmaps(t *testing.T) {
	faults := vktest.InjectFaults(t)
	rt := vktest.Open(t, vktest.Staging)
	d := rt.DefaultDevice(t.Context())
	x, used, got := fill(4000, 1), fill(4000, 1), fill(4000, 0)
	var p vkomp.DevicePtr
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}, Use: []vkomp.UseDevice{vkomp.UseDevicePtr(used, &p)}}
	enter(t, rt, vkomp.To(used))
	// The copy is not encoded or not submitted, or there is no staging memory for it: a soft pause leaves none.
	for command, result := range map[string]vk.Result{
		"vkQueueSubmit": vk.ErrorOutOfHostMemory, "vkBeginCommandBuffer": vk.ErrorOutOfDeviceMemory, "vkAllocateMemory": vk.ErrorOutOfDeviceMemory,
	} {
		must(t, rt.PauseResource(t.Context(), vkomp.PauseSoft, d))
		failing := region
		failing.Maps = []vkomp.Arg{vkomp.From(x)} // the beginning needs no staging
		err := rt.TargetData(t.Context(), failing, func(ctx context.Context) error {
			faults.Fail(command, 1, -1, result)
			return nil
		})
		failed := faults.Failed(command)
		faults.Mend()
		if failed == 0 || !errors.Is(err, vkomp.ErrOutOfMemory) {
			t.Errorf("%s: %v, and %d calls failed", command, err, failed)
		}
		if present(d, x) || !present(d, used) {
			t.Errorf("%s: after the region its slice is present: %t, and the one that was before it: %t", command, present(d, x), present(d, used))
		}
		copy(x, fill(len(x), 7))
		must(t, rt.TargetData(t.Context(), region, func(ctx context.Context) error {
			return rt.Memcpy(ctx, vkomp.HostPtr(got), d.MappedPtr(vkomp.HostPtr(x)), 4*len(x))
		}))
		if !slices.Equal(got, fill(len(x), 7)) || present(d, x) {
			t.Errorf("%s: the next region has %d, and x is present: %t", command, got[0], present(d, x))
		}
	}
	exit(t, rt, vkomp.Release(used))
	if present(d, used) {
		t.Error("the pointer's storage is still counted")
	}
}

// The taskgroup lies between the region's beginning and its end; with nogroup there is none.
func TestEventsOfTheTaskgroupOfADataRegion(t *testing.T) {
	var mu sync.Mutex
	var events []string
	add := func(format string, of ...any) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprintf(format, of...))
	}
	tell := func(what string) func(ompt.SyncRegionEvent) {
		return func(e ompt.SyncRegionEvent) { add("%s %s %s", what, short(e.Kind), short(e.Endpoint)) }
	}
	rt := vktest.Open(t, withTool(ompt.Callbacks{
		SyncRegion: tell("region"), SyncRegionWait: tell("wait"),
		TargetEMI: func(e ompt.TargetEMIEvent) { add("%s %s", short(e.Kind), short(e.Endpoint)) },
	}))
	x := constant(64, 1)
	for _, noGroup := range []bool{false, true} {
		events = nil
		must(t, rt.TargetData(t.Context(), vkomp.TargetData{NoGroup: noGroup, Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
			add("body")
			return nil
		}))
		want := []string{"target_enter_data begin", "target_enter_data end", "region taskgroup begin", "body",
			"wait taskgroup begin", "wait taskgroup end", "region taskgroup end", "target_exit_data begin", "target_exit_data end"}
		if noGroup {
			want = []string{"target_enter_data begin", "target_enter_data end", "body", "target_exit_data begin", "target_exit_data end"}
		}
		if !slices.Equal(events, want) {
			t.Errorf("nogroup %v: events are %q, want %q", noGroup, events, want)
		}
	}
}

// depends reports whether a task with one label depends on a task with another, as long as both are
// not complete.
func depends(rt *vkomp.Runtime, task, on string) bool {
	g := rt.Graph()
	labels := make(map[uint64]string)
	for _, t := range g.Tasks {
		labels[t.ID] = t.Label
	}
	return slices.ContainsFunc(g.Edges, func(e vkomp.GraphEdge) bool { return labels[e.From] == on && labels[e.To] == task })
}

// OpenMP 6.0 §15.7: the task of a deferred region is importing and exporting, so that nowait does not
// change what the tasks of its body are ordered with.
func TestTasksOfADeferredDataRegionAreOrderedWithItsSiblings(t *testing.T) {
	for _, onDevice := range []bool{true, false} {
		t.Run(fmt.Sprintf("on device %v", onDevice), func(t *testing.T) {
			rt := vktest.Open(t)
			ctx := t.Context()
			x, y := constant(64, 1), constant(64, 2)
			first, second := make(chan struct{}), make(chan struct{})
			blocked := func(gate chan struct{}) func(context.Context) error {
				return func(context.Context) error { <-gate; return nil }
			}
			must(t, rt.Task(ctx, vkomp.Task{Label: "earlier", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: blocked(first)}))
			region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(y)}, If: vkomp.If(onDevice), NoWait: true, NoGroup: true, Depend: []vkomp.Depend{vkomp.Out(y)}}
			must(t, rt.TargetData(ctx, region, func(ctx context.Context) error {
				defer close(first)
				err := rt.Task(ctx, vkomp.Task{Label: "child", Depend: []vkomp.Depend{vkomp.In(x)}, Body: blocked(first)})
				if !depends(rt, "child", "earlier") {
					t.Error("a task of the body does not depend on the earlier sibling of the region")
				}
				return err
			}))
			must(t, rt.Taskwait(ctx))

			var ran atomic.Bool
			must(t, rt.TargetData(ctx, region, func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Label: "child", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: blocked(second)})
			}))
			must(t, rt.Task(ctx, vkomp.Task{Label: "later", Depend: []vkomp.Depend{vkomp.In(x), vkomp.In(y)}, Body: func(context.Context) error {
				ran.Store(true)
				return nil
			}}))
			for !ran.Load() && !depends(rt, "later", "child") {
				runtime.Gosched()
			}
			if ran.Load() {
				t.Error("a later sibling that depends on the region came before a task that the body left behind")
			}
			close(second)
			must(t, rt.Taskwait(ctx))
		})
	}
}
