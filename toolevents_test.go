package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// tracer is a tool that describes the events of each task in a few words.
type tracer struct {
	mu    sync.Mutex
	tasks []*traced
	rest  []string
}

// traced has the events of a task. Data.Ptr points to it.
type traced struct {
	label  string
	events []string
}

func (tr *tracer) of(d *ompt.Data, format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	event := fmt.Sprintf(format, args...)
	if d == nil || d.Ptr == nil {
		tr.rest = append(tr.rest, event)
		return
	}
	t := d.Ptr.(*traced)
	t.events = append(t.events, event)
}

// name returns what a task is called in descriptions: its label, or "initial".
func name(d *ompt.Data) string {
	switch {
	case d == nil:
		return "-"
	case d.Ptr == nil:
		return "initial"
	}
	return d.Ptr.(*traced).label
}

func short(v fmt.Stringer) string {
	s := v.String()
	for _, prefix := range []string{"ompt_task_", "ompt_target_data_", "ompt_target_map_flag_", "ompt_dependence_type_", "ompt_sync_region_", "ompt_scope_", "ompt_"} {
		s = strings.ReplaceAll(s, prefix, "")
	}
	return s
}

func side(device int, host int) string {
	switch device {
	case ompt.NoDevice:
		return "-"
	case host:
		return "host"
	}
	return "device"
}

func (tr *tracer) callbacks(host func() int) ompt.Callbacks {
	return ompt.Callbacks{
		TaskCreate: func(e ompt.TaskCreateEvent) {
			tr.mu.Lock()
			tr.tasks = append(tr.tasks, &traced{label: e.Label})
			e.NewTask.Ptr = tr.tasks[len(tr.tasks)-1]
			tr.mu.Unlock()
			tr.of(e.NewTask, "create in %s %s", name(e.EncounteringTask), short(e.Flags))
		},
		Dependences: func(e ompt.DependencesEvent) {
			var types []string
			for _, d := range e.Dependences {
				types = append(types, short(d.Type))
			}
			tr.of(e.Task, "dependences %s", strings.Join(types, ","))
		},
		TaskDependence: func(e ompt.TaskDependenceEvent) { tr.of(e.Sink, "follows %s", name(e.Source)) },
		TaskSchedule: func(e ompt.TaskScheduleEvent) {
			d, other := e.PriorTask, e.NextTask
			if e.PriorStatus == ompt.TaskSwitch {
				d, other = e.NextTask, e.PriorTask
			}
			tr.of(d, "%s %s", short(e.PriorStatus), name(other))
		},
		TargetEMI: func(e ompt.TargetEMIEvent) {
			if e.Endpoint == ompt.ScopeBegin {
				e.Target.Ptr = e.TargetTask
			}
			if e.Target.Ptr != e.TargetTask {
				tr.of(e.TargetTask, "another region's data")
			}
			tr.of(e.TargetTask, "%s %s on %s", short(e.Kind), short(e.Endpoint), side(e.DeviceNum, host()))
		},
		TargetMapEMI: func(e ompt.TargetMapEMIEvent) {
			var flags []string
			for _, m := range e.Items {
				flags = append(flags, short(m.Flags))
			}
			tr.of(e.Target.Ptr.(*ompt.Data), "map %s", strings.Join(flags, ", "))
		},
		TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
			if e.Target != nil && e.Target.Ptr != e.TargetTask {
				tr.of(e.TargetTask, "an operation of another region")
			}
			tr.of(e.TargetTask, "%s %s %s→%s %d", short(e.Type), short(e.Endpoint), side(e.SrcDeviceNum, host()), side(e.DestDeviceNum, host()), e.Bytes)
		},
		TargetSubmitEMI: func(e ompt.TargetSubmitEMIEvent) {
			tr.of(e.Target.Ptr.(*ompt.Data), "submit %s %s", e.Kernel, short(e.Endpoint))
		},
	}
}

// take returns what was written since its last call, ordered by tasks, in the order of their
// generation.
func (tr *tracer) take() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	var all []string
	for _, t := range tr.tasks {
		all = append(all, "# "+t.label)
		all = append(all, t.events...)
	}
	all = append(all, tr.rest...)
	tr.tasks, tr.rest = nil, nil
	return all
}

// bothEnds describes the beginning and the end of an operation.
func bothEnds(op, rest string) string { return op + " begin " + rest + "\n" + op + " end " + rest }

// sequence returns the lines of an expected sequence.
func sequence(lines ...string) []string { return strings.Split(strings.Join(lines, "\n"), "\n") }

// The events of each construct on a device come in the order of OpenMP 6.0 §35. Deferred
// constructs have other event types.
func TestEventOrderOfConstructs(t *testing.T) {
	for _, path := range []vkomp.MemoryPath{vkomp.MemoryUnified, vkomp.MemoryStaged} {
		t.Run(path.String(), func(t *testing.T) {
			var tr tracer
			var rt *vkomp.Runtime
			rt = vktest.Open(t, vktest.Path(path), withTool(tr.callbacks(func() int { return rt.NumDevices() })))
			k := newKernel(t, rt, shaders.Saxpy)
			x, y := ramp(100), constant(100, 0)
			alloc, to := bothEnds("alloc", "host→device 400"), bothEnds("transfer_to_device", "host→device 400")
			from, gone := bothEnds("transfer_from_device", "device→host 400"), bothEnds("delete", "host→device 400")
			inout := []vkomp.Depend{vkomp.InOut(y)}
			for _, c := range []struct {
				name  string
				run   func(ctx context.Context, noWait bool) error
				label string
				want  []string
			}{
				{"target", func(ctx context.Context, noWait bool) error {
					region := saxpyOn(t, k, 1, x, y)
					region.NoWait, region.Depend = noWait, inout
					return rt.Target(ctx, region)
				}, "saxpy", sequence("target begin on device", "map to, to|from", alloc, alloc, to, to,
					"submit saxpy begin", "submit saxpy end", from, gone, gone, "target end on device")},
				{"enter data", func(ctx context.Context, noWait bool) error {
					return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.Alloc(x).Close(), vkomp.To(y).Always()}, Depend: inout, NoWait: noWait})
				}, "target enter data", sequence("target_enter_data begin on device", "map alloc|close, to|always", alloc, alloc, to, "target_enter_data end on device")},
				{"update", func(ctx context.Context, noWait bool) error {
					return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x), vkomp.To(y)}, Depend: inout, NoWait: noWait})
				}, "target update", sequence("target_update begin on device", to, from, "target_update end on device")},
				{"exit data", func(ctx context.Context, noWait bool) error {
					return rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x), vkomp.From(y).Present()}, Depend: inout, NoWait: noWait})
				}, "target exit data", sequence("target_exit_data begin on device", "map delete, from|present", from, gone, gone, "target_exit_data end on device")},
			} {
				for _, noWait := range []bool{false, true} {
					if err := errors.Join(c.run(t.Context(), noWait), rt.Taskwait(t.Context())); err != nil {
						t.Fatal(c.name, err)
					}
					flags, around := "target|undeferred", "initial"
					want := slices.Clone(c.want)
					if noWait {
						flags, around = "target", "-"
						for i, event := range want {
							for _, op := range []string{"alloc", "transfer_to_device", "transfer_from_device", "delete"} {
								if strings.HasPrefix(event, op+" ") {
									want[i] = op + "_async" + event[len(op):]
								}
							}
							if strings.HasPrefix(event, "target") {
								kind, rest, _ := strings.Cut(event, " ")
								want[i] = kind + "_nowait " + rest
							}
						}
					}
					want = slices.Concat([]string{"# " + c.label, "create in initial " + flags, "dependences inout", "switch " + around}, want, []string{"complete " + around})
					if diff := cmp.Diff(want, tr.take()); diff != "" {
						t.Errorf("%s, nowait %v (-want +got):\n%s", c.name, noWait, diff)
					}
					// The deferred form has to find the storage as the included one did.
					switch c.name {
					case "enter data":
						if !noWait {
							unmap(t, rt, x, y)
						}
					case "exit data":
						if !noWait {
							remap(t, rt, x, y)
						}
					}
					tr.take()
				}
			}
		})
	}
}

func unmap(t *testing.T, rt *vkomp.Runtime, x, y []float32) {
	t.Helper()
	if err := rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x), vkomp.Delete(y)}}); err != nil {
		t.Fatal(err)
	}
}

func remap(t *testing.T, rt *vkomp.Runtime, x, y []float32) {
	t.Helper()
	if err := rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}); err != nil {
		t.Fatal(err)
	}
}

// The operations of memory routines have a begin and an end each, and an allocation has no
// source device (as in case L21). The first event of a device is its initialization, and the
// last its finalization.
func TestEventOrderOfMemoryRoutines(t *testing.T) {
	var tr tracer
	var rt *vkomp.Runtime
	var h history
	first := tr.callbacks(func() int { return rt.NumDevices() })
	rt = vktest.Open(t, withTool(ompt.Tee(first, h.callbacks())))
	d, host := rt.DefaultDevice(t.Context()), rt.InitialDevice()
	ctx := t.Context()
	x := make([]float32, 100)
	rect := vkomp.Rect{Elem: 4, Volume: []int{5, 5}, DstOffsets: []int{0, 0}, SrcOffsets: []int{0, 0}, DstDims: []int{10, 10}, SrcDims: []int{10, 10}}
	var p, q, onHost vkomp.DevicePtr
	allocated := func(d vkomp.Device, to *vkomp.DevicePtr) func() error {
		return func() (err error) {
			*to, err = d.Alloc(ctx, 400)
			return err
		}
	}
	for _, c := range []struct {
		name, label string
		deferred    bool
		do          func() error
		want        []string
	}{
		{"alloc", "alloc", false, allocated(d, &p), sequence(bothEnds("alloc", "-→device 400"))},
		{"alloc again", "alloc", false, allocated(d, &q), sequence(bothEnds("alloc", "-→device 400"))},
		{"alloc on the host", "alloc", false, allocated(host, &onHost), sequence(bothEnds("alloc", "-→host 400"))},
		{"to", "memcpy", false, func() error { return rt.Memcpy(ctx, p, vkomp.HostPtr(x), 400) }, sequence(bothEnds("transfer", "host→device 400"))},
		{"within", "memcpy", false, func() error { return rt.Memcpy(ctx, q, p, 400) }, sequence(bothEnds("transfer", "device→device 400"))},
		{"from", "memcpy", false, func() error { return rt.Memcpy(ctx, vkomp.HostPtr(x), q, 400) }, sequence(bothEnds("transfer", "device→host 400"))},
		{"on the host", "memcpy", false, func() error { return rt.Memcpy(ctx, onHost, vkomp.HostPtr(x), 400) }, sequence(bothEnds("transfer", "host→host 400"))},
		{"memset", "memset", false, func() error { return d.Memset(ctx, p, 7, 399) }, sequence(bothEnds("memset", "-→device 399"))},
		{"rect", "memcpy rect", false, func() error { return rt.MemcpyRect(ctx, q, vkomp.HostPtr(x), rect) }, sequence(bothEnds("transfer_rect", "host→device 100"))},
		{"to, async", "memcpy", true, func() error { return rt.MemcpyAsync(ctx, p, vkomp.HostPtr(x), 400) }, sequence(bothEnds("transfer_async", "host→device 400"))},
		{"within, async", "memcpy", true, func() error { return rt.MemcpyAsync(ctx, q, p, 400) }, sequence(bothEnds("transfer_async", "device→device 400"))},
		{"from, async", "memcpy", true, func() error { return rt.MemcpyAsync(ctx, vkomp.HostPtr(x), q, 400) }, sequence(bothEnds("transfer_async", "device→host 400"))},
		{"memset, async", "memset", true, func() error { return d.MemsetAsync(ctx, p, 7, 399) }, sequence(bothEnds("memset_async", "-→device 399"))},
		{"rect, async", "memcpy rect", true, func() error { return rt.MemcpyRectAsync(ctx, vkomp.HostPtr(x), q, rect) }, sequence(bothEnds("transfer_rect_async", "device→host 100"))},
		{"associate", "associate", false, func() error { return d.AssociatePtr(ctx, vkomp.HostPtr(x), p, 200, 8) }, sequence("associate beginend host→device 200")},
		{"disassociate", "disassociate", false, func() error { return d.DisassociatePtr(ctx, vkomp.HostPtr(x)) }, sequence("disassociate beginend host→device 200")},
		{"free", "free", false, func() error { return d.Free(ctx, p) }, sequence(bothEnds("delete", "-→device 400"))},
		{"free again", "free", false, func() error { return d.Free(ctx, q) }, sequence(bothEnds("delete", "-→device 400"))},
		{"free on the host", "free", false, func() error { return host.Free(ctx, onHost) }, sequence(bothEnds("delete", "-→host 400"))},
	} {
		if err := errors.Join(c.do(), rt.Taskwait(ctx)); err != nil {
			t.Fatal(c.name, err)
		}
		flags, around := "target|undeferred", "initial"
		if c.deferred {
			flags, around = "target", "-"
		}
		want := slices.Concat([]string{"# " + c.label, "create in initial " + flags, "switch " + around}, c.want, []string{"complete " + around})
		if diff := cmp.Diff(want, tr.take()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	// Calls that fail, and queries, cause no events.
	if err := d.Free(ctx, p); err == nil {
		t.Error("freed twice")
	}
	if err := rt.Memcpy(ctx, p, vkomp.HostPtr(x), 400); err == nil {
		t.Error("copied to what was freed")
	}
	d.IsPresent(vkomp.HostPtr(x))
	d.IsAccessible(vkomp.HostPtr(x), 4)
	d.MappedPtr(vkomp.HostPtr(x))
	if got := tr.take(); len(got) > 0 {
		t.Errorf("events %q", got)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect(t, fmt.Sprintf("initialize %d", d.Number()), fmt.Sprintf("finalize %d", d.Number()))
}

func TestEventOrderOfHostTasksAndWaits(t *testing.T) {
	var tr tracer
	var rt *vkomp.Runtime
	sync := func(what string) func(ompt.SyncRegionEvent) {
		return func(e ompt.SyncRegionEvent) { tr.of(e.Task, "%s %s %s", what, short(e.Kind), short(e.Endpoint)) }
	}
	tool := tr.callbacks(func() int { return rt.NumDevices() })
	tool.SyncRegion, tool.SyncRegionWait = sync("sync"), sync("wait")
	rt = vktest.Open(t, withTool(tool))
	ctx := t.Context()
	x := make([]int32, 4)
	nothing := func(context.Context) error { return nil }
	wait := sequence("sync taskwait begin", "wait taskwait begin", "wait taskwait end", "sync taskwait end")
	do := func(errs ...error) []string {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return tr.take()
	}
	expect := func(name string, got []string, want ...[]string) {
		t.Helper()
		if diff := cmp.Diff(slices.Concat(want...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	expect("deferred, with a child", do(rt.Task(ctx, vkomp.Task{Label: "outer", Body: func(ctx context.Context) error {
		return errors.Join(rt.Task(ctx, vkomp.Task{Label: "inner", If: vkomp.If(false), Body: nothing}), rt.Taskwait(ctx))
	}}), rt.Taskwait(ctx)),
		sequence("# outer", "create in initial explicit", "switch -"), wait, sequence("complete -"),
		sequence("# inner", "create in outer explicit|undeferred", "switch outer", "complete outer"), wait)

	release := make(chan struct{})
	held := func(context.Context) error { <-release; return nil }
	first := rt.Task(ctx, vkomp.Task{Label: "first", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: held})
	second := rt.Task(ctx, vkomp.Task{Label: "second", Depend: []vkomp.Depend{vkomp.In(x)}, Final: true, Body: nothing})
	join := rt.TaskwaitNoWait(ctx, vkomp.InOut(x))
	close(release)
	expect("dependences", do(first, second, join, rt.Taskwait(ctx)),
		sequence("# first", "create in initial explicit", "dependences out", "switch -", "complete -"),
		sequence("# second", "create in initial explicit|final", "dependences in", "follows first", "switch -", "complete -"),
		sequence("# taskwait nowait", "create in initial taskwait", "dependences inout", "follows second", "taskwait_complete -"),
		wait)

	expect("taskwait with depend", do(rt.Taskwait(ctx, vkomp.In(x))),
		sequence("# taskwait", "create in initial taskwait|undeferred", "dependences in", "taskwait_complete -"), wait)
	expect("taskgroup", do(rt.Taskgroup(ctx, nothing)),
		sequence("sync taskgroup begin", "wait taskgroup begin", "wait taskgroup end", "sync taskgroup end"))
	expect("merged", do(rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Mergeable: true, Body: nothing})),
		sequence("# task", "create in initial explicit|undeferred|mergeable|merged"))

	var e vkomp.Event
	expect("fulfilled late", do(rt.Task(ctx, vkomp.Task{Detach: &e, Body: nothing}), fulfilLate(t, &tr, &e), rt.Taskwait(ctx)),
		sequence("# task", "create in initial explicit", "switch -", "detach -", "late_fulfill -"), wait)
	expect("fulfilled early", do(rt.Task(ctx, vkomp.Task{Detach: &e, Body: func(context.Context) error { return e.Fulfill() }}), rt.Taskwait(ctx)),
		sequence("# task", "create in initial explicit", "switch -", "early_fulfill -", "complete -"), wait)

	failing := func(context.Context) error { return errors.New("fails") }
	if err := errors.Join(rt.Task(ctx, vkomp.Task{Label: "failing", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: failing})); err != nil {
		t.Fatal(err)
	}
	if err := rt.Task(ctx, vkomp.Task{Label: "not run", Depend: []vkomp.Depend{vkomp.Out(x)}, Body: nothing}); err != nil {
		t.Fatal(err)
	}
	if err := rt.Taskwait(ctx); err == nil {
		t.Error("no failure")
	}
	got := slices.DeleteFunc(tr.take(), func(e string) bool { return e == "follows failing" }) // the event occurs unless that task has failed by then
	expect("a task that is not run", got,
		sequence("# failing", "create in initial explicit", "dependences out", "switch -", "complete -"),
		sequence("# not run", "create in initial explicit", "dependences out", "cancel -"), wait)
}

// fulfilLate fulfils the event when the task's body has ended.
func fulfilLate(t *testing.T, tr *tracer, e *vkomp.Event) error {
	t.Helper()
	for {
		tr.mu.Lock()
		ended := len(tr.tasks) > 0 && slices.Contains(tr.tasks[0].events, "detach -")
		tr.mu.Unlock()
		if ended {
			return e.Fulfill()
		}
		runtime.Gosched()
	}
}

// A data region begins with the events of target enter data and ends with those of target exit
// data. A target inside has events of maps, and none of copies, for what is present.
func TestEventOrderOfDataRegions(t *testing.T) {
	var tr tracer
	var rt *vkomp.Runtime
	rt = vktest.Open(t, vktest.Path(vkomp.MemoryUnified), withTool(tr.callbacks(func() int { return rt.NumDevices() })))
	k := newKernel(t, rt, shaders.Saxpy)
	x, y := ramp(100), constant(100, 0)
	region := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.From(y)}}
	if err := rt.TargetData(t.Context(), region, func(ctx context.Context) error { return rt.Target(ctx, saxpyOn(t, k, 1, x, y)) }); err != nil {
		t.Fatal(err)
	}
	begin := []string{"create in initial target|undeferred", "switch initial"}
	alloc, gone := bothEnds("alloc", "host→device 400"), bothEnds("delete", "host→device 400")
	want := slices.Concat(
		[]string{"# target data"}, begin, sequence("target_enter_data begin on device", "map to, from", alloc, alloc,
			bothEnds("transfer_to_device", "host→device 400"), "target_enter_data end on device", "complete initial"),
		[]string{"# saxpy"}, begin, sequence("target begin on device", "map to, to|from", "submit saxpy begin", "submit saxpy end", "target end on device", "complete initial"),
		[]string{"# target data"}, begin, sequence("target_exit_data begin on device", "map to, from",
			bothEnds("transfer_from_device", "device→host 400"), gone, gone, "target_exit_data end on device", "complete initial"))
	if diff := cmp.Diff(want, tr.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Interop constructs and target regions on the initial device are target tasks.
func TestEventOrderOfInteropAndOfTheInitialDevice(t *testing.T) {
	var tr tracer
	var rt *vkomp.Runtime
	rt = vktest.Open(t, withTool(tr.callbacks(func() int { return rt.NumDevices() })))
	ctx := t.Context()
	x := make([]int32, 4)
	var o interop.Object
	for _, i := range []vkomp.Interop{
		{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}, Depend: []vkomp.Depend{vkomp.InOut(x)}},
		{Use: []interop.Object{o}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true},
		{Destroy: []*interop.Object{&o}},
	} {
		if len(i.Use) > 0 {
			i.Use[0] = o
		}
		if err := errors.Join(rt.Interop(ctx, i), rt.Taskwait(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	one := sequence("# interop", "create in initial target", "dependences inout", "switch -", "complete -")
	if diff := cmp.Diff(slices.Concat(one, one), tr.take()); diff != "" {
		t.Errorf("interop (-want +got):\n%s", diff)
	}
	region := saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, ramp(10), constant(10, 0))
	region.Device = rt.InitialDevice()
	if err := rt.Target(ctx, region); err != nil {
		t.Fatal(err)
	}
	want := sequence("# saxpy", "create in initial target|undeferred", "switch initial", "target begin on host", "target end on host", "complete initial")
	if diff := cmp.Diff(want, tr.take()); diff != "" {
		t.Errorf("on the initial device (-want +got):\n%s", diff)
	}
}

// A tool may not register both forms of a callback (case L24): it is refused. LLVM uses the EMI
// form instead.
func TestBothFormsOfACallbackAreRefused(t *testing.T) {
	both := ompt.Callbacks{
		TargetSubmit: func(ompt.TargetSubmitEvent) {}, TargetSubmitEMI: func(ompt.TargetSubmitEMIEvent) {},
		TargetDataOp: func(ompt.TargetDataOpEvent) {},
	}
	rt, err := vkomp.Open(vkomp.Options{Tool: both})
	if !errors.Is(err, vkomp.ErrInvalidArgument) || !errors.Is(err, ompt.ErrBothForms) || !strings.Contains(err.Error(), "ompt_callback_target_submit") || strings.Contains(err.Error(), "data_op") {
		t.Errorf("both forms: %v", err)
	}
	if rt != nil {
		rt.Close()
	}
}

// Callbacks that are not of the EMI form are called once for an operation: when it has been
// initiated, or before storage is deleted. Those of regions are called at the beginning and at
// the end.
func TestCallbacksOfTheOtherForm(t *testing.T) {
	var events []string
	add := func(format string, args ...any) { events = append(events, fmt.Sprintf(format, args...)) }
	var region ompt.ID
	ops := map[ompt.ID]bool{}
	op := func(of, id ompt.ID) {
		if of != region || id == 0 || ops[id] {
			add("operation %d of region %d", id, of)
		}
		ops[id] = true
	}
	rt := vktest.Open(t, withTool(ompt.Callbacks{
		Codeptrs: true,
		Target: func(e ompt.TargetEvent) {
			region = e.TargetID
			frame, _ := runtime.CallersFrames([]uintptr{uintptr(e.Codeptr)}).Next()
			add("%s %s in %s", short(e.Kind), short(e.Endpoint), frame.Function[strings.LastIndex(frame.Function, ".")+1:])
		},
		TargetMap:    func(e ompt.TargetMapEvent) { op(e.TargetID, ompt.ID(1<<40)); add("map %d", len(e.Items)) },
		TargetDataOp: func(e ompt.TargetDataOpEvent) { op(e.TargetID, e.HostOpID); add("%s", short(e.Type)) },
		TargetSubmit: func(e ompt.TargetSubmitEvent) { op(e.TargetID, e.HostOpID); add("submit %d", e.RequestedNumTeams) },
	}))
	if err := rt.Target(t.Context(), saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, ramp(100), constant(100, 0))); err != nil {
		t.Fatal(err)
	}
	want := []string{"target begin in TestCallbacksOfTheOtherForm", "map 2", "alloc", "alloc", "transfer_to_device", "transfer_to_device", "submit 1",
		"transfer_from_device", "delete", "delete", "target end in TestCallbacksOfTheOtherForm"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestControlToolPassesCommandsOn(t *testing.T) {
	var got ompt.ControlToolEvent
	tool := ompt.Callbacks{ControlTool: func(e ompt.ControlToolEvent) ompt.ControlToolResult {
		got = e
		return 70
	}}
	for _, c := range []struct {
		name string
		tool ompt.Callbacks
		want ompt.ControlToolResult
	}{
		{"no tool", ompt.Callbacks{}, ompt.ControlToolNoTool},
		{"no callback", ompt.Callbacks{SyncRegion: func(ompt.SyncRegionEvent) {}}, ompt.ControlToolNoCallback},
		{"a tool", tool, 70},
	} {
		rt := vktest.Open(t, vktest.Host, withTool(c.tool))
		if result := rt.ControlTool(ompt.ControlToolFlush, 5, "arg"); result != c.want {
			t.Errorf("%s: %v, want %v", c.name, result, c.want)
		}
	}
	if want := (ompt.ControlToolEvent{Command: 3, Modifier: 5, Arg: "arg"}); got != want {
		t.Errorf("told %+v, want %+v", got, want)
	}
}

// A tool with few callbacks hears of the initial task, and of kernels before and after they
// run. Some devices have a kernel of vkomp's, which is compiled beside them.
func TestToolHearsOfTheInitialTaskAndOfKernels(t *testing.T) {
	var h history
	var own atomic.Uint64
	rt := vktest.Open(t, withTool(ompt.Callbacks{
		ImplicitTask: func(e ompt.ImplicitTaskEvent) { h.add("%s task %s", short(e.Flags), short(e.Endpoint)) },
		DeviceLoad: func(e ompt.DeviceLoadEvent) {
			if e.Filename == "vkomp copy" {
				own.Store(e.ModuleID)
				return
			}
			h.add("load %s", e.Filename)
		},
		DeviceUnload: func(e ompt.DeviceUnloadEvent) {
			if e.ModuleID != own.Load() {
				h.add("unload")
			}
		},
	}))
	k := newKernel(t, rt, shaders.Saxpy)
	for range 2 {
		if err := rt.Target(t.Context(), saxpyOn(t, k, 1, ramp(100), constant(100, 0))); err != nil {
			t.Fatal(err)
		}
		h.expect(t, "initial task begin", "load saxpy")
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "initial task begin", "load saxpy", "initial task end", "unload")
}

// A tool hears nothing after it was stopped.
func TestStoppedToolHearsOfNoTask(t *testing.T) {
	var h history
	rt := vktest.Open(t, withTool(ompt.Callbacks{
		TaskCreate:   func(e ompt.TaskCreateEvent) { h.add("create %s", e.Label) },
		ImplicitTask: func(e ompt.ImplicitTaskEvent) { h.add("initial task %s", short(e.Endpoint)) },
	}))
	task := vkomp.Task{Body: func(context.Context) error { return nil }}
	if err := errors.Join(rt.Task(t.Context(), task), rt.Taskwait(t.Context()), rt.PauseResourceAll(t.Context(), vkomp.PauseStopTool), rt.Task(t.Context(), task), rt.Taskwait(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := rt.ControlTool(ompt.ControlToolStart, 0, nil); got != ompt.ControlToolNoTool {
		t.Errorf("a command: %v", got)
	}
	h.expect(t, "initial task begin", "create task", "initial task end")
}

// A tool that has only callbacks of operations hears of none that has failed, and of an
// allocation when there is storage.
func TestFailedAllocationIsNoOperation(t *testing.T) {
	var h history
	rt := vktest.Open(t, withTool(ompt.Callbacks{TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
		h.add("%s %s of %d bytes, there: %v", short(e.Type), short(e.Endpoint), e.Bytes, e.DestAddr != 0)
	}}))
	d := rt.DefaultDevice(t.Context())
	if _, err := d.Alloc(t.Context(), 1<<60); !errors.Is(err, vkomp.ErrOutOfMemory) {
		t.Fatalf("an exabyte: %v", err)
	}
	h.expect(t)
	p, err := d.Alloc(t.Context(), 64)
	if err != nil {
		t.Fatal(err)
	}
	allocated := []string{"alloc begin of 64 bytes, there: true", "alloc end of 64 bytes, there: true"}
	h.expect(t, allocated...)
	if err := d.Free(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.expect(t, append(allocated, "delete begin of 64 bytes, there: true", "delete end of 64 bytes, there: true")...)
}

// A callback may fulfil the event of the task that it is called for.
func TestCallbackFulfillsItsTask(t *testing.T) {
	for _, status := range []ompt.TaskStatus{ompt.TaskSwitch, ompt.TaskDetach} {
		var e vkomp.Event
		var h history
		rt := vktest.Open(t, vktest.Host, withTool(ompt.Callbacks{TaskSchedule: func(s ompt.TaskScheduleEvent) {
			h.add("%s", short(s.PriorStatus))
			if s.PriorStatus == status {
				if err := e.Fulfill(); err != nil {
					t.Error(err)
				}
			}
		}}))
		task := vkomp.Task{Detach: &e, Body: func(context.Context) error { return nil }}
		if err := errors.Join(rt.Task(t.Context(), task), rt.Taskwait(t.Context()), rt.Close()); err != nil {
			t.Fatal(err)
		}
		if status == ompt.TaskSwitch {
			h.expect(t, "switch", "early_fulfill", "complete")
		} else {
			h.expect(t, "switch", "detach", "late_fulfill")
		}
	}
}

// A detachable task that is refused leaves its event free for another task.
func TestRefusedTaskLeavesTheEventAlone(t *testing.T) {
	var tr tracer
	var rt *vkomp.Runtime
	rt = vktest.Open(t, vktest.Host, withTool(tr.callbacks(func() int { return rt.NumDevices() })))
	var e vkomp.Event
	task := vkomp.Task{Label: "good", Detach: &e, Body: func(context.Context) error { return nil }}
	if err := rt.Task(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	task.Label, task.Depend = "refused", []vkomp.Depend{{}}
	if err := rt.Task(t.Context(), task); !errors.Is(err, vkomp.ErrInvalidDepend) {
		t.Fatalf("refused: %v", err)
	}
	if err := errors.Join(fulfilLate(t, &tr, &e), rt.Taskwait(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{"# good", "create in initial explicit", "switch -", "detach -", "late_fulfill -"}
	if diff := cmp.Diff(want, tr.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A tool hears nothing after Close.
func TestClosedRuntimeTellsNothing(t *testing.T) {
	var h history
	rt := vktest.Open(t, vktest.Host, withTool(ompt.Callbacks{
		SyncRegion:  func(ompt.SyncRegionEvent) { h.add("sync") },
		ControlTool: func(ompt.ControlToolEvent) ompt.ControlToolResult { h.add("control"); return 0 },
	}))
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	_ = rt.Taskwait(t.Context())
	if got := rt.ControlTool(ompt.ControlToolFlush, 0, nil); got != ompt.ControlToolNoTool {
		t.Errorf("a command: %v", got)
	}
	h.expect(t)
}

// The code pointer of an event is that of the program's call, for every construct.
func TestCodeptrsAreTheProgramsOwn(t *testing.T) {
	var h history
	rt := vktest.Open(t, withTool(ompt.Callbacks{Codeptrs: true, TaskCreate: func(e ompt.TaskCreateEvent) {
		frame, _ := runtime.CallersFrames([]uintptr{uintptr(e.Codeptr)}).Next()
		h.add("%s in %s", e.Label, frame.Function[strings.LastIndex(frame.Function, ".")+1:])
	}}))
	ctx, x := t.Context(), make([]int32, 4)
	var o interop.Object
	const here = "TestCodeptrsAreTheProgramsOwn"
	for _, err := range []error{
		rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}, NoWait: true}),
		rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}, NoWait: true}),
		rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}),
		rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(x)}}),
		rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }}),
		rt.Memcpy(ctx, vkomp.HostPtr(x), vkomp.HostPtr(x[1:]), 4),
		rt.Taskwait(ctx, vkomp.In(x)),
		rt.Taskwait(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h.expect(t, "interop in "+here, "interop in "+here, "target enter data in "+here, "target exit data in "+here, "task in "+here, "memcpy in "+here, "taskwait in "+here)
}

// Operations on a value with a mapper have the size of its image.
func TestOperationsOnImagesHaveTheirBytes(t *testing.T) {
	type value struct {
		n    int32
		host [100]int32
	}
	type image struct{ N int32 }
	var h history
	rt := vktest.Open(t, withTool(ompt.Callbacks{TargetDataOpEMI: func(e ompt.TargetDataOpEMIEvent) {
		if e.Endpoint == ompt.ScopeBegin {
			h.add("%s %d", short(e.Type), e.Bytes)
		}
	}}))
	v := &value{n: 1}
	m := vkomp.Mapper[value, image]{Encode: func(i *image, v *value) { i.N = v.n }, Decode: func(v *value, i *image) { v.n, v.host[0] = i.N, i.N }}
	if err := errors.Join(
		rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}),
		rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{m.To(v)}}),
		rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{m.From(v)}}),
	); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "alloc 4", "transfer_to_device 4", "transfer_to_device 4", "transfer_from_device 4", "delete 4")
}

// A target region on the last device (case C05) runs there: a kernel cannot tell, but a tool is
// told the device's number.
func TestRegionOnTheLastDeviceRunsThere(t *testing.T) {
	var h history
	rt := vktest.Open(t, withTool(ompt.Callbacks{TargetEMI: func(e ompt.TargetEMIEvent) { h.add("%s on %d", short(e.Endpoint), e.DeviceNum) }}))
	last, err := rt.Device(rt.NumDevices() - 1)
	if err != nil {
		t.Fatal(err)
	}
	two, y := constant(100, 2), ramp(100)
	region := saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, two, y)
	region.Device = last
	if err := rt.Target(t.Context(), region); err != nil {
		t.Fatal(err)
	}
	for i, v := range y {
		if v != float32(i)+2 {
			t.Fatalf("element %d is %v, want %v", i, v, i+2)
		}
	}
	if last.Number() != rt.NumDevices()-1 || last.Number() == rt.InitialDevice().Number() {
		t.Errorf("the last device is %d of %d, the host %d", last.Number(), rt.NumDevices(), rt.InitialDevice().Number())
	}
	h.expect(t, fmt.Sprintf("begin on %d", last.Number()), fmt.Sprintf("end on %d", last.Number()))
}

// The data of a task are zero at first, and are not used for another task before the tool has
// heard of all tasks that depend on this one, however long that takes.
func TestDataAreTheTasksUntilItsFollowersAreKnown(t *testing.T) {
	ctx := t.Context()
	var sources history
	var rt *vkomp.Runtime
	var k vkomp.Kernel
	x, y, other := constant(8, 1), constant(8, 0), constant(8, 0)
	open, sourceOver := make(chan struct{}), make(chan struct{})
	run := func(label string, s []float32, noWait bool) error {
		region := saxpyOn(t, k, 1, x, s)
		region.Label, region.NoWait, region.Depend = label, noWait, []vkomp.Depend{vkomp.InOut(s)}
		return rt.Target(ctx, region)
	}
	rt = vktest.Open(t, withTool(ompt.Callbacks{
		TaskCreate: func(e ompt.TaskCreateEvent) {
			if *e.NewTask != (ompt.Data{}) {
				t.Errorf("%s begins with %+v", e.Label, *e.NewTask)
			}
			e.NewTask.Value, e.NewTask.Ptr = uint64(e.TaskID), e.Label
			if e.Label != "sink" {
				return
			}
			close(open)
			<-sourceOver
			others := make(chan error)
			go func() {
				var err error
				for range 64 {
					err = errors.Join(err, run("other", other, false))
				}
				others <- err
			}()
			if err := <-others; err != nil {
				t.Error(err)
			}
		},
		TaskSchedule: func(e ompt.TaskScheduleEvent) {
			if e.PriorStatus == ompt.TaskComplete && e.PriorTask.Ptr == "source" {
				close(sourceOver)
			}
		},
		TargetEMI: func(e ompt.TargetEMIEvent) {
			if e.Endpoint == ompt.ScopeBegin && *e.Target != (ompt.Data{}) {
				t.Errorf("the region of %s begins with %+v", e.Label, *e.Target)
			}
			e.Target.Value = uint64(e.TargetID)
		},
		TaskDependence: func(e ompt.TaskDependenceEvent) {
			if e.Sink.Ptr == "sink" {
				sources.add("%v", e.Source.Ptr)
			}
		},
	}))
	k = newKernel(t, rt, shaders.Saxpy)
	gate := vkomp.Task{Label: "gate", Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: func(context.Context) error {
		<-open
		return nil
	}}
	if err := errors.Join(rt.Task(ctx, gate), run("source", y, true), run("sink", y, true), rt.Taskwait(ctx)); err != nil {
		t.Fatal(err)
	}
	sources.expect(t, "source")
}

// A task depends on an exporting task, and learns when that ends that it depends on children of
// it too. The tool hears of these dependences before the task begins or is dropped, and does
// not hear of them again with later tasks.
func TestLateDependencesAreToldOfTheirTasks(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for name, tool := range map[string]ompt.Callbacks{
			"of dependences":         {},
			"of when tasks run, too": {TaskSchedule: func(ompt.TaskScheduleEvent) {}},
			"of all that targets do": {TargetEMI: func(ompt.TargetEMIEvent) {}, TargetMapEMI: func(ompt.TargetMapEMIEvent) {}},
		} {
			t.Run(fmt.Sprintf("the child fails %v, the tool hears %s", fails, name), func(t *testing.T) {
				var edges history
				tool.TaskCreate = func(e ompt.TaskCreateEvent) { e.NewTask.Ptr = e.Label }
				tool.TaskDependence = func(e ompt.TaskDependenceEvent) { edges.add("%v follows %v", e.Sink.Ptr, e.Source.Ptr) }
				rt := vktest.Open(t, withTool(tool))
				ctx := t.Context()
				x, y, z := ramp(10), constant(10, 0), make([]int32, 4)
				region := saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 1, x, y)
				made, end, endChild := make(chan struct{}), make(chan struct{}), make(chan struct{})
				errChild := errors.New("the child fails")
				child := vkomp.Task{Label: "child", Depend: []vkomp.Depend{vkomp.Out(z)}, Body: func(context.Context) error {
					<-endChild
					if fails {
						return errChild
					}
					return nil
				}}
				parent := vkomp.Task{Label: "parent", Transparent: vkomp.Export, Depend: []vkomp.Depend{vkomp.Out(z)}, Body: func(ctx context.Context) error {
					err := rt.Task(ctx, child)
					close(made)
					<-end
					return err
				}}
				generate(t, rt, ctx, parent)
				<-made
				sink := region
				sink.Label, sink.NoWait, sink.Depend = "sink", true, []vkomp.Depend{vkomp.In(z)}
				if err := errors.Join(rt.Target(ctx, sink), rt.TaskwaitNoWait(ctx, vkomp.In(z))); err != nil {
					t.Fatal(err)
				}
				close(end)
				awaitState(rt, "parent", vkomp.GraphComplete)
				close(endChild)
				if err := rt.Taskwait(ctx); errors.Is(err, errChild) != fails {
					t.Fatal(err)
				}
				for range 3 {
					if err := rt.Target(ctx, region); err != nil {
						t.Fatal(err)
					}
				}
				edges.mu.Lock()
				slices.Sort(edges.events)
				edges.mu.Unlock()
				edges.expect(t, "sink follows child", "sink follows parent", "taskwait nowait follows child", "taskwait nowait follows parent")
				if fails {
					_ = rt.Close() // Close reports the failure, since the child belongs to its parent
				}
			})
		}
	}
}
