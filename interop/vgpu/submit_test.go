package vgpu

import (
	"context"
	"slices"
	"testing"

	"github.com/goki/vgpu/vgpu"
	"github.com/goki/vulkan"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func use(t *testing.T, rt *vkomp.Runtime, o interop.Object, depend ...vkomp.Depend) {
	t.Helper()
	if err := rt.Interop(t.Context(), vkomp.Interop{Use: []interop.Object{o}, Depend: depend, NoWait: true}); err != nil {
		t.Fatal(err)
	}
}

type halver struct {
	device   *Device
	system   *vgpu.System
	pipeline *vgpu.Pipeline
	count    int
}

func newHalver(t *testing.T, d *Device, static bool, count int, values interop.Buffer) *halver {
	t.Helper()
	s, err := d.NewComputeSystem("halve")
	if err != nil {
		t.Fatal(err)
	}
	h := &halver{device: d, system: s, count: count}
	err = d.Do(func() error {
		s.StaticVars = static
		h.pipeline = s.NewPipeline("halve")
		h.pipeline.AddShaderCode("halve", vgpu.ComputeShader, halveSPIRV)
		set := s.Vars().AddSet()
		set.Add("values", vgpu.Float32, 1, vgpu.Storage, vgpu.ComputeShader)
		set.ConfigVals(1)
		s.Config()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Bind(s, 0, 0, "values", values); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *halver) submit(ctx context.Context) error {
	var commands vulkan.CommandBuffer
	err := h.device.Do(func() error {
		commands = h.system.CmdPool.NewBuffer(&h.system.Device)
		h.system.ComputeResetBindVars(commands, 0)
		h.pipeline.ComputeDispatch1D(commands, h.count, 64)
		h.system.ComputeCmdEnd(commands)
		return nil
	})
	if err != nil {
		return err
	}
	return h.device.Submit(ctx, commands)
}

func alternate(t *testing.T, rt *vkomp.Runtime, own, static, ordered bool) (got, want []float32) {
	t.Helper()
	const n, rounds = 1 << 14, 20
	ones, values := make([]float32, n), make([]float32, n)
	want = make([]float32, n)
	for i := range n {
		ones[i], values[i] = 1, float32(i)
		want[i] = float32(i)
		for range rounds {
			want[i] = (want[i] + 1) / 2
		}
	}
	saxpy, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	o, d := opened(t, rt)
	defer closed(t, d)
	if d.queue.Implicit != own {
		t.Errorf("a queue of the object's own: %t, want %t", d.queue.Implicit, own)
	}
	data := vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(values)}}
	err = rt.TargetData(ctx, data, func(ctx context.Context) error {
		b, err := rt.InteropBuffer(o, vkomp.HostPtr(values), 0)
		if err != nil {
			return err
		}
		h := newHalver(t, d, static, n, b)
		for round := range rounds {
			region := vkomp.Target{
				Kernel: saxpy, Range: vkomp.Range{X: n}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(values)},
				Args: []vkomp.Arg{vkomp.To(ones), vkomp.ToFrom(values), vkomp.Value(uint32(n)), vkomp.Value(float32(1))},
			}
			if err := rt.Target(ctx, region); err != nil {
				return err
			}
			if ordered {
				use(t, rt, o, vkomp.InOut(values))
			}
			if err := h.submit(ctx); err != nil {
				return err
			}
			if ordered || round == rounds-1 {
				use(t, rt, o, vkomp.InOut(values))
			}
		}
		return rt.Taskwait(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return values, want
}

func TestForeignTasksOfVGPUAreBetweenTargetTasks(t *testing.T) {
	for name, static := range map[string]bool{"dynamic descriptors": false, "static descriptors": true} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues = -1 })
			got, want := alternate(t, rt, false, static, true)
			if !slices.Equal(got, want) {
				t.Errorf("values %v ..., want %v ...", got[:4], want[:4])
			}
		})
	}
}

// The device is one that the application has made and vkomp has adopted.
func TestVGPUOnAnAdoptedDevice(t *testing.T) {
	application := vktest.Open(t)
	theirs := newObject(t, application, both)
	h, _ := theirs.Vulkan()
	q, _ := theirs.Queue()
	rt, err := vkomp.Open(vkomp.Options{Adopt: &vkomp.Adoption{
		Instance: h.Instance, PhysicalDevice: h.PhysicalDevice, Device: h.Device, GetInstanceProcAddr: h.GetInstanceProcAddr,
		APIVersion: 1<<22 | 2<<12, Features: vkomp.AdoptedFeatures{TimelineSemaphore: true},
		Queues: []vkomp.AdoptedQueue{{Handle: q.Handle, Family: q.Family, Locker: q.Lock}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, want := alternate(t, rt, false, false, true)
	if !slices.Equal(got, want) {
		t.Errorf("values %v ..., want %v ...", got[:4], want[:4])
	}
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutConstructsThereIsNoOrder(t *testing.T) {
	vktest.Layers(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "5000")
	for name, ordered := range map[string]bool{"with constructs": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t)
			got, want := alternate(t, rt, true, false, ordered)
			if slices.Equal(got, want) != ordered {
				t.Errorf("values %v ..., want %v ...: as if ordered: %t", got[:4], want[:4], !ordered)
			}
		})
	}
}

// submitBehindATask submits the halving of values, which are mapped. It waits for a task that ends when release is
// called.
func submitBehindATask(ctx context.Context, t *testing.T, rt *vkomp.Runtime, o interop.Object, d *Device, values []float32) (release func()) {
	t.Helper()
	b, err := rt.InteropBuffer(o, vkomp.HostPtr(values), 0)
	if err != nil {
		t.Fatal(err)
	}
	h := newHalver(t, d, false, len(values), b)
	hold := make(chan struct{})
	held := vkomp.Task{Body: func(context.Context) error { <-hold; return nil }, Depend: []vkomp.Depend{vkomp.Out(values)}}
	if err := rt.Task(ctx, held); err != nil {
		t.Fatal(err)
	}
	use(t, rt, o, vkomp.InOut(values))
	if err := h.submit(ctx); err != nil {
		t.Fatal(err)
	}
	return func() { close(hold) }
}

func TestCloseRefusesWhileSubmissionsAwaitTheirPredecessors(t *testing.T) {
	for name, queues := range map[string]int{"a queue of the runtime's": -1, "the object's own queue": 1} {
		t.Run(name, func(t *testing.T) {
			own, busy := queues > 0, "1 submissions"
			if own {
				vktest.Layers(t, "manyqueue")
				busy = "a construct"
			}
			rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues = queues })
			ctx := t.Context()
			o, d := opened(t, rt)
			defer closed(t, d)
			if d.queue.Implicit != own {
				t.Fatalf("the object has a queue of its own: %v", !own)
			}
			values := make([]float32, 64)
			err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(values)}}, func(ctx context.Context) error {
				release := submitBehindATask(ctx, t, rt, o, d, values)
				wants(t, d.Close(), ErrBusy, busy)
				release()
				use(t, rt, o, vkomp.InOut(values))
				return rt.Taskwait(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A submission that an object cannot put into its order is never made. It must not keep the
// Device from being closed.
func TestSubmissionThatIsNeverMadeKeepsNothingOpen(t *testing.T) {
	rt := vktest.Open(t)
	_, d := opened(t, rt)
	d.pending.Add(1)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A Device that was closed because of a loss may have submissions that are not made yet. What they
// would submit is gone.
func TestSubmissionAfterCloseIsNotMade(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues = -1 })
	o, d := opened(t, rt)
	values := []float32{8}
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(values)}}, func(ctx context.Context) error {
		release := submitBehindATask(ctx, t, rt, o, d, values)
		d.pending.Add(-1) // as if the device were lost
		closed(t, d)
		release()
		use(t, rt, o, vkomp.InOut(values))
		wants(t, rt.Taskwait(ctx), ErrClosed, "the device is closed")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if values[0] != 8 {
		t.Errorf("value %v: want 8", values[0])
	}
}

// A program whose recording has failed may have no command buffer. What comes before and after is not affected.
func TestSubmissionOfNothingIsNotMade(t *testing.T) {
	rt := vktest.Open(t)
	o, d := opened(t, rt)
	defer closed(t, d)
	before, _ := o.Int(interop.PropertyWaitValue)
	var none vulkan.CommandBuffer
	if err := d.Submit(t.Context(), none); err == nil || err.Error() != "vgpu: submit: there is no command buffer" {
		t.Errorf("got %v", err)
	}
	if after, _ := o.Int(interop.PropertyWaitValue); after != before {
		t.Errorf("the object's work has value %d, before the submission %d", after, before)
	}
	use(t, rt, o)
	if err := rt.Taskwait(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSubmissionWhoseContextEndsIsNotMade(t *testing.T) {
	rt := vktest.Open(t)
	o, d := opened(t, rt)
	defer closed(t, d)
	values := []float32{8}
	err := rt.TargetData(t.Context(), vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(values)}}, func(ctx context.Context) error {
		b, err := rt.InteropBuffer(o, vkomp.HostPtr(values), 0)
		if err != nil {
			return err
		}
		h := newHalver(t, d, false, len(values), b)
		ended, end := context.WithCancel(ctx)
		end()
		wants(t, h.submit(ended), context.Canceled)
		// The order of the object is intact.
		if err := h.submit(ctx); err != nil {
			return err
		}
		use(t, rt, o, vkomp.InOut(values))
		return rt.Taskwait(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if values[0] != 4 {
		t.Errorf("value %v: want 4", values[0])
	}
}
