package foreign_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
)

func TestMain(m *testing.M) {
	// A history takes a tenth of a millisecond, so many are run. The flag -rapid.checks asks
	// for another number.
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// readings returns what the three getters give for a property, on one line.
func readings(o interop.Object, p interop.Property) string {
	i, ri := o.Int(p)
	h, rh := o.Ptr(p)
	s, rs := o.Str(p)
	return fmt.Sprintf("%d %d, %#x %d, %q %d", i, ri, h, rh, s, rs)
}

// initialise returns a new object.
func initialise(t *testing.T, d *foreign.Device, types interop.Types) interop.Object {
	t.Helper()
	o, err := d.Init(foreign.Types(types))
	if err != nil || o == foreign.None {
		t.Fatalf("init of types %q: %v, %v", types, o, err)
	}
	return interop.Object(o)
}

const both = interop.TypeTarget | interop.TypeTargetSync

const (
	outOfRange = `0 -2, 0x0 -2, "" -2`
	empty      = `0 -1, 0x0 -1, "" -1`
)

// propertyTable has, for each property, the value and the code that Int, Ptr and Str return.
// The object is the first of its rig, has the property, and has no queue of its own.
var propertyTable = []struct {
	property       interop.Property
	needs          interop.Types // 0 for any
	readings       string
	missing        string // the code for objects without those types
	name, typeDesc string
}{
	{interop.PropertyTargetSync, interop.TypeTargetSync, `0 -4, 0x3e9 0, "" -4`, `0 -4, 0x0 1, "" -4`, "targetsync", "VkSemaphore"},
	{interop.PropertyDeviceContext, interop.TypeTarget, `0 -4, 0x3000 0, "" -4`, `0 -4, 0x0 1, "" -4`, "device_context", "VkDevice"},
	{interop.PropertyDevice, interop.TypeTarget, `0 -4, 0x2000 0, "" -4`, `0 -4, 0x0 1, "" -4`, "device", "VkPhysicalDevice"},
	{interop.PropertyPlatform, interop.TypeTarget, `0 -4, 0x1000 0, "" -4`, `0 -4, 0x0 1, "" -4`, "platform", "VkInstance"},
	{interop.PropertyDeviceNum, 0, `3 0, 0x0 -3, "" -3`, "", "device_num", "int"},
	{interop.PropertyVendorName, 0, `0 -5, 0x0 -5, "vkomp" 0`, "", "vendor_name", "string"},
	{interop.PropertyVendor, 0, `7760751 0, 0x0 -3, "" -3`, "", "vendor", "int"},
	{interop.PropertyFrName, 0, `0 -5, 0x0 -5, "vulkan" 0`, "", "fr_name", "string"},
	{interop.PropertyFrID, 0, `30315 0, 0x0 -3, "" -3`, "", "fr_id", "int"},
	{interop.PropertyGetInstanceProcAddr, 0, `0 -4, 0x4000 0, "" -4`, "", "vkGetInstanceProcAddr", "PFN_vkGetInstanceProcAddr"},
	{interop.PropertyQueue, interop.TypeTargetSync, `0 -4, 0x1000 0, "" -4`, `0 -4, 0x0 1, "" -4`, "queue", "VkQueue"},
	{interop.PropertyQueueFamily, interop.TypeTargetSync, `1 0, 0x0 -3, "" -3`, `0 1, 0x0 -3, "" -3`, "queue_family", "uint32_t"},
	{interop.PropertyWaitValue, interop.TypeTargetSync, `0 0, 0x0 -3, "" -3`, `0 1, 0x0 -3, "" -3`, "wait_value", "uint64_t"},
	{interop.PropertySignalValue, interop.TypeTargetSync, `1 0, 0x0 -3, "" -3`, `0 1, 0x0 -3, "" -3`, "signal_value", "uint64_t"},
}

func TestPropertiesOfEachKindOfObject(t *testing.T) {
	for _, kind := range []struct {
		name  string
		types interop.Types // 0 for interop.None
		end   func(*testing.T, *rig, interop.Object)
		gone  string // what errors say of one that is not alive
	}{
		{"none", 0, nil, "not initialised"},
		{"target", interop.TypeTarget, nil, ""},
		{"targetsync", interop.TypeTargetSync, nil, ""},
		{"both", both, nil, ""},
		{"destroyed", both, func(t *testing.T, r *rig, o interop.Object) {
			if err := r.device.Destroy(foreign.Object(o)); err != nil {
				t.Fatal(err)
			}
		}, "was destroyed"},
		{"device closed", both, func(_ *testing.T, r *rig, _ interop.Object) { r.device.Close() }, "is closed"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			r := newRig(0)
			defer r.free(t)
			o, last := interop.None, interop.Property(0)
			if kind.types != 0 {
				o, last = initialise(t, r.device, kind.types), 5
			}
			alias := o
			if kind.end != nil {
				kind.end(t, r, alias)
			}
			if n := o.NumProperties(); n != int(last) {
				t.Errorf("%d implementation-defined properties, want %d", n, last)
			}
			for _, p := range []interop.Property{interop.PropertyFirst - 1, -1 << 40, last, 1 << 40} {
				if got := readings(o, p); got != outOfRange || o.PropertyName(p) != "" || o.PropertyTypeDesc(p) != "" {
					t.Errorf("property %d reads %s, is named %q, and of type %q", p, got, o.PropertyName(p), o.PropertyTypeDesc(p))
				}
			}
			next := interop.PropertyFirst
			for _, c := range propertyTable {
				if c.property != next {
					t.Fatalf("property %d comes after %d", c.property, next-1)
				}
				next++
				want, name, typeDesc := c.readings, c.name, c.typeDesc
				switch {
				case c.property >= last:
					want, name, typeDesc = outOfRange, "", ""
				case kind.types == 0 || kind.end != nil:
					want, typeDesc = empty, ""
				case c.needs != 0 && kind.types&c.needs == 0:
					want = c.missing
				}
				if got := readings(o, c.property); got != want {
					t.Errorf("%s reads %s, want %s", c.name, got, want)
				}
				if got := o.PropertyName(c.property); got != name {
					t.Errorf("property %d is named %q, want %q", c.property, got, name)
				}
				if got := o.PropertyTypeDesc(c.property); got != typeDesc {
					t.Errorf("%s is of type %q, want %q", c.name, got, typeDesc)
				}
			}
			if kind.types == 0 || kind.end != nil {
				checkGone(t, o, kind.gone)
				return
			}
			if h, ok := o.Vulkan(); ok != (kind.types&interop.TypeTarget != 0) || ok && h != handles || !ok && h != (interop.Handles{}) {
				t.Errorf("Vulkan: %+v, %v", h, ok)
			}
			if n, ok := o.DeviceNum(); !ok || n != 3 {
				t.Errorf("DeviceNum: %d, %v", n, ok)
			}
			if o.Types() != kind.types {
				t.Errorf("types %v", o.Types())
			}
			syncs := kind.types&interop.TypeTargetSync != 0
			if s, ok := o.Semaphore(); ok != syncs || (s == 1001) != syncs {
				t.Errorf("Semaphore: %d, %v", s, ok)
			}
			if q, ok := o.Queue(); ok != syncs || (q == interop.ForeignQueue{Handle: 0x1000, Family: 1, Lock: r.shared.Locker()}) != syncs {
				t.Errorf("Queue: %+v, %v", q, ok)
			}
		})
	}
}

// checkGone fails the test unless o refuses everything, with errors that say why.
func checkGone(t *testing.T, o interop.Object, says string) {
	t.Helper()
	if h, ok := o.Vulkan(); ok || h != (interop.Handles{}) {
		t.Errorf("Vulkan: %+v, %v", h, ok)
	}
	if n, ok := o.DeviceNum(); ok || n != 0 {
		t.Errorf("DeviceNum: %d, %v", n, ok)
	}
	if o.Types() != 0 {
		t.Errorf("types %v", o.Types())
	}
	if s, ok := o.Semaphore(); ok || s != 0 {
		t.Errorf("Semaphore: %d, %v", s, ok)
	}
	if q, ok := o.Queue(); ok || q != (interop.ForeignQueue{}) {
		t.Errorf("Queue: %+v, %v", q, ok)
	}
	for name, err := range map[string]error{
		"Next":   func() error { _, _, err := o.Next(); return err }(),
		"Submit": o.Submit(context.Background(), func(uintptr) error { panic("called") }),
	} {
		if !errors.Is(err, interop.ErrInvalid) || !strings.Contains(err.Error(), o.String()) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEndOfAnObjectIsTheEndOfItsCopiesAlone(t *testing.T) {
	r := newRig(0)
	defer r.free(t)
	o, other := initialise(t, r.device, both), initialise(t, r.device, both)
	if o == other {
		t.Error("two objects are the same")
	}
	alias := o
	if err := r.device.Destroy(foreign.Object(o)); err != nil {
		t.Fatal(err)
	}
	if alias != o {
		t.Error("a copy is another object")
	}
	checkGone(t, alias, "was destroyed")
	if _, rc := other.Ptr(interop.PropertyDevice); rc != interop.RCSuccess {
		t.Errorf("another object of the device reads %d", rc)
	}
	r.device.Close()
	checkGone(t, other, "is closed")
}

func TestWhatCannotBeInitialisedIsNone(t *testing.T) {
	r := newRig(1)
	defer r.free(t)
	r.refuse = errors.New("refused")
	for _, types := range []interop.Types{interop.TypeTargetSync, both} {
		r.refuse = errors.New("refused")
		if o, err := r.device.Init(foreign.Types(types)); err == nil || err.Error() != "refused" || o != foreign.None {
			t.Errorf("without a semaphore: %v, %v", o, err)
		}
	}
	// The failed Init has not taken the queue.
	if q, _ := initialise(t, r.device, both).Queue(); !q.Implicit {
		t.Errorf("%+v", q)
	}
	r.device.Close()
	if o, err := r.device.Init(foreign.Types(interop.TypeTarget)); o != foreign.None || err != nil {
		t.Errorf("a closed device gave %v, %v", o, err)
	}
}

func TestDestroyingTwiceOrElsewhereIsRefused(t *testing.T) {
	d, elsewhere := foreign.NewDevice(foreign.Options{Number: 1}), foreign.NewDevice(foreign.Options{Number: 2})
	o := initialise(t, d, interop.TypeTarget)
	for _, c := range []struct {
		device *foreign.Device
		object interop.Object
		says   string // "" if it is allowed
	}{
		{elsewhere, o, "none of device 2"},
		{d, interop.None, "none of device 1"},
		{d, o, ""},
		{d, o, "destroyed before"},
	} {
		err := c.device.Destroy(foreign.Object(c.object))
		if c.says == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if !errors.Is(err, interop.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want %q", err, c.says)
		}
	}
}

func TestConcurrentDestroySucceedsOnce(t *testing.T) {
	r := newRig(1)
	defer r.free(t)
	d := r.device
	o := initialise(t, d, both)
	var wg sync.WaitGroup
	succeeded := make(chan struct{}, 8)
	for range cap(succeeded) {
		wg.Go(func() {
			o.Ptr(interop.PropertyTargetSync)
			if d.Destroy(foreign.Object(o)) == nil {
				succeeded <- struct{}{}
			}
		})
	}
	wg.Wait()
	if n := len(succeeded); n != 1 {
		t.Errorf("%d of %d succeeded", n, cap(succeeded))
	}
}

func TestEveryCodeHasADescriptionOfItsOwn(t *testing.T) {
	seen := map[string]interop.RC{}
	for rc := interop.RCOther; rc <= interop.RCNoValue; rc++ {
		desc := interop.None.RCDesc(rc)
		if earlier, ok := seen[desc]; ok || desc == "" {
			t.Errorf("code %d is described as %q, like %d", rc, desc, earlier)
		}
		seen[desc] = rc
	}
	r := newRig(0)
	defer r.free(t)
	for desc, rc := range seen {
		if got := initialise(t, r.device, both).RCDesc(rc); got != desc {
			t.Errorf("code %d is described as %q by an object, %q by none", rc, got, desc)
		}
	}
	for _, rc := range []interop.RC{interop.RCOther - 1, interop.RCNoValue + 1} {
		if desc := interop.None.RCDesc(rc); desc != "" {
			t.Errorf("code %d is described as %q", rc, desc)
		}
	}
}

// What an object costs does not grow with the number of those that were destroyed and whose foreign work is under way.
func TestManyDestroyedObjectsAreNotAllLookedAtForEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects, looksEach = 400, 20
		r := newRig(0)
		for range objects {
			o := initialise(t, r.device, interop.TypeTargetSync)
			s, _ := o.Semaphore()
			_, signal := announce(t, o)
			r.shared.submit(nil, nil, nil, values(s, signal))
			succeed(t, o.Submitted(signal))
			succeed(t, r.device.Destroy(foreign.Object(o)))
		}
		if n := r.hostLooks; n > objects*looksEach {
			t.Errorf("%d looks at semaphores to make %d objects", n, objects)
		}
		if r.created != objects {
			t.Errorf("%d semaphores for %d objects with work under way", r.created, objects)
		}
		r.steps()
		r.hostLooks = 0
		initialise(t, r.device, interop.TypeTargetSync)
		if r.created != objects {
			t.Error("no semaphore was used again")
		}
		r.free(t)
		if n := r.hostLooks; n > objects*looksEach {
			t.Errorf("%d looks at semaphores to free those of %d objects", n, objects)
		}
	})
}
