package interop

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/foreign"
)

// ForeignRuntime is omp_interop_fr_t, the foreign runtime of an interop object.
type ForeignRuntime int

const (
	ForeignRuntimeCUDA       ForeignRuntime = 1 // omp_ifr_cuda
	ForeignRuntimeCUDADriver ForeignRuntime = 2 // omp_ifr_cuda_driver
	ForeignRuntimeOpenCL     ForeignRuntime = 3 // omp_ifr_opencl
	ForeignRuntimeSYCL       ForeignRuntime = 4 // omp_ifr_sycl
	ForeignRuntimeHIP        ForeignRuntime = 5 // omp_ifr_hip
	ForeignRuntimeLevelZero  ForeignRuntime = 6 // omp_ifr_level_zero
	ForeignRuntimeHSA        ForeignRuntime = 7 // omp_ifr_hsa

	// ForeignRuntimeVulkan is Vulkan, for which OpenMP has no number. vkomp uses "vk" in
	// ASCII, far above the numbers that later versions of OpenMP may assign.
	ForeignRuntimeVulkan ForeignRuntime = 'v'<<8 | 'k'
)

// The OpenMP implementation that has made the objects.
const (
	// Vendor is the value of omp_ipr_vendor. vkomp has no registered number; this one is
	// "vko" in ASCII.
	Vendor = 'v'<<16 | 'k'<<8 | 'o'
	// VendorName is the value of omp_ipr_vendor_name.
	VendorName = "vkomp"
)

// String returns the runtime's name (omp_ipr_fr_name), such as "cuda" or "vulkan".
func (r ForeignRuntime) String() string {
	switch r {
	case ForeignRuntimeCUDA:
		return "cuda"
	case ForeignRuntimeCUDADriver:
		return "cuda_driver"
	case ForeignRuntimeOpenCL:
		return "opencl"
	case ForeignRuntimeSYCL:
		return "sycl"
	case ForeignRuntimeHIP:
		return "hip"
	case ForeignRuntimeLevelZero:
		return "level_zero"
	case ForeignRuntimeHSA:
		return "hsa"
	case ForeignRuntimeVulkan:
		return "vulkan"
	}
	return fmt.Sprintf("ForeignRuntime(%d)", int(r))
}

// Preference is one item of a prefer_type modifier: a foreign runtime by number or by name, with
// optional attributes (OpenMP 6.0). An item may also consist of attributes alone.
type Preference struct {
	// Runtime is the foreign runtime's number, 0 if the item has a name or attributes alone.
	Runtime ForeignRuntime
	// Name is the foreign runtime's name, such as "vulkan"; "" if the item has a number or
	// attributes alone.
	Name string
	// Attr are attributes. Each begins with "ompx_" and has no comma in it. Unknown attributes
	// are ignored.
	Attr []string
}

// ErrInvalid says that OpenMP does not allow a clause; that an object is None, was destroyed, lacks
// type targetsync where that is needed, or belongs to a device that is closed or a runtime that is
// being closed; that Submit has no function or no context; or that a value is not one of the
// object's foreign work, or was reported or withdrawn before.
var ErrInvalid = foreign.ErrInvalid
