package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		name  string
		edges [][]int32
		want  []Position
	}{
		{"nothing", nil, []Position{}},
		{"a diamond", [][]int32{{1, 2}, {3}, {3}, nil}, []Position{{0, 0}, {1, 0}, {1, 1}, {2, 0}}},
		{"a way round", [][]int32{{1, 2}, {2}, nil}, []Position{{0, 0}, {1, 0}, {2, 0}}},
		{"chains that cross", [][]int32{{3}, {2}, nil, nil}, []Position{{0, 0}, {0, 1}, {1, 1}, {1, 0}}},
		{"one alone", [][]int32{{2}, nil, nil}, []Position{{0, 0}, {0, 2}, {1, 0}}},
		{"all alone", make([][]int32, 10), []Position{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}, {0, 1}, {1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Place(c.edges)); diff != "" {
				t.Errorf("positions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEdgesLeadToTheRightAndNoTwoVerticesShareAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		// Edges lead from earlier to later vertices in this order.
		var order []int32
		for v := range int32(n) {
			order = append(order, v)
		}
		order = rapid.Permutation(order).Draw(t, "order")
		edges := make([][]int32, n)
		for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
			a, b := rapid.IntRange(0, n-1).Draw(t, "a"), rapid.IntRange(0, n-1).Draw(t, "b")
			if a != b {
				from, to := order[min(a, b)], order[max(a, b)]
				edges[from] = append(edges[from], to)
			}
		}
		at := Place(edges)
		taken := map[Position]bool{}
		for v, p := range at {
			if taken[p] {
				t.Fatalf("two vertices at %v", p)
			}
			taken[p] = true
			for _, w := range edges[v] {
				if p.Column >= at[w].Column {
					t.Fatalf("edge %d → %d leads from column %d to %d", v, w, p.Column, at[w].Column)
				}
			}
		}
	})
}

func TestCyclesAreLaidOutToo(t *testing.T) {
	taken := map[Position]bool{}
	for _, p := range Place([][]int32{{1}, {0, 1, 2}, {3}, nil, {4}}) {
		if taken[p] {
			t.Errorf("two vertices at %v", p)
		}
		taken[p] = true
	}
}
