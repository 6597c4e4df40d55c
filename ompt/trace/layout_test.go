package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func nobody(int32) bool { return false }

func TestLayOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		tasks int
		edges []edge
		want  []node
	}{
		{"nothing", 0, nil, []node{}},
		{"a diamond", 4, []edge{{0, 1}, {0, 2}, {1, 3}, {2, 3}}, []node{{0, 0, 0}, {1, 1, 0}, {2, 1, 1}, {3, 2, 0}}},
		{"a way round", 3, []edge{{0, 1}, {1, 2}, {0, 2}}, []node{{0, 0, 0}, {1, 1, 0}, {2, 2, 0}}},
		{"chains that cross", 4, []edge{{0, 3}, {1, 2}}, []node{{0, 0, 0}, {1, 0, 1}, {3, 1, 0}, {2, 1, 1}}},
		{"one alone", 3, []edge{{0, 2}}, []node{{0, 0, 0}, {2, 1, 0}, {1, 0, 2}}},
		{"all alone", 10, nil, []node{{0, 0, 0}, {1, 1, 0}, {2, 2, 0}, {3, 3, 0}, {4, 4, 0}, {5, 5, 0}, {6, 6, 0}, {7, 7, 0}, {8, 0, 1}, {9, 1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := layOut(c.tasks, nobody, c.edges, nil, 100)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(node{})); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLayOutTakesThoseOfThePathThenTheEarliest(t *testing.T) {
	nodes := layOut(10, func(v int32) bool { return v == 0 }, []edge{{1, 7}, {7, 9}}, []int32{1, 7, 9}, 5)
	got := map[int32]bool{}
	for _, n := range nodes {
		got[n.task] = true
	}
	if diff := cmp.Diff(map[int32]bool{1: true, 7: true, 9: true, 2: true, 3: true}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

func TestEdgesLeadToTheRightAndNoTwoNodesShareAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		edges := drawGraph(t, n)
		at, places := map[int32]node{}, map[[2]int]bool{}
		for _, p := range layOut(n, nobody, edges, nil, n) {
			place := [2]int{p.column, p.row}
			if places[place] {
				t.Fatalf("two nodes at %v", place)
			}
			places[place], at[p.task] = true, p
		}
		if len(at) != n {
			t.Fatalf("%d nodes of %d tasks", len(at), n)
		}
		for _, e := range edges {
			if at[e.from].column >= at[e.to].column {
				t.Fatalf("edge %v leads from column %d to %d", e, at[e.from].column, at[e.to].column)
			}
		}
	})
}
