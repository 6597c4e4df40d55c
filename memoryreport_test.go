package vkomp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/vktest"
)

func withSites(o *vkomp.Options) { o.LeakSites = true }

// line returns the position of its call, n lines further down.
func line(n int) string {
	_, file, at, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), at+n)
}

// leaked closes the runtime and returns the lines of its error, without directories and without
// the name of the device.
func leaked(t *testing.T, rt *vkomp.Runtime) []string {
	t.Helper()
	err := rt.Close()
	if !errors.Is(err, vkomp.ErrLeaked) {
		t.Fatal("Close returned", err)
	}
	text := regexp.MustCompile(` /\S*/`).ReplaceAllString(err.Error(), " ")
	lines := strings.Split(regexp.MustCompile(`device 0 \(.*?\): sched`).ReplaceAllString(text, "device 0: sched"), "\n")
	for i, l := range lines {
		lines[i] = regexp.MustCompile(` \(github.com/vkomp/vkomp_test\.\S*\)$`).ReplaceAllString(l, "")
	}
	return lines
}

func TestLeaksAtCloseAreNamedByTheirLine(t *testing.T) {
	withTool := func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{TargetDataOpEMI: func(ompt.TargetDataOpEMIEvent) {}}
	}
	withRace := func(o *vkomp.Options) { o.Race = true }
	// With a tool or the race detector, other functions stand between the program's call and
	// the scheduler.
	for name, listeners := range map[string][]func(*vkomp.Options){"none": nil, "tool": {withTool}, "race": {withRace}, "both": {withTool, withRace}} {
		t.Run(name, func(t *testing.T) { testLeaksAreNamed(t, append(listeners, withSites)...) })
	}
}

func testLeaksAreNamed(t *testing.T, options ...func(*vkomp.Options)) {
	ctx := context.Background()
	rt := vktest.Open(t, options...)
	d := rt.DefaultDevice(ctx)
	x, y, z := make([]float32, 100), make([]float32, 200), make([]float32, 300)

	allocated := line(1)
	p, err := d.Alloc(ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	associated := line(1)
	q, err := d.Alloc(ctx, 2000)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AssociatePtr(ctx, vkomp.HostPtr(z), q, 1200, 0); err != nil {
		t.Fatal(err)
	}
	onHost := line(1)
	h, err := rt.InitialDevice().Alloc(ctx, 500)
	if err != nil || p.IsNil() || h.IsNil() {
		t.Fatal(p, h, err)
	}
	entered := line(1)
	if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Label: "grid"}); err != nil {
		t.Fatal(err)
	}
	// It begins when the task before it completes, on that task's goroutine.
	token := make([]byte, 1)
	started := make(chan struct{})
	err = rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(token)}, Body: func(context.Context) error { <-started; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	deferred := line(1)
	err = rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}, Depend: []vkomp.Depend{vkomp.In(token)}, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	close(started)

	want := []string{
		"vkomp: initial device: close: storage still allocated: 1 allocations not freed, 500 bytes",
		"1 allocations of 500 bytes at " + onHost,
		"vkomp: device 0: sched: close: storage still allocated: 2 blocks of storage still mapped, 1200 bytes; 2 allocations not freed, 3000 bytes; 1 blocks of host storage still associated with them, 1200 bytes",
		"1 associated allocations of 2000 bytes at " + associated,
		"1 allocations of 1000 bytes at " + allocated,
		"1 blocks still mapped of 800 bytes (target enter data, map 0) at " + deferred,
		"1 blocks still mapped of 400 bytes (grid, map 0) at " + entered,
	}
	if diff := cmp.Diff(want, leaked(t, rt)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := rt.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	runtime.KeepAlive([]any{x, y, z})
}

// A leak of a region that never ends is reported at the region's line in the program, on
// whichever goroutine the region begins.
func TestLeakOfADataRegionIsNamedByItsLine(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		ctx := context.Background()
		rt := vktest.Open(t, withSites)
		x := make([]float32, 100)
		where := line(1)
		err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x)}, NoWait: noWait}, func(ctx context.Context) error {
			// Map the slice once more than the region unmaps it.
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}})
		})
		if err := errors.Join(err, rt.Taskwait(ctx)); err != nil {
			t.Fatal(err)
		}
		if lines := leaked(t, rt); len(lines) != 2 || lines[1] != "1 blocks still mapped of 400 bytes (target data, map 0) at "+where {
			t.Errorf("NoWait %t: %q, want %s", noWait, lines, where)
		}
		runtime.KeepAlive(x)
	}
}

func TestLeaksAtCloseWithoutSites(t *testing.T) {
	ctx := context.Background()
	rt := vktest.Open(t)
	x := make([]float32, 100)
	if err := rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}, Label: "grid"}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []vkomp.Device{rt.DefaultDevice(ctx), rt.InitialDevice()} {
		if _, err := d.Alloc(ctx, 1000); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"vkomp: initial device: close: storage still allocated: 1 allocations not freed, 1000 bytes",
		"vkomp: device 0: sched: close: storage still allocated: 1 blocks of storage still mapped, 400 bytes; 1 allocations not freed, 1000 bytes",
		"1 blocks still mapped of 400 bytes (grid, map 0)",
	}
	if diff := cmp.Diff(want, leaked(t, rt)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	runtime.KeepAlive(x)
}

func TestDeclaredStorageIsNoLeakAtClose(t *testing.T) {
	rt := vktest.Open(t, withSites)
	x := make([]float32, 100)
	if err := rt.DeclareTarget(context.Background(), vkomp.DeclareTarget{Enter: []vkomp.Arg{vkomp.To(x)}}); err != nil {
		t.Fatal(err)
	}
	if err := rt.TargetUpdate(context.Background(), vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x)}}); err != nil {
		t.Fatal(err)
	}
	if d := rt.DefaultDevice(context.Background()).Memory(); d.Declared != (vkomp.MemoryCount{Count: 1, Bytes: 400}) {
		t.Errorf("%+v", d)
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestMemoryReportCountsWhatTheProgramHas(t *testing.T) {
	inMemoryModes(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := context.Background()
		before := d.Memory()
		if before.Opened != d.IsInitial() || before.Allocated.Count != 0 || before.Total.LiveBytes != 0 {
			t.Errorf("before the first use: %+v", before)
		}
		p := alloc(t, d, 1000)
		for _, size := range []int{5000, 1} {
			q, err := d.Alloc(ctx, size)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Free(ctx, q); err != nil {
				t.Fatal(err)
			}
		}
		m := d.Memory()
		if !m.Opened || m.Allocated != (vkomp.MemoryCount{Count: 1, Bytes: 1000}) || m.Total.Allocations != 1 ||
			m.Total.LiveBytes < 1000 || m.Total.LiveBytes >= 2000 || m.Total.PeakLiveBytes < 6000 {
			t.Errorf("%+v", m)
		}
		if m.Number != d.Number() || m.Name != d.Info().Name || m.Type != d.Info().Type {
			t.Errorf("%+v of device %+v", m, d.Info())
		}
		if d.IsInitial() {
			if len(m.Heaps) != 0 || m.Heaps == nil {
				t.Errorf("the initial device has heaps %+v", m.Heaps)
			}
			return
		}
		if len(m.Heaps) == 0 || len(m.Heaps) != len(before.Heaps) || m.Heaps[0].Size == 0 || before.Heaps[0].Size != m.Heaps[0].Size {
			t.Errorf("before %+v, then %+v", before.Heaps, m.Heaps)
		}
		x, y := make([]float32, 100), make([]float32, 200)
		if err := d.AssociatePtr(ctx, vkomp.HostPtr(x), p, 400, 8); err != nil {
			t.Fatal(err)
		}
		err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}, func(context.Context) error {
			m = d.Memory()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if m.Mapped != (vkomp.MemoryCount{Count: 1, Bytes: 800}) || m.Associated != (vkomp.MemoryCount{Count: 1, Bytes: 400}) || m.Declared.Count != 0 {
			t.Errorf("%+v", m)
		}
		var storage, staging uint64
		for _, h := range m.Heaps {
			storage += h.Storage.LiveBytes
			staging += h.Staging.PeakLiveBytes
		}
		if storage != m.Total.LiveBytes || rt.Stats().Storage.LiveBytes > storage {
			t.Errorf("%d bytes in use in the heaps, %+v", storage, m.Total)
		}
		// Where the host writes no storage itself, y has gone through staging.
		staged := slices.ContainsFunc(d.Decisions(), func(made vkomp.Decision) bool { return made.Name == "host writes storage" && made.Choice == "never" })
		if staged != (staging > 0) {
			t.Errorf("%d bytes of staging at most", staging)
		}
		if strings.HasSuffix(t.Name(), "staging") && !staged {
			t.Errorf("the host writes storage: %q", d.Decisions())
		}
		if err := d.DisassociatePtr(ctx, vkomp.HostPtr(x)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMemoryReportAsJSON(t *testing.T) {
	rt := vktest.Open(t)
	alloc(t, rt.DefaultDevice(t.Context()), 1000)
	alloc(t, rt.InitialDevice(), 500)
	report := rt.MemoryReport()
	var written bytes.Buffer
	if err := report.WriteJSON(&written); err != nil {
		t.Fatal(err)
	}
	var read vkomp.MemoryReport
	decoder := json.NewDecoder(bytes.NewReader(written.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report, read); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
	if n := rt.NumDevices(); len(read.Devices) != n+1 || read.Devices[n].Type != "initial" || read.Devices[n].Allocated.Bytes != 500 || read.Devices[0].Allocated.Bytes != 1000 {
		t.Errorf("%+v", read)
	}

	host := vktest.Open(t, vktest.Host)
	alloc(t, host.InitialDevice(), 64)
	written.Reset()
	if err := host.MemoryReport().WriteJSON(&written); err != nil {
		t.Fatal(err)
	}
	const want = `{"devices":[{"number":0,"name":"host","type":"initial","opened":true,"heaps":[],` +
		`"total":{"blocks":0,"block_bytes":0,"live_bytes":64,"peak_live_bytes":64,"peak_block_bytes":0,"allocations":1,` +
		`"free_bytes":0,"largest_free":0,"fragmentation":0,"trimmed_blocks":0,"trimmed_bytes":0},` +
		`"mapped":{"count":0,"bytes":0},"associated":{"count":0,"bytes":0},"declared":{"count":0,"bytes":0},` +
		`"allocated":{"count":1,"bytes":64},"pinned":{"count":0,"bytes":0}}]}`
	var compact bytes.Buffer
	if err := json.Compact(&compact, written.Bytes()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, strings.TrimSpace(compact.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// It may be called from any goroutine at any time, also while devices open and after Close.
func TestMemoryReportFromManyGoroutines(t *testing.T) {
	rt := vktest.Open(t)
	d := rt.DefaultDevice(t.Context())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				p, err := d.Alloc(context.Background(), 300)
				if err != nil {
					t.Error(err)
					return
				}
				if m := d.Memory(); m.Allocated.Count < 1 || m.Total.LiveBytes < 300 {
					t.Errorf("%+v", m)
				}
				if len(rt.MemoryReport().Devices) != rt.NumDevices()+1 {
					t.Error("a device is missing")
				}
				if err := d.Free(context.Background(), p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	heaps := d.Memory().Heaps
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	m := d.Memory()
	if m.Opened || m.Total.BlockBytes != 0 || len(m.Heaps) != len(heaps) {
		t.Errorf("after Close: %+v", m)
	}
	if zero := (vkomp.Device{}).Memory(); !slices.Equal(zero.Heaps, nil) || zero.Name != "" || zero.Opened {
		t.Errorf("of no device: %+v", zero)
	}
}
