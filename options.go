package vkomp

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/vk"
)

// Options are the options of Open. The zero value chooses the best device and honours the
// OMP_ environment variables.
type Options struct {
	// Device selects the default device: a number, a UID or UUID, or part of a name;
	// "host", "initial" or "-1" is the initial device. It takes precedence over
	// OMP_DEFAULT_DEVICE, and chooses among the devices that OMP_AVAILABLE_DEVICES
	// selects, with the numbers that they have there.
	Device string
	// Logger receives the runtime's log; nil means that nothing is logged.
	Logger *slog.Logger
	// DisplayEnv is where Open writes the output of Runtime.DisplayEnv if OMP_DISPLAY_ENV
	// asks for it; nil means to Logger, one record at level Info for each line. A library
	// does not print by itself, so without both there is no output: programs should set
	// os.Stderr here.
	DisplayEnv io.Writer
	// Validation loads Vulkan's validation layer with synchronization checks; its messages
	// go to Logger with the attribute "validation". Open fails if the layer is not
	// installed.
	Validation bool
	// Validate checks each module given to NewKernel with the program spirv-val of Khronos'
	// SPIRV-Tools: a module that it rejects is ErrInvalidModule with its message. Drivers
	// assume that modules are valid, and anything can happen with one that is not. If the
	// program is not in the PATH, Open fails (ErrUnsupported). A check costs milliseconds.
	// Validity does not restrict what a module does: see KernelSource.
	Validate bool
	// NoSynchronizationChecks turns the synchronization checks of Validation off. They
	// assume that a kernel accesses all bytes that are bound, and so report unordered tasks
	// on adjacent sub-slices if one of them does not begin at the alignment that the device
	// requires of bindings.
	NoSynchronizationChecks bool
	// MemoryPath determines how mapped data gets to the device and back; the zero value
	// chooses the cheapest path. The other values are for tests and measurements. Where data
	// goes through staging memory, a device has at most 128 MiB of it, which is kept until a
	// soft pause: a task that finds none waits for those in flight, and a copy that needs
	// more in one piece (a strided section) gets it when no other task has any.
	MemoryPath MemoryPath
	// NoPushDescriptors binds buffers through descriptor pools even if the device has push
	// descriptors (VK_KHR_push_descriptor), for drivers that get these wrong and for
	// comparisons.
	NoPushDescriptors bool
	// ComputeQueues is the largest number of a device's queues that run kernels. Queues of
	// families that do not support graphics come first, because they run side by side, while
	// those of a family that does take turns. 0 means up to 8 of the former, and one of each of
	// the latter families for what no other queue can do; up to 8 if all families support
	// graphics. With a positive number the latter families have queues only if the former do
	// not have as many. Without one, [Device.Register] is ErrUnsupported for a buffer that
	// only those families may use. With 1 there are no transfer queues either.
	ComputeQueues int
	// TransferQueues is the largest number of queues of transfer-only families that copy
	// between host and device; 0 means 2, a negative number none.
	TransferQueues int
	// InteropQueues is the largest number of a device's queues that are reserved for
	// interop objects with targetsync, each of which then has a queue of its own; 0 means 1,
	// a negative number none. They are of a family that supports graphics if one can spare
	// them. The last queue of a family that the runtime itself uses is never reserved.
	InteropQueues int
	// ForeignTimeout is how long Close waits for foreign work that is to signal a value itself;
	// 0 means 10 s. The time of each work begins when everything before it is complete, and
	// anew whenever other foreign work or an interop construct of the device completes, behind
	// which it may be on a queue. When the time is over, the host signals in place of the work,
	// which must not signal any more.
	ForeignTimeout time.Duration
	// Adopt, if not nil, describes the application's own VkDevice, which is then the only
	// non-host device. Open creates no device or instance, and Close destroys none.
	// Validation depends on the application's instance. Its messengers (VK_EXT_debug_utils)
	// may be functions in Go, but must not call this package or take the Locker of a queue:
	// they are called inside of calls of Vulkan.
	//
	// No queue is reserved for interop objects unless InteropQueues says so. Then nobody may
	// submit other work than an object's to its queue, neither the application nor another
	// runtime with the same device, because constructs have such a queue wait for what is yet
	// to be submitted elsewhere (see interop.Object.Queue). Close does not wait for the
	// application's submissions: those that use the semaphore of an interop object must have
	// ended before, which a fence or vkQueueWaitIdle can establish.
	Adopt *Adoption
	// LeakSites records where in the program memory was allocated and storage mapped, so
	// that the error of Close says it for what was not freed. It is for debugging: it costs
	// about a microsecond and a Go object for each allocation and each construct that maps.
	LeakSites bool
	// Race finds accesses of tasks that the task graph does not order: two tasks use the
	// same bytes, at least one of them writes, and no path leads from one to the other
	// through depend clauses, waits or otherwise. Only the graph counts: a pair that
	// happened to run in order is found too. Each pair of places in the program is reported
	// once: to Logger as a warning, by Runtime.Races, and by Close as an error that matches
	// ErrRace. Tasks that exclude each other (mutexinoutset) do not race, nor do tasks with
	// inoutset items of the same bytes, as far as these go.
	//
	// A target region accesses what its arguments name; it writes what the instructions
	// of its kernel write, or only the parts that its depend items name. Maps and updates
	// access both the host's storage and the device's, memory routines what they copy. The
	// construct that removes storage from a device, in the order of the program, counts as a
	// write to it, also with Release or Delete: a task that is not ordered with it may find the
	// storage, or copy the host's anew. A host task is assumed to access what its depend items
	// name. Accesses of kernels by address, and those of the program outside of tasks, are not
	// detected. Nor are races between constructs that are complete when they return, if
	// goroutines outside of tasks call them: how these goroutines are ordered is not known.
	//
	// It is for tests and debugging: it costs microseconds for each task, and keeps storage
	// reachable that tasks have used since the last wait. Where nothing waits for the tasks of
	// a region it also costs more the more tasks there are, since all of them are remembered.
	Race bool
	// KeepGraph makes Graph include completed tasks with all their edges. It is for
	// debugging and pictures: memory grows with every task.
	KeepGraph bool
	// Robust confines a kernel to the mappings of its arguments on devices without
	// robustBufferAccess2 too. If a device has that feature, it is always enabled, accesses
	// outside of the bound bytes read zeros and write nothing, and Robust has no effect.
	// Other devices confine a kernel to a VkBuffer (robustBufferAccess), which many mappings
	// share. With Robust each mapped slice and each allocation has a buffer of its own, so
	// that the kernel cannot access another mapping, only the rest of the slice of which an
	// argument is a section. Each of these needs a memory allocation, of which a device
	// supports maxMemoryAllocationCount, often 4,096. Half of them are used for this; then
	// maps fail with ErrOutOfMemory. Slices used in place always have a buffer of their own.
	//
	// An adopted device may have been made without robustBufferAccess. Then nothing confines kernels
	// to a VkBuffer, and with Robust Open fails (ErrUnsupported).
	//
	// Nothing confines kernels that use addresses (AddressOf, a DevicePtr as a value), and any
	// kernel can keep the device busy for ever: kernels are trusted code.
	Robust bool
	// PipelineCache is a folder in which the runtime keeps what drivers have compiled (the contents
	// of VkPipelineCache): a file for each device and version of its driver, which the device reads
	// when it is opened and writes when it is closed, at Close or by a hard pause. Kernels that an
	// earlier run has compiled are then compiled faster, if the driver keeps anything. "" means
	// VKOMP_PIPELINE_CACHE or, without that, vkomp in os.UserCacheDir; "off" means no files. Once
	// about a thousand more kernels have been closed than there are, the device forgets all that it
	// has compiled itself: the file keeps what it had, and gets only what is compiled after that. The
	// folder is created for the user alone. Nothing is read from or written to a folder that belongs
	// to another user or that others can write to, and a damaged file is replaced: the log says so,
	// and the program goes on.
	PipelineCache string
	// Tool observes what the runtime does with its devices and tasks (OMPT); package
	// ompt/trace has some tools. Its callbacks may call methods of the Runtime that are not
	// constructs and do not open or close anything, such as Stats. OMP_TOOL=disabled turns it
	// off. A tool that registers both forms of a callback is ErrInvalidArgument.
	Tool ompt.Callbacks
	// LookupEnv looks up the OMP_ environment variables, VKOMP_PIPELINE_CACHE and VKOMP_DEBUG; nil
	// means os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
}

// MemoryPath is a way of copying between host storage and device memory.
type MemoryPath uint8

const (
	// MemoryAuto lets the host copy where that is fast: it reads device memory that it
	// caches and writes such memory, or a little at a time what it does not cache. It copies
	// through staging buffers elsewhere, and uses large slices in place if device and host
	// share memory and the construct allows it (see Target). Device.Decisions says what
	// that comes to.
	MemoryAuto MemoryPath = iota
	// MemoryUnified is MemoryAuto without use in place.
	MemoryUnified
	// MemoryStaged ignores that the host can access device memory: everything is copied
	// through staging buffers, as on a discrete GPU.
	MemoryStaged
	// MemoryNonCoherent is MemoryUnified with all memory flushed and invalidated as if it
	// were not coherent.
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

// queues returns the options with which a device is opened.
func (o *Options) queues() vk.DeviceOptions {
	q := vk.DeviceOptions{NoPushDescriptors: o.NoPushDescriptors, ComputeQueues: o.ComputeQueues, TransferQueues: o.TransferQueues, InteropQueues: o.InteropQueues}
	if o.Adopt != nil && q.InteropQueues == 0 {
		q.InteropQueues = -1
	}
	if q.ComputeQueues == 1 && q.TransferQueues == 0 {
		q.TransferQueues = -1
	}
	return q
}

// foreignTimeout is ForeignTimeout with its default.
func (o *Options) foreignTimeout() time.Duration { return cmp.Or(o.ForeignTimeout, 10*time.Second) }

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
