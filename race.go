package vkomp

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// ErrRace: tasks access the same storage and nothing orders them. See Options.Race.
var ErrRace = errors.New("race between tasks")

// Race is a pair of tasks that access the same bytes, one of them writing, with no path
// between them in the task graph: see Options.Race. It is an error that matches ErrRace.
type Race struct {
	// First was generated before Second.
	First, Second RaceAccess
	// Address is where the bytes begin that both access, Size how many they are. Of a
	// slice it is the host's address, whichever storage is meant.
	Address, Size uint64
	// Device is the number of the device in whose storage they are; of host storage it
	// is InitialDeviceNumber.
	Device int
	// Advice says what is missing, such as a depend clause.
	Advice string
}

// RaceAccess is one side of a Race.
type RaceAccess struct {
	// Task is the task's label.
	Task string
	// Item names what of the task accesses the bytes, such as "argument 1".
	Item string
	// Write: it writes them, and may read them too.
	Write bool
	// Site is where the program generates the task, as file:line, and Function the
	// function that this is in. Stack has the callers too, the innermost first.
	Site, Function string
	Stack          []runtime.Frame
}

// Error describes the race in one line.
func (r Race) Error() string {
	where := "on the host"
	if r.Device != InitialDeviceNumber {
		where = fmt.Sprintf("on device %d", r.Device)
	}
	return fmt.Sprintf("%v: %v, and %v, both the %d bytes at %#x %s: %s", ErrRace, r.First, r.Second, r.Size, r.Address, where, r.Advice)
}

// Unwrap returns ErrRace.
func (r Race) Unwrap() error { return ErrRace }

// String returns the access in the form `task "axpy" (main.go:12) writes argument 1`.
func (a RaceAccess) String() string {
	does := "reads"
	if a.Write {
		does = "writes"
	}
	return fmt.Sprintf("task %q (%s) %s %s", a.Task, a.Site, does, a.Item)
}

// Races returns the races found so far, in the order in which they were found: one for
// each pair of places in the program that generate tasks. It is empty without
// Options.Race.
//
// A task is looked at when all that it follows is known, which is when it is generated
// unless it follows a host task that has not ended; so after a Taskwait, or the end of a
// Taskgroup, the races of the tasks waited for are there.
func (rt *Runtime) Races() []Race {
	d := rt.race
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.races)
}

// racePlace is a place in the program: the innermost frame that is not the runtime's.
type racePlace struct {
	file string
	line int
}

// raceStack are the return addresses of a construct's callers.
type raceStack [24]uintptr

// frames returns the frames from the program's innermost on; all of them where the
// program is the package itself.
func (s *raceStack) frames() []runtime.Frame {
	n := slices.Index(s[:], 0)
	if n < 0 {
		n = len(s)
	}
	var frames []runtime.Frame
	for next := runtime.CallersFrames(s[:n]); ; {
		f, more := next.Next()
		frames = append(frames, f)
		if !more {
			break
		}
	}
	for i, f := range frames {
		if !strings.HasPrefix(f.Function, ownPackage+".") && !strings.HasPrefix(f.Function, ownPackage+"/sched.") && !strings.HasPrefix(f.Function, ownPackage+"/sched/") && !strings.HasPrefix(f.Function, ownPackage+"/interop.") {
			return frames[i:]
		}
	}
	return frames
}

// ownPackage is the import path of this package.
var ownPackage = func() string {
	pc, _, _, _ := runtime.Caller(0)
	name := runtime.FuncForPC(pc).Name()
	slash := strings.LastIndexByte(name, '/') + 1
	return name[:slash+strings.IndexByte(name[slash:], '.')]
}()
