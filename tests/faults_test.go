package tests

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// mayFail holds the results with which Vulkan allows each command to fail.
var mayFail = func() map[string][]vk.Result {
	memory := []vk.Result{vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory}
	with := func(more ...vk.Result) []vk.Result { return slices.Concat(memory, more) }
	all := map[string][]vk.Result{
		"vkCreateDevice": with(vk.ErrorInitialization, vk.ErrorExtensionNotPresent, vk.ErrorFeatureNotPresent, vk.ErrorTooManyObjects, vk.ErrorDeviceLost),

		"vkAllocateMemory":                     with(vk.ErrorTooManyObjects, vk.ErrorInvalidExternalHandle),
		"vkMapMemory":                          with(vk.ErrorMemoryMap),
		"vkGetMemoryHostPointerPropertiesEXT":  {vk.ErrorOutOfHostMemory, vk.ErrorInvalidExternalHandle},
		"vkCreateDescriptorPool":               with(vk.ErrorFragmentation),
		"vkAllocateDescriptorSets":             with(vk.ErrorFragmentedPool, vk.ErrorOutOfPoolMemory),
		"vkEnumerateDeviceExtensionProperties": memory,
	}
	for _, command := range []string{"vkQueueSubmit", "vkQueueWaitIdle", "vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkGetQueryPoolResults"} {
		all[command] = with(vk.ErrorDeviceLost)
	}
	for _, command := range []string{"vkCreateSemaphore", "vkSignalSemaphore", "vkCreateQueryPool", "vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges",
		"vkCreateBuffer", "vkBindBufferMemory", "vkCreateShaderModule", "vkCreateComputePipelines", "vkCreatePipelineCache", "vkCreatePipelineLayout", "vkCreateDescriptorSetLayout",
		"vkCreateCommandPool", "vkAllocateCommandBuffers", "vkBeginCommandBuffer", "vkEndCommandBuffer", "vkResetCommandBuffer"} {
		all[command] = memory
	}
	return all
}()

// sentinelOf returns the sentinel that errors caused by a result have to match.
func sentinelOf(r vk.Result) error {
	switch r {
	case vk.ErrorDeviceLost:
		return vkomp.ErrDeviceLost
	case vk.ErrorOutOfHostMemory:
		return vkomp.ErrOutOfHostMemory
	case vk.ErrorOutOfDeviceMemory:
		return vkomp.ErrOutOfDeviceMemory
	case vk.ErrorExtensionNotPresent, vk.ErrorFeatureNotPresent, vk.ErrorInvalidExternalHandle:
		return vkomp.ErrUnsupported
	case vk.ErrorInitialization:
		return nil // no sentinel matches it
	}
	return vkomp.ErrOutOfMemory
}

// sweep is a small program whose calls are made to fail.
type sweep struct {
	t       *testing.T
	rt      *vkomp.Runtime
	d       vkomp.Device
	faults  *vktest.Faults
	k       affine
	x, y, z []uint32
	// big, and each slice of many, is larger than a page.
	big  []uint32
	many [][]uint32
	part func(s *sweep) []error
}

// add returns a deferred region that adds v to dst. Its items do not share bytes, so that they can
// be imported.
func (s *sweep) add(dst []uint32, v uint32, depend ...vkomp.Depend) vkomp.Target {
	return s.k.on(dst, repeated(len(dst), 0), 1, 0, v, depend...)
}

func (s *sweep) slices() [][]uint32 { return append([][]uint32{s.x, s.y, s.z, s.big}, s.many...) }

func (s *sweep) reset() {
	s.x, s.y, s.z = repeated(64, 1), repeated(64, 2), repeated(64, 3)
	for _, x := range append(s.many, s.big) {
		for k := range x {
			x[k] = 4
		}
	}
}

// constructs maps data, runs kernels on mapped and other slices, and unmaps.
func constructs(s *sweep) (errs []error) {
	ctx := s.t.Context()
	args := func(a ...vkomp.Arg) []vkomp.Arg { return a }
	did := func(err error) { errs = append(errs, err) }
	did(s.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: args(vkomp.To(s.y))}))
	did(s.rt.Target(ctx, s.add(s.x, 1, vkomp.InOut(s.x))))
	did(s.rt.Target(ctx, s.k.on(s.y, s.x, 1, 1, 0, vkomp.In(s.x), vkomp.InOut(s.y))))
	did(s.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: args(vkomp.From(s.y)), Depend: []vkomp.Depend{vkomp.InOut(s.y)}, NoWait: true}))
	did(s.rt.Target(ctx, now(s.add(s.big, 1))))
	did(s.rt.TargetData(ctx, vkomp.TargetData{Maps: args(vkomp.ToFrom(s.z))}, func(ctx context.Context) error {
		return s.rt.Target(ctx, now(s.add(s.z, 5)))
	}))
	did(s.rt.Taskwait(ctx))
	did(s.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: args(vkomp.From(s.y))}))
	// Unmap what a failure has left mapped; its contents are undefined.
	did(s.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: args(vkomp.Delete(s.y), vkomp.Delete(s.z))}))
	did(s.rt.Taskwait(ctx))
	return errs
}

// sideBySide runs kernels without dependences, each on a large slice of its own.
func sideBySide(s *sweep) (errs []error) {
	if s.many == nil {
		for range 8 {
			s.many = append(s.many, repeated(len(s.big), 4))
		}
	}
	for k, x := range s.many {
		errs = append(errs, s.rt.Target(s.t.Context(), s.add(x, uint32(k))))
	}
	return append(errs, s.rt.Taskwait(s.t.Context()))
}

// largeSets runs sets of kernels, one behind the other, that are large enough to be joined.
func largeSets(s *sweep) (errs []error) {
	const row = 256
	ctx := s.t.Context()
	did := func(err error) { errs = append(errs, err) }
	did(s.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(s.big)}}))
	for _, item := range []vkomp.Depend{vkomp.InOutSet(s.z), vkomp.In(s.z), vkomp.InOutSet(s.z)} {
		for k := range len(s.big) / row {
			did(s.rt.Target(ctx, s.add(s.big[k*row:(k+1)*row], 1, item)))
		}
	}
	did(s.rt.Taskwait(ctx))
	did(s.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(s.big)}}))
	did(s.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(s.big)}}))
	return append(errs, s.rt.Taskwait(ctx))
}

// foreignWork uses an interop object with targetsync between two targets.
func foreignWork(s *sweep) (errs []error) {
	ctx := s.t.Context()
	did := func(err error) { errs = append(errs, err) }
	var o interop.Object
	did(s.rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget | interop.TypeTargetSync}}}))
	did(s.rt.Target(ctx, s.add(s.x, 1, vkomp.InOut(s.x))))
	if o != interop.None {
		did(s.rt.Interop(ctx, vkomp.Interop{Use: []interop.Object{o}, Depend: []vkomp.Depend{vkomp.InOut(s.x)}, NoWait: true}))
		did(o.Submit(ctx, func(uintptr) error { return nil }))
		did(s.rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}, Depend: []vkomp.Depend{vkomp.InOut(s.x)}}))
	}
	did(s.rt.Target(ctx, s.add(s.x, 1, vkomp.InOut(s.x))))
	did(s.rt.Taskwait(ctx))
	return errs
}

// pausing pauses resources between constructs.
func pausing(s *sweep) (errs []error) {
	ctx := s.t.Context()
	for _, kind := range []vkomp.PauseKind{vkomp.PauseSoft, vkomp.PauseHard} {
		errs = append(errs, s.rt.Target(ctx, now(s.add(s.x, 1))), s.rt.PauseResource(ctx, kind, s.d))
	}
	return append(errs, s.rt.Target(ctx, now(s.add(s.x, 1))), s.rt.Taskwait(ctx))
}

// replays records a taskgraph, and replays it, also with another slice. It begins with kernels that are one task in replays, and does
// so often enough for their commands to be recorded.
func replays(s *sweep) (errs []error) {
	ctx := s.t.Context()
	did := func(err error) { errs = append(errs, err) }
	zeros := repeated(len(s.x), 0)
	all := []vkomp.Arg{vkomp.To(s.x), vkomp.To(s.y), vkomp.To(s.z), vkomp.To(zeros)}
	did(s.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: all}))
	var of vkomp.ParamSlice[uint32]
	var records vkomp.TaskgraphRecords
	for _, sum := range [][]uint32{s.y, s.y, s.y, s.z} {
		did(s.rt.Taskgraph(ctx, vkomp.Taskgraph{Records: &records, Params: []vkomp.Param{of.Bind(sum)}}, func(ctx context.Context) error {
			sum := of.Get(ctx)
			var errs []error
			for range 3 {
				errs = append(errs, s.rt.Target(ctx, s.k.on(s.x, zeros, 3, 0, 1, vkomp.InOut(s.x))))
			}
			errs = append(errs, s.rt.Target(ctx, s.k.on(sum, s.x, 1, 1, 0, vkomp.In(s.x), vkomp.InOut(sum))))
			motion := vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(sum)}, Depend: []vkomp.Depend{vkomp.In(sum)}, NoWait: true}
			return errors.Join(append(errs, s.rt.TargetUpdate(ctx, motion))...)
		}))
	}
	did(s.rt.Taskwait(ctx))
	for _, exit := range [][]vkomp.Arg{{vkomp.From(s.x)}, {vkomp.Delete(s.x), vkomp.Delete(s.y), vkomp.Delete(s.z), vkomp.Delete(zeros)}} {
		did(s.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: exit}))
	}
	return append(errs, s.rt.Taskwait(ctx))
}

// right reports whether the slices have the results of the part without failures.
func (s *sweep) right(want [][]uint32) bool { return slices.EqualFunc(s.slices(), want, slices.Equal) }

func (s *sweep) copies() (copies [][]uint32) {
	for _, x := range s.slices() {
		copies = append(copies, slices.Clone(x))
	}
	return copies
}

// run opens a device and runs the part.
func (s *sweep) run() error {
	s.reset()
	return errors.Join(s.part(s)...)
}

// fail runs the part while the n-th call of a command fails. It reports whether there was such a
// call.
func (s *sweep) fail(command string, n int, result vk.Result, want [][]uint32) bool {
	s.t.Helper()
	what := fmt.Sprintf("%s, call %d, %v", command, n, result)
	failed := s.faults.Failed(command)
	s.faults.Fail(command, n, 1, result)
	err := s.run()
	s.faults.Mend()
	fell := s.faults.Failed(command) > failed
	after := s.copies()
	sentinel := sentinelOf(result)
	switch {
	case err == nil && !s.right(want):
		s.t.Errorf("%s: no error, and wrong results", what)
	case err != nil && !fell:
		s.t.Errorf("%s: was not called, and yet: %v", what, err)
	case err != nil && sentinel != nil && !errors.Is(err, sentinel):
		s.t.Errorf("%s: the error does not match %v: %v", what, sentinel, err)
	case errors.Is(err, vkomp.ErrDeviceLost) && result != vk.ErrorDeviceLost:
		s.t.Errorf("%s: lost the device: %v", what, err)
	}
	if lost := s.d.Lost(); lost != nil {
		if result != vk.ErrorDeviceLost || !errors.Is(lost, vkomp.ErrDeviceLost) {
			s.t.Errorf("%s: Lost: %v", what, lost)
		}
		if err := s.rt.PauseResource(s.t.Context(), vkomp.PauseSoft, s.d); !errors.Is(err, vkomp.ErrDeviceLost) {
			s.t.Errorf("%s: soft pause: %v", what, err)
		}
		if s.d.IsPresent(vkomp.HostPtr(s.y)) {
			s.t.Errorf("%s: storage is present on a lost device", what)
		}
		s.pause(what)
	}
	// Work that still ran would have changed the slices by then.
	if !s.right(after) {
		s.t.Errorf("%s: slices change after their constructs have ended", what)
	}
	if err := s.run(); err != nil || !s.right(want) {
		s.t.Errorf("%s: afterwards: %v", what, err)
	}
	s.pause(what)
	return fell
}

func (s *sweep) pause(what string) {
	s.t.Helper()
	if err := s.rt.PauseResource(s.t.Context(), vkomp.PauseHard, s.d); err != nil {
		s.t.Fatalf("%s: hard pause: %v", what, err)
	}
}

// newSweep opens a runtime for a part of the program, and returns the contents of its slices after
// a run without failures.
func newSweep(t *testing.T, f *vktest.Faults, part func(*sweep) []error, options ...func(*vkomp.Options)) (s *sweep, want [][]uint32) {
	t.Helper()
	s = &sweep{t: t, faults: f, part: part, big: repeated(1<<14, 4)}
	s.rt = vktest.Open(t, append(options, quick)...)
	s.d = s.rt.DefaultDevice(t.Context())
	s.k = newAffine(t, s.rt)
	succeed(t, s.run())
	want = s.copies()
	s.pause("before")
	return s, want
}

// all makes each call of a command fail once. The first call fails with the first result; the
// others alternate between the results. It returns the number of failed calls.
func (s *sweep) all(command string, want [][]uint32, results ...vk.Result) (runs int) {
	s.t.Helper()
	for n, more := 1, true; more; n++ {
		more = false
		for k, result := range results {
			if (n == 1 || k == n%len(results)) && s.fail(command, n, result, want) {
				more = true
				runs++
			}
		}
	}
	return runs
}

// Each call of each command that may fail fails once, in small programs for each memory path.
func TestEveryCallThatFails(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t)
	for name, c := range map[string]struct {
		part func(*sweep) []error
		path vkomp.MemoryPath
	}{
		"constructs":                {constructs, vkomp.MemoryAuto},
		"constructs, staged":        {constructs, vkomp.MemoryStaged},
		"constructs, not coherent":  {constructs, vkomp.MemoryNonCoherent},
		"constructs, host's memory": {constructs, vkomp.MemoryImported},
		"interop":                   {foreignWork, vkomp.MemoryAuto},
		"pauses":                    {pausing, vkomp.MemoryAuto},
		"replays":                   {replays, vkomp.MemoryAuto},
		"replays, staged":           {replays, vkomp.MemoryStaged},
	} {
		t.Run(name, func(t *testing.T) {
			s, want := newSweep(t, f, c.part, vktest.Path(c.path))
			runs := 0
			for _, command := range slices.Sorted(maps.Keys(mayFail)) {
				runs += s.all(command, want, mayFail[command]...)
			}
			if t.Logf("%d calls have failed", runs); runs < 45 { // how often the host waits depends on its speed
				t.Error("too few")
			}
		})
	}
}

// The device is lost while many queues have delayed work in progress, some of it on the program's
// own slices.
func TestEveryLossOfADeviceWithManyQueues(t *testing.T) {
	vktest.LongConcurrent(t)
	f := vktest.InjectFaults(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "3000")
	for name, c := range map[string]struct {
		part  func(*sweep) []error
		least int
	}{"constructs": {constructs, 6}, "side by side": {sideBySide, 8}, "sets": {largeSets, 8}, "replays": {replays, 4}} {
		t.Run(name, func(t *testing.T) {
			s, want := newSweep(t, f, c.part, vktest.Path(vkomp.MemoryImported), randomly(1))
			submits := s.all("vkQueueSubmit", want, vk.ErrorDeviceLost)
			waits := s.all("vkWaitSemaphores", want, vk.ErrorDeviceLost) // how many there are depends on the host's speed
			if t.Logf("the device was lost by %d submissions and %d waits", submits, waits); submits < c.least || waits == 0 {
				t.Error("too few")
			}
		})
	}
}

// A wait fails or the device is lost while a kernel works on the program's own slice. Once the task
// has failed, the slice belongs to the program again.
func TestSliceInUseWhenACallFails(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t)
	rt := vktest.Open(t, quick, vktest.Path(vkomp.MemoryImported))
	d, k := rt.DefaultDevice(t.Context()), newAffine(t, rt)
	data := repeated(1<<22, 0)
	// Items that share bytes are not imported.
	other, value := repeated(len(data), 0), uint32(0)
	set := func() vkomp.Target { return now(k.on(data, other, 0, 0, value)) }
	for name, c := range map[string]struct {
		commands []string
		count    int
		result   vk.Result
	}{
		"a wait":               {[]string{"vkWaitSemaphores"}, 1, vk.ErrorOutOfHostMemory},
		"looks":                {[]string{"vkGetSemaphoreCounterValue"}, -1, vk.ErrorOutOfDeviceMemory},
		"many waits and looks": {[]string{"vkWaitSemaphores", "vkGetSemaphoreCounterValue"}, 50, vk.ErrorOutOfHostMemory},
		"a wait, lost":         {[]string{"vkWaitSemaphores"}, 1, vk.ErrorDeviceLost},
		"a look, lost":         {[]string{"vkGetSemaphoreCounterValue"}, 1, vk.ErrorDeviceLost},
		"a submission, lost":   {[]string{"vkQueueSubmit"}, 1, vk.ErrorDeviceLost},
	} {
		// Open the device and compile the kernel before calls fail.
		value++
		offload(t, rt, set())
		for _, command := range c.commands {
			f.Fail(command, 1, c.count, c.result)
		}
		value++
		err := rt.Target(t.Context(), set())
		f.Mend()
		if lost := c.result == vk.ErrorDeviceLost; lost != errors.Is(err, vkomp.ErrDeviceLost) || !lost && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			if k := wrongAt(data, repeated(len(data), value)); k >= 0 {
				t.Errorf("%s: element %d is %d, want %d", name, k, data[k], value)
			}
			continue
		}
		// Sample only a few elements, or the kernel would finish in the meantime.
		after := samples(data)
		// Any work has ended when the device is destroyed.
		succeed(t, rt.PauseResource(t.Context(), vkomp.PauseHard, d))
		if k := wrongAt(samples(data), after); k >= 0 {
			t.Errorf("%s: sample %d of %d changed from %d after the error", name, k, len(after), after[k])
		}
	}
}

// While no call tells the state of the device, its tasks are not complete and their storage is not
// freed; CloseContext can still give up. When the calls succeed again, everything completes.
func TestCallsThatFailForLong(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t)
	rt, err := vkomp.Open(vkomp.Options{MemoryPath: vkomp.MemoryImported})
	succeed(t, err)
	k := newAffine(t, rt)
	data, other := repeated(1<<14, 0), repeated(1<<14, 0)
	offload(t, rt, now(k.on(data, other, 0, 0, 1)))
	const wait, look = "vkWaitSemaphores", "vkGetSemaphoreCounterValue"
	f.Fail(wait, 1, -1, vk.ErrorOutOfHostMemory)
	f.Fail(look, 1, -1, vk.ErrorOutOfDeviceMemory)
	task := k.on(data, other, 0, 0, 2)
	task.Label = "awaited"
	succeed(t, rt.Target(t.Context(), task))
	patience := errors.New("no more patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	closed := make(chan error)
	go func() { closed <- rt.CloseContext(ctx) }()
	for f.Failed(wait) < 50 || f.Failed(look) < 50 {
		time.Sleep(time.Millisecond)
	}
	cancel(patience)
	if err := <-closed; !errors.Is(err, patience) || !strings.Contains(err.Error(), `"awaited"`) {
		t.Errorf("while the calls fail: %v", err)
	}
	f.Mend()
	succeed(t, rt.Close())
	if k := wrongAt(data, repeated(len(data), 2)); k >= 0 {
		t.Errorf("element %d is %d, want 2", k, data[k])
	}
}

// samples returns some elements spread over x.
func samples(x []uint32) (some []uint32) {
	for k := 0; k < len(x); k += len(x) / 64 {
		some = append(some, x[k])
	}
	return some
}

// Calls that open a runtime and its devices fail: the error says which, and the next try succeeds.
func TestOpeningThatFails(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t)
	for command, results := range map[string][]vk.Result{
		"vkCreateInstance":                     {vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory},
		"vkEnumeratePhysicalDevices":           {vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory},
		"vkEnumerateDeviceExtensionProperties": {vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory},
	} {
		for _, result := range results {
			f.Fail(command, 1, 1, result)
			rt, err := vkomp.Open(vkomp.Options{})
			if rt != nil {
				succeed(t, rt.Close())
			}
			if !errors.Is(err, sentinelOf(result)) || !errors.Is(err, vkomp.ErrOutOfMemory) {
				t.Errorf("%s, %v: %v", command, result, err)
			}
			f.Mend()
			rt, err = vkomp.Open(vkomp.Options{})
			succeed(t, err)
			if rt.NumDevices() == 0 {
				t.Errorf("%s, %v: no devices afterwards", command, result)
			}
			succeed(t, rt.Close())
		}
	}
}
