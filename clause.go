package vkomp

import (
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
	mu   lockrank.Mutex[lockrank.Leaf]
	made atomic.Pointer[[]string]
}

var (
	argumentLabels = itemLabels{noun: "argument"}
	mapLabels      = itemLabels{noun: "map"}
	motionLabels   = itemLabels{noun: "motion"}
	useLabels      = itemLabels{noun: "use"}
)

// of returns the label of the k-th item.
func (l *itemLabels) of(k int) string {
	if made := l.made.Load(); made != nil && k < len(*made) {
		return (*made)[k]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var made []string
	if before := l.made.Load(); before != nil {
		made = append(made, *before...)
	}
	for n := max(16, 2*k); len(made) < n; {
		made = append(made, l.noun+" "+strconv.Itoa(len(made)))
	}
	l.made.Store(&made)
	return made[k]
}
