package timeline

import (
	"testing"

	"pgregory.net/rapid"
)

// clock is the naive model of a Frontier: a value for each queue.
type clock [5]uint64

func (c *clock) add(p Point) { c[p.Queue] = max(c[p.Queue], p.Value) }

func (c clock) dominates(d clock) bool {
	for q := range c {
		if c[q] < d[q] {
			return false
		}
	}
	return true
}

func drawFrontier(t *rapid.T, label string) (Frontier, clock) {
	points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point {
		return Point{
			Queue: Queue(rapid.IntRange(0, len(clock{})-1).Draw(t, "queue")),
			Value: rapid.Uint64Range(0, 4).Draw(t, "value"),
		}
	}), 0, 8).Draw(t, label)
	var model clock
	for _, p := range points {
		model.add(p)
	}
	return NewFrontier(points...), model
}

func checkFrontier(t *rapid.T, f Frontier, model clock) {
	named := 0
	for q, want := range model {
		if got := f.Value(Queue(q)); got != want {
			t.Fatalf("%v: value of queue %d is %d, want %d", f, q, got, want)
		}
		if want > 0 {
			named++
		}
		for v := uint64(0); v <= 5; v++ {
			if got := f.Covers(Point{Queue(q), v}); got != (v <= want) {
				t.Fatalf("%v covers %d:%d = %v", f, q, v, got)
			}
		}
	}
	if f.Len() != named || f.Empty() != (named == 0) {
		t.Fatalf("%v names %d queues, want %d", f, f.Len(), named)
	}
	for i := 1; i < f.Len(); i++ {
		if f.At(i-1).Queue >= f.At(i).Queue {
			t.Fatalf("%v is not sorted", f)
		}
	}
}

func TestFrontierAgreesWithVectorClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, fm := drawFrontier(t, "f")
		g, gm := drawFrontier(t, "g")
		checkFrontier(t, f, fm)
		if f.Dominates(g) != fm.dominates(gm) {
			t.Fatalf("%v dominates %v = %v", f, g, f.Dominates(g))
		}
		before := f.Clone()
		joined, jm := f.Clone(), fm
		joined.Join(g)
		for q, v := range gm {
			jm.add(Point{Queue(q), v})
		}
		checkFrontier(t, joined, jm)
		if !joined.Dominates(f) || !joined.Dominates(g) {
			t.Fatalf("the join of %v and %v is %v", f, g, joined)
		}
		if !f.Dominates(before) || !before.Dominates(f) {
			t.Fatalf("a change to a clone reached its source: %v, was %v", f, before)
		}
		joined.Reset()
		checkFrontier(t, joined, clock{})
	})
}

func TestFrontierStringSortsByQueue(t *testing.T) {
	f := NewFrontier(Point{2, 1}, Point{0, 3}, Point{2, 7})
	if got, want := f.String(), "{0:3 2:7}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFrontierOfSortsItsPointsInPlace(t *testing.T) {
	points := []Point{{Queue: 3, Value: 7}, {Queue: 1, Value: 2}, {Queue: 2, Value: 9}}
	if n := testing.AllocsPerRun(100, func() {
		buf := [...]Point{points[0], points[1], points[2]}
		if f := FrontierOf(buf[:]); f.Len() != 3 || f.Value(1) != 2 || f.Value(2) != 9 || f.Value(3) != 7 {
			t.Errorf("got %v", f.Len())
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if got := FrontierOf(points).String(); got != "{1:2 2:9 3:7}" {
		t.Errorf("got %s", got)
	}
	if f := FrontierOf(nil); !f.Empty() {
		t.Errorf("got %v", f)
	}
}
