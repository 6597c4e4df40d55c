package sched

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// A copy to storage that is used in place is made by the host. It must come after the kernels
// that the task depends on.
func TestCopyToSharedStorageFollowsItsPredecessors(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x, y := filled(100, 5), filled(100, 50)
	token := array32(1)
	g := r.region(launch{label: "enter", enter: []arg{to(x)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	p, ok := r.s.MappedPointer(sectionOf(x))
	if !ok {
		t.Fatal("not mapped")
	}
	r.d.hold()
	r.on(launch{label: "add", kernel: "add", constant: 3, out: [][]uint32{token}}, 100, p)
	r.transfer(launch{label: "copy", out: [][]uint32{token}}, toDevice(p, y))
	r.d.release()
	r.taskwait()
	r.expect("x", x, filled(100, 50)...)
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapDelete}}, included: true})
}

// refusing returns a variable: while it is true the device has no memory for the scheduler.
func (r *rig) refusing() *bool {
	refuse := new(bool)
	r.d.create = func(int) error {
		if *refuse {
			return errBlockMemory
		}
		return nil
	}
	return refuse
}

// starved counts the tasks that wait for memory.
func (r *rig) starved() int {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return len(r.s.life.starved)
}

// A task that finds no memory enters again later, and may find other storage present then. Its
// exit releases what its last entry has counted.
func TestStarvedTaskKeepsItsExit(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y, z := filled(16, 1), array32(3<<18), array32(3<<18)
	refuse := r.refusing()
	// Storage for y and z exists, and staging has room for one of them.
	r.run(launch{label: "warm", enter: []arg{alloc(y), alloc(z)}, included: true})
	r.run(launch{label: "first", enter: []arg{{s: y[:16], kind: memory.MapTo, always: true}}, included: true})
	*refuse = true
	r.d.hold()
	r.run(launch{label: "y", enter: []arg{{s: y, kind: memory.MapTo, always: true}}})
	// The item x is mapped only if it is present, and it is absent. There is no staging for z.
	g := r.region(launch{label: "z"})
	g.Enter = []memory.Map{to(z).item("z"), alloc(x).item("x")}
	g.Enter[0].Always = true
	g.Enter[1].Presence = memory.IfPresent
	g.Structured = true
	if err := r.s.Run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if n := r.starved(); n != 1 {
		t.Fatalf("%d starved", n)
	}
	// x becomes present before the task enters again.
	r.run(launch{label: "x", enter: []arg{alloc(x)}})
	r.d.release()
	r.taskwait()
	block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
	if n, _ := block.Count(); n != 1 {
		t.Errorf("x counts %d, want 1", n)
	}
	*refuse = false
	for _, s := range [][]uint32{x, y, z} {
		r.run(launch{label: "delete", exit: []arg{{s: s, kind: memory.MapDelete}}, included: true})
	}
}

// The end of a data region that finds no staging memory for its copy makes it later. If there is none
// either when nothing else is in flight, it fails, and its storage is unmapped all the same.
func TestEndWithoutStagingEndsAllTheSame(t *testing.T) {
	r := newRig(t, memoryModes[1], 1)
	defer r.close()
	x, y := filled(3<<18, 7), array32(3<<18)
	refuse := r.refusing()
	end := func(included bool) error {
		g := r.region(launch{label: "end", exit: []arg{from(x)}, included: included})
		g.Always = true
		return r.s.Run(t.Context(), g)
	}
	r.run(launch{label: "y", enter: []arg{alloc(y)}, included: true})
	r.run(launch{label: "x", enter: []arg{to(x)}, included: true})
	clear(x)
	// Staging has room for one of the copies.
	*refuse = true
	r.d.hold()
	r.run(launch{label: "update", enter: []arg{{s: y, kind: memory.MapTo, always: true}}})
	if err := end(false); err != nil {
		t.Fatal(err)
	}
	if n := r.starved(); n != 1 {
		t.Fatalf("%d starved", n)
	}
	r.d.release()
	r.taskwait()
	if x[0] != 7 || x[len(x)-1] != 7 || r.s.Present(sectionOf(x)) {
		t.Errorf("x is %d to %d, present: %t", x[0], x[len(x)-1], r.s.Present(sectionOf(x)))
	}
	*refuse = false
	r.run(launch{label: "x again", enter: []arg{to(x)}, included: true})
	r.s.memory.Staging.Trim()
	*refuse = true
	if err := end(true); !errors.Is(err, memory.ErrOutOfMemory) || r.s.Present(sectionOf(x)) {
		t.Errorf("%v, present: %t", err, r.s.Present(sectionOf(x)))
	}
	r.run(launch{label: "delete", exit: []arg{{s: y, kind: memory.MapDelete}}, included: true})
}

// An exit that has no staging memory for its copies fails, and its storage stays mapped with
// its contents.
func TestExitWithoutStagingLosesNothing(t *testing.T) {
	for _, chunk := range []uint64{0, 64 << 10} {
		mode := memoryModes[1]
		mode.chunk = chunk
		r := newRig(t, mode, 1)
		x, y := filled(1<<18, 7), filled(16, 8)
		r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
		clear(x)
		r.s.memory.Staging.Trim()
		r.d.create = func(int) error { return errBlockMemory }
		exit := launch{label: "exit", exit: []arg{from(x), from(y)}, included: true}
		for range 2 {
			if err := r.s.Run(t.Context(), r.region(exit)); !errors.Is(err, memory.ErrOutOfMemory) {
				t.Errorf("chunks of %d: %v", chunk, err)
			}
		}
		r.d.create = nil
		r.run(exit)
		r.expect("x", x[:4], filled(4, 7)...)
		r.close()
	}
}

// An exit construct turns out to be the last only when its task ends, and the submission of the
// copy that it then makes fails: its storage stays mapped with its contents.
func TestExitWhoseLateCopyFailsTakesNothing(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, zero := filled(16, 1), filled(16, 0)
		token := [][]uint32{array32(1)}
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
		r.run(launch{label: "again", enter: []arg{to(x)}, included: true})
		r.d.hold()
		r.run(launch{label: "set", kernel: "mix", args: []arg{alloc(x), to(zero), to(zero)}, constant: 2, out: token})
		// This exit cannot know that it will be the last.
		r.run(launch{label: "release", exit: []arg{{s: x, kind: memory.MapRelease}}, out: token})
		r.run(launch{label: "exit", exit: []arg{from(x)}, out: token})
		r.failNext()
		r.d.release()
		err := r.scope.Wait(t.Context(), nil)
		block, _, _ := r.s.presence.table.Lookup(sectionOf(x))
		switch {
		case err == nil && block != nil:
			t.Error("the block is left without an error")
		case err != nil && block == nil:
			t.Errorf("the block is gone: %v", err)
		}
		if block != nil {
			r.run(launch{label: "exit again", exit: []arg{from(x)}, included: true})
		}
		r.expect("x", x, filled(16, 5)...)
	})
}

// The function that reads a value from its image fails: the value stays mapped.
func TestExitWhoseImageCannotBeReadTakesNothing(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x := filled(4, 1)
		failure := errors.New("unreadable")
		image := transfer.Image{
			Write: func(to unsafe.Pointer) error { *(*uint64)(to) = 7; return nil },
			Read: func(from unsafe.Pointer) error {
				if failure == nil && *(*uint64)(from) != 7 {
					return errors.New("other contents")
				}
				return failure
			},
		}
		item := arg{s: x, kind: memory.MapToFrom}.item("x")
		item.DeviceSize = 8
		enter := r.region(launch{label: "enter", included: true})
		enter.Enter, enter.Images = []memory.Map{item}, []transfer.Image{image}
		exit := r.region(launch{label: "exit", included: true})
		exit.Exit, exit.Images = []memory.Map{item}, []transfer.Image{image}
		if err := r.s.Run(t.Context(), enter); err != nil {
			t.Fatal(err)
		}
		if err := r.s.Run(t.Context(), exit); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
		if !r.s.Present(sectionOf(x)) {
			t.Error("the value is gone")
		}
		failure = nil
		if err := r.s.Run(t.Context(), exit); err != nil {
			t.Error(err)
		}
	})
}

// Storage that is mapped as it is would be copied as an image that is larger. The exit fails, and its commands, which are
// planned beforehand, read nothing beyond the storage.
func TestExitOfWhatIsNoImageCopiesNothing(t *testing.T) {
	d := newFakeDeviceWith(t, oneQueue, discreteMemory, 1)
	d.props.Features.RobustBufferAccess2 = false
	r := newWrappedRig(t, d, d, Options{HideHostVisible: true, OwnBuffers: true})
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	exit := r.region(launch{label: "exit", exit: []arg{from(x)}})
	exit.Exit[0].DeviceSize = 4096
	exit.Images = []transfer.Image{{Read: func(unsafe.Pointer) error { t.Error("an image is read"); return nil }}}
	if err := errors.Join(r.s.Run(t.Context(), exit), r.scope.Wait(t.Context(), nil)); !errors.Is(err, memory.ErrPartialOverlap) {
		t.Errorf("got %v", err)
	}
	if !r.s.Present(sectionOf(x)) {
		t.Error("the storage is gone")
	}
	r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
}

// Of two exits that overlap in time the second takes the last count of a block, and the first fails: the block stays when the
// second ends, and a task that has waited for it to be gone goes on.
func TestTaskGoesOnWhenAFailedExitLeavesABlock(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	for range 2 {
		r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	}
	var exits [2]target
	block := func() *memory.Present {
		p, _, err := r.s.presence.table.Lookup(sectionOf(x))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	r.s.mu.Lock()
	for i := range exits {
		exits[i].s = r.s
		exits[i].exit.items = r.s.presence.table.BeginExit([]memory.Map{arg{s: x, kind: memory.MapRelease}.item("x")}, nil)
	}
	r.s.mu.Unlock()
	r.run(launch{label: "waits", enter: []arg{to(x)}})
	r.eventually("a task waits for the block to be gone", func() bool { return len(stateOf(block()).parked) == 1 })
	exits[0].exit.cancelled = true
	for i := range exits {
		w := tasks.NewWork()
		r.s.mu.Lock()
		if !block().Exiting() {
			t.Errorf("exit %d: the block is not exiting", i)
		}
		r.s.endExitLocked(&exits[i], w)
		r.s.mu.Unlock()
		w.Finish()
	}
	r.taskwait()
	for range 2 {
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
	}
}

// A task fails at its exit, when its copies to the device have long been made: tasks that share the
// storage of these do not fail.
func TestFailedExitDoesNotBreakWhatWasCopied(t *testing.T) {
	inEveryMemory(t, func(t *testing.T, r *rig) {
		x, value := filled(16, 1), filled(4, 1)
		failure := errors.New("unreadable")
		item := arg{s: value, kind: memory.MapToFrom}.item("value")
		item.DeviceSize = 8
		fails := r.region(launch{label: "fails", enter: []arg{to(x)}})
		fails.Enter, fails.Structured = append(fails.Enter, item), true
		fails.Images = []transfer.Image{{
			Item:  1,
			Write: func(to unsafe.Pointer) error { *(*uint64)(to) = 7; return nil },
			Read:  func(unsafe.Pointer) error { return failure },
		}}
		r.d.hold()
		if err := r.s.Run(t.Context(), fails); err != nil {
			t.Fatal(err)
		}
		r.run(launch{label: "shares", enter: []arg{to(x)}})
		r.d.release()
		if err := r.scope.Wait(t.Context(), nil); !errors.Is(err, failure) {
			t.Errorf("got %v", err)
		}
		r.run(launch{label: "maps it later", enter: []arg{to(x)}, included: true})
		for _, label := range []string{"exit", "last exit"} {
			r.run(launch{label: label, exit: []arg{from(x)}, included: true})
		}
		r.expect("x", x, filled(16, 1)...)
		r.run(launch{label: "value", exit: []arg{{s: value, kind: memory.MapDelete}}, included: true})
	})
}

// A construct that fails is counted as one task.
func TestRefusedConstructCountsOnce(t *testing.T) {
	r := newRig(t, memoryModes[0], 1)
	defer r.close()
	x := filled(16, 1)
	r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
	before := r.graph.Counts().Tasks
	g := r.region(launch{label: "self", enter: []arg{alloc(x)}, included: true})
	g.Enter[0].Share = memory.ShareMust
	if err := r.s.Run(t.Context(), g); !errors.Is(err, memory.ErrNotShared) {
		t.Errorf("got %v", err)
	}
	if n := r.graph.Counts().Tasks - before; n != 1 {
		t.Errorf("%d tasks", n)
	}
	r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
}
