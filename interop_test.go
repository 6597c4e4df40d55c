package vkomp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/foreign"
	"github.com/vkomp/vkomp/tests/vktest"
)

const targetAndSync = interop.TypeTarget | interop.TypeTargetSync

// newObject returns a new object of the default device.
func newObject(t *testing.T, rt *vkomp.Runtime, types interop.Types) interop.Object {
	t.Helper()
	var o interop.Object
	must(t, rt.Interop(t.Context(), vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: types}}}))
	if o == interop.None {
		t.Fatal("the object is none")
	}
	return o
}

// sharedQueue is an option for objects without a queue of their own, which tests use that have
// to hold on any driver: foreign work then goes to one of the runtime's queues, by the explicit
// protocol or by Object.Submit.
func sharedQueue(o *vkomp.Options) { o.InteropQueues = -1 }

func use(o ...interop.Object) vkomp.Interop { return vkomp.Interop{Use: o} }

// later returns the construct with nowait and these depend clauses.
func later(i vkomp.Interop, depend ...vkomp.Depend) vkomp.Interop {
	i.NoWait, i.Depend = true, depend
	return i
}

// Foreign work may draw, and tasks do not: they leave the queues that can to it.
func TestForeignWorkGetsAQueueThatDraws(t *testing.T) {
	vktest.Layers(t, "manyqueue")
	for families, draws := range map[string]uint32{"GCT2,CT4,T2": 0, "CT4,T2,GCT1": 2, "CT2": 0} {
		for name, queues := range map[string]int{"own queue": 0, "shared queue": -1} {
			t.Run(families+", "+name, func(t *testing.T) {
				t.Setenv("VKOMP_MANYQUEUE_FAMILIES", families)
				rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues = queues })
				x := ramp(100)
				must(t, rt.Target(t.Context(), saxpyOn(t, newKernel(t, rt, shaders.Saxpy), 2, x, x)))
				o := newObject(t, rt, interop.TypeTargetSync)
				want := draws
				if name == "own queue" && families == "CT4,T2,GCT1" {
					want = 0 // the only queue that draws is not reserved
				}
				if q, ok := o.Queue(); !ok || q.Family != want {
					t.Errorf("the object has a queue of family %d, want %d", q.Family, want)
				}
				for _, q := range rt.Stats().Queues {
					if q.Dispatches > 0 && families != "CT2" && uint32(q.Family) == draws {
						t.Errorf("tasks use the queue that draws: %+v", q)
					}
				}
			})
		}
	}
}

func TestInteropObjectHasTheHandlesOfItsDevice(t *testing.T) {
	for name, queues := range map[string]int{"own queue": 0, "shared queue": -1} {
		t.Run(name, func(t *testing.T) {
			vktest.Layers(t, "manyqueue")
			t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2") // with one queue an object would have none of its own
			rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues = queues })
			for number := range rt.NumDevices() {
				d, err := rt.Device(number)
				must(t, err)
				var o, again interop.Object
				construct := vkomp.Interop{Device: d, Init: []vkomp.InteropInit{
					{Object: &o, Types: targetAndSync},
					{Object: &again, Types: targetAndSync, Prefer: []interop.Preference{{Name: "cuda"}, {Runtime: interop.ForeignRuntimeVulkan}}},
				}}
				must(t, rt.Interop(t.Context(), construct))
				want := vkomp.VulkanHandles(d)
				for property, handle := range map[interop.Property]uintptr{
					interop.PropertyPlatform:            want.Instance,
					interop.PropertyDevice:              want.PhysicalDevice,
					interop.PropertyDeviceContext:       want.Device,
					interop.PropertyGetInstanceProcAddr: want.GetInstanceProcAddr,
				} {
					if got, rc := o.Ptr(property); rc != interop.RCSuccess || got != handle || got == 0 {
						t.Errorf("device %d: %s is %#x (code %d), want %#x", number, o.PropertyName(property), got, rc, handle)
					}
				}
				if n, rc := o.Int(interop.PropertyDeviceNum); rc != interop.RCSuccess || n != number {
					t.Errorf("device %d: device_num is %d (code %d)", number, n, rc)
				}
				if again == o {
					t.Error("two objects are the same")
				}
				if h, ok := again.Vulkan(); !ok || h != want {
					t.Errorf("device %d: a second object has %+v (%v), want %+v", number, h, ok, want)
				}

				s, _ := o.Semaphore()
				if other, _ := again.Semaphore(); other == s {
					t.Error("two objects have one semaphore")
				}
				if value, err := vkomp.SemaphoreValue(d, s); err != nil || value != 0 {
					t.Errorf("device %d: the semaphore has %d, %v", number, value, err)
				}
				must(t, rt.Interop(t.Context(), later(use(o))))
				must(t, rt.Taskwait(t.Context()))
				last, _ := o.Int(interop.PropertyWaitValue)
				if value, err := vkomp.SemaphoreValue(d, s); err != nil || value != uint64(last) || last == 0 {
					t.Errorf("device %d: the semaphore has %d, %v, want %d", number, value, err, last)
				}
				if p, _ := o.Ptr(interop.PropertyTargetSync); p != uintptr(s) {
					t.Errorf("device %d: targetsync is %#x, want %#x", number, p, s)
				}

				own, shared := vkomp.QueueFamilies(d)
				for k, o := range []interop.Object{o, again} {
					q, _ := o.Queue()
					queues := shared
					if q.Implicit {
						queues = own
					}
					if wantOwn := name == "own queue" && k == 0; q.Implicit != wantOwn {
						t.Errorf("device %d: object %d has a queue of its own: %v", number, k, q.Implicit)
					}
					if family, ok := queues[q.Handle]; !ok || family != q.Family || q.Lock == nil {
						t.Errorf("device %d: object %d has %+v, want one of %v", number, k, q, queues)
					}
					handle, _ := o.Ptr(interop.PropertyQueue)
					if family, _ := o.Int(interop.PropertyQueueFamily); handle != q.Handle || family != int(q.Family) {
						t.Errorf("device %d: the properties are %#x and %d, the queue %+v", number, handle, family, q)
					}
				}
			}
		})
	}
}

func TestInteropObjectOfTheDefaultDevice(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, interop.TypeTarget)
	if n, ok := o.DeviceNum(); !ok || n != rt.DefaultDevice(context.Background()).Number() {
		t.Errorf("device %d (%v), want %d", n, ok, rt.DefaultDevice(context.Background()).Number())
	}
}

// On a host without devices no object can be initialised.
func TestInteropObjectsThatCannotBeInitialisedAreNone(t *testing.T) {
	for name, option := range map[string]func(*vkomp.Options){"with devices": func(*vkomp.Options) {}, "host": vktest.Host} {
		t.Run(name, func(t *testing.T) {
			rt := vktest.Open(t, option)
			x := []uint32{0}
			for _, types := range []interop.Types{interop.TypeTarget, interop.TypeTargetSync, targetAndSync} {
				var o interop.Object
				construct := vkomp.Interop{Device: rt.InitialDevice(), Init: []vkomp.InteropInit{{Object: &o, Types: types}}}
				must(t, rt.Interop(t.Context(), construct))
				if o != interop.None {
					t.Errorf("types %q: %v", types, o)
				}
			}
			none := interop.None
			before := rt.Stats().Tasks
			must(t, rt.Interop(t.Context(), use(interop.None, interop.None)))
			must(t, rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&none}, NoWait: true}))
			if n := rt.Stats().Tasks - before; n != 0 {
				t.Errorf("none has %d tasks", n)
			}
			// Objects without a device still take part in the order of tasks, by any kind of
			// dependence.
			for _, item := range []vkomp.Depend{vkomp.Out(x), vkomp.InOut(x), vkomp.InOutSet(x), vkomp.MutexInOutSet(x), vkomp.InOutAllMemory()} {
				gate, order := make(chan struct{}), []string{}
				must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
					<-gate
					order = append(order, "before")
					return nil
				}}))
				must(t, rt.Interop(t.Context(), later(use(interop.None), item)))
				must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.In(x)}, Body: func(context.Context) error {
					order = append(order, "after")
					return nil
				}}))
				close(gate)
				must(t, rt.Taskwait(t.Context()))
				if fmt.Sprint(order) != "[before after]" {
					t.Errorf("%v: %v", item.Kind(), order)
				}
			}
		})
	}
}

// Every restriction of the construct that Go's types do not enforce. A construct that is
// refused changes nothing.
func TestInteropMistakesAreErrors(t *testing.T) {
	rt, other := vktest.Open(t), vktest.Open(t)
	x := []uint32{0}
	target, syncs, elsewhere := newObject(t, rt, interop.TypeTarget), newObject(t, rt, targetAndSync), newObject(t, other, targetAndSync)
	destroyed := newObject(t, rt, targetAndSync)
	alias := destroyed
	must(t, rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&alias}}))
	if alias != interop.None {
		t.Error("the destroyed object is not none")
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no more time")
	cancel(cause)
	kept := map[string]*interop.Object{}
	variable := func(name string, o interop.Object) *interop.Object {
		v := o
		kept[name] = &v
		return &v
	}
	a, none := variable("a", syncs), variable("none", interop.None)
	a2, b, d, e := variable("a2", syncs), variable("b", target), variable("d", destroyed), variable("e", elsewhere)
	prefer := func(p ...interop.Preference) vkomp.Interop {
		return vkomp.Interop{Init: []vkomp.InteropInit{{Object: none, Types: interop.TypeTarget, Prefer: p}}}
	}
	inits := func(o ...*interop.Object) (all []vkomp.InteropInit) {
		for _, o := range o {
			all = append(all, vkomp.InteropInit{Object: o, Types: targetAndSync})
		}
		return all
	}
	type objects = []*interop.Object
	for name, c := range map[string]struct {
		construct vkomp.Interop
		want      error
		says      []string
	}{
		"no clause":                       {vkomp.Interop{NoWait: true, Depend: []vkomp.Depend{vkomp.In(x)}}, vkomp.ErrInvalidArgument, []string{"no init, use or destroy clause"}},
		"init without a variable":         {vkomp.Interop{Init: inits(nil)}, vkomp.ErrInvalidArgument, []string{"init clause 0 has no object"}},
		"destroy without a variable":      {vkomp.Interop{Destroy: objects{none, nil}}, vkomp.ErrInvalidArgument, []string{"destroy clause 1 has no object"}},
		"init without a type":             {vkomp.Interop{Init: []vkomp.InteropInit{{Object: none}}}, vkomp.ErrInvalidArgument, []string{"init clause 0", "without an interop type"}},
		"init of no such type":            {vkomp.Interop{Init: []vkomp.InteropInit{{Object: none, Types: 0x80}}}, vkomp.ErrInvalidArgument, []string{"init clause 0", "0x80"}},
		"init of what is alive":           {vkomp.Interop{Init: inits(none, a)}, vkomp.ErrInvalidArgument, []string{"init clause 1", syncs.String(), "to be destroyed before"}},
		"init of another runtime's":       {vkomp.Interop{Init: inits(e)}, vkomp.ErrInvalidArgument, []string{"init clause 0", "to be destroyed before"}},
		"a variable in two inits":         {vkomp.Interop{Init: inits(none, none)}, vkomp.ErrInvalidArgument, []string{"init clause 0", "init clause 1"}},
		"a variable in init and destroy":  {vkomp.Interop{Init: inits(none), Destroy: objects{none}}, vkomp.ErrInvalidArgument, []string{"init clause 0", "destroy clause 0"}},
		"an object in two uses":           {use(syncs, syncs), vkomp.ErrInvalidArgument, []string{syncs.String(), "use clause 0", "use clause 1"}},
		"an object in use and destroy":    {vkomp.Interop{Use: []interop.Object{syncs}, Destroy: objects{a}}, vkomp.ErrInvalidArgument, []string{syncs.String(), "use clause 0", "destroy clause 0"}},
		"an object in two destroys":       {vkomp.Interop{Destroy: objects{a, a}}, vkomp.ErrInvalidArgument, []string{"destroy clause 0", "destroy clause 1"}},
		"an object and its copy":          {vkomp.Interop{Destroy: objects{a, a2}}, vkomp.ErrInvalidArgument, []string{syncs.String(), "destroy clause 0", "destroy clause 1"}},
		"use of what is no more":          {use(syncs, destroyed), vkomp.ErrInvalidArgument, []string{"use clause 1", destroyed.String(), "destroyed before"}},
		"destroy of what is no more":      {vkomp.Interop{Destroy: objects{a, d}}, vkomp.ErrInvalidArgument, []string{"destroy clause 1", destroyed.String(), "destroyed before"}},
		"use of another runtime's":        {use(syncs, elsewhere), vkomp.ErrInvalidArgument, []string{"use clause 1", "another runtime"}},
		"destroy of another runtime's":    {vkomp.Interop{Destroy: objects{a, e}}, vkomp.ErrInvalidArgument, []string{"destroy clause 1", "another runtime"}},
		"depend without targetsync":       {later(use(target), vkomp.In(x)), vkomp.ErrInvalidArgument, []string{"depend without an object of type targetsync"}},
		"init depend without targetsync":  {later(prefer(), vkomp.In(x)), vkomp.ErrInvalidArgument, []string{"depend without an object of type targetsync"}},
		"destroy depend, no targetsync":   {later(vkomp.Interop{Destroy: objects{b}}, vkomp.In(x)), vkomp.ErrInvalidArgument, []string{"depend without an object of type targetsync"}},
		"depend without a type":           {later(vkomp.Interop{Init: inits(none), Destroy: objects{a}}, vkomp.In(x), vkomp.Depend{}), vkomp.ErrInvalidDepend, []string{"depend clause 1", "no dependence type"}},
		"a device of another runtime":     {vkomp.Interop{Device: other.DefaultDevice(t.Context()), Init: inits(none)}, vkomp.ErrInvalidDevice, []string{"another runtime"}},
		"that, with use":                  {vkomp.Interop{Device: other.DefaultDevice(t.Context()), Use: []interop.Object{syncs}}, vkomp.ErrInvalidDevice, []string{"another runtime"}},
		"prefer_type: an item of nothing": {prefer(interop.Preference{Name: "hip"}, interop.Preference{}), vkomp.ErrInvalidArgument, []string{"init clause 0", "item 1", "no foreign runtime"}},
		"prefer_type: two fr in an item":  {prefer(interop.Preference{Runtime: interop.ForeignRuntimeCUDA, Name: "sycl"}), vkomp.ErrInvalidArgument, []string{"item 0", "cuda", "sycl"}},
		"prefer_type: another attribute":  {prefer(interop.Preference{Name: "hip", Attr: []string{"ompx_a", "x_b"}}), vkomp.ErrInvalidArgument, []string{"item 0", `"x_b"`}},
		"prefer_type: a comma":            {prefer(interop.Preference{Attr: []string{"ompx_a,ompx_b"}}), vkomp.ErrInvalidArgument, []string{"item 0", `"ompx_a,ompx_b"`}},
		"an ended context":                {vkomp.Interop{Init: inits(none), Use: []interop.Object{target}, Destroy: objects{a}}, cause, nil},
	} {
		ctx := t.Context()
		if c.want == cause {
			ctx = ended
		}
		before, value := rt.Stats(), vkompValues(syncs)
		err := rt.Interop(ctx, c.construct)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want a %q", name, err, c.want)
			continue
		}
		for _, says := range append(c.says, "vkomp: interop: ") {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q does not say %q", name, err, says)
			}
		}
		if after := rt.Stats(); after.Tasks != before.Tasks || after.Edges != before.Edges || after.Submissions != before.Submissions {
			t.Errorf("%s: before it %+v, after it %+v", name, before, after)
		}
		if now := vkompValues(syncs); now != value {
			t.Errorf("%s: values %v, before it %v", name, now, value)
		}
		for name2, want := range map[string]interop.Object{"a": syncs, "a2": syncs, "b": target, "d": destroyed, "e": elsewhere, "none": interop.None} {
			if *kept[name2] != want {
				t.Fatalf("%s: %s is %v, was %v", name, name2, *kept[name2], want)
			}
		}
		if syncs.Types() != targetAndSync || target.Types() != interop.TypeTarget || elsewhere.Types() != targetAndSync {
			t.Fatalf("%s: an object was destroyed", name)
		}
	}
	must(t, rt.Interop(t.Context(), vkomp.Interop{Init: inits(d, none), Destroy: objects{a, b}}))
	if *d == interop.None || *none == interop.None || *a != interop.None || syncs.Types() != 0 || target.Types() != 0 {
		t.Error("a construct with four objects")
	}
	must(t, rt.Close())
	for name, construct := range map[string]vkomp.Interop{"init": {Init: inits(b)}, "use": use(*d), "destroy": {Destroy: objects{d}}} {
		if err := rt.Interop(t.Context(), construct); !errors.Is(err, vkomp.ErrClosed) || *d == interop.None || *b != interop.None {
			t.Errorf("%s, closed: %v", name, err)
		}
	}
}

// vkompValues returns the values that the next foreign work would have.
func vkompValues(o interop.Object) [2]int {
	wait, _ := o.Int(interop.PropertyWaitValue)
	signal, _ := o.Int(interop.PropertySignalValue)
	return [2]int{wait, signal}
}

func TestInteropTasksAreOfTheGraph(t *testing.T) {
	rt := vktest.Open(t)
	x := []uint32{0}
	target, syncs := newObject(t, rt, interop.TypeTarget), newObject(t, rt, interop.TypeTargetSync)
	for name, c := range map[string]struct {
		construct vkomp.Interop
		tasks     uint64
	}{
		"target":                 {use(target), 0},
		"target, nowait":         {later(use(target)), 0},
		"targetsync":             {use(syncs), 0},
		"targetsync, nowait":     {later(use(syncs)), 1},
		"targetsync, depend":     {vkomp.Interop{Use: []interop.Object{syncs}, Depend: []vkomp.Depend{vkomp.In(x)}}, 1},
		"both, nowait, depend":   {later(use(target, syncs), vkomp.InOut(x)), 1},
		"none, depend":           {vkomp.Interop{Use: []interop.Object{interop.None}, Depend: []vkomp.Depend{vkomp.In(x)}}, 1},
		"none, with targetsync":  {later(use(interop.None, syncs), vkomp.In(x)), 1},
		"depend of two siblings": {later(use(syncs), vkomp.InOut(x), vkomp.InOutAllMemory()), 1},
	} {
		before := rt.Stats().Tasks
		must(t, rt.Interop(t.Context(), c.construct))
		if n := rt.Stats().Tasks - before; n != c.tasks {
			t.Errorf("%s: %d tasks, want %d", name, n, c.tasks)
		}
	}
	must(t, rt.Taskwait(t.Context()))
}

func TestDestroyingAnInteropObjectEndsItsCopies(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, targetAndSync)
	alias := o
	must(t, rt.Interop(t.Context(), vkomp.Interop{Destroy: []*interop.Object{&o}}))
	if o != interop.None {
		t.Error("the destroyed object is not none")
	}
	if _, rc := alias.Ptr(interop.PropertyDevice); rc != interop.RCEmpty {
		t.Errorf("a copy reads %d, want %d", rc, interop.RCEmpty)
	}
}

// A semaphore that the device does not know as one that it can export, as after Close or a hard pause has destroyed it
// meanwhile, is an invalid argument.
func TestInteropSemaphoreThatCannotBeExported(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, targetAndSync)
	if d := rt.DefaultDevice(t.Context()); !vkomp.ClaimTimelineFd(d) {
		t.Skip("the device exports the semaphore")
	}
	if fd, err := rt.InteropSemaphoreFd(o); fd != -1 || !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("descriptor %d: %v", fd, err)
	}
}

func TestInteropObjectsAreStaleOnceTheRuntimeIsClosed(t *testing.T) {
	rt := vktest.Open(t)
	o := newObject(t, rt, targetAndSync)
	must(t, rt.Close())
	for p := interop.PropertyFirst; p < interop.Property(o.NumProperties()); p++ {
		_, ri := o.Int(p)
		h, rh := o.Ptr(p)
		_, rs := o.Str(p)
		if ri != interop.RCEmpty || rh != interop.RCEmpty || rs != interop.RCEmpty || h != 0 {
			t.Errorf("%s reads %d, %d (%#x), %d", o.PropertyName(p), ri, rh, h, rs)
		}
	}
	if _, _, err := o.Next(); !errors.Is(err, interop.ErrInvalid) {
		t.Errorf("Next: %v", err)
	}
	if _, err := rt.InteropBuffer(o, vkomp.HostPtr([]uint32{0}), 0); !errors.Is(err, vkomp.ErrClosed) {
		t.Errorf("InteropBuffer: %v", err)
	}
}

// Constructs return while the device waits for foreign work that only this goroutine submits,
// later on.
func TestInteropWaitsForNoForeignWork(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	x, y := []uint32{0}, []uint32{0}
	o := newObject(t, rt, targetAndSync)
	s, _ := o.Semaphore()
	_, first, err := o.Next()
	must(t, err)
	_, second, err := o.Next()
	must(t, err)
	var after interop.Object
	done := false
	must(t, rt.Interop(t.Context(), use(o)))
	must(t, rt.Interop(t.Context(), later(use(o), vkomp.InOut(x))))
	// These constructs wait for their predecessors, which do not come after the foreign work.
	must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: func(context.Context) error { return nil }}))
	must(t, rt.Interop(t.Context(), vkomp.Interop{Use: []interop.Object{o}, Depend: []vkomp.Depend{vkomp.In(y)}}))
	must(t, rt.Interop(t.Context(), vkomp.Interop{Use: []interop.Object{o}, Depend: []vkomp.Depend{vkomp.In([]uint32{0})}}))
	must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { done = true; return nil }}))
	must(t, rt.Interop(t.Context(), later(vkomp.Interop{Use: []interop.Object{o}, Init: []vkomp.InteropInit{{Object: &after, Types: targetAndSync}}}, vkomp.InOut(x))))
	must(t, rt.Interop(t.Context(), later(vkomp.Interop{Destroy: []*interop.Object{&o, &after}}, vkomp.InOut(x))))
	if value, err := vkomp.SemaphoreValue(rt.DefaultDevice(t.Context()), s); err != nil || value != 0 || done {
		t.Errorf("the semaphore has %d, %v; the task is done: %v", value, err, done)
	}
	// No object is left whose construct could report it: Close does.
	err = rt.Close()
	for _, signal := range []uint64{first, second} {
		if says := fmt.Sprintf("value %d of interop object 1 of device", signal); !errors.Is(err, interop.ErrNeverSubmitted) || !strings.Contains(err.Error(), says) {
			t.Errorf("Close: %v, want %q", err, says)
		}
	}
	if errors.Is(err, interop.ErrNeverSignalled) || !done {
		t.Errorf("Close: %v; the task is done: %v", err, done)
	}
}

// records is a slog.Handler that keeps warnings and errors.
type records struct {
	mu   sync.Mutex
	text strings.Builder
}

func (*records) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *records) WithAttrs([]slog.Attr) slog.Handler             { return r }
func (r *records) WithGroup(string) slog.Handler                  { return r }
func (r *records) Handle(ctx context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slog.NewTextHandler(&r.text, nil).Handle(ctx, record)
}

func TestCloseNamesForeignWorkThatDoesNotCome(t *testing.T) {
	for name, submitted := range map[string]bool{"announced": false, "said to be submitted": true} {
		for _, types := range []interop.Types{interop.TypeTargetSync, targetAndSync} {
			t.Run(fmt.Sprint(name, ", ", types), func(t *testing.T) {
				kept := &records{}
				// Close does not wait for work that was announced and not submitted: the test
				// would take an hour.
				timeout := time.Hour
				if submitted {
					timeout = 20 * time.Millisecond
				}
				rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1, Logger: slog.New(kept), ForeignTimeout: timeout})
				must(t, err)
				x := []uint32{0}
				o := newObject(t, rt, types)
				_, signal, err := o.Next()
				must(t, err)
				if submitted {
					must(t, o.Submitted(signal))
				}
				must(t, rt.Interop(t.Context(), later(use(o), vkomp.InOut(x))))
				done := false
				must(t, rt.Task(t.Context(), vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(x)}, Body: func(context.Context) error { done = true; return nil }}))
				err = rt.Close()
				want, other := interop.ErrNeverSubmitted, interop.ErrNeverSignalled
				if submitted {
					want, other = other, want
				}
				says := fmt.Sprintf("value %d of %v", signal, o)
				if !errors.Is(err, want) || errors.Is(err, other) || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q in a %q", err, says, want)
				}
				if !done {
					t.Error("the task after it has not run")
				}
				waits := strings.Contains(kept.text.String(), fmt.Sprintf("%v awaits value %d, which foreign work was submitted to signal", o, signal))
				if waits != submitted {
					t.Errorf("the log says %s", kept.text.String())
				}
				must(t, rt.Close())
			})
		}
	}
}

func TestInteropBufferIsWhereStorageLies(t *testing.T) {
	rt := vktest.Open(t, vktest.Staging)
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	x, unmapped := make([]uint32, 256), make([]uint32, 256)
	target := newObject(t, rt, interop.TypeTarget)
	destroyed := newObject(t, rt, interop.TypeTarget)
	gone := destroyed
	must(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&gone}}))
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x[64:])}}))
	p, err := d.Alloc(ctx, 1024)
	must(t, err)
	freed, err := d.Alloc(ctx, 1024)
	must(t, err)
	must(t, d.Free(ctx, freed))
	other := vktest.Open(t)
	elsewhere, err := other.DefaultDevice(ctx).Alloc(ctx, 64)
	must(t, err)
	onHost, err := rt.InitialDevice().Alloc(ctx, 64)
	must(t, err)

	whole, err := rt.InteropBuffer(target, vkomp.HostPtr(x[64:]), 0)
	must(t, err)
	block, err := rt.InteropBuffer(target, p, 1024)
	must(t, err)
	if whole.Buffer == 0 || block.Buffer == 0 || whole.Size != 768 || block.Size != 1024 {
		t.Errorf("%+v and %+v", whole, block)
	}
	for name, c := range map[string]struct {
		p       vkomp.DevicePtr
		size    uint64
		of      interop.Buffer
		offset  uint64
		expects uint64
	}{
		"sub-slice":            {vkomp.HostPtr(x[128:192]), 0, whole, 256, 256},
		"sub-slice, some":      {vkomp.HostPtr(x[128:192]), 12, whole, 256, 12},
		"host pointer, offset": {vkomp.HostPtr(x).Add(512), 0, whole, 256, 512},
		"device pointer, some": {p.Add(128), 512, block, 128, 512},
		"device pointer's end": {p.Add(1020), 4, block, 1020, 4},
		"device pointer, rest": {p.Add(128), 0, block, 128, 896},
	} {
		got, err := rt.InteropBuffer(target, c.p, c.size)
		if err != nil || got.Buffer != c.of.Buffer || got.Offset != c.of.Offset+c.offset || got.Size != c.expects {
			t.Errorf("%s: %+v, %v; the whole is %+v", name, got, err, c.of)
		}
		if c.of.Address != 0 && got.Address != c.of.Address+c.offset {
			t.Errorf("%s: address %#x, the whole has %#x", name, got.Address, c.of.Address)
		}
	}
	for name, c := range map[string]struct {
		o    interop.Object
		p    vkomp.DevicePtr
		size uint64
		want error
	}{
		"unmapped":                 {target, vkomp.HostPtr(unmapped), 0, vkomp.ErrNotPresent},
		"before what is mapped":    {target, vkomp.HostPtr(x[:64]), 0, vkomp.ErrNotPresent},
		"half of it mapped":        {target, vkomp.HostPtr(x[:128]), 0, vkomp.ErrPartialOverlap},
		"more than the slice":      {target, vkomp.HostPtr(x[128:192]), 257, vkomp.ErrInvalidPointer},
		"more than can be":         {target, vkomp.HostPtr(x[128:192]), 1 << 63, vkomp.ErrInvalidPointer},
		"before the slice":         {target, vkomp.HostPtr(x[128:192]).Add(-4), 4, vkomp.ErrInvalidPointer},
		"behind the slice":         {target, vkomp.HostPtr(x[128:192]).Add(260), 0, vkomp.ErrInvalidPointer},
		"the slice's end":          {target, vkomp.HostPtr(x[128:192]).Add(256), 0, vkomp.ErrInvalidPointer},
		"the allocation's end":     {target, p.Add(1024), 0, vkomp.ErrInvalidPointer},
		"nil":                      {target, vkomp.DevicePtr{}, 4, vkomp.ErrInvalidPointer},
		"freed":                    {target, freed, 4, vkomp.ErrInvalidPointer},
		"more than the allocation": {target, p.Add(1020), 8, vkomp.ErrInvalidPointer},
		"another device's":         {target, onHost, 4, vkomp.ErrInvalidDevice},
		"another runtime's":        {target, elsewhere, 4, vkomp.ErrInvalidDevice},
		"of none":                  {interop.None, p, 4, vkomp.ErrInvalidArgument},
		"of what is no more":       {destroyed, p, 4, vkomp.ErrInvalidArgument},
	} {
		if b, err := rt.InteropBuffer(c.o, c.p, c.size); !errors.Is(err, c.want) || b != (interop.Buffer{}) || !strings.Contains(err.Error(), "vkomp: interop buffer: ") {
			t.Errorf("%s: %+v, %v; want a %q", name, b, err, c.want)
		}
	}
	if _, err := other.InteropBuffer(target, elsewhere, 4); !errors.Is(err, vkomp.ErrInvalidArgument) {
		t.Errorf("another runtime: %v", err)
	}
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x[64:])}}))
	if _, err := rt.InteropBuffer(target, vkomp.HostPtr(x[64:]), 0); !errors.Is(err, vkomp.ErrNotPresent) {
		t.Errorf("unmapped since: %v", err)
	}
	must(t, d.Free(ctx, p))
	must(t, rt.InitialDevice().Free(ctx, onHost))
	must(t, other.DefaultDevice(ctx).Free(ctx, elsewhere))
}

// The image of a value has other bytes than the value, and may have fewer: it is exported by its device pointer alone.
func TestInteropBufferOfAnImage(t *testing.T) {
	type value struct{ a [16]int32 }
	type image struct{ N int32 }
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		m := vkomp.Mapper[value, image]{Encode: func(i *image, v *value) { i.N = v.a[0] }}
		v, o := &value{}, newObject(t, rt, interop.TypeTarget)
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		for _, p := range []vkomp.DevicePtr{vkomp.HostPtr(single(v)), vkomp.HostPtr(v.a[:1]), vkomp.HostPtr(v.a[4:])} {
			if b, err := rt.InteropBuffer(o, p, 0); !errors.Is(err, vkomp.ErrPartialOverlap) {
				t.Errorf("%v: %+v, %v", p, b, err)
			}
		}
		if b, err := rt.InteropBuffer(o, d.MappedPtr(vkomp.HostPtr(single(v))), 0); err != nil || b.Size != 4 {
			t.Errorf("the image: %+v, %v", b, err)
		}
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.Release(v)}}))
	})
}

// Mapped storage that foreign work has written is copied to the host as what kernels write is.
func TestForeignWritesAreCopiedBack(t *testing.T) {
	for _, path := range vktest.Paths {
		t.Run(fmt.Sprint(path), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			ctx := t.Context()
			x, y := make([]uint32, 1024), make([]uint32, 1024)
			for k := range x {
				x[k] = uint32(k) + 1
			}
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}}))
			o := newObject(t, rt, targetAndSync)
			from, err := rt.InteropBuffer(o, vkomp.HostPtr(x[256:512]), 0)
			must(t, err)
			to, err := rt.InteropBuffer(o, vkomp.HostPtr(y[512:768]), 0)
			must(t, err)
			code, err := foreign.Open(o)
			must(t, err)
			commands, err := code.Copy(from, to)
			must(t, err)
			must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x), vkomp.InOut(y))))
			must(t, o.Submit(ctx, func(queue uintptr) error { return code.Submit(queue, commands) }))
			must(t, rt.Interop(ctx, later(vkomp.Interop{Destroy: []*interop.Object{&o}}, vkomp.InOut(x), vkomp.InOut(y))))
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x), vkomp.From(y)}, Depend: []vkomp.Depend{vkomp.InOut(x), vkomp.InOut(y)}}))
			must(t, rt.Taskwait(ctx))
			code.Close()
			for k := range y {
				want := uint32(0)
				if k >= 512 && k < 768 {
					want = uint32(k-256) + 1
				}
				if y[k] != want {
					t.Fatalf("word %d is %d, want %d", k, y[k], want)
				}
			}
		})
	}
}

// A task copies a slice to the host, and foreign work behind it overwrites the slice on the device: the host gets what the
// task has written, however the bytes come to it.
func TestForeignWorkOverwritesWhatWasCopiedBack(t *testing.T) {
	for _, path := range vktest.Paths {
		t.Run(fmt.Sprint(path), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			ctx := t.Context()
			k := newKernel(t, rt, shaders.Saxpy)
			const n, rounds = 64, 20
			one, x, y := constant(n, 1), constant(n, 0), constant(n, 1000)
			must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(one), vkomp.To(x), vkomp.To(y)}}))
			o := newObject(t, rt, targetAndSync)
			from, err := rt.InteropBuffer(o, vkomp.HostPtr(y), 0)
			must(t, err)
			to, err := rt.InteropBuffer(o, vkomp.HostPtr(x), 0)
			must(t, err)
			code, err := foreign.Open(o)
			must(t, err)
			commands, err := code.Copy(from, to)
			must(t, err)
			want := float32(1)
			for range rounds {
				step := saxpyOn(t, k, 1, one, x)
				step.Args[1], step.NoWait, step.Depend = vkomp.From(x).Always(), true, []vkomp.Depend{vkomp.InOut(x)}
				must(t, rt.Target(ctx, step))
				must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
				must(t, o.Submit(ctx, func(queue uintptr) error { return code.Submit(queue, commands) }))
				must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
				must(t, rt.Taskwait(ctx))
				if !slices.Equal(x, constant(n, want)) {
					t.Fatalf("x is %v…, want %v", x[0], want)
				}
				want = 1001
			}
			must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(one), vkomp.From(x), vkomp.Release(y)}}))
			if !slices.Equal(x, constant(n, 1000)) {
				t.Errorf("x is %v… behind the foreign work, want 1000", x[0])
			}
			code.Close()
			must(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
		})
	}
}

func TestInteropTasksBelongToTheirTaskgroup(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	o := newObject(t, rt, targetAndSync)
	_, signal, err := o.Next()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	err = rt.Taskgroup(ctx, func(ctx context.Context) error {
		defer cancel()
		return rt.Interop(ctx, later(use(o)))
	})
	says := fmt.Sprintf("%v awaits value %d, which no foreign work was submitted to signal", o, signal)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
	must(t, o.Withdraw(signal))
	must(t, rt.Taskwait(t.Context()))
}

// A taskgroup does not wait for foreign work, and the context that its body got ends with it.
func TestForeignWorkWithTheContextOfATaskgroupEndsWithIt(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	for _, outside := range []bool{false, true} {
		o := newObject(t, rt, targetAndSync)
		_, signal, err := o.Next()
		must(t, err)
		submitted := false
		must(t, rt.Taskgroup(t.Context(), func(ctx context.Context) error {
			if outside {
				ctx = t.Context()
			}
			return o.Submit(ctx, func(uintptr) error {
				submitted = true
				return nil
			})
		}))
		must(t, o.Withdraw(signal)) // what the work comes after
		must(t, o.Ready(t.Context(), signal+1))
		err = rt.Interop(t.Context(), use(o))
		if outside {
			must(t, err)
		} else {
			refused(t, "work of a taskgroup that is over", err, context.Canceled, "the taskgroup of the context is over")
		}
		if submitted != outside {
			t.Errorf("outside %v, submitted %v", outside, submitted)
		}
	}
}

func ExampleRuntime_Interop() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()

	// #pragma omp interop init(target: obj)
	var obj interop.Object
	err = rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &obj, Types: interop.TypeTarget}}})
	if err != nil {
		log.Fatal(err)
	}
	name, _ := obj.Str(interop.PropertyFrName)
	device, rc := obj.Ptr(interop.PropertyDeviceContext)
	fmt.Println(name, obj.PropertyTypeDesc(interop.PropertyDeviceContext), device != 0, obj.RCDesc(rc))

	// On the initial device there is no foreign runtime.
	var host interop.Object
	err = rt.Interop(ctx, vkomp.Interop{Device: rt.InitialDevice(), Init: []vkomp.InteropInit{{Object: &host, Types: interop.TypeTarget}}})
	fmt.Println(host == interop.None, err)

	// #pragma omp interop destroy(obj)
	err = rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&obj}})
	fmt.Println(obj == interop.None, err)
	// Output:
	// vulkan VkDevice true success
	// true <nil>
	// true <nil>
}

// Foreign work between two constructs, on the object's queue.
func ExampleRuntime_Interop_targetsync() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	x := []float32{1, 2, 3}

	// #pragma omp interop init(target,targetsync: obj)
	var obj interop.Object
	err = rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &obj, Types: interop.TypeTarget | interop.TypeTargetSync}}})
	if err != nil {
		log.Fatal(err)
	}
	err = rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x)}}, func(ctx context.Context) error {
		// For foreign code, mapped storage is a range of a VkBuffer.
		b, err := rt.InteropBuffer(obj, vkomp.HostPtr(x), 0)
		if err != nil {
			return err
		}
		fmt.Println(b.Buffer != 0, b.Size)

		// #pragma omp interop use(obj) depend(inout: x[:3]) nowait
		between := vkomp.Interop{Use: []interop.Object{obj}, Depend: []vkomp.Depend{vkomp.InOut(x)}, NoWait: true}
		if err := rt.Interop(ctx, between); err != nil {
			return err
		}
		err = obj.Submit(ctx, func(queue uintptr) error {
			// Call vkQueueSubmit with the program's own command buffers here.
			return nil
		})
		if err != nil {
			return err
		}
		if err := rt.Interop(ctx, between); err != nil {
			return err
		}
		return rt.Taskwait(ctx)
	})
	if err != nil {
		log.Fatal(err)
	}
	err = rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&obj}})
	fmt.Println(obj == interop.None, err)
	// Output:
	// true 12
	// true <nil>
}

// Foreign work that another thread submits to any queue, with values of the object's semaphore.
func ExampleRuntime_Interop_semaphore() {
	rt, err := vkomp.Open(vkomp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	ctx := context.Background()
	var obj interop.Object
	err = rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &obj, Types: interop.TypeTarget | interop.TypeTargetSync}}})
	if err != nil {
		log.Fatal(err)
	}
	semaphore, _ := obj.Semaphore()
	wait, signal, err := obj.Next()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(semaphore != 0, signal-wait)
	submit := func() error { return errors.New("the GPU is busy") }
	if err := obj.Ready(ctx, wait); err != nil {
		log.Fatal(err)
	}
	if submit() == nil {
		err = obj.Submitted(signal)
	} else {
		err = obj.Withdraw(signal)
	}
	fmt.Println(err)
	err = rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&obj}, NoWait: true})
	fmt.Println(obj == interop.None, err)
	// Output:
	// true 1
	// <nil>
	// true <nil>
}

// Constructs of one object whose tasks exclude each other must not wait for each other, each
// for the other's place in the object's order.
func TestInteropConstructsOfOneObjectThatExcludeEachOther(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	x, y := []uint32{0}, []uint32{0}
	o := newObject(t, rt, targetAndSync)
	release := make(chan struct{})
	must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(y)}, Body: func(context.Context) error { <-release; return nil }}))
	must(t, rt.Interop(ctx, later(use(o), vkomp.In(y), vkomp.MutexInOutSet(x))))
	_, signal, err := o.Next()
	must(t, err)
	must(t, o.Withdraw(signal))
	must(t, rt.Interop(ctx, later(use(o), vkomp.MutexInOutSet(x))))
	close(release)
	must(t, rt.Taskwait(ctx))
}

// Foreign work fails while the runtime is being closed: Close reports it. From then on an
// object refuses to announce work.
func TestForeignWorkWhileTheRuntimeCloses(t *testing.T) {
	mine := errors.New("mine")
	rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1})
	must(t, err)
	o := newObject(t, rt, targetAndSync)
	begun, closing := make(chan struct{}), make(chan struct{})
	must(t, o.Submit(t.Context(), func(uintptr) error {
		close(begun)
		<-closing
		return mine
	}))
	<-begun
	var late error
	must(t, rt.Task(t.Context(), vkomp.Task{Body: func(context.Context) error {
		defer close(closing)
		for late == nil {
			var signal uint64
			if _, signal, late = o.Next(); late == nil {
				_ = o.Withdraw(signal) // unless Close has done it
			}
		}
		return nil
	}}))
	if err := rt.Close(); !errors.Is(err, mine) || errors.Is(err, interop.ErrNeverSignalled) {
		t.Errorf("Close: %v, want %v", err, mine)
	}
	if !errors.Is(late, interop.ErrInvalid) || !strings.Contains(late.Error(), "being closed") {
		t.Errorf("Next: %v", late)
	}
}

// The failure of one object's foreign work does not keep a construct from having its effect on
// its other objects.
func TestInteropGoesOnAfterAFailure(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	a, b := newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync)
	mine, called := errors.New("mine"), make(chan struct{})
	must(t, a.Submit(t.Context(), func(uintptr) error {
		close(called)
		return mine
	}))
	<-called
	_, signal, err := a.Next()
	must(t, err)
	must(t, a.Ready(t.Context(), signal-1))
	must(t, a.Withdraw(signal))
	err = rt.Interop(t.Context(), vkomp.Interop{Use: []interop.Object{a}, Destroy: []*interop.Object{&b}})
	if !errors.Is(err, mine) || b != interop.None {
		t.Errorf("%v; b is %v", err, b)
	}
}

// A wait for a task behind foreign work says in its error which foreign work that is.
func TestEveryWaitNamesTheForeignWorkItWaitsFor(t *testing.T) {
	rt := vktest.Open(t)
	ctx := t.Context()
	x, y := make([]uint32, 64), make([]uint32, 64)
	must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}))
	o := newObject(t, rt, targetAndSync)
	_, signal, err := o.Next()
	must(t, err)
	must(t, rt.Interop(ctx, later(use(o), vkomp.InOut(x))))
	d := []vkomp.Depend{vkomp.In(x)}
	for name, wait := range map[string]func(context.Context) error{
		"TargetUpdate": func(ctx context.Context) error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(x)}, Depend: d})
		},
		"TargetData": func(ctx context.Context) error {
			return rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.To(y)}, Depend: d}, func(context.Context) error { return nil })
		},
		"Task": func(ctx context.Context) error {
			return rt.Task(ctx, vkomp.Task{If: vkomp.If(false), Depend: d, Body: func(context.Context) error { return nil }})
		},
		"Taskwait": func(ctx context.Context) error { return rt.Taskwait(ctx, d...) },
	} {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if err := wait(short); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "awaits value") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	must(t, o.Withdraw(signal))
	_ = rt.Taskwait(ctx)
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}}))
}

// A task waits for its child, whose construct with an object is generated behind another
// construct with that object, which depends on the task. If constructs were submitted in the
// order of their encounter, neither could be.
func TestConstructOfAChildThatAnEarlierConstructWaitsFor(t *testing.T) {
	rt := vktest.Open(t, sharedQueue)
	ctx := t.Context()
	x := []uint32{0}
	o := newObject(t, rt, targetAndSync)
	release := make(chan struct{})
	must(t, rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(ctx context.Context) error {
		<-release
		if err := rt.Interop(ctx, later(use(o))); err != nil {
			return err
		}
		return rt.Taskwait(ctx)
	}}))
	must(t, rt.Interop(ctx, later(use(o), vkomp.In(x))))
	close(release)
	must(t, rt.Taskwait(ctx))
}

// A construct of objects of two devices orders their foreign work by the host: no queue of one
// device waits for the other.
func TestConstructOfObjectsOfSeveralDevices(t *testing.T) {
	for name, i := range map[string]vkomp.Interop{
		"merged":            {},
		"nowait":            {NoWait: true},
		"nowait and depend": {NoWait: true, Depend: []vkomp.Depend{vkomp.InOut([]uint32{0})}},
	} {
		t.Run(name, func(t *testing.T) {
			rt, d := openTwice(t, sharedQueue)
			ctx := t.Context()
			var o [2]interop.Object
			for k := range o {
				must(t, rt.Interop(ctx, vkomp.Interop{Device: d[k], Init: []vkomp.InteropInit{{Object: &o[k], Types: targetAndSync}}}))
			}
			first, second := o[1], o[0]
			_, before, err := first.Next()
			must(t, err)
			i.Use, i.Destroy = []interop.Object{o[0]}, []*interop.Object{&o[1]}
			must(t, rt.Interop(ctx, i))
			if o[1] != interop.None {
				t.Errorf("the object is %v", o[1])
			}
			after, signal, err := second.Next()
			must(t, err)
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := second.Ready(short, after); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("work after the construct could be submitted (%v), and that before it was not", err)
			}
			must(t, first.Withdraw(before))
			must(t, second.Ready(ctx, after))
			must(t, second.Withdraw(signal))
			must(t, rt.Taskwait(ctx))
		})
	}
}

func TestCloseNamesForeignWorkBehindAConstructOfTwoObjectsOnce(t *testing.T) {
	rt, err := vkomp.Open(vkomp.Options{InteropQueues: -1, ForeignTimeout: 500 * time.Millisecond})
	must(t, err)
	a, b := newObject(t, rt, targetAndSync), newObject(t, rt, targetAndSync)
	_, signal, err := b.Next()
	must(t, err)
	must(t, b.Submitted(signal))
	must(t, rt.Interop(t.Context(), use(a, b)))
	err = rt.Close()
	if n := strings.Count(fmt.Sprint(err), interop.ErrNeverSignalled.Error()); n != 1 {
		t.Errorf("%d failures for one: %v", n, err)
	}
}
