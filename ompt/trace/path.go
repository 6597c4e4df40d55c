package trace

import (
	"time"

	"github.com/vkomp/vkomp/internal/layered"
)

// longestPath returns the path along edges with the largest sum of weights, and the sum.
// Weights must not be negative. Vertices on a cycle, or reachable from one, are treated as
// if they had no predecessors.
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

// inOrder calls visit for each edge; all edges into a vertex come before the edges out of
// it. Edges out of a cycle, and those reachable from one, are left out.
func inOrder(vertices int, edges []edge, visit func(from, to int32)) {
	after := make([][]int32, vertices)
	for _, e := range edges {
		after[e.from] = append(after[e.from], e.to)
	}
	layered.InOrder(after, visit)
}

// ownTimes returns how long each task worked by itself: from its begin, or from the time
// when all its direct and indirect predecessors had ended if that is later, to its end. By
// the host's events, a target task that waits on the device begins before its predecessors
// end. The own times on a path do not overlap, so their sum is at most the path's duration.
func ownTimes(spans []interval, edges []edge) []time.Duration {
	// free is when all predecessors of a task have ended.
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
