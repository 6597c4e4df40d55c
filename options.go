package vkomp

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// Options says how to open a Runtime. The zero value takes the best device
// there is and honours the OMP_ environment variables.
type Options struct {
	// Device selects the default device: a number, a uid or UUID, or part of a name;
	// "host", "initial" or "-1" is the initial device. It takes precedence over
	// OMP_DEFAULT_DEVICE, and chooses among the devices that OMP_AVAILABLE_DEVICES
	// leaves, by their numbers there.
	Device string
	// Logger receives what the runtime has to say; nil is silence.
	Logger *slog.Logger
	// DisplayEnv is where OMP_DISPLAY_ENV has Open write what Runtime.DisplayEnv does;
	// nil: to Logger, a line a record at level Info. A library prints nothing of its
	// own accord, so without both it goes nowhere: programs set os.Stderr here.
	DisplayEnv io.Writer
	// Validation loads Vulkan's validation layer, with synchronization checks;
	// its messages go to Logger with the attribute "validation". Without that
	// layer Open fails.
	Validation bool
	// Validate has the program spirv-val of Khronos' SPIRV-Tools check each module that
	// NewKernel reads: what it refuses is ErrInvalidModule with its message. Drivers take
	// modules to be valid, and do anything with one that is not. Without that program, which
	// is looked for as the environment's PATH says, Open fails (ErrUnsupported). It costs
	// milliseconds a kernel. A valid module still does what it likes: see KernelSource.
	Validate bool
	// NoSynchronizationChecks leaves the synchronization checks out of
	// Validation. They take all bytes that a kernel binds for bytes that it
	// accesses, and so report unordered tasks on neighbouring sub-slices where
	// one begins off the alignment that the device asks of bindings.
	NoSynchronizationChecks bool
	// MemoryPath says how what is mapped gets to the device and back; the zero value
	// takes what costs least. All but that are for tests and measurements.
	MemoryPath MemoryPath
	// NoPushDescriptors binds buffers through descriptor pools even where the
	// device has push descriptors. For tests.
	NoPushDescriptors bool
	// ComputeQueues is how many queues of a device run kernels at most; 0: 8. With one
	// there are no transfer queues either.
	ComputeQueues int
	// TransferQueues is how many queues of families that only transfer make copies at
	// most; 0: 2, negative: none.
	TransferQueues int
	// InteropQueues is how many queues of a device are kept for interop objects with
	// targetsync, of which each then has one of its own, at most; 0: 1, negative: none.
	// One is never the last of its family.
	InteropQueues int
	// ForeignTimeout is how long Close waits for foreign work that was submitted and
	// does not signal; 0: 10 s.
	ForeignTimeout time.Duration
	// Adopt, if not nil, is an application's own VkDevice: the one non-host device then.
	// Open creates none, nor an instance, and Close destroys neither. Validation is what
	// the application's instance has. No queue is kept for interop objects unless
	// InteropQueues says so. Close does not wait for submissions of the application's: with
	// those that use an interop object's semaphore the device is done before, as a fence or
	// vkQueueWaitIdle says.
	Adopt *Adoption
	// Placement says which queue a command is put on. All but the zero value are for
	// tests.
	Placement Placement
	// PlacementSeed is the beginning of PlaceRandom's choices.
	PlacementSeed uint64
	// LeakSites notes where in the program memory was allocated and storage mapped:
	// the error of Close then says so for what is left. It costs about a microsecond
	// and an object for each allocation and each construct that maps: for debugging.
	LeakSites bool
	// Race finds accesses of tasks that the task graph does not order: two tasks use the
	// same bytes, one of them writes, and no path leads from one to the other, by depend
	// clauses, waits or otherwise. What counts is the graph: a pair that ran in order, or
	// on a device that happens to keep it, is found too. Each pair of places in the program
	// is reported once: to Logger as a warning, by Runtime.Races, and as an error of Close
	// that matches ErrRace.
	//
	// A target region accesses what its arguments name: it writes what the instructions
	// of its kernel write, or parts thereof where its depend items name parts. Maps and
	// updates access the host's storage as well as the device's; memory routines what they
	// copy. A host task is taken to access what its depend items name. What kernels reach
	// by addresses, and what the program does outside of tasks, is not seen.
	//
	// It costs microseconds a task, and keeps storage reachable that tasks have used since
	// the last wait: for tests and debugging.
	Race bool
	// KeepGraph makes Graph show completed tasks too, with all their edges. Memory
	// then grows with every task: for debugging and pictures.
	KeepGraph bool
	// Robust keeps a kernel that leaves its arguments inside of their mapping on devices
	// without robustBufferAccess2 too. Where a device has that, it is always enabled, and
	// accesses outside of the bound bytes read zeros and write nothing; Robust adds nothing.
	// Others keep a kernel inside of a VkBuffer (robustBufferAccess), which many mappings
	// share: with Robust each mapped slice and each allocation has one of its own, so that
	// the kernel does not reach another mapping, though it reaches all of the slice of which
	// an argument is a section. That takes memory of its own for each, of which a device has
	// maxMemoryAllocationCount, often 4,096; half of them are for this, beyond which maps are
	// ErrOutOfMemory. Slices that are used in place lie in a buffer of their own in any case.
	//
	// Kernels that use addresses (AddressOf, a DevicePtr as a value) are bounded by nothing,
	// and any kernel may keep the device busy for ever: kernels are trusted code.
	Robust bool
	// Tool hears of what the runtime does with its devices and tasks (OMPT); package
	// ompt/trace has some. Its callbacks may call methods of the Runtime that make no
	// construct and open or close nothing, such as Stats. With OMP_TOOL=disabled it
	// hears nothing. One that registers both forms of a callback is ErrInvalidArgument.
	Tool ompt.Callbacks
	// LookupEnv reads the OMP_ variables of the environment; nil is os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
}

// MemoryPath is a way between the host's storage and a device's.
type MemoryPath uint8

const (
	// MemoryAuto copies by the host where it sees the device's memory, through
	// staging where it does not, and uses large slices in place where device and host
	// have one memory and the construct allows it (see Target).
	MemoryAuto MemoryPath = iota
	// MemoryUnified is MemoryAuto with nothing used in place.
	MemoryUnified
	// MemoryStaged ignores that the host can see device memory: all that is mapped
	// goes through staging, as on a discrete GPU.
	MemoryStaged
	// MemoryNonCoherent is MemoryUnified with all memory flushed and invalidated as if
	// it were not coherent.
	MemoryNonCoherent
	// MemoryImported is MemoryAuto with slices of every size used in place.
	MemoryImported
)

// String returns the path's name, such as "staged".
func (p MemoryPath) String() string {
	names := [...]string{"auto", "unified", "staged", "noncoherent", "imported"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("MemoryPath(%d)", uint8(p))
}

// Placement is a way to choose among the queues of a device.
type Placement uint8

const (
	// PlaceByFinish puts a command where it is estimated to finish first: what follows
	// a command of another queue begins later there, and an idle queue has to be
	// started. Large copies go to a queue that only transfers.
	PlaceByFinish Placement = iota
	// PlaceRandom puts every command on any queue that can run it.
	PlaceRandom
)

// queues returns the options with which a device is opened.
func (o *Options) queues() vk.DeviceOptions {
	d := vk.DeviceOptions{NoPushDescriptors: o.NoPushDescriptors, ComputeQueues: o.ComputeQueues, TransferQueues: o.TransferQueues, InteropQueues: o.InteropQueues}
	if o.Adopt != nil && d.InteropQueues == 0 {
		d.InteropQueues = -1
	}
	if d.ComputeQueues == 1 && d.TransferQueues == 0 {
		d.TransferQueues = -1
	}
	return d
}

// scheduling returns the options of a device's scheduler.
func (p MemoryPath) scheduling() sched.Options {
	switch p {
	case MemoryUnified:
		return sched.Options{Sharing: sched.ShareNothing}
	case MemoryStaged:
		return sched.Options{Sharing: sched.ShareNothing, HideHostVisible: true}
	case MemoryNonCoherent:
		return sched.Options{Sharing: sched.ShareNothing, Incoherent: true}
	case MemoryImported:
		return sched.Options{Sharing: sched.ShareAll}
	}
	return sched.Options{}
}
