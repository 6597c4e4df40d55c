package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// dispatched returns a dispatch of a task that touches memory which no other task does.
func dispatched(step, point, graph int) string {
	slot := (step*2 + point) * 8
	return fmt.Sprintf("p 1\nr 0 0:1:0:16 1:2:%d:8\nk 0 %x,%x,%x\nd 0 0 0 1 1 1\n", slot, step, point, graph)
}

func TestClauses(t *testing.T) {
	two := "task 0 0 out=1\ntask 1 0 in=1\n"
	for _, c := range []struct {
		name, clauses, lines string
		want                 []Kind
		edges                uint64
	}{
		{"edge kept", two, on("1", "", dispatched(0, 0, 0)+everything+dispatched(1, 0, 0), "1"), nil, 1},
		{"edge not kept", two, on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"edge without visibility", two, on("1", "", dispatched(0, 0, 0)+"b 800:800:0:0:0\n"+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"edge the wrong way round", two, on("1", "", dispatched(1, 0, 0)+everything+dispatched(0, 0, 0), "1"), []Kind{Dependence, Dependence}, 1},
		{"in before out needs execution alone", "task 0 0 in=1\ntask 1 0 out=1\n",
			on("1", "", dispatched(0, 0, 0)+"b 800:800:0:0:0\n"+dispatched(1, 0, 0), "1"), nil, 1},
		{"in before out not kept", "task 0 0 in=1\ntask 1 0 out=1\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"inout chain", "task 0 0 inout=1\ntask 1 0 inout=1\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence, Dependence}, 2},
		{"ins are not ordered", "task 0 0 in=1\ntask 1 0 in=1\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), nil, 0},
		{"out after all ins and the last out", "task 0 0 out=1\ntask 0 1 in=1\ntask 1 0 in=1\ntask 1 1 out=1\n",
			on("1", "", dispatched(0, 0, 0)+everything+dispatched(0, 1, 0)+dispatched(1, 0, 0)+everything+dispatched(1, 1, 0), "1"), nil, 5},
		{"out not after the second in", "task 0 0 in=1\ntask 0 1 in=1\ntask 1 1 out=1\n",
			on("1", "", dispatched(0, 0, 0)+everything+dispatched(0, 1, 0)+dispatched(1, 1, 0), "1"), []Kind{Dependence}, 2},
		{"other objects", "task 0 0 out=1\ntask 1 0 out=2 in=3\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), nil, 0},
		{"through a task of the host", "task 0 0 out=1\ntask 0 1 inout=1 host\ntask 1 0 in=1\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"after what a task of the host read", "task 0 0 out=1\ntask 0 1 in=1,2 out=3 host\ntask 1 0 out=2\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), nil, 0},
		{"after what a task of the host wrote", "task 0 0 out=1\ntask 0 1 in=1 out=3 host\ntask 1 0 out=3\n", on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"after what a task of the host wrote over what others read", "task 0 0 in=5\ntask 0 1 out=5 host\ntask 1 0 in=5\n",
			on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"through two tasks of the host", "task 0 0 out=1\ntask 0 1 in=1 out=5 host\ntask 1 1 in=5 out=6 host\ntask 1 0 in=6\n",
			on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		// The second reads the result of the first on the host, which may still be copied.
		{"through two tasks of the host, not after the first one's copy", "task 0 0 in=5\ntask 0 1 out=5 host\ntask 1 1 in=5 out=6 host\ntask 1 0 in=6\n",
			on("1", "", dispatched(0, 0, 0)+dispatched(1, 0, 0), "1"), nil, 0},
		{"several dispatches of a task", two, on("1", "", dispatched(0, 0, 0)+strings.Replace(dispatched(0, 0, 0), "1:2:0:8", "1:2:56:8", 1)+everything+dispatched(1, 0, 0), "1"), nil, 1},
		{"only the first of several dispatches before", two, on("1", "", dispatched(0, 0, 0)+everything+
			strings.Replace(dispatched(0, 0, 0), "1:2:0:8", "1:2:56:8", 1)+dispatched(1, 0, 0), "1"), []Kind{Dependence}, 1},
		{"graphs are apart", "graph 4\n" + two + "graph 5\n" + two,
			on("1", "", dispatched(0, 0, 4)+dispatched(0, 1, 5)+everything+dispatched(1, 0, 4), "1"), nil, 1},
		{"edge of the second graph", "graph 4\n" + two + "graph 5\n" + two, on("1", "", dispatched(0, 0, 5)+dispatched(1, 0, 5), "1"), []Kind{Dependence}, 1},
		{"kernels that are no tasks", two, on("1", "", dispatched(3, 1, 0), "1"), nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, c.lines, Options{Clauses: strings.NewReader(c.clauses)})
			var got []Kind
			for _, v := range r.Violations {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) || r.Edges != c.edges {
				t.Errorf("got %v and %d edges, want %v and %d", got, r.Edges, c.want, c.edges)
				for _, v := range r.Violations {
					t.Log(v)
				}
			}
		})
	}
}

func TestClausesThatMakeNoSense(t *testing.T) {
	for _, clauses := range []string{"task 0\n", "task a 0\n", "task 0 0 in=1\ntask 0 0 in=1\n", "graph x\n", "task 0 0 beside=1\n", "edge 1 2\n", "task 0 0\ngraph 1\n"} {
		_, err := Check(strings.NewReader(setting(t, 3).String()+on("1", "", dispatched(3, 1, 0), "1")), Options{Clauses: strings.NewReader(clauses)})
		if !errors.Is(err, ErrClauses) {
			t.Errorf("%q: %v", clauses, err)
		}
	}
}

// A clauses file may have millions of tasks.
func TestGraphsThatAreDoneAreForgotten(t *testing.T) {
	var clauses strings.Builder
	lines := ""
	const graphs = 50
	for g := range graphs {
		fmt.Fprintf(&clauses, "graph %d\ntask 0 0 out=1\ntask 1 0 in=1\n", g)
		lines += on("1", "", everything+dispatched(0, 0, g)+everything+dispatched(1, 0, g), fmt.Sprint(g+1))
	}
	c := newChecker(Options{Clauses: strings.NewReader(clauses.String())})
	if err := c.run(strings.NewReader(setting(t, 3).String() + lines)); err != nil {
		t.Fatal(err)
	}
	if c.report.Total != 0 || c.report.Tasks != 2*graphs || c.report.Edges != graphs {
		t.Errorf("%+v", c.report)
	}
	if n := len(c.clauses.graphs); n > 4 {
		t.Errorf("%d graphs are kept", n)
	}
}
