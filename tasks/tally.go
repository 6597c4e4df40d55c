package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
)

// tally is one root failure as a wait reports it, with the number of tasks that were not run
// because of it. For tasks without depend items, which have no dependents, it counts all failures
// that are alike. Fields that are not atomic are guarded by the lock of the scope of these tasks.
type tally struct {
	root *Error
	// seq is the number of the first task counted.
	seq uint64
	// group is the taskgroup of the tasks counted, nil for none. Failures are reported for each
	// group separately.
	group *Group
	// failed counts the tasks that failed, dropped their dependents that were not run.
	failed, dropped int
	// alone says that the tasks have no depend items. others says that the root stands for failures that are not alike.
	alone, others bool
	// returned says that a wait, which did not have to report the failures, has returned all that is counted.
	returned bool
	// distinct holds the root and others that were counted; nil stands for the root alone.
	distinct failedAlike
	// told is the group whose list contains the tally; guarded by the group's lock.
	told *Group
	// reported says that a wait has returned it, spent that its taskgroup was abandoned. In
	// both cases storage is no longer marked as failed because of it.
	reported, spent atomic.Bool
	// scope is the scope of the tasks that failed. places holds the failedStorage entries of the
	// failure, with the scope of each: scope itself, or others of its family if tasks that were
	// already on the device failed too.
	scope  *Scope
	places map[*span[failedSection]]*Scope
}

// reportedBy reports whether a wait inside of a group, or of none, is the one that has to report the failure. One
// outside of the failure's taskgroup returns it too, and leaves the report to the group's own wait.
func (t *tally) reportedBy(inside *Group) bool { return t.group.reporter().encloses(inside) }

// settleAll marks those of the tallies as reported that a wait inside of a group, or of none, has to report. Storage is no
// longer marked as failed because of them.
func settleAll(tallies []*tally, inside *Group) {
	settled := make([]*tally, 0, len(tallies))
	for _, t := range tallies {
		if t.reportedBy(inside) {
			t.reported.Store(true)
			settled = append(settled, t)
		}
	}
	unmarkStorage(settled)
}

// over reports whether storage is no longer marked as failed because of the failure.
func (t *tally) over() bool { return t.reported.Load() || t.spent.Load() }

// releaseErrorsLocked takes the tally, which is reported, from the failures that it counts. A program may keep their errors
// for any time, and would with them keep the scope and all that it remembers of storage.
func (t *tally) releaseErrorsLocked() {
	for _, e := range t.distinct.or(t.root) {
		// A failure that was counted in another tally first is still in that one, until it is reported.
		if e.tally != nil && e.tally.reported.Load() {
			e.tally = nil
		}
		e.tallies = slices.DeleteFunc(e.tallies, func(t *tally) bool { return t.reported.Load() })
	}
}

// maxKinds is the largest number of different failures that one wait reports, and that are kept for
// tasks without depend items. Further failures are only counted.
const maxKinds = 1000

// kind is the common property of failures that are reported as one with a number.
type kind struct {
	label string
	text  uint64
	group *Group
}

// kind returns the kind under which the tally is filed if it is of tasks without depend items.
func (t *tally) kind() kind {
	if t.others {
		return otherKind(t.group)
	}
	return kind{t.root.Task, t.root.likeness.text, t.group}
}

// otherKind is the kind of the failures above maxKinds.
func otherKind(g *Group) kind { return kind{group: g} }

// failures are the failures that one wait has to report, by root.
type failures struct {
	list []*tally
	// byRoot indexes the list when it is long.
	byRoot map[rootIn]*tally
	// byKind holds the tallies of tasks without depend items, nil before the first.
	byKind map[kind]*tally
	// settled counts the tallies that others have reported since the list was last cleaned up.
	settled int
}

// rootIn is a failure and the taskgroup of the tasks that failed because of it.
type rootIn struct {
	root  *Error
	group *Group
}

// note counts the failure of a task and returns its tally.
func (f *failures) note(root *Error, n *Node, g *Group) *tally {
	var t *tally
	k := kind{root.Task, root.likeness.text, g}
	alone := n.specials().failure == root && len(n.items) == 0
	if alone {
		k, t = f.alike(k, g)
	} else {
		t = f.find(root, g)
	}
	if t == nil {
		t = &tally{root: root, seq: n.seq, group: g, alone: alone, others: k == otherKind(g)}
		f.list = append(f.list, t)
		if f.byRoot != nil {
			f.byRoot[rootIn{root, g}] = t
		}
		if alone {
			f.byKind[k] = t
		} else {
			root.tallies = append(root.tallies, t)
		}
	}
	t.returned = false
	t.count(root)
	if n.specials().failure == nil {
		t.dropped++
	} else {
		t.failed++
		root.tally = t
	}
	return t
}

// alike returns the tally that counts failures of a kind of tasks without depend items, or nil, and the kind under which it
// is filed: that of all others, if there are too many.
func (f *failures) alike(k kind, g *Group) (kind, *tally) {
	t := f.ofKind(k)
	if t == nil && len(f.byKind) >= maxKinds {
		k = otherKind(g)
		t = f.ofKind(k)
	}
	return k, t
}

// ofKind returns the tally of tasks without depend items whose failures are alike, or nil.
func (f *failures) ofKind(k kind) *tally {
	if f.byKind == nil {
		f.byKind = make(map[kind]*tally)
	}
	if t := f.byKind[k]; t != nil && !t.reported.Load() {
		return t
	}
	return nil
}

// share adds a tally that another wait reports too.
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

// unreported returns those of the tallies that no wait has reported.
func unreported(tallies []*tally) (list []*tally) {
	for _, t := range tallies {
		if !t.reported.Load() {
			list = append(list, t)
		}
	}
	return list
}

// settle records that a wait has reported t. The list is cleaned up when half of its tallies may
// have been reported.
func (f *failures) settle(t *tally) {
	if at := (rootIn{t.root, t.group}); f.byRoot[at] == t {
		delete(f.byRoot, at)
	}
	if k := t.kind(); f.byKind[k] == t {
		delete(f.byKind, k)
	}
	f.settled++
	if 2*f.settled >= len(f.list) {
		f.list, f.settled = unreported(f.list), 0
	}
}

// giveBack adds the tallies that a wait which was given up has not reported, except for those that other waits have returned, or
// that others in progress will. Of tasks without depend items, those whose failures are alike become one again: the first.
func (f *failures) giveBack(given *failures, awaited map[*tally]bool) {
	for _, t := range unreported(given.list) {
		if awaited[t] || t.returned {
			continue
		}
		if t.alone {
			k, same := f.alike(t.kind(), t.group)
			t.others = k == otherKind(t.group)
			if same != nil && same.seq < t.seq {
				same.include(t)
				t.reported.Store(true)
				continue
			}
			if same != nil {
				t.include(same)
				same.reported.Store(true)
				f.settle(same)
			}
			f.byKind[k] = t
		}
		f.list = append(f.list, t)
	}
	f.byRoot = nil
}

// Failures collects failures of scopes that will get no more tasks, to be reported together.
type Failures struct {
	tallies []*tally
	// byKind says where in tallies failures of a kind are that no taskgroup has to report.
	byKind map[kind]int
	// sweep is the number of tallies at which reported ones are dropped.
	sweep int
}

// add adds tallies that no wait has reported. Failures that are alike, and that no taskgroup has to
// report, become one, which is a tally without a scope: others may still read those of scopes.
func (f *Failures) add(tallies []*tally) {
	if f.byKind == nil {
		f.byKind = make(map[kind]int)
	}
	var merged []*tally
	for _, t := range tallies {
		if t.reported.Load() {
			continue
		}
		if t.group.reporter() == nil {
			k := kind{label: t.root.Task, text: t.root.likeness.text}
			at, known := f.byKind[k]
			if !known && len(f.byKind) >= maxKinds {
				k = otherKind(nil)
				at, known = f.byKind[k]
			}
			if known && !f.tallies[at].reported.Load() {
				same := f.tallies[at]
				if same.scope != nil {
					merged = append(merged, same)
					same = &tally{root: same.root, seq: same.seq}
					same.include(f.tallies[at])
					f.tallies[at] = same
				}
				same.include(t)
				same.others = same.others || k == otherKind(nil)
				merged = append(merged, t)
				continue
			}
			f.byKind[k] = len(f.tallies)
		}
		f.tallies = append(f.tallies, t)
	}
	for _, t := range merged {
		t.reported.Store(true)
	}
	unmarkStorage(merged)
	if len(f.tallies) > max(f.sweep, 64) {
		all := f.tallies
		*f = Failures{sweep: 2 * len(all)}
		f.add(all)
		f.sweep = 2 * len(f.tallies)
	}
}

// include counts the tasks of another tally too.
func (t *tally) include(o *tally) {
	t.failed += o.failed
	t.dropped += o.dropped
	t.others = t.others || o.others
	t.countAll(o)
}

// take adds tallies that the caller will report, so that no other wait has to.
func (f *Failures) take(tallies []*tally) {
	for _, t := range tallies {
		if t.reportedBy(nil) {
			t.reported.Store(true)
		}
	}
	f.tallies = append(f.tallies, tallies...)
}

// Add adds everything in more.
func (f *Failures) Add(more *Failures) {
	f.take(unreported(more.tallies))
	*more = Failures{}
}

// Report returns the failures joined, as Scope.Wait does, and forgets them.
func (f *Failures) Report() error {
	tallies := f.tallies
	*f = Failures{}
	return report(tallies, nil)
}

// report settles the tallies (see settleAll) for a wait inside of a group, or of none, and joins their root failures in the order in
// which the tasks were generated. Failures that are alike become a summary, and each has the number of
// tasks that were not run.
func report(tallies []*tally, inside *Group) error {
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
		if t.scope != nil {
			t.scope.lock() // other waits can have it too, and count more
		}
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
		if t.scope != nil {
			t.scope.unlock()
		}
	}
	settleAll(tallies, inside)
	errs := make([]error, len(lines))
	for i, l := range lines {
		errs[i] = l.root.shown()
		// Failed tasks of other scopes are not counted, but their dependents are.
		if n := max(l.failed, len(l.distinct)); n > 1 {
			errs[i] = &summary{l.distinct.or(l.root), n - 1, l.others}
		}
	}
	return withDropped(errors.Join(errs...), dropped)
}

// withDropped adds the number of tasks that were not run to an error, if there are any.
func withDropped(err error, dropped int) error {
	if err == nil || dropped == 0 {
		return err
	}
	return fmt.Errorf("%w (%d dependent tasks not run)", err, dropped)
}
