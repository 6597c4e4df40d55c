package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

var (
	// ErrInvalidDepend: a depend item that is not one.
	ErrInvalidDepend = errors.New("invalid depend clause")
	// ErrCancelled: the taskgroup is cancelled. A body that returns it has not
	// failed.
	ErrCancelled = errors.New("taskgroup cancelled")
	// ErrFulfilled: the event of a detachable task was fulfilled before.
	ErrFulfilled = errors.New("event was fulfilled before")
)

// Error is the failure of one task.
type Error struct {
	// Task is the task's label.
	Task string
	// Cause is the failure itself. For a task that never ran because a
	// predecessor failed, it is that predecessor's *Error.
	Cause error
	// Dependent is set when the task did not run because of a predecessor.
	Dependent bool
	// tally is the last that counts the failure, for the scope's lock to guard.
	tally *tally
}

// Error names the task and, for a task that was not run, the root cause.
func (e *Error) Error() string {
	if e.Dependent {
		return fmt.Sprintf("task %q not run: it depends on failed %v", e.Task, e.Cause)
	}
	return fmt.Sprintf("task %q: %v", e.Task, e.Cause)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// tally is one root failure as a wait reports it: the failure and how many tasks
// were not run because of it. Fields other than reported are guarded by the lock
// of the scope whose tasks it counts.
type tally struct {
	root *Error
	// seq is that of the first task counted.
	seq uint64
	// dropped counts the dependents that were not run.
	dropped int
	// reported: a wait returned it. What it poisoned can be used again.
	reported atomic.Bool
	// scope is where the failure left its poison.
	scope *Scope
}

// failures are those that one wait has to report, by root.
type failures struct {
	list []*tally
	// byRoot serves when the list is long.
	byRoot map[*Error]*tally
}

// note counts the failure of the task with that seq and returns its tally.
func (f *failures) note(root *Error, seq uint64, dropped bool) *tally {
	t := f.find(root)
	if t == nil {
		t = &tally{root: root, seq: seq}
		root.tally = t
		f.list = append(f.list, t)
		if f.byRoot != nil {
			f.byRoot[root] = t
		}
	}
	if dropped {
		t.dropped++
	}
	return t
}

// share adds a tally that another wait reports as well.
func (f *failures) share(t *tally) {
	if f.find(t.root) != t {
		f.list = append(f.list, t)
		if f.byRoot != nil && f.byRoot[t.root] == nil {
			f.byRoot[t.root] = t
		}
	}
}

func (f *failures) find(root *Error) *tally {
	if len(f.list) > 8 && f.byRoot == nil {
		f.byRoot = make(map[*Error]*tally)
		// The first of several, as in a short list.
		for _, t := range slices.Backward(f.list) {
			if !t.reported.Load() {
				f.byRoot[t.root] = t
			}
		}
	}
	t := f.byRoot[root]
	if f.byRoot == nil {
		if i := slices.IndexFunc(f.list, func(t *tally) bool { return t.root == root && !t.reported.Load() }); i >= 0 {
			t = f.list[i]
		}
	}
	if t != nil && t.reported.Load() {
		return nil
	}
	return t
}

// unreported returns those that no other wait has reported since.
func (f *failures) unreported() []*tally {
	var list []*tally
	for _, t := range f.list {
		if !t.reported.Load() {
			list = append(list, t)
		}
	}
	return list
}

// Failures are failures of several scopes, to be reported together.
type Failures struct{ tallies []*tally }

// Report returns the failures joined, as Scope.Wait does, and forgets them.
func (f *Failures) Report() error {
	tallies := f.tallies
	f.tallies = nil
	return report(tallies)
}

// report counts the tallies as reported and joins their root failures in the
// order of the tasks' making, with the number of tasks that were not run. What they
// poisoned can be used again.
func report(tallies []*tally) error {
	if len(tallies) == 0 {
		return nil
	}
	slices.SortFunc(tallies, func(a, b *tally) int { return cmp.Compare(a.seq, b.seq) })
	roots := make([]error, 0, len(tallies))
	// A wait can have two tallies of one failure: one it shares, and its own of what
	// failed since that was reported.
	known := make(map[*Error]bool, len(tallies))
	dropped := 0
	for i, t := range tallies {
		if i > 0 && t == tallies[i-1] {
			continue
		}
		t.reported.Store(true)
		dropped += t.dropped
		if !known[t.root] {
			known[t.root] = true
			roots = append(roots, t.root)
		}
	}
	cleanse(tallies)
	err := errors.Join(roots...)
	if dropped > 0 {
		return fmt.Errorf("%w (%d dependent tasks not run)", err, dropped)
	}
	return err
}
