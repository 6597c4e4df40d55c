package tasks

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// observed is the aim to compare what becomes of the tasks of a tree by each step, with joins between sets and without.
// Tasks of all kinds can fail: few do, and most are the initial task's. Most items make sets.
type observed struct {
	seen []string
}

func (o *observed) grows(x *tree) bool { return x.choose(5) < 3 || x.choose(3) == 0 }

func (o *observed) shape(x *tree, t *treeTask) bool {
	if x.choose(3) > 0 {
		t.parent, t.scope = nil, x.root
		if !x.mayGenerate(nil) {
			return false
		}
	}
	t.included = x.choose(16) == 0
	t.transparency = [...]Transparency{0, 0, 0, 0, 0, 0, 0, Export, Export, Export, Export, Import, ImpEx}[x.choose(13-2*x.choose(2))]
	if t.domain != Host {
		t.transparency = 0
	}
	return true
}

func (o *observed) items(x *tree) int { return 1 + x.choose(2) }

func (o *observed) item(x *tree, d *Depend, start int) {
	if x.choose(10) == 0 {
		return
	}
	x.ofASet(d, start)
	if x.choose(8) == 0 {
		d.Kind = DependOut
	}
}

func (o *observed) chooseFailure(x *tree) bool { return x.choose(18) == 0 }

// check notes what has become of all tasks.
func (o *observed) check(x *tree) error {
	var b strings.Builder
	for _, t := range x.tasks {
		t.started, t.dropped, t.complete = t.saidStart, t.saidDrop, t.node.Completed()
		t.done = t.done || t.dropped
		state := "w"
		switch {
		case t.dropped && t.complete:
			state = "D"
		case t.dropped:
			state = "d"
		case t.complete:
			state = "C"
		case t.started:
			state = "s"
		}
		b.WriteString(state)
	}
	o.seen = append(o.seen, b.String())
	return nil
}

func (o *observed) rest(x *tree, scopes []*Scope) error {
	c := x.graph.Counts()
	o.seen = append(o.seen, fmt.Sprint(c.Tasks, " tasks, ", c.Failures, " failures, ", c.Tasks-c.Done, " live"))
	for _, s := range scopes {
		o.seen = append(o.seen, fmt.Sprint(s.Wait(context.Background(), nil), len(s.children), s.lingering, s.onlookers, s.live, s.joins, s.failedStorage != nil))
	}
	return nil
}

// The same random programs, with failures, exporting tasks and undeferred ones, with joins between sets and without.
func TestJoinsChangeNothingForTransparentTasks(t *testing.T) {
	joins := 0
	for seed := range random(6000) {
		run := func(large int) (*observed, *tree) {
			choices := rand.New(rand.NewPCG(seed, 7))
			o := &observed{}
			x := &tree{aim: o, choose: choices.IntN}
			x.patient, x.cells, x.device = x.choose(2) == 0, x.choose(2) == 0, x.choose(2) == 0
			if large > 0 {
				x.graph.JoinSets(joinSet(func(*Node) { x.joins++ }))
				x.graph.largeSet = large
			}
			if err := x.run(int(4 + seed%100)); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(x.steps, "\n"))
			}
			return o, x
		}
		with, x := run(1)
		without, _ := run(0)
		joins += x.joins
		for i := range with.seen {
			if with.seen[i] != without.seen[i] {
				t.Fatalf("seed %d: with joins\n%s\nwithout\n%s\n%s", seed, with.seen[i], without.seen[i], strings.Join(x.steps, "\n"))
			}
		}
	}
	if joins == 0 {
		t.Error("there were no joins")
	}
}
