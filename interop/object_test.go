package interop_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp/interop"
)

var handles = interop.Handles{Instance: 0x1000, PhysicalDevice: 0x2000, Device: 0x3000, GetInstanceProcAddr: 0x4000}

// readings are what the three getters give for one property, as one line.
func readings(o interop.Object, p interop.Property) string {
	i, ri := o.Int(p)
	h, rh := o.Ptr(p)
	s, rs := o.Str(p)
	return fmt.Sprintf("%d %d, %#x %d, %q %d", i, ri, h, rh, s, rs)
}

func TestOpenMPsNumbers(t *testing.T) {
	for name, c := range map[string][2]int{
		"omp_ipr_fr_id":          {int(interop.PropertyFrID), -1},
		"omp_ipr_fr_name":        {int(interop.PropertyFrName), -2},
		"omp_ipr_vendor":         {int(interop.PropertyVendor), -3},
		"omp_ipr_vendor_name":    {int(interop.PropertyVendorName), -4},
		"omp_ipr_device_num":     {int(interop.PropertyDeviceNum), -5},
		"omp_ipr_platform":       {int(interop.PropertyPlatform), -6},
		"omp_ipr_device":         {int(interop.PropertyDevice), -7},
		"omp_ipr_device_context": {int(interop.PropertyDeviceContext), -8},
		"omp_ipr_targetsync":     {int(interop.PropertyTargetSync), -9},
		"omp_ipr_first":          {int(interop.PropertyFirst), -9},
		"omp_irc_no_value":       {int(interop.RCNoValue), 1},
		"omp_irc_success":        {int(interop.RCSuccess), 0},
		"omp_irc_empty":          {int(interop.RCEmpty), -1},
		"omp_irc_out_of_range":   {int(interop.RCOutOfRange), -2},
		"omp_irc_type_int":       {int(interop.RCTypeInt), -3},
		"omp_irc_type_ptr":       {int(interop.RCTypePtr), -4},
		"omp_irc_type_str":       {int(interop.RCTypeStr), -5},
		"omp_irc_other":          {int(interop.RCOther), -6},
		"omp_ifr_cuda":           {int(interop.ForeignRuntimeCUDA), 1},
		"omp_ifr_cuda_driver":    {int(interop.ForeignRuntimeCUDADriver), 2},
		"omp_ifr_opencl":         {int(interop.ForeignRuntimeOpenCL), 3},
		"omp_ifr_sycl":           {int(interop.ForeignRuntimeSYCL), 4},
		"omp_ifr_hip":            {int(interop.ForeignRuntimeHIP), 5},
		"omp_ifr_level_zero":     {int(interop.ForeignRuntimeLevelZero), 6},
		"omp_ifr_hsa":            {int(interop.ForeignRuntimeHSA), 7},
		"vkomp's vulkan":         {int(interop.ForeignRuntimeVulkan), 30315},
	} {
		if c[0] != c[1] {
			t.Errorf("%s is %d, want %d", name, c[0], c[1])
		}
	}
	for r, want := range map[interop.ForeignRuntime]string{
		interop.ForeignRuntimeCUDA: "cuda", interop.ForeignRuntimeCUDADriver: "cuda_driver",
		interop.ForeignRuntimeOpenCL: "opencl", interop.ForeignRuntimeSYCL: "sycl",
		interop.ForeignRuntimeHIP: "hip", interop.ForeignRuntimeLevelZero: "level_zero",
		interop.ForeignRuntimeHSA: "hsa", interop.ForeignRuntimeVulkan: "vulkan", 8: "ForeignRuntime(8)",
	} {
		if r.String() != want {
			t.Errorf("runtime %d is %q, want %q", int(r), r, want)
		}
	}
}

func TestPropertiesOfATargetObject(t *testing.T) {
	o := interop.NewDevice(3, handles).Init(interop.TypeTarget)
	if n := o.NumProperties(); n != 1 {
		t.Fatalf("%d implementation-defined properties, want 1", n)
	}
	for _, c := range []struct {
		property interop.Property
		readings string // of Int, Ptr and Str: value and code
		name     string
		typeDesc string
	}{
		{interop.PropertyFirst - 1, `0 -2, 0x0 -2, "" -2`, "", ""},
		{interop.PropertyTargetSync, `0 -4, 0x0 1, "" -4`, "targetsync", "VkSemaphore"},
		{interop.PropertyDeviceContext, `0 -4, 0x3000 0, "" -4`, "device_context", "VkDevice"},
		{interop.PropertyDevice, `0 -4, 0x2000 0, "" -4`, "device", "VkPhysicalDevice"},
		{interop.PropertyPlatform, `0 -4, 0x1000 0, "" -4`, "platform", "VkInstance"},
		{interop.PropertyDeviceNum, `3 0, 0x0 -3, "" -3`, "device_num", "int"},
		{interop.PropertyVendorName, `0 -5, 0x0 -5, "vkomp" 0`, "vendor_name", "string"},
		{interop.PropertyVendor, `7760751 0, 0x0 -3, "" -3`, "vendor", "int"},
		{interop.PropertyFrName, `0 -5, 0x0 -5, "vulkan" 0`, "fr_name", "string"},
		{interop.PropertyFrID, `30315 0, 0x0 -3, "" -3`, "fr_id", "int"},
		{interop.PropertyGetInstanceProcAddr, `0 -4, 0x4000 0, "" -4`, "vkGetInstanceProcAddr", "PFN_vkGetInstanceProcAddr"},
		{1, `0 -2, 0x0 -2, "" -2`, "", ""},
		{1 << 40, `0 -2, 0x0 -2, "" -2`, "", ""},
	} {
		if got := readings(o, c.property); got != c.readings {
			t.Errorf("property %d reads %s, want %s", c.property, got, c.readings)
		}
		if got := o.PropertyName(c.property); got != c.name {
			t.Errorf("property %d is named %q, want %q", c.property, got, c.name)
		}
		if got := o.PropertyTypeDesc(c.property); got != c.typeDesc {
			t.Errorf("property %d is of type %q, want %q", c.property, got, c.typeDesc)
		}
	}
	if h, ok := o.Vulkan(); !ok || h != handles {
		t.Errorf("Vulkan: %+v, %v", h, ok)
	}
	if n, ok := o.DeviceNum(); !ok || n != 3 {
		t.Errorf("DeviceNum: %d, %v", n, ok)
	}
	if o.Types() != interop.TypeTarget {
		t.Errorf("types %v", o.Types())
	}
}

func TestNoneKnowsNamesOnly(t *testing.T) {
	for p := interop.PropertyFirst; p < 0; p++ {
		if got, want := readings(interop.None, p), `0 -1, 0x0 -1, "" -1`; got != want {
			t.Errorf("property %d reads %s, want %s", p, got, want)
		}
		if interop.None.PropertyName(p) == "" || interop.None.PropertyTypeDesc(p) != "" {
			t.Errorf("property %d: name %q, type %q", p, interop.None.PropertyName(p), interop.None.PropertyTypeDesc(p))
		}
	}
	for _, p := range []interop.Property{interop.PropertyFirst - 1, 0} {
		if got, want := readings(interop.None, p), `0 -2, 0x0 -2, "" -2`; got != want {
			t.Errorf("property %d reads %s, want %s", p, got, want)
		}
		if name := interop.None.PropertyName(p); name != "" {
			t.Errorf("property %d is named %q", p, name)
		}
	}
	if n := interop.None.NumProperties(); n != 0 {
		t.Errorf("%d implementation-defined properties", n)
	}
	checkGone(t, interop.None)
}

// checkGone fails the test when o tells anything.
func checkGone(t *testing.T, o interop.Object) {
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
}

func TestObjectsThatAreNoMoreReadEmpty(t *testing.T) {
	for name, end := range map[string]func(*interop.Device, interop.Object){
		"destroyed": func(d *interop.Device, o interop.Object) {
			if err := d.Destroy(o); err != nil {
				t.Error(err)
			}
		},
		"device closed": func(d *interop.Device, _ interop.Object) { d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := interop.NewDevice(0, handles)
			o := d.Init(interop.TypeTarget)
			other := d.Init(interop.TypeTarget)
			if o == other {
				t.Error("two objects are the same")
			}
			alias := o
			end(d, o)
			if alias != o {
				t.Error("a copy is another object")
			}
			for p := interop.PropertyFirst; p <= 0; p++ {
				if got, want := readings(alias, p), `0 -1, 0x0 -1, "" -1`; got != want {
					t.Errorf("property %d reads %s, want %s", p, got, want)
				}
				if desc := alias.PropertyTypeDesc(p); desc != "" {
					t.Errorf("property %d is of type %q", p, desc)
				}
			}
			checkGone(t, alias)
			if _, rc := other.Ptr(interop.PropertyDevice); (rc == interop.RCSuccess) != (name == "destroyed") {
				t.Errorf("another object of the device reads %d", rc)
			}
		})
	}
}

func TestWhatCannotBeInitialisedIsNone(t *testing.T) {
	d := interop.NewDevice(0, handles)
	for _, types := range []interop.Types{0, interop.TypeTargetSync, interop.TypeTarget | interop.TypeTargetSync} {
		if o := d.Init(types); o != interop.None {
			t.Errorf("types %q gave an object", types)
		}
	}
	d.Close()
	if o := d.Init(interop.TypeTarget); o != interop.None {
		t.Error("a closed device gave an object")
	}
}

func TestDestroyingTwiceOrElsewhereIsRefused(t *testing.T) {
	d, elsewhere := interop.NewDevice(1, handles), interop.NewDevice(2, handles)
	o := d.Init(interop.TypeTarget)
	for _, c := range []struct {
		device *interop.Device
		object interop.Object
		says   string // "" when allowed
	}{
		{elsewhere, o, "none of device 2"},
		{d, interop.None, "none of device 1"},
		{d, o, ""},
		{d, o, "destroyed before"},
	} {
		err := c.device.Destroy(c.object)
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
	d := interop.NewDevice(0, handles)
	o := d.Init(interop.TypeTarget)
	var wg sync.WaitGroup
	succeeded := make(chan struct{}, 8)
	for range cap(succeeded) {
		wg.Go(func() {
			o.Ptr(interop.PropertyDevice)
			if d.Destroy(o) == nil {
				succeeded <- struct{}{}
			}
		})
	}
	wg.Wait()
	if n := len(succeeded); n != 1 {
		t.Errorf("%d of %d succeeded", n, cap(succeeded))
	}
}

func TestInitClauses(t *testing.T) {
	type prefer = []interop.Preference
	for _, c := range []struct {
		types  interop.Types
		prefer prefer
		says   string // "" when allowed
	}{
		{interop.TypeTarget, nil, ""},
		{interop.TypeTarget | interop.TypeTargetSync, nil, ""},
		{0, nil, "without an interop type"},
		{interop.TypeTarget | 0x40, nil, "target,Types(0x40)"},
		{interop.TypeTarget, prefer{{Runtime: interop.ForeignRuntimeCUDA}, {Name: "vulkan", Attr: []string{"ompx_a"}}, {Attr: []string{"ompx_b"}}}, ""},
		{interop.TypeTarget, prefer{{Name: "hip"}, {}}, "item 1"},
		{interop.TypeTarget, prefer{{Runtime: interop.ForeignRuntimeCUDA, Name: "sycl"}}, `as cuda and as "sycl"`},
		{interop.TypeTarget, prefer{{Attr: []string{"x_a"}}}, `"x_a"`},
		{interop.TypeTarget, prefer{{Attr: []string{"ompx_a,b"}}}, `"ompx_a,b"`},
	} {
		err := interop.CheckInit(c.types, c.prefer)
		if c.says == "" {
			if err != nil {
				t.Errorf("%v %+v: %v", c.types, c.prefer, err)
			}
			continue
		}
		if !errors.Is(err, interop.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v %+v: got %v, want %q", c.types, c.prefer, err, c.says)
		}
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
	for _, rc := range []interop.RC{interop.RCOther - 1, interop.RCNoValue + 1} {
		if desc := interop.None.RCDesc(rc); desc != "" {
			t.Errorf("code %d is described as %q", rc, desc)
		}
	}
}

func TestTypesAreSpelledAsInAnInitClause(t *testing.T) {
	for types, want := range map[interop.Types]string{
		0: "", interop.TypeTarget: "target", interop.TypeTargetSync: "targetsync",
		interop.TypeTarget | interop.TypeTargetSync: "target,targetsync",
		0x82: "targetsync,Types(0x80)",
	} {
		if got := types.String(); got != want {
			t.Errorf("%#x is %q, want %q", uint8(types), got, want)
		}
	}
}
