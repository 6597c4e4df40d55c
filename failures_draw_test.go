package vkomp_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vkomp/vkomp"
	"pgregory.net/rapid"
)

// failItem is a depend item for some elements of a slice.
type failItem struct {
	kind     vkomp.DependKind
	from, to int
}

// failStep is a construct of a random program in which tasks fail, or another call.
type failStep struct {
	id    int
	kind  string
	items []failItem
	// ends is how the body or the kernel ends, "" if it succeeds. Cancels says that the body cancels its taskgroup.
	ends                                          string
	undeferred, mergeable, final, detach, cancels bool
	// host says that the target region is on the initial device, noGroup that the target data region is no taskgroup.
	host, noGroup bool
	// body are the steps in the body, which returns their errors if pass is set.
	body []failStep
	pass bool
	// outside says that the construct has the context outside of the taskgroup, ending that it has one that ends.
	outside, ending bool
	// of is the task whose event is fulfilled, by the body if fulfills is set.
	of       int
	fulfills bool
}

func (s *failStep) label() string {
	switch {
	case s.kind == "join":
		return "taskwait nowait"
	case s.kind == "wait depend":
		return "taskwait"
	case s.ends == "ALIKE":
		return "alike"
	}
	return fmt.Sprintf("t%d", s.id)
}

// failure is what said says of the failure of the body.
func (s *failStep) failure() string {
	if s.ends == "BROKEN" {
		return fmt.Sprintf("BROKEN%d", s.id)
	}
	return s.ends
}

// merges says that the task is merged, in a final task or in another.
func (s *failStep) merges(final bool) bool {
	return s.mergeable && (s.undeferred || final) && (final || !s.final) && len(s.items) == 0
}

func (s *failStep) write(to *strings.Builder, indent string) {
	clauses := fmt.Sprintf("%+v", *s)
	clauses = regexp.MustCompile(`(\w+:(false|\[\]|0| )|body:.*\]) ?`).ReplaceAllString(clauses, "")
	fmt.Fprintf(to, "\n%s%d %s", indent, s.id, clauses)
	for k := range s.body {
		s.body[k].write(to, indent+"    ")
	}
}

// failGates are the detachable tasks whose events have not been fulfilled.
type failGates []*failStep

func (g *failGates) remove(id int) {
	*g = slices.DeleteFunc(*g, func(s *failStep) bool { return s.id == id })
}

// hold reports whether a step after others of its region may wait for one of the events.
func (g failGates) hold(s *failStep, before []*failStep, final bool) bool {
	var held []failItem
	for _, e := range before {
		if slices.Contains(g, e) || conflicts(held, e.items) {
			held = append(held, e.items...)
			if s.kind == "wait" {
				return true
			}
		}
	}
	return (s.undeferred || final || s.kind == "wait depend" || s.kind == "data") && conflicts(held, s.items)
}

// failDraw draws a program.
type failDraw struct {
	*rapid.T
	device bool
	ids    int
	gates  []int
}

// below draws a number below n, each as likely as the others: programs of few steps in which nothing fails say little.
func (d *failDraw) below(n int, what string) (k int) {
	for _, bit := range rapid.SliceOfN(rapid.Bool(), 10, 10).Draw(d.T, what) {
		if k *= 2; bit {
			k++
		}
	}
	return k * n >> 10
}

func (d *failDraw) chance(percent int, what string) bool { return d.below(100, what) >= 100-percent }

func (d *failDraw) oneOf(list []string, what string) string { return list[d.below(len(list), what)] }

// steps draws the steps of a region, as deep as that many others may be in it. Inline says that the program's own goroutine
// executes them, grouped that they are in a taskgroup of the region, final that they are in a final task.
func (d *failDraw) steps(depth int, inline, grouped, final bool) (list []failStep) {
	kinds := []string{"task", "task", "task", "task", "target", "update", "join", "wait", "group", "data"}
	if inline {
		kinds = append(kinds, "task", "task", "task", "wait depend", "fulfill", "cancel", "point", "end", "group", "data")
	}
	for range d.below(4+5*depth, "steps") {
		s := failStep{kind: d.oneOf(kinds, "kind")}
		s.outside, s.ending = grouped && d.chance(15, "outside"), inline && d.chance(20, "ending")
		switch s.kind {
		case "task", "target", "update":
			d.task(&s, depth, inline, final)
		case "join", "wait depend":
			s.items = d.items(1, 5)
		case "data":
			s.items, s.host, s.noGroup = d.items(0, 6), !d.device || d.chance(30, "on the host"), d.chance(40, "nogroup")
			if !s.host && d.chance(20, "absent") {
				s.ends = "ABSENT"
			}
			fallthrough
		case "group":
			if s.pass = d.chance(60, "pass"); depth > 0 {
				if s.body = d.steps(depth-1, inline, !s.noGroup, final); s.ending && d.chance(60, "end inside") {
					s.body = append(s.body, failStep{id: d.ids, kind: "end"})
					d.ids++
				}
			}
		case "fulfill":
			if len(d.gates) == 0 {
				continue
			}
			s.of = d.gates[d.below(len(d.gates), "of")]
		}
		if s.id = d.ids; s.detach {
			d.gates = append(d.gates, s.id)
		}
		d.ids++
		list = append(list, s)
	}
	return list
}

func (d *failDraw) items(least, kinds int) (items []failItem) {
	all := []vkomp.DependKind{vkomp.DependIn, vkomp.DependOut, vkomp.DependInOut, vkomp.DependInOutSet, vkomp.DependInOutAllMemory, vkomp.DependMutexInOutSet}
	for range least + d.below(3-least, "items") {
		from := d.below(3, "from")
		items = append(items, failItem{all[d.below(kinds, "type")], from, from + 1 + d.below(3-from, "size")})
	}
	return items
}

// task draws a task.
func (d *failDraw) task(s *failStep, depth int, inline, final bool) {
	s.undeferred = d.chance(20, "undeferred")
	s.host = !d.device || s.kind == "target" && d.chance(50, "on the host")
	ends := []string{"", "BROKEN", "PANIC", "ALIKE"}
	switch {
	case s.kind == "update" && s.host:
		ends = ends[:1]
	case !s.host && s.kind != "task":
		ends = []string{"", "ABSENT"}
	case s.kind == "task":
		s.final, s.mergeable = d.chance(10, "final"), d.chance(30, "mergeable")
		s.detach = inline && !final && !s.mergeable && d.chance(35, "detach")
		if ends = append(ends, "CANCELLED"); !s.undeferred && !final {
			ends = append(ends, "GOEXIT")
		}
		if depth > 0 && d.chance(30, "nested") {
			s.pass = d.chance(50, "pass")
			s.body = d.steps(depth-1, inline && (s.undeferred || final), false, final || s.final)
			ends = slices.DeleteFunc(ends, func(e string) bool { return e == "ALIKE" })
		}
	}
	if s.ends = ""; d.chance(40, "fails") {
		s.ends = d.oneOf(ends, "ends")
	}
	s.items = d.items(d.below(2, "some"), map[bool]int{false: 6, true: 5}[s.detach])
	if s.cancels = s.kind == "task" && inline && len(s.items)+len(s.body) == 0 && !s.detach && d.chance(15, "cancels"); s.cancels {
		s.ends = ""
	} else if s.kind == "task" && inline && len(s.items)+len(s.body) == 0 && len(d.gates) > 0 && d.chance(50, "fulfills") {
		s.fulfills, s.of = true, d.gates[d.below(len(d.gates), "of")]
	}
}
