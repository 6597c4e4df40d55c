package vkomp_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// saveOf records the block, saves the record, and returns the file.
func saveOf(t testing.TB, rt *vkomp.Runtime, block func(ctx context.Context) error, params ...vkomp.Param) []byte {
	t.Helper()
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), Label: "saved", Params: params}
	must(t, rt.Taskgraph(t.Context(), g, block))
	return saveAgain(t, rt, g)
}

// saveAgain saves a record, and returns the file.
func saveAgain(t testing.TB, rt *vkomp.Runtime, g vkomp.Taskgraph) []byte {
	t.Helper()
	var file bytes.Buffer
	must(t, rt.SaveTaskgraph(t.Context(), g, &file))
	return file.Bytes()
}

// runSaved reads a file and runs it.
func runSaved(t testing.TB, rt *vkomp.Runtime, file []byte) []vkomp.SavedDifference {
	t.Helper()
	saved, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	differences, err := saved.Run(t.Context(), rt)
	must(t, err)
	return differences
}

// rewritten returns the file with another content of one entry, which its checksums fit.
func rewritten(t testing.TB, file []byte, name string, change func(content []byte)) []byte {
	t.Helper()
	changed, err := vkomp.ChangeSaved(file, name, change)
	must(t, err)
	return changed
}

// A graph maps storage itself, and leaves results in it on the device. A run that leaves other bytes there, or that leaves
// there what the saved one has not, differs.
func TestSavedGraphHasWhatItLeavesOnTheDevice(t *testing.T) {
	rt := vktest.Open(t, vktest.Staging)
	d, ctx := rt.DefaultDevice(t.Context()), t.Context()
	k := newKernel(t, rt, shaders.Saxpy)
	all := ramp(300)
	x, y, z := all[:64], all[100:164], all[200:264] // in this order in the file
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	must(t, rt.Taskgraph(ctx, g, func(ctx context.Context) error {
		target := saxpyOn(t, k, 2, x, y)
		target.Device, target.NoWait, target.Depend = d, true, []vkomp.Depend{vkomp.In(x), vkomp.InOut(y)}
		return errors.Join(
			rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}, NoWait: true, Depend: []vkomp.Depend{vkomp.Out(x), vkomp.Out(y)}}),
			rt.Target(ctx, target),
			rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(z)}, NoWait: true, Depend: []vkomp.Depend{vkomp.Out(z)}}),
			rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Release(z)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(z)}}),
		)
	}))
	leave := func() {
		t.Helper()
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Delete(x), vkomp.Delete(y)}}))
	}
	leave()
	file := saveAgain(t, rt, g)
	leave()
	if differences := runSaved(t, rt, file); differences != nil {
		t.Errorf("the saved run repeated: %v", differences)
	}
	for name, c := range map[string]struct{ was, is, want string }{
		"another factor": {`"AAAAQA=="`, `"AABAQA=="`, "present/1 on device 0"}, // 3 where it was 2
		"no exit": {`{"kind":"target exit data","device":0,"kernel":0,"range":[0,0,0],"items":[{"storage":2,"offset":0,"size":256,"type":4}],`,
			`{"kind":"taskwait nowait",`, "256 bytes from byte 0 of storage/2 on device 0"},
	} {
		edited, err := vkomp.EditSaved(file, func(text string) string {
			if n := strings.Count(text, c.was); n != 1 {
				t.Fatalf("%s: %s is there %d times", name, c.was, n)
			}
			return strings.Replace(text, c.was, c.is, 1)
		})
		must(t, err)
		differences := runSaved(t, rt, edited)
		if len(differences) != 2 || !strings.HasPrefix(differences[0].Where, c.want) {
			t.Errorf("%s: %v", name, differences)
		}
	}
	// A file of the version before has no storage that the replay has made present.
	older, err := vkomp.EditSaved(file, func(text string) string {
		text = strings.Replace(text, `"version":2`, `"version":1`, 1)
		from, to := strings.Index(text, `"present":[`), strings.Index(text, `"memory":`)
		return text[:from] + `"present":[],` + text[to:]
	})
	must(t, err)
	if differences := runSaved(t, rt, older); differences != nil {
		t.Errorf("a file of version 1: %v", differences)
	}
	if blocks := d.Memory().Mapped; blocks.Count != 0 {
		t.Errorf("the runs have left %+v", blocks)
	}
}

// The replay takes away storage that was present, and makes a part of it present.
func TestSavedGraphThatKeepsAPart(t *testing.T) {
	rt := vktest.Open(t)
	d, ctx := rt.DefaultDevice(t.Context()), t.Context()
	x := ramp(64)
	enter := func() {
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x)}}))
	}
	leave := func() {
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Delete(x[:16])}}))
	}
	enter()
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	must(t, rt.Taskgraph(ctx, g, func(ctx context.Context) error {
		order := []vkomp.Depend{vkomp.InOut(x)}
		return errors.Join(
			rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Delete(x)}, NoWait: true, Depend: order}),
			rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(x[:16])}, NoWait: true, Depend: order}),
		)
	}))
	leave()
	enter()
	file := saveAgain(t, rt, g)
	leave()
	if differences := runSaved(t, rt, file); differences != nil {
		t.Errorf("the saved run repeated: %v", differences)
	}
}

// savedBlock has every kind of construct that a file can have.
func savedBlock(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) (block func(ctx context.Context) error) {
	const n = 64
	k := newKernel(t, rt, shaders.Saxpy)
	x, y, z, w, token := ramp(n), constant(n, 3), constant(n, 5), constant(n, 7), make([]byte, 8)
	p := alloc(t, d, 8*n)
	must(t, rt.Memcpy(t.Context(), p, vkomp.HostPtr(constant(2*n, 9)), 8*n))
	// On the device z is other than on the host.
	must(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(z)}}))
	t.Cleanup(func() {
		must(t, rt.TargetExitData(context.Background(), vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.Delete(z)}}))
	})
	for i := range z {
		z[i] = -1
	}
	return func(ctx context.Context) error {
		add := func(x, y []float32) vkomp.Target {
			target := saxpyOn(t, k, 2, x, y)
			target.Device, target.NoWait, target.DependArgs = d, true, true
			return target
		}
		part := add(y[8:24], z[:16])
		part.Depend = []vkomp.Depend{vkomp.InOut(y)}
		return errors.Join(
			rt.Target(ctx, add(x, y)),
			rt.Target(ctx, part),
			rt.Target(ctx, add(y, w)),
			rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: d, Maps: []vkomp.Arg{vkomp.To(w)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(w)}}),
			rt.Target(ctx, add(z, w)),
			rt.TargetExitData(ctx, vkomp.TargetExitData{Device: d, Maps: []vkomp.Arg{vkomp.From(w)}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(w)}}),
			rt.TargetUpdate(ctx, vkomp.TargetUpdate{Device: d, Motions: []vkomp.Arg{vkomp.From(z[:32])}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(z)}}),
			d.MemsetAsync(ctx, p.Add(4), 17, 40, vkomp.Out(token)),
			rt.MemcpyAsync(ctx, vkomp.HostPtr(x), p.Add(8), 4*n, vkomp.In(token), vkomp.InOut(x)),
			rt.TaskwaitNoWait(ctx, vkomp.In(x), vkomp.InOut(token)),
			rt.TargetUpdate(ctx, vkomp.TargetUpdate{If: vkomp.If(false), NoWait: true, Depend: []vkomp.Depend{vkomp.MutexInOutSet(token)}}),
			rt.MemcpyAsync(ctx, p, p, 0, vkomp.MutexInOutSet(token), vkomp.In(x)),
			rt.MemcpyAsync(ctx, p.Add(4*n), vkomp.HostPtr(x), 16, vkomp.InOut(token)),
		)
	}
}

// savedOnDefaultDevice returns the file of savedBlock, or skips the test if the default device is the initial one.
func savedOnDefaultDevice(t *testing.T, rt *vkomp.Runtime) []byte {
	t.Helper()
	d := rt.DefaultDevice(t.Context())
	if d.IsInitial() {
		t.Skip("needs a Vulkan device")
	}
	return saveOf(t, rt, savedBlock(t, rt, d))
}

// A saved record leaves the same bytes when it is run from its file, by another runtime too.
func TestSavedTaskgraphRunsToTheSameBytes(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		if d.IsInitial() {
			t.Skip("needs a Vulkan device")
		}
		file := saveOf(t, rt, savedBlock(t, rt, d))
		for _, on := range []*vkomp.Runtime{rt, vktest.Open(t)} {
			for range 2 {
				if d := runSaved(t, on, file); len(d) > 0 {
					t.Errorf("differences: %v", d)
				}
			}
		}
	})
}

// What a run leaves is compared with the file, on the host, on the device and in its memory.
func TestSavedTaskgraphShowsWhatDiffers(t *testing.T) {
	rt := vktest.Open(t)
	file := savedOnDefaultDevice(t, rt)
	for _, name := range []string{"storage/0.after", "present/0.after", "memory/0.after"} {
		differences := runSaved(t, rt, rewritten(t, file, name, func(content []byte) { content[5]++ }))
		if len(differences) != 2 {
			t.Fatalf("%s: differences %v, want one of each execution", name, differences)
		}
		got := differences[1]
		if where := strings.TrimSuffix(name, ".after"); !strings.HasPrefix(got.Where, where) || got.Offset != 5 || got.Count != 1 || got.Want != got.Got+1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if d := runSaved(t, rt, rewritten(t, file, "memory/0.before", func(content []byte) { content[60]++ })); len(d) == 0 {
		t.Error("another input has the same outcome")
	}
}

// Parameters are saved with the values of the encounter that SaveTaskgraph stands for.
func TestSavedTaskgraphHasTheValuesOfParameters(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	if rt.DefaultDevice(t.Context()).IsInitial() {
		t.Skip("needs a Vulkan device")
	}
	var out vkomp.ParamSlice[float32]
	var factor vkomp.ParamVar[float32]
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	x := ramp(32)
	block := func(ctx context.Context) error {
		y := out.Get(ctx)
		return rt.Target(ctx, vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: len(y)}, NoWait: true,
			Args: []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(len(y))), factor.Arg(ctx)},
		})
	}
	g.Params = []vkomp.Param{out.Bind(make([]float32, 32)), factor.Bind(2)}
	must(t, rt.Taskgraph(t.Context(), g, block))
	y := constant(32, 1)
	g.Params = []vkomp.Param{out.Bind(y), factor.Bind(3)}
	var file bytes.Buffer
	must(t, rt.SaveTaskgraph(t.Context(), g, &file))
	if y[31] != 94 {
		t.Errorf("y[31] is %v, want 94: saving replays the record once", y[31])
	}
	if d := runSaved(t, rt, file.Bytes()); len(d) > 0 {
		t.Errorf("differences: %v", d)
	}
}

func TestRecordsThatNoFileCanHaveAreRefused(t *testing.T) {
	rt := vktest.Open(t)
	k := newKernel(t, rt, shaders.Saxpy)
	var value uint32
	mapper := vkomp.Mapper[uint32, uint32]{Encode: func(image, value *uint32) { *image = *value }}
	for _, c := range []struct {
		name, want string
		block      func(ctx context.Context) error
	}{
		{"a task", `task "work": not replayable: its body is Go code`, func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{Body: nothing, Label: "work"})
		}},
		{"a Host variant", `target "saxpy": not replayable: it runs a Host variant`, func(ctx context.Context) error {
			target := saxpyOn(t, k, 1, ramp(4), ramp(4))
			target.NoWait, target.Device, target.Label = true, rt.InitialDevice(), "" // it has the kernel's name
			return rt.Target(ctx, target)
		}},
		{"a Mapper", `taskgraph "taskgraph": target enter data: not replayable: it maps a value with a Mapper`, func(ctx context.Context) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{mapper.To(&value)}, NoWait: true})
		}},
		{"a labelled directive", `target enter data "enter": not replayable`, func(ctx context.Context) error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{mapper.To(&value)}, NoWait: true, Label: "enter"})
		}},
	} {
		g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
		must(t, rt.Taskgraph(t.Context(), g, c.block))
		var file bytes.Buffer
		err := rt.SaveTaskgraph(t.Context(), g, &file)
		if !errors.Is(err, vkomp.ErrNotReplayable) || !strings.Contains(fmt.Sprint(err), c.want) || file.Len() > 0 {
			t.Errorf("%s: %v, %d bytes", c.name, err, file.Len())
		}
	}
	must(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{mapper.Delete(&value)}}))
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	if err := rt.SaveTaskgraph(t.Context(), g, io.Discard); !errors.Is(err, vkomp.ErrNotReplayable) {
		t.Errorf("no record: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rt.SaveTaskgraph(cancelled, g, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	must(t, rt.Close())
	if err := rt.SaveTaskgraph(t.Context(), g, io.Discard); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("a closed runtime: %v", err)
	}
}

// A run without a Vulkan device for it says so, and leaves nothing behind.
func TestSavedTaskgraphNeedsDevices(t *testing.T) {
	rt := vktest.Open(t)
	file := savedOnDefaultDevice(t, rt)
	saved, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	other := vktest.Open(t)
	none := vktest.Open(t, func(o *vkomp.Options) {
		o.LookupEnv = func(name string) (string, bool) {
			return "invalid", name == "OMP_DEFAULT_DEVICE"
		}
	})
	for what, c := range map[string]struct {
		rt    *vkomp.Runtime
		given []vkomp.Device
		want  string
	}{
		"the zero Device":        {rt, []vkomp.Device{{}}, "cannot be the zero Device"},
		"no default device":      {none, nil, "there is no default device: "},
		"the initial device":     {rt, []vkomp.Device{rt.InitialDevice()}, "cannot be the initial device"},
		"one of another runtime": {rt, []vkomp.Device{other.DefaultDevice(t.Context())}, "cannot be one of another runtime"},
		"no device":              {vktest.Open(t, vktest.Host), nil, "cannot be the initial device"},
	} {
		_, err := saved.Run(t.Context(), c.rt, c.given...)
		refused(t, what, err, vkomp.ErrInvalidDevice, c.want)
	}
}

// A task that others generate meanwhile fails for whoever waits for it, not for the run.
func TestFailureOfAnotherTaskDuringASavedRunIsNotLost(t *testing.T) {
	mine := errors.New("mine")
	var rt *vkomp.Runtime
	var failing atomic.Bool
	rt = vktest.Open(t, func(o *vkomp.Options) {
		o.Tool.TargetEMI = func(ompt.TargetEMIEvent) {
			if failing.CompareAndSwap(true, false) {
				must(t, rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error { return mine }}))
			}
		}
	})
	file := savedOnDefaultDevice(t, rt)
	saved, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	failing.Store(true)
	_, err = saved.Run(t.Context(), rt)
	must(t, err)
	if err = rt.Taskwait(t.Context()); failing.Load() || !errors.Is(err, mine) {
		t.Errorf("%v, want the failure of the other task", err)
	}
}

// A run that has begun before Close goes on, and leaves nothing on the devices.
func TestCloseDuringASavedRun(t *testing.T) {
	file := savedOnDefaultDevice(t, vktest.Open(t))
	var rt *vkomp.Runtime
	var begun atomic.Bool
	var closed <-chan error
	rt = vktest.Open(t, withTool(ompt.Callbacks{TargetDataOp: func(ompt.TargetDataOpEvent) {
		if begun.CompareAndSwap(false, true) {
			closed = closing(t, rt)
		}
	}}))
	if d := runSaved(t, rt, file); len(d) > 0 {
		t.Errorf("differences: %v", d)
	}
	must(t, <-closed)
}

// A writer that takes less than the file is an error.
func TestSavingReportsAShortWrite(t *testing.T) {
	rt := openTasks(t)
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	must(t, rt.Taskgraph(t.Context(), g, func(ctx context.Context) error { return rt.TaskwaitNoWait(ctx, vkomp.InOut(make([]int, 1))) }))
	if err := rt.SaveTaskgraph(t.Context(), g, shortWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v, want %v", err, io.ErrShortWrite)
	}
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) / 2, nil }

// A file makes nobody allocate many times what it has.
func TestSavedTaskgraphsTakeNoMoreMemoryThanTheirSizeSuggests(t *testing.T) {
	const elements = 20_000
	for _, list := range []string{"devices", "kernels", "storage", "present", "memory", "constructs"} {
		for _, element := range []string{"{}", "null", `{"size":0,"align":0}`, `{"kind":"taskwait nowait","depend":[` + strings.Repeat("{},", 20) + `{}]}`} {
			graph := `{"version":1,"` + list + `":[` + strings.Repeat(element+",", elements*4/len(element)) + element + `]}`
			archive := vkomp.SavedWith([]byte(graph))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(archive), int64(len(archive)))
			runtime.ReadMemStats(&after)
			if n := (after.TotalAlloc - before.TotalAlloc) / uint64(len(archive)); n > 40 || err == nil && len(element) < 5 {
				t.Errorf("%s of %.40s: %d times %d bytes, %v", list, element, n, len(archive), err)
			}
		}
	}
}

// A file that is cut off or changed is refused or, where the change is in what does not matter, the same.
func TestSavedTaskgraphsThatAreDamagedAreRefused(t *testing.T) {
	rt := vktest.Open(t)
	x := make([]byte, 4)
	file := saveOf(t, rt, func(ctx context.Context) error {
		return rt.MemcpyAsync(ctx, vkomp.HostPtr(x[:2]), vkomp.HostPtr(x[2:]), 2)
	})
	read := func(file []byte) error {
		_, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
		return err
	}
	must(t, read(file))
	if _, err := vkomp.ReadSavedTaskgraph(nil, 0); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "no reader") {
		t.Errorf("no reader: %v", err)
	}
	for n := range file {
		if err := read(file[:n]); !errors.Is(err, vkomp.ErrInvalidArgument) {
			t.Fatalf("the first %d bytes of %d: %v", n, len(file), err)
		}
	}
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	must(t, err)
	for _, f := range archive.File {
		at, err := f.DataOffset()
		must(t, err)
		for i := at; i < at+int64(f.UncompressedSize64); i++ {
			flipped := bytes.Clone(file)
			flipped[i] ^= 1 << (i % 8)
			if err := read(flipped); !errors.Is(err, vkomp.ErrInvalidArgument) {
				t.Fatalf("byte %d, in %s: %v", i, f.Name, err)
			}
		}
	}
}

// A construct that refers to what is not in the graph is refused when the file is read, whose checksums fit.
func TestSavedConstructsThatReferToWhatIsNotThereAreRefused(t *testing.T) {
	read := func(construct string) error {
		graph := `{"version":2,"devices":[{}],"kernels":[{}],"storage":[{"size":8}],"memory":[{"size":8}],"constructs":[` + construct + `]}`
		// Elements that are shorter than those which are written are refused.
		file := vkomp.SavedWith([]byte(strings.ReplaceAll(graph, "{", "{"+strings.Repeat(" ", 64))))
		_, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
		return err
	}
	for _, c := range []struct {
		construct string // with %s for the part that changes
		valid     []string
		invalid   []string
	}{
		{`{"kind":%s}`, []string{`"taskwait nowait"`, `"target"`, `"target enter data"`, `"target exit data"`, `"target update"`}, []string{`""`, `"taskwait"`, `"memset"`}},
		{`{"kind":"target",%s}`, []string{`"device":0`, `"range":[9223372036854775807,1,1]`}, []string{`"device":1`, `"device":-1`, `"kernel":1`, `"kernel":-1`, `"range":[1,1,9223372036854775808]`}},
		{`{"kind":"target update",%s}`, []string{`"kernel":1`}, []string{`"device":1`, `"device":-1`}},
		{`{"kind":"target","items":[{%s}]}`,
			[]string{
				`"storage":0,"offset":4,"size":4`, `"storage":-1`, `"type":5`, `"presence":2`,
				`"memory":{"memory":0,"offset":8}`, `"size":9223372036854775807,"memory":{"memory":0}`,
			}, []string{
				`"storage":1`, `"storage":-2`, `"storage":-1,"offset":1`, `"storage":-1,"size":1`, `"offset":5,"size":4`, `"offset":9`, `"size":18446744073709551615`,
				`"type":6`, `"type":-1`, `"presence":3`, `"presence":-1`,
				`"memory":{"memory":1}`, `"memory":{"memory":-1}`, `"memory":{"memory":0,"offset":9}`, `"size":9223372036854775808,"memory":{"memory":0}`,
			}},
		{`{"kind":"target","values":[{%s}]}`,
			[]string{`"bytes":"AAAA"`, `"host":{"storage":0,"offset":4,"size":4}`, `"memory":{"memory":0,"offset":8}`},
			[]string{`"host":{"storage":1}`, `"host":{"storage":0,"size":9}`, `"memory":{"memory":1}`, `"memory":{"memory":0,"offset":9}`}},
		{`{"kind":"taskwait nowait","depend":[{%s}]}`,
			[]string{`"kind":1`, `"kind":1,"offset":4,"size":4`},
			[]string{`"kind":0`, `"kind":99`, `"kind":257`, `"kind":-255`, `"kind":1,"storage":1`, `"kind":1,"offset":4,"size":5`}},
		{`{"kind":"memset","bytes":4,"dst":%s}`,
			[]string{`{"host":{"storage":0,"offset":4,"size":4}}`, `{"memory":{"memory":0,"offset":4}}`},
			[]string{
				`null`, `{}`, `{"host":{"storage":0,"size":4},"memory":{"memory":0}}`, `{"host":{"storage":1,"size":4}}`, `{"host":{"storage":0,"size":8}}`,
				`{"host":{"storage":0,"size":2}}`, `{"host":{"storage":0,"offset":6,"size":4}}`, `{"memory":{"memory":1}}`, `{"memory":{"memory":0,"offset":5}}`,
			}},
		{`{"kind":"memcpy","bytes":4,"dst":{"memory":{"memory":0}},"src":%s}`, []string{`{"memory":{"memory":0,"offset":4}}`}, []string{`null`, `{"memory":{"memory":0,"offset":5}}`}},
		{`{"kind":"memset","dst":{"host":{"storage":0,"size":%[1]s}},"bytes":%[1]s}`, []string{"1"}, []string{"0", "9", "9223372036854775808"}},
	} {
		for _, part := range c.valid {
			must(t, read(fmt.Sprintf(c.construct, part)))
		}
		for _, part := range c.invalid {
			if err := read(fmt.Sprintf(c.construct, part)); !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), "construct 0: ") {
				t.Errorf("%s with %s: %v", c.construct, part, err)
			}
		}
	}
}

// Reading a file never panics, whatever it has; its checksums are made to fit.
func FuzzReadSavedTaskgraph(f *testing.F) {
	f.Add([]byte(`{"version":1,"storage":[{"size":4,"align":8}],"constructs":[{"kind":"memset","device":0,"kernel":0,"range":[0,0,0],"dst":{"host":{"storage":0,"offset":0,"size":4}},"bytes":4}]}`))
	f.Add([]byte(`{"version":1,"devices":[{"number":0,"name":"","driver":""}],"present":[{"device":0,"storage":0,"offset":0,"size":18446744073709551615}]}`))
	f.Fuzz(func(t *testing.T, graph []byte) {
		file := vkomp.SavedWith(graph)
		saved, err := vkomp.ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
		if (saved == nil) == (err == nil) {
			t.Errorf("%v, %v", saved, err)
		}
	})
}

// SaveTaskgraph waits for earlier tasks as Taskwait does, and listeners hear of it: what it copies does not race with them.
func TestListenersHearOfTheWaitOfSaving(t *testing.T) {
	waits := 0
	tool := ompt.Callbacks{SyncRegionWait: func(e ompt.SyncRegionEvent) {
		if e.Kind == ompt.SyncRegionTaskwait && e.Endpoint == ompt.ScopeBegin {
			waits++
		}
	}}
	found := races(t, vkomp.Options{Tool: tool}, func(ctx context.Context, p *racing) {
		if p.rt.DefaultDevice(ctx).IsInitial() {
			t.Skip("needs a Vulkan device")
		}
		p.enter(ctx, false, vkomp.To(p.y))
		g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords), NoGroup: true}
		must(t, p.rt.Taskgraph(ctx, g, func(ctx context.Context) error {
			p.axpy(ctx, true, p.x, p.y)
			return nil
		}))
		must(t, p.rt.SaveTaskgraph(ctx, g, io.Discard))
		p.exit(ctx, false, vkomp.Release(p.y))
	})
	if len(found) > 0 || waits != 2 {
		t.Errorf("races %v, and the tool hears of %d taskwaits, want that of SaveTaskgraph and that after it", found, waits)
	}
}
