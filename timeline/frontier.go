package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Queue numbers one queue of one device, unique within a scheduler.
type Queue uint32

// Point is one value of one queue's timeline. Value 0 is the timeline's
// beginning: it has always been reached.
type Point struct {
	Queue Queue  // the queue whose timeline it is
	Value uint64 // of the queue's timeline semaphore
}

// String writes the point as queue:value.
func (p Point) String() string { return fmt.Sprintf("%d:%d", p.Queue, p.Value) }

// Frontier is a vector clock: for each queue it holds the value up to which that
// queue's work has happened before. The zero Frontier is empty and covers only
// value 0 of every queue.
//
// A copied Frontier may share storage with its source: use Clone before
// changing one of two copies.
type Frontier struct {
	// points are sorted by queue, at most one for each queue, with values above 0.
	points []Point
}

// NewFrontier returns the join of points.
func NewFrontier(points ...Point) Frontier {
	var f Frontier
	for _, p := range points {
		f.Add(p)
	}
	return f
}

// FrontierOf returns the frontier of points, which it sorts and keeps. They must
// name different queues and have values above 0.
func FrontierOf(points []Point) Frontier {
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Queue, b.Queue) })
	return Frontier{points: points}
}

// Add raises f to cover p.
func (f *Frontier) Add(p Point) {
	if p.Value == 0 {
		return
	}
	i := f.search(p.Queue)
	if i < len(f.points) && f.points[i].Queue == p.Queue {
		f.points[i].Value = max(f.points[i].Value, p.Value)
		return
	}
	f.points = append(f.points, Point{})
	copy(f.points[i+1:], f.points[i:])
	f.points[i] = p
}

// Join raises f to cover everything that g covers.
func (f *Frontier) Join(g Frontier) {
	if len(f.points) == 1 && len(g.points) == 1 && f.points[0].Queue == g.points[0].Queue {
		f.points[0].Value = max(f.points[0].Value, g.points[0].Value)
		return
	}
	for _, p := range g.points {
		f.Add(p)
	}
}

// Covers reports whether p has happened before f.
func (f Frontier) Covers(p Point) bool {
	return f.Value(p.Queue) >= p.Value
}

// Dominates reports whether f covers every point of g.
func (f Frontier) Dominates(g Frontier) bool {
	for _, p := range g.points {
		if !f.Covers(p) {
			return false
		}
	}
	return true
}

// Value returns the value up to which f covers q, 0 when f does not name it.
func (f Frontier) Value(q Queue) uint64 {
	if i := f.search(q); i < len(f.points) && f.points[i].Queue == q {
		return f.points[i].Value
	}
	return 0
}

// Len returns the number of queues that f names.
func (f Frontier) Len() int { return len(f.points) }

// At returns the i-th point of f, in ascending order of queue.
func (f Frontier) At(i int) Point { return f.points[i] }

// Empty reports whether f covers nothing but the beginnings.
func (f Frontier) Empty() bool { return len(f.points) == 0 }

// Clone returns a copy of f that shares no storage with it.
func (f Frontier) Clone() Frontier {
	return Frontier{points: append([]Point(nil), f.points...)}
}

// Reset empties f and keeps its storage.
func (f *Frontier) Reset() { f.points = f.points[:0] }

// String writes the points of f in ascending order of queue.
func (f Frontier) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, p := range f.points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p.String())
	}
	b.WriteByte('}')
	return b.String()
}

// search returns the index of the first point whose queue is q or later.
// Frontiers are short: a scan beats a binary search.
func (f Frontier) search(q Queue) int {
	i := 0
	for i < len(f.points) && f.points[i].Queue < q {
		i++
	}
	return i
}
