package vkomp

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe/races"
)

// ErrRace says that tasks access the same storage and nothing orders them. See Options.Race.
var ErrRace = errors.New("race between tasks")

// Race is a pair of tasks that access the same bytes, one of them writing, with no path
// between them in the task graph: see Options.Race. It is an error that matches ErrRace.
type Race struct {
	// First was generated before Second.
	First, Second RaceAccess
	// Address is the address of the first byte that both access, and Size the number of such
	// bytes. For a slice it is the address on the host, whichever storage is accessed.
	Address, Size uint64
	// Device is the number of the device whose storage is accessed, InitialDeviceNumber for
	// the host's.
	Device int
	// Advice says what is missing, such as a depend clause.
	Advice string
}

// RaceAccess is one side of a Race.
type RaceAccess struct {
	// Task is the task's label.
	Task string
	// Item names the part of the construct that accesses the bytes, such as "argument 1".
	Item string
	// Write says that the task writes the bytes; it may read them too.
	Write bool
	// Site is the place where the program generates the task, as file:line, and Function the
	// function there. Stack has that frame and its callers, the innermost first.
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

// Races returns the races found so far, in the order in which they were found: one for each
// pair of places in the program that generate tasks. It is empty without Options.Race.
//
// A task is examined as soon as everything that it depends on is known. That is when it is
// generated, unless it depends on a host task that has not ended. So after a Taskwait, or the
// end of a Taskgroup, the list has the races of the tasks that were waited for.
func (rt *Runtime) Races() []Race {
	rt.races.mu.Lock()
	defer rt.races.mu.Unlock()
	return slices.Clone(rt.races.found)
}

// foundRaces are the races that Options.Race has found.
type foundRaces struct {
	// detector is nil without Options.Race.
	detector *races.Detector
	mu       lockrank.Mutex[lockrank.Leaf]
	found    []Race
}

// startRaces starts the race detector.
func (rt *Runtime) startRaces() {
	rt.races.detector = races.New(ofTask, func(found races.Report) {
		race := Race{
			First: raceAccess(found.First), Second: raceAccess(found.Second),
			Address: found.Address, Size: found.Size, Device: found.Device, Advice: found.Advice,
		}
		rt.races.mu.Lock()
		rt.races.found = append(rt.races.found, race)
		rt.races.mu.Unlock()
		rt.log.Warn(ErrRace.Error(), "first", race.First.String(), "second", race.Second.String(),
			"address", fmt.Sprintf("%#x", race.Address), "bytes", race.Size, "device", race.Device, "advice", race.Advice)
	})
}

func raceAccess(a races.Access) RaceAccess {
	at := a.Frames[0]
	return RaceAccess{
		Task: a.Task, Item: a.Item, Write: a.Write,
		Site: fmt.Sprintf("%s:%d", at.File, at.Line), Function: at.Function, Stack: a.Frames,
	}
}

// closeRaces makes the race detector examine the remaining tasks, and returns all races found.
func (rt *Runtime) closeRaces() error {
	if rt.races.detector == nil {
		return nil
	}
	rt.races.detector.Close()
	var errs []error
	for _, race := range rt.Races() {
		errs = append(errs, fmt.Errorf("vkomp: %w", race))
	}
	return errors.Join(errs...)
}
