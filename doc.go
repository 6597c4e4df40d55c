// Package vkomp is OpenMP's device and task model for Go, on any GPU that
// speaks Vulkan.
//
// A program maps its slices to a device, launches kernels on them as target
// tasks ordered by depend clauses, and waits where it has to:
//
//	rt, err := vkomp.Open(vkomp.Options{})
//	defer rt.Close()
//	k, err := rt.NewKernel(shaders.Saxpy)
//
//	// #pragma omp target nowait map(to:x) map(tofrom:y) depend(inout:y)
//	err = rt.Target(ctx, vkomp.Target{
//		Kernel: k, Range: vkomp.Range{X: n},
//		Args:   []vkomp.Arg{vkomp.To(x), vkomp.ToFrom(y), vkomp.Value(uint32(n)), vkomp.Value(a)},
//		Depend: []vkomp.Depend{vkomp.InOut(y)},
//		NoWait: true,
//	})
//	err = rt.Taskwait(ctx)
//
// A directive is a method of [Runtime], its clauses are the fields of one
// struct. Dependences between target tasks of one device are kept by the device
// itself, with barriers inside few large submissions: the host waits only where
// the program does.
//
// # Tasks and contexts
//
// A context carries the current task: constructs called with the context that a
// [Task] body gets generate that task's children, which depend on each other
// and for which a [Runtime.Taskwait] with that context waits. Any other context
// stands for the initial task.
//
// Depend clauses order siblings, target tasks and host tasks alike: [In], [Out],
// [InOut], [MutexInOutSet], [InOutSet], [InOutAllMemory], or a [Depobj]. Items
// match when their slices overlap.
//
// When a context ends, waits that use it return, and tasks that were generated with it and
// have not started are dropped.
//
// # Goroutines and requests
//
// Goroutines that use contexts of the initial task generate its children, which are
// siblings. They share
//   - dependences: a task depends on all earlier siblings that name its storage, and with
//     [InOutAllMemory] on all that name any, whichever goroutine generated them;
//   - the failures of their predecessors: a task does not run if one that it depends on has
//     failed, or was dropped because its context had ended, unless its device has got it before
//     that, as a kernel behind a deferred copy to host storage that turns out to be gone;
//   - Taskwait, which waits for the tasks of all of them and returns their failures to
//     one goroutine only.
//
// A [Runtime.Taskgroup] in each goroutine separates their waits: it waits only for its own
// tasks, and reports which of them failed or were not run. Dependences, and failures along
// them, still cross groups while the tasks of both exist. Tasks that a group has left
// behind because its context ended do not fail tasks that are generated after the group.
//
// An undeferred [Task] separates a goroutine completely: its children depend only on each
// other. A server can run each request in one:
//
//	err := rt.Task(r.Context(), vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
//		… // constructs with ctx
//		return rt.Taskwait(ctx)
//	}})
//
// Requests then share the devices with their memory, the host pool, and the presence of
// their slices, but nothing orders tasks of two requests that use the same slice. When
// r.Context() ends, tasks that have started go on: before a request's slices are used for
// another, a Taskwait with context.WithoutCancel(ctx) must have returned.
//
// # Storage
//
// While a region maps a slice, the slice belongs to the runtime. If a wait ends early
// because its context has ended, that holds until a later Taskwait returns. Elements of
// host storage must not contain Go pointers: such types are refused, unless a [Mapper] says
// what the device has in their place.
//
// Constructs evaluate their clauses during the call. They keep the slices that the clauses name,
// but not the lists of the clauses, such as Args and Depend, which the program may use again.
//
// Maps are counted: the first construct that maps a slice allocates storage on the device
// and copies the slice there, the last one copies it back and frees the storage.
// [Runtime.TargetData] maps slices for the duration of a body, [Runtime.TargetEnterData]
// until a [Runtime.TargetExitData]; [Runtime.TargetUpdate] copies in between. A section of
// a present slice is present; one that is present in part is [ErrPartialOverlap].
//
// A [DevicePtr] points to memory from [Device.Alloc] or of a mapped slice.
// [Runtime.Memcpy] and [Runtime.MemcpyRect] copy between devices and the host ([HostPtr]);
// [Device.AssociatePtr] makes memory the storage of a slice. A pointer to freed memory is
// recognised: [ErrInvalidPointer].
//
// Where device and host share memory, large slices that are mapped only by one target
// region are used in place and not copied.
//
// # Kernels
//
// Devices compile kernels in the background, from [Runtime.NewKernel] on or when they are
// opened. A kernel's first launch on a device waits for its compilation. That may take any
// time, which a context can limit (see [Runtime.Target]). A deferred task waits for it, but
// not the code that generates the task. [Kernel.Close] closes a kernel.
//
// Kernels are trusted code, like the program itself: the driver compiles them inside the
// process, and they run with its rights on the device. Nothing limits how long one compiles
// or runs, and one that uses addresses can access all memory of the device. As far as it
// can, the device keeps accesses outside of a kernel's arguments from other mappings: see
// Options.Robust. With Options.Validate the Khronos validator checks modules. Neither makes
// it safe to run untrusted code.
//
// # Errors
//
// Where OpenMP says "runtime error termination" a call returns an error and leaves all state
// as it was. The failure of a deferred task is returned by the Taskwait or Taskgroup that
// waits for it, or by [Runtime.Close]; until then its dependents are not run, including
// those generated later. If tasks with the same label fail with the same text, a Taskwait
// and Close return the text once with the number of such failures. errors.Is and errors.As
// also find failures with that text that wrap other errors: the first 8 that differ, and, up
// to 16 in all, later ones whose innermost errors differ from those before.
package vkomp
