package trace

import (
	"cmp"
	"slices"
)

// mostNodes are laid out of a task graph: more could neither be read nor drawn at ease.
const mostNodes = 2000

// node is a task of the graph that is drawn, in a column and a row.
type node struct {
	task        int32
	column, row int
}

// layOut places tasks in columns, each right of all that it depends on, and in an order
// within the columns that keeps edges short. Tasks without edges fill rows below. It
// takes most of them at most: those of first, in their order, and then the earliest.
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

	column, connected := make([]int, tasks), make([]bool, tasks)
	var within []edge
	for _, e := range edges {
		if in[e.from] && in[e.to] {
			within = append(within, e)
			connected[e.from], connected[e.to] = true, true
		}
	}
	inOrder(tasks, within, func(from, to int32) { column[to] = max(column[to], column[from]+1) })
	var columns [][]int32
	var alone []int32
	for _, v := range shown {
		if !connected[v] {
			alone = append(alone, v)
			continue
		}
		for len(columns) <= column[v] {
			columns = append(columns, nil)
		}
		columns[column[v]] = append(columns[column[v]], v)
	}
	row := untangle(columns, within, tasks)

	nodes := make([]node, 0, len(shown))
	below := 0
	for _, members := range columns {
		for _, v := range members {
			nodes = append(nodes, node{v, column[v], row[v]})
			below = max(below, row[v]+1)
		}
	}
	if below > 0 && len(alone) > 0 {
		below++ // a row between
	}
	width := max(len(columns), 8)
	for i, v := range alone {
		nodes = append(nodes, node{v, i % width, below + i/width})
	}
	return nodes
}

// untangle orders the members of each column by the mean row of those that they have
// edges with, from the left and from the right in turns, and returns the rows.
func untangle(columns [][]int32, edges []edge, tasks int) (row []int) {
	const sweeps = 8
	before, after := make([][]int32, tasks), make([][]int32, tasks)
	for _, e := range edges {
		before[e.to] = append(before[e.to], e.from)
		after[e.from] = append(after[e.from], e.to)
	}
	row = make([]int, tasks)
	for _, members := range columns {
		for i, v := range members {
			row[v] = i
		}
	}
	mean := make([]float64, tasks)
	order := func(members []int32, neighbours [][]int32) {
		for _, v := range members {
			mean[v] = float64(row[v])
			if n := neighbours[v]; len(n) > 0 {
				sum := 0
				for _, w := range n {
					sum += row[w]
				}
				mean[v] = float64(sum) / float64(len(n))
			}
		}
		slices.SortStableFunc(members, func(a, b int32) int { return cmp.Compare(mean[a], mean[b]) })
		for i, v := range members {
			row[v] = i
		}
	}
	for range sweeps {
		for _, members := range columns {
			order(members, before)
		}
		for _, members := range slices.Backward(columns) {
			order(members, after)
		}
	}
	return row
}
