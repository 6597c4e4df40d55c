// Package lockrank has the order in which the runtime's locks are taken.
//
// A lock is a Mutex or an RWMutex with its rank as type argument. Without build tags
// these are sync.Mutex and sync.RWMutex themselves. With the tag invariants each goroutine's
// locks are recorded, and taking one against the order is a panic that names both. The
// record follows the goroutine, so that an order which could deadlock shows on any run
// that takes the two locks, not only where two goroutines meet.
//
// With the tag delays goroutines are late at random before they take a lock and after they
// release it. It shows what depends on how fast goroutines are, in the runtime and in tests.
package lockrank

// Lock is a line of the table.
type Lock struct {
	// Rank is the zero value of the rank's type.
	Rank any
	// Fields are the fields of this rank, each with its package and struct type. Guards
	// says what they guard.
	Fields []string
	Guards string
	// Several: a goroutine can hold several locks of the rank, in an order that they have
	// among themselves, or one of them for reading more than once.
	Several bool
}

// The ranks.
type (
	RuntimePause     struct{}
	DeviceLife       struct{}
	PinnedUsers      struct{}
	DeviceState      struct{}
	SequenceAdding   struct{}
	InteropDevice    struct{}
	InteropOrder     struct{}
	InteropIncluded  struct{}
	KernelDestroying struct{}
	TraceCalls       struct{}
	TaskRegion       struct{}
	HostMemory       struct{}
	Scheduler        struct{}
	HostPool         struct{}
	Runtime          struct{}
	Family           struct{}
	Group            struct{}
	Graph            struct{}
	RacesStorage     struct{}
	Races            struct{}
	RacesGraph       struct{}
	ToolFollowing    struct{}
	VulkanDevice     struct{}
	VulkanSampling   struct{}
	VulkanQueue      struct{}
	VulkanInstance   struct{}
	Leaf             struct{}
)

// Table has the locks from the outermost to the innermost: a goroutine takes a lock only
// while those that it holds stand above it.
var Table = []Lock{
	{RuntimePause{}, []string{"vkomp.users.mu"}, "the devices during a pause", false},
	{DeviceLife{}, []string{"vkomp.device.life"}, "the opening and the closing of a device, and what is declared on it", true},
	{PinnedUsers{}, []string{"vkomp.pinnedStorages.users"}, "which tasks on the host use memory of a driver, also while such memory is freed", false},
	{DeviceState{}, []string{"vkomp.device.mu"}, "what an open device consists of", false},
	{SequenceAdding{}, []string{"foreign.sequence.adding"}, "the end of an interop object's steps, and submissions to its own queue", true},
	{InteropDevice{}, []string{"foreign.Device.mu"}, "the list of a device's interop objects", false},
	{InteropOrder{}, []string{"foreign.Device.order"}, "what the interop objects of a device have to send", false},
	{InteropIncluded{}, []string{"foreign.Included.mu"}, "the wait of an included interop construct", false},
	{KernelDestroying{}, []string{"pipeline.Kernel.destroying"}, "the destruction of a kernel's pipelines", false},
	{TraceCalls{}, []string{"trace.Trace.calls"}, "the start, the flush and the stop of a device's trace", false},
	{TaskRegion{}, []string{"vkomp.taskContext.mu"}, "who waits in a task region", false},
	{HostMemory{}, []string{"vkomp.hostMemory.mu"}, "the memory of the initial device, also while host storage in it is being associated", false},
	{Scheduler{}, []string{"sched.Scheduler.mu"}, "the scheduling of a device", false},
	{HostPool{}, []string{"host.Pool.mu"}, "the places of the host's tasks", false},
	{Runtime{}, []string{"vkomp.Runtime.mu"}, "scopes whose region is at its end, and the lists of kernels and of keepers of records", false},
	{Family{}, []string{"tasks.family.mu"}, "the tasks of a scope and of those that transparent tasks connect it with", false},
	{Group{}, []string{"tasks.Group.mu"}, "a taskgroup; that of a group inside another is taken first", true},
	{Graph{}, []string{"tasks.Graph.mu"}, "the list of scopes, and the tasks that are kept for pictures", false},
	{RacesStorage{}, []string{"races.storage.mu"}, "what the race detector knows of a device's storage", false},
	{RacesGraph{}, []string{"race.Detector.mu"}, "the race detector's tasks and their accesses", false},
	{Races{}, []string{"races.Detector.mu"}, "the places and the devices of the race detector", false},
	{ToolFollowing{}, []string{"tool.task.following"}, "the dependences of which a tool has not been told", false},
	{VulkanDevice{}, []string{"vk.Device.life"}, "a VkDevice, read by calls that use it and written by its close", true},
	{VulkanSampling{}, []string{"vk.Device.sampling"}, "the calibration of a device's clock", false},
	{VulkanQueue{}, []string{"vk.Queue.mu"}, "a VkQueue and its command pool, for each call of Vulkan that uses them; the program's own lock of a queue that it shares is taken inside", true},
	{VulkanInstance{}, []string{"vk.Instance.mu"}, "the devices that are open and the messages of a VkInstance", false},
	{Leaf{}, []string{"allocation.heap.mu", "vk.Device.mu", "vk.forgotten.mu", "vkomp.pinnedStorages.mu", "vkomp.labels.mu", "vkomp.itemLabels.mu", "vkomp.foundRaces.mu", "vkomp.TaskgraphRecords.mu", "vkomp.recording.mu", "tool.failures.mu", "tool.Device.mu", "tool.Tool.telling", "tool.task.deciding", "foreign.lossTimelines.mu"}, "counts and tables of their own; no lock is taken under these", false},
}
