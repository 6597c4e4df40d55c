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
// When a context ends, waits with it return, and tasks that were generated with it
// and have not started are dropped.
//
// # Goroutines and requests
//
// Goroutines that use contexts of the initial task generate its children, which are
// siblings. They share
//   - dependences: a task follows all earlier siblings that name its storage, and with
//     [InOutAllMemory] all that name any, whichever goroutine generated them;
//   - the failures of what they depend on: a task does not run when one that it follows has
//     failed, or was dropped because its context had ended;
//   - Taskwait, which waits for the tasks of all of them and returns their failures, to
//     one goroutine alone.
//
// A [Runtime.Taskgroup] in each goroutine gives them waits of their own: it waits for its
// tasks alone, and says what failed of them or was not run. Dependences, and failures
// along them, still go from one group to another as long as the tasks of both are there.
// What a group has left behind, its context having ended, fails no task that is generated
// after it is over.
//
// A [Task] that is undeferred gives a goroutine all of its own: its children depend on
// nothing but each other. A server runs each request in one:
//
//	err := rt.Task(r.Context(), vkomp.Task{If: vkomp.If(false), Body: func(ctx context.Context) error {
//		… // constructs with ctx
//		return rt.Taskwait(ctx)
//	}})
//
// Requests then share the devices with their memory, the places that host tasks run on,
// and what of their slices is present: nothing orders tasks of two requests that use one
// slice. When r.Context() ends, tasks that have started go on: before a request's slices
// are used for another, a Taskwait with context.WithoutCancel(ctx) must have returned.
//
// # Storage
//
// A mapped slice belongs to the runtime while a region holds it. A wait that is
// cut short by its context leaves it there until a later Taskwait returns.
// Host storage holds no Go pointers; other element types are refused, unless a
// [Mapper] says what the device has in their place.
//
// Maps count: the first construct that holds a slice gives it storage on the device
// and copies it there, the last one copies it back and takes the storage away.
// [Runtime.TargetData] holds slices for a body, [Runtime.TargetEnterData] until a
// [Runtime.TargetExitData]; [Runtime.TargetUpdate] copies in between. Sections of a
// slice that is present are part of it; one that is present in part is
// [ErrPartialOverlap].
//
// A [DevicePtr] is memory that the program has from [Device.Alloc], or that of a
// mapped slice. [Runtime.Memcpy] and [Runtime.MemcpyRect] copy between devices and
// the host ([HostPtr]), [Device.AssociatePtr] makes it the storage of a slice. One
// whose memory is gone is recognised: [ErrInvalidPointer].
//
// Where device and host have one memory, large slices that a single target region
// maps are used in place and not copied.
//
// # Kernels
//
// A device compiles a kernel when it is first launched there. That may take any time,
// which a context bounds (see [Runtime.Target]); a deferred task waits for it, and
// whoever generates it does not. [Kernel.Close] gives a kernel up.
//
// Kernels are trusted code, as the program itself is: the driver compiles them inside of the
// process, and they run with its rights on the device. Nothing bounds how long one is
// compiled or runs, and one that uses addresses reaches all memory of the device. What a
// kernel does outside of its arguments the device keeps from other mappings, if it can: see
// Options.Robust. Options.Validate has Khronos' validator check modules. Neither makes it
// safe to run code of strangers.
//
// # Errors
//
// Where OpenMP says "runtime error termination" a call returns an error and
// leaves all state as it was. A deferred task's failure is returned by the
// Taskwait or Taskgroup that waits for it, or by [Runtime.Close]; its dependents are not
// run, those made later neither, until then. Of failures of tasks with one label and one
// text, a Taskwait and Close return the text of the first, and say how many there are like
// it; errors.Is and errors.As find others too that differ in what they wrap: those among the
// first 8 that differ, and of later ones, up to 16 in all, those whose innermost errors
// differ from the ones before.
package vkomp
