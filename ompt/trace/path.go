package trace

import (
	"time"

	"github.com/vkomp/vkomp/internal/layered"
)

// longestPath returns the vertices of the path along edges whose weights add up to the
// most, in order, and the sum. Weights are not negative; vertices on a cycle, or behind
// one, count as if nothing led to them.
func longestPath(weights []time.Duration, edges []edge) (path []int32, sum time.Duration) {
	if len(weights) == 0 {
		return nil, 0
	}
	before := make([]int32, len(weights))
	best := make([]time.Duration, len(weights))
	for i := range weights {
		before[i], best[i] = none, weights[i]
	}
	inOrder(len(weights), edges, func(from, to int32) {
		if longer := best[from] + weights[to]; before[to] == none || longer > best[to] {
			before[to], best[to] = from, longer
		}
	})
	last := int32(0)
	for i := range best {
		if best[i] > best[last] {
			last = int32(i)
		}
	}
	for v := last; v != none; v = before[v] {
		path = append(path, v)
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path, best[last]
}

// inOrder calls visit for each edge, for those into a vertex before those out of it.
// Edges out of a cycle, and behind one, are left out.
func inOrder(vertices int, edges []edge, visit func(from, to int32)) {
	after := make([][]int32, vertices)
	for _, e := range edges {
		after[e.from] = append(after[e.from], e.to)
	}
	layered.InOrder(after, visit)
}

// ownTimes returns how long each task took by itself: from when it began, or from when
// all that it depends on, directly or not, had ended if that is later, to its end. A
// target task that the device holds back begins, by the host's events, before they end.
// Own times of a path follow each other: their sum is no longer than the path lasts.
func ownTimes(spans []interval, edges []edge) []time.Duration {
	// free is when a task had all that it depends on behind it.
	free := make([]time.Duration, len(spans))
	for i := range spans {
		free[i] = spans[i].begin
	}
	inOrder(len(spans), edges, func(from, to int32) {
		free[to] = max(free[to], free[from], spans[from].end)
	})
	own := make([]time.Duration, len(spans))
	for i := range spans {
		own[i] = max(spans[i].end-free[i], 0)
	}
	return own
}
