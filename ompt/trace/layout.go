package trace

import (
	"slices"

	"github.com/vkomp/vkomp/internal/layered"
)

// mostNodes bounds the size of the task graph that is drawn; a larger one is not legible.
const mostNodes = 2000

// node is a task of the drawn graph with its column and row.
type node struct {
	task        int32
	column, row int
}

// layOut places tasks in columns, each to the right of its predecessors; see package
// layered. It places at most most tasks: those in first, in that order, then the earliest
// others. The nodes are in the order of the tasks.
func layOut(tasks int, skip func(int32) bool, edges []edge, first []int32, most int) []node {
	var shown []int32
	in := make([]bool, tasks)
	take := func(v int32) {
		if !in[v] && len(shown) < most && !skip(v) {
			in[v] = true
			shown = append(shown, v)
		}
	}
	for _, v := range first {
		take(v)
	}
	for v := range int32(tasks) {
		take(v)
	}
	slices.Sort(shown)

	index := make([]int32, tasks)
	for i, v := range shown {
		index[v] = int32(i)
	}
	within := make([][]int32, len(shown))
	for _, e := range edges {
		if in[e.from] && in[e.to] {
			within[index[e.from]] = append(within[index[e.from]], index[e.to])
		}
	}
	nodes := make([]node, len(shown))
	for i, at := range layered.Place(within) {
		nodes[i] = node{shown[i], at.Column, at.Row}
	}
	return nodes
}
