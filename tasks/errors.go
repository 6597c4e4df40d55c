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
	// likeness is that of the cause.
	likeness likeness
	// unrun: the task was not run because its context had ended.
	unrun bool
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

// tally is one root failure as a wait reports it: the failure, and how many tasks
// were not run because of it. Of tasks without depend items, which nothing follows,
// it counts all failures that are alike. Fields other than the atomic ones are guarded
// by the lock of the scope whose tasks it counts.
type tally struct {
	root *Error
	// seq is that of the first task counted.
	seq uint64
	// group is the taskgroup that the tasks counted were in, nil for none: what one
	// group reports is not reported for another.
	group *Group
	// failed counts the tasks that failed, dropped the dependents that were not run.
	failed, dropped int
	// others: the root stands for failures that are not alike.
	others bool
	// distinct are the root and others counted, nil if it is the root alone.
	distinct failedAlike
	// told is the group that has the tally in its list, for its lock to guard.
	told *Group
	// reported: a wait returned it. spent: its taskgroup was abandoned. In both cases what
	// it poisoned can be used again.
	reported, spent atomic.Bool
	// scope is that of the tasks that failed. places are where the failure left its poison,
	// with the scope of each: that one, or others of its family where tasks that were on the
	// device already did.
	scope  *Scope
	places map[*span[poisoned]]*Scope
}

// over reports whether what the failure poisoned can be used again.
func (t *tally) over() bool { return t.reported.Load() || t.spent.Load() }

// maxKinds bounds the different failures that one wait reports, and that tasks without
// depend items keep in memory; of those beyond, the number is told.
const maxKinds = 1000

// kind is what failures have in common that are reported as one and a number.
type kind struct {
	label string
	text  uint64
	group *Group
}

// otherKind is that of the failures beyond maxKinds.
func otherKind(g *Group) kind { return kind{group: g} }

// failures are those that one wait has to report, by root.
type failures struct {
	list []*tally
	// byRoot serves when the list is long.
	byRoot map[rootIn]*tally
	// byKind has those of tasks without depend items, nil before the first.
	byKind map[kind]*tally
	// settled counts those that others have reported since the list was last gone over.
	settled int
}

// rootIn is a failure and the group of tasks that failed by it.
type rootIn struct {
	root  *Error
	group *Group
}

// note counts the failure of a task and returns its tally.
func (f *failures) note(root *Error, n *Node, g *Group) *tally {
	var t *tally
	k := kind{root.Task, root.likeness.text, g}
	alone := n.failure == root && len(n.items) == 0
	if alone {
		if t = f.ofKind(k); t == nil && len(f.byKind) >= maxKinds {
			k = otherKind(g)
			t = f.ofKind(k)
		}
	} else {
		t = f.find(root, g)
	}
	if t == nil {
		t = &tally{root: root, seq: n.seq, group: g, others: k == otherKind(g)}
		f.list = append(f.list, t)
		if f.byRoot != nil {
			f.byRoot[rootIn{root, g}] = t
		}
		if alone {
			f.byKind[k] = t
		}
	}
	t.count(root)
	root.tally = t
	if n.failure == nil {
		t.dropped++
	} else {
		t.failed++
	}
	return t
}

// ofKind returns the tally of tasks without depend items that failed alike, or nil.
func (f *failures) ofKind(k kind) *tally {
	if f.byKind == nil {
		f.byKind = make(map[kind]*tally)
	}
	if t := f.byKind[k]; t != nil && !t.reported.Load() {
		return t
	}
	return nil
}

// share adds a tally that another wait reports as well.
func (f *failures) share(t *tally) {
	if !slices.Contains(f.list[max(0, len(f.list)-8):], t) && f.find(t.root, t.group) != t {
		f.list = append(f.list, t)
		if at := (rootIn{t.root, t.group}); f.byRoot != nil && f.byRoot[at] == nil {
			f.byRoot[at] = t
		}
	}
}

func (f *failures) find(root *Error, g *Group) *tally {
	if len(f.list) > 8 && f.byRoot == nil {
		f.byRoot = make(map[rootIn]*tally)
		// The first of several, as in a short list.
		for _, t := range slices.Backward(f.list) {
			if !t.reported.Load() {
				f.byRoot[rootIn{t.root, t.group}] = t
			}
		}
	}
	t := f.byRoot[rootIn{root, g}]
	if f.byRoot == nil {
		if i := slices.IndexFunc(f.list, func(t *tally) bool { return t.root == root && t.group == g && !t.reported.Load() }); i >= 0 {
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

// settle takes note that a wait has reported t. The list is gone over when half of it may
// have been reported.
func (f *failures) settle(t *tally) {
	if at := (rootIn{t.root, t.group}); f.byRoot[at] == t {
		delete(f.byRoot, at)
	}
	k := kind{t.root.Task, t.root.likeness.text, t.group}
	if t.others {
		k = otherKind(t.group)
	}
	if f.byKind[k] == t {
		delete(f.byKind, k)
	}
	f.settled++
	if 2*f.settled >= len(f.list) {
		f.list, f.settled = f.unreported(), 0
	}
}

// Failures are failures of scopes that get no tasks more, to be reported together.
type Failures struct {
	tallies []*tally
	byKind  map[kind]*tally
	// sweep is the number of tallies at which those that were reported are dropped.
	sweep int
}

// add adds what no wait has reported. Failures that are alike, and that no taskgroup has
// to report, become one.
func (f *Failures) add(tallies []*tally) {
	if f.byKind == nil {
		f.byKind = make(map[kind]*tally)
	}
	var merged []*tally
	for _, t := range tallies {
		if t.reported.Load() {
			continue
		}
		if t.group.reporter() == nil {
			k := kind{label: t.root.Task, text: t.root.likeness.text}
			if len(f.byKind) >= maxKinds && f.byKind[k] == nil {
				k = otherKind(nil)
			}
			if same := f.byKind[k]; same != nil {
				same.failed += t.failed
				same.dropped += t.dropped
				same.countAll(t)
				same.others = same.others || k == otherKind(nil)
				t.reported.Store(true)
				merged = append(merged, t)
				continue
			}
			f.byKind[k] = t
		}
		f.tallies = append(f.tallies, t)
	}
	cleanse(merged)
	if len(f.tallies) > max(f.sweep, 64) {
		all := f.tallies
		*f = Failures{sweep: 2 * len(all)}
		f.add(all)
		f.sweep = 2 * len(f.tallies)
	}
}

// take adds what the caller is going to report: no other wait has to.
func (f *Failures) take(tallies []*tally) {
	for _, t := range tallies {
		t.reported.Store(true)
	}
	f.tallies = append(f.tallies, tallies...)
}

// Join adds all that is in more.
func (f *Failures) Join(more *Failures) {
	f.take((&failures{list: more.tallies}).unreported())
	*more = Failures{}
}

// Report returns the failures joined, as Scope.Wait does, and forgets them.
func (f *Failures) Report() error {
	tallies := f.tallies
	*f = Failures{}
	return report(tallies)
}

// report counts the tallies as reported and joins their root failures in the
// order of the tasks' making, those that are alike as a summary, with the number of tasks
// that were not run. What they poisoned can be used again.
func report(tallies []*tally) error {
	if len(tallies) == 0 {
		return nil
	}
	slices.SortStableFunc(tallies, func(a, b *tally) int { return cmp.Compare(a.seq, b.seq) })
	var lines []*tally
	known := make(map[kind]*tally)
	counted := make(map[*tally]bool, len(tallies))
	dropped := 0
	for _, t := range tallies {
		if counted[t] {
			continue
		}
		counted[t] = true
		t.reported.Store(true)
		dropped += t.dropped
		k := kind{label: t.root.Task, text: t.root.likeness.text}
		if t.others || known[k] == nil && len(known) >= maxKinds {
			k = otherKind(nil)
		}
		l := known[k]
		if l == nil {
			l = &tally{root: t.root, others: k == otherKind(nil)}
			known[k] = l
			lines = append(lines, l)
		}
		l.failed += t.failed
		l.countAll(t)
	}
	cleanse(tallies)
	errs := make([]error, len(lines))
	for i, l := range lines {
		errs[i] = l.root
		// Tasks of other scopes that failed are not counted, if dependents of theirs are.
		if n := max(l.failed, len(l.distinct)); n > 1 {
			errs[i] = &summary{l.distinct.or(l.root), n - 1, l.others}
		}
	}
	err := errors.Join(errs...)
	if dropped > 0 {
		return fmt.Errorf("%w (%d dependent tasks not run)", err, dropped)
	}
	return err
}
