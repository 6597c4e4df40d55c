package vkomp

import (
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Cond is the value of an if clause. The zero Cond means that there is no if clause, which
// counts as true.
type Cond uint8

const (
	condAbsent Cond = iota
	condTrue
	condFalse
)

// If returns an if clause with that value; condition is evaluated by the caller.
func If(condition bool) Cond {
	if condition {
		return condTrue
	}
	return condFalse
}

// isFalse reports whether there is an if clause and it is false.
func (c Cond) isFalse() bool { return c == condFalse }

// iterate returns the items of a clause with an iterator.
func iterate[T any](begin, end, step int, item func(i int) T) []T {
	if step == 0 {
		step = 1
	}
	var items []T
	for i := begin; step > 0 && i < end || step < 0 && i > end; i += step {
		items = append(items, item(i))
		if next := i + step; next > i != (step > 0) {
			break // beyond the largest or smallest integer
		}
	}
	return items
}

// itemLabels holds the names of the items of a clause: "map 0", "map 1", … They are only
// needed for errors, so each is made once and kept.
type itemLabels struct {
	noun string
	// first has the names of the first items. more is made for the first construct that has more items: it has
	// the names of all.
	first [16]string
	mu    lockrank.Mutex[lockrank.Leaf]
	more  atomic.Pointer[[]string]
}

var (
	argumentLabels = newItemLabels("argument")
	mapLabels      = newItemLabels("map")
	motionLabels   = newItemLabels("motion")
	useLabels      = newItemLabels("use")
)

func newItemLabels(noun string) *itemLabels {
	l := &itemLabels{noun: noun}
	for k := range l.first {
		l.first[k] = l.name(k)
	}
	return l
}

func (l *itemLabels) name(k int) string { return l.noun + " " + strconv.Itoa(k) }

// of returns the label of the k-th item.
func (l *itemLabels) of(k int) string {
	if k < len(l.first) {
		return l.first[k]
	}
	return l.further(k)
}

// further returns the label of an item that is not one of the first.
func (l *itemLabels) further(k int) string {
	if more := l.more.Load(); more != nil && k < len(*more) {
		return (*more)[k]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	more := l.first[:]
	if before := l.more.Load(); before != nil {
		more = *before
	}
	more = slices.Clone(more)
	for len(more) <= 2*k {
		more = append(more, l.name(len(more)))
	}
	l.more.Store(&more)
	return more[k]
}
