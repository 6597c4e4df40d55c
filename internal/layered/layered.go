// Package layered lays out acyclic graphs in columns, for pictures of task graphs: each
// vertex stands right of all that lead to it.
//
//	column 0    1        2
//	row 0  load ─ blur ─ blend
//	row 1       └ edges ┘
//
// A graph is given as adjacency lists: edges[v] are the vertices that the edges of v lead
// to. Equal graphs are laid out equally. The time is linear in vertices and edges but for
// the sorting of each column.
package layered

import (
	"cmp"
	"slices"
)

// Position is the place of a vertex in the grid.
type Position struct {
	Column, Row int
}

// leastWidth is the number of vertices without edges that share a row, at least.
const leastWidth = 8

// sweeps is how often the columns are put in order from each side.
const sweeps = 8

// Place returns the position of each vertex; no two vertices have the same. The order
// within a column keeps edges short. Vertices without edges fill rows below the others.
// Vertices of a cycle, and those behind one, may stand left of what leads to them.
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
		below++ // a row between
	}
	width := max(len(columns), leastWidth)
	for i, v := range alone {
		at[v] = Position{i % width, below + i/width}
	}
	return at
}

// untangle sets the row of each member of the columns. It orders them by the mean row of
// those that they have edges with, from the left and from the right in turns.
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

// InOrder calls visit for each edge, for those into a vertex before those out of it.
// Edges out of a cycle, and behind one, are left out.
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
