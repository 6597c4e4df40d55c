package trace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// everyPath returns the largest sum of weights on a path, by trying all paths.
func everyPath(weights []time.Duration, edges []edge) time.Duration {
	var from func(v int32) time.Duration
	from = func(v int32) time.Duration {
		best := time.Duration(0)
		for _, e := range edges {
			if e.from == v {
				best = max(best, from(e.to))
			}
		}
		return weights[v] + best
	}
	best := time.Duration(0)
	for v := range weights {
		best = max(best, from(int32(v)))
	}
	return best
}

// drawGraph draws a random acyclic graph with permuted vertices.
func drawGraph(t *rapid.T, n int) []edge {
	names := rapid.Permutation(indices(n)).Draw(t, "names")
	var edges []edge
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
		if a != b {
			edges = append(edges, edge{names[min(a, b)], names[max(a, b)]})
		}
	}
	return edges
}

func indices(n int) []int32 {
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	return all
}

func TestLongestPathIsThatOfAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		weights := make([]time.Duration, n)
		for i := range weights {
			weights[i] = time.Duration(rapid.IntRange(0, 9).Draw(t, "weight"))
		}
		edges := drawGraph(t, n)
		path, sum := longestPath(weights, edges)
		total := time.Duration(0)
		for i, v := range path {
			total += weights[v]
			if i > 0 && !hasEdge(edges, path[i-1], v) {
				t.Fatalf("path %v has no edge %d to %d", path, path[i-1], v)
			}
		}
		if want := everyPath(weights, edges); sum != want || total != want {
			t.Fatalf("path %v of %d, said to be %d, want %d", path, total, sum, want)
		}
	})
}

func hasEdge(edges []edge, from, to int32) bool {
	for _, e := range edges {
		if e == (edge{from, to}) {
			return true
		}
	}
	return false
}

func TestLongestPathOfFewVertices(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights []time.Duration
		edges   []edge
		want    []int32
		sum     time.Duration
	}{
		{"none", nil, nil, nil, 0},
		{"the heaviest alone", []time.Duration{1, 5, 2}, nil, []int32{1}, 5},
		{"two light ones before one heavy", []time.Duration{3, 3, 5}, []edge{{0, 1}}, []int32{0, 1}, 6},
		{"the longer way round", []time.Duration{1, 1, 2, 1}, []edge{{0, 1}, {1, 3}, {0, 2}, {2, 3}}, []int32{0, 2, 3}, 4},
		{"what takes no time", []time.Duration{0, 4, 0}, []edge{{0, 1}}, []int32{0, 1}, 4},
		// No trace contains a cycle, but the function must not hang on one.
		{"a cycle", []time.Duration{1, 1, 5}, []edge{{0, 1}, {1, 0}, {1, 2}}, []int32{2}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, sum := longestPath(c.weights, c.edges)
			if diff := cmp.Diff(c.want, path); diff != "" || sum != c.sum {
				t.Errorf("sum %d, want %d; path (-want +got):\n%s", sum, c.sum, diff)
			}
		})
	}
}

func TestOwnTimesOfAPathFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		spans := make([]interval, n)
		for i := range spans {
			spans[i] = drawInterval(t)
		}
		edges := drawGraph(t, n)
		own := ownTimes(spans, edges)
		for i, v := range spans {
			// Computed at every point in time: count the span while every predecessor of
			// the task has ended.
			want := time.Duration(0)
			for now := v.begin; now < v.end; now++ {
				if endedBefore(spans, edges, int32(i), now) {
					want++
				}
			}
			if own[i] != want {
				t.Fatalf("task %d of %v has %d of its own, want %d; edges %v", i, spans, own[i], want, edges)
			}
		}
		path, sum := longestPath(own, edges)
		first, last := spans[path[0]].begin, spans[path[0]].end
		for _, v := range path {
			first, last = min(first, spans[v].begin), max(last, spans[v].end)
		}
		if sum > last-first {
			t.Fatalf("path %v of %d lasts %d", path, sum, last-first)
		}
	})
}

// endedBefore reports whether all predecessors of a task have ended.
func endedBefore(spans []interval, edges []edge, v int32, now time.Duration) bool {
	for _, e := range edges {
		if e.to == v && (spans[e.from].end > now || !endedBefore(spans, edges, e.from, now)) {
			return false
		}
	}
	return true
}
