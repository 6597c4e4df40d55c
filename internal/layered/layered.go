// Package layered lays out directed acyclic graphs in columns, for pictures of
// task graphs: each vertex is to the right of all its predecessors.
//
//	column 0    1        2
//	row 0  load ─ blur ─ blend
//	row 1       └ edges ┘
//
// A graph is given as adjacency lists: edges[v] holds the successors of v. Equal
// graphs get equal layouts. The time is linear in vertices and edges except for the
// sorting of each column.
package layered

import (
	"cmp"
	"slices"
)

// Position is a place in the grid; columns count from the left, rows from the top.
type Position struct {
	Column, Row int // from 0
}

// leastWidth is the minimum number of vertices without edges in a row.
const leastWidth = 8

// sweeps is how many times the columns are ordered from each side.
const sweeps = 8

// Place returns the position of each vertex; no two vertices share one. The order
// within a column keeps edges short. Vertices without edges fill rows below the
// others. Vertices of a cycle, and those reachable from one, may be to the left of
// a predecessor.
func Place(edges [][]int32) []Position {
	at := make([]Position, len(edges))
	connected := make([]bool, len(edges))
	for v, after := range edges {
		for _, w := range after {
			connected[v], connected[w] = true, true
		}
	}
	InOrder(edges, func(from, to int32) { at[to].Column = max(at[to].Column, at[from].Column+1) })
	var columns [][]int32
	var alone []int32
	for v := range int32(len(edges)) {
		if !connected[v] {
			alone = append(alone, v)
			continue
		}
		for len(columns) <= at[v].Column {
			columns = append(columns, nil)
		}
		columns[at[v].Column] = append(columns[at[v].Column], v)
	}
	untangle(columns, edges, at)

	below := 0
	for _, members := range columns {
		below = max(below, len(members))
	}
	if below > 0 && len(alone) > 0 {
		below++ // leave an empty row between
	}
	width := max(len(columns), leastWidth)
	for i, v := range alone {
		at[v] = Position{i % width, below + i/width}
	}
	return at
}

// untangle sets the row of each vertex in the columns. It orders a column by the
// mean row of each vertex's neighbours, alternating between predecessors and
// successors.
func untangle(columns [][]int32, edges [][]int32, at []Position) {
	before := make([][]int32, len(edges))
	for v, after := range edges {
		for _, w := range after {
			before[w] = append(before[w], int32(v))
		}
	}
	for _, members := range columns {
		for i, v := range members {
			at[v].Row = i
		}
	}
	mean := make([]float64, len(edges))
	order := func(members []int32, neighbours [][]int32) {
		for _, v := range members {
			mean[v] = float64(at[v].Row)
			if n := neighbours[v]; len(n) > 0 {
				sum := 0
				for _, w := range n {
					sum += at[w].Row
				}
				mean[v] = float64(sum) / float64(len(n))
			}
		}
		slices.SortStableFunc(members, func(a, b int32) int { return cmp.Compare(mean[a], mean[b]) })
		for i, v := range members {
			at[v].Row = i
		}
	}
	for range sweeps {
		for _, members := range columns {
			order(members, before)
		}
		for _, members := range slices.Backward(columns) {
			order(members, edges)
		}
	}
}

// InOrder calls visit for each edge; all edges into a vertex come before the edges
// out of it. Edges out of a cycle, and those reachable from one, are left out.
func InOrder(edges [][]int32, visit func(from, to int32)) {
	into := make([]int, len(edges))
	for _, after := range edges {
		for _, w := range after {
			into[w]++
		}
	}
	var ready []int32
	for v := range into {
		if into[v] == 0 {
			ready = append(ready, int32(v))
		}
	}
	for len(ready) > 0 {
		v := ready[0]
		ready = ready[1:]
		for _, w := range edges[v] {
			visit(v, w)
			if into[w]--; into[w] == 0 {
				ready = append(ready, w)
			}
		}
	}
}
