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

// whole is what follows a submission to queue 1 that signals 1, and ends the log of a setting of three
// queues: the host waits for it and destroys everything.
const whole = "wait b 1:1\ndestroy pipeline 1\ndestroy module 1\ndestroy buffer 1\ndestroy memory 1\ndestroy buffer 2\ndestroy memory 2\n" +
	"destroy semaphore 1\ndestroy semaphore 2\ndestroy semaphore 3\ndestroy semaphore 4\ndestroy semaphore 5\ndestroy fence 1\ndestroy device 0\n"

func TestTasksWithoutADispatchAreViolations(t *testing.T) {
	const first, second = "task 0 0 out=1\ntask 1 0 in=1\n", "task 0 1 out=1\ntask 1 1 in=1\n"
	both := on("1", "", dispatched(0, 0, 4)+everything+dispatched(1, 0, 4), "1") + whole
	neither := on("1", "", fill, "1") + whole
	for _, c := range []struct {
		name, clauses, lines string
		want                 []string
		undispatched         uint64 // in a log that was cut short
	}{
		{"all dispatched", first, both, nil, 0},
		{"one is not", first + "task 9 7 in=1\n", both, []string{"task 9 7"}, 0},
		{"by step and point", "task 3 0\ntask 2 5\ntask 2 1\n" + first, both, []string{"task 2 1", "task 2 5", "task 3 0"}, 0},
		{"a task of the host", first + "task 9 7 host in=1\n", both, nil, 0},
		{"no task has one", first, neither, []string{"task 0 0", "task 1 0"}, 0},
		{"tasks of the host alone", "task 0 0 host out=1\n", neither, nil, 0},
		{"tasks of the host alone, and no commands", "task 0 0 host out=1\n", strings.ReplaceAll(whole, "wait b 1:1\n", ""), nil, 0},
		{"graphs before and behind", "graph 3\n" + first + "graph 4\n" + first + "graph 5\n" + second, both,
			[]string{"graph 3 task 0 0", "graph 3 task 1 0", "graph 5 task 0 1", "graph 5 task 1 1"}, 0},
		{"of another graph", "graph 1004\n" + first, both, []string{"graph 1004 task 0 0", "graph 1004 task 1 0"}, 0},
		{"graphs without tasks", "graph 3\ngraph 4\n" + first + "graph 5\n", both, nil, 0},
		{"a log that ends before its device", first + second, on("1", "", dispatched(0, 0, 0)+everything+dispatched(1, 0, 0), "1"), nil, 2},
		{"clauses that end inside a line", first + "task 9 7 in=1\ntask 9", on("1", "", fill, "1"), nil, 3},
		{"a log that ends inside a line", first + second, both + "thr", nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, c.lines, Options{Clauses: strings.NewReader(c.clauses)})
			var got []string
			for _, v := range r.Violations {
				name, ok := strings.CutSuffix(v.Text, " has no dispatch in the log")
				if got = append(got, name); !ok || v.Kind != Undispatched {
					t.Error(v)
				}
				if last := strings.Count(setting(t, 3).String()+c.lines, "\n"); v.Line != last {
					t.Errorf("line %d, want the last one, %d", v.Line, last)
				}
			}
			if !slices.Equal(got, c.want) || r.Undispatched != c.undispatched {
				t.Errorf("got %q and %d undispatched, want %q and %d", got, r.Undispatched, c.want, c.undispatched)
			}
		})
	}
}

func TestClausesOfNothingAreErrors(t *testing.T) {
	begin := setting(t, 3).String()
	for _, c := range []struct {
		name, log, clauses string
		want               error
	}{
		{"an empty file", begin + on("1", "", fill, "1") + whole, "", ErrClauses},
		{"a file of comments and graphs", begin + on("1", "", fill, "1") + whole, "# none\n\ngraph 1\n", ErrClauses},
		{"an empty file and a log that was cut short", begin + on("1", "", fill, "1"), "", ErrClauses},
		{"a line that is wrong behind what the log needs", begin + on("1", "", dispatched(0, 0, 0), "1"), "task 0 0 out=1\nedge\n", ErrClauses},
		{"a log of its version alone", header + "\n", "task 0 0 out=1\n", ErrNoCommands},
		{"a log without commands that was cut short", begin, "task 0 0 out=1\n", ErrNoCommands},
		{"a submission of nothing", begin + on("1", "", "", "1") + whole, "task 0 0 out=1\n", ErrNoCommands},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Check(strings.NewReader(c.log), Options{Clauses: strings.NewReader(c.clauses)}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
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

func TestGraphsWithoutADispatchAreNotKept(t *testing.T) {
	c := newClauses(strings.NewReader(strings.Repeat("graph 1\ntask 0 0 out=1\n", 50)))
	found := 0
	c.missing(func(*task) {
		found++
		if len(c.graphs) > 2 {
			t.Fatalf("%d graphs are kept", len(c.graphs))
		}
	})
	if found != 50 {
		t.Errorf("%d tasks, want 50", found)
	}
}
