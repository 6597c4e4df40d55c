//go:build invariants

package tasks

import (
	"errors"
	"strings"
	"testing"
)

// In this build a task that is put into a phase which the documentation does not allow after
// its present one panics.
func TestWrongTransitionsShow(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		wrong func(n *Node, w *Work)
		want  string
	}{
		"completed twice":  {func(n *Node, w *Work) { n.Complete(failed, w); n.Complete(nil, w) }, `"a" goes from gone to finished`},
		"placed twice":     {func(n *Node, w *Work) { n.Placed(w); n.Placed(w) }, `"a" goes from placed to placed`},
		"placed when over": {func(n *Node, w *Work) { n.Complete(nil, w); n.Placed(w) }, `"a" goes from gone to placed`},
		"ended twice before its event": {func(n *Node, w *Work) {
			// an event is still to be fulfilled
			n.left++
			n.Complete(nil, w)
			n.left++
			n.Complete(nil, w)
		}, `"a" goes from finished to finished`},
	} {
		t.Run(name, func(t *testing.T) {
			s := (&Graph{}).NewScope()
			w := NewWork()
			n, err := s.Add(&Task{Label: "a", Held: true, Domain: 1, Runner: idle{}}, w)
			if err != nil {
				t.Fatal(err)
			}
			w.Run()
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, c.want) {
					t.Errorf("%q, want %s", got, c.want)
				}
			}()
			c.wrong(n, w)
		})
	}
}

// idle is a Runner that does nothing.
type idle struct{}

func (idle) Start(*Node, *Work) {}

func (idle) Recycle() {}
