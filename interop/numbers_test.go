package interop_test

import (
	"testing"

	"github.com/vkomp/vkomp/interop"
)

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
		"vkGetInstanceProcAddr":  {int(interop.PropertyGetInstanceProcAddr), 0},
		"queue":                  {int(interop.PropertyQueue), 1},
		"queue_family":           {int(interop.PropertyQueueFamily), 2},
		"wait_value":             {int(interop.PropertyWaitValue), 3},
		"signal_value":           {int(interop.PropertySignalValue), 4},
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
		"vkomp's vulkan":         {int(interop.ForeignRuntimeVulkan), 'v'<<8 | 'k'},
		"vkomp's vendor":         {interop.Vendor, 'v'<<16 | 'k'<<8 | 'o'},
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
