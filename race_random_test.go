package vkomp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"pgregory.net/rapid"
)

// raceBytes is a part of one of two slices that are present on the device, or of memory there, by its elements.
type raceBytes struct{ slice, from, to int }

func (b raceBytes) meets(c raceBytes) bool {
	return b.slice == c.slice && b.from < c.to && c.from < b.to
}

func (b raceBytes) String() string {
	return fmt.Sprintf("%s[%d:%d]", [...]string{"x", "y", "memory"}[b.slice], b.from, b.to)
}

// raceItem is a depend item.
type raceItem struct {
	raceBytes
	kind vkomp.DependKind
}

// raceTouch is an access to the storage of a slice on the host or on the device.
type raceTouch struct {
	raceBytes
	host, write bool
}

// raceStep is a construct of a random program. It has src and dst where it has arguments.
type raceStep struct {
	kind     string
	src, dst raceBytes
	items    []raceItem
	noWait   bool
	// group is the number of the taskgroup that the construct is in, begins or ends; 0 for none.
	group int
}

func (s *raceStep) String() string {
	text := fmt.Sprintf("%s(%v, %v) nowait(%t) group(%d)", s.kind, s.src, s.dst, s.noWait, s.group)
	for _, i := range s.items {
		text += fmt.Sprintf(" %v(%v)", i.kind, i.raceBytes)
	}
	return text
}

// isTask says that the step generates a task.
func (s *raceStep) isTask() bool {
	return s.kind != "taskwait" && s.kind != "begin taskgroup" && s.kind != "end taskgroup"
}

// memorySlice stands for memory of the device, which no depend item names.
const memorySlice = 2

// memory is the part of the memory with the indices of src.
func (s *raceStep) memory() raceBytes { return raceBytes{memorySlice, s.src.from, s.src.to} }

// touches returns what the step's task accesses by the rules of Options.Race.
func (s *raceStep) touches() (list []raceTouch) {
	add := func(b raceBytes, host, write bool) {
		var parts []raceItem
		written, whole := false, false
		for _, i := range s.items {
			if i.meets(b) {
				parts = append(parts, i)
				written = written || i.kind != vkomp.DependIn
				whole = whole || i.kind != vkomp.DependIn && i.from <= b.from && b.to <= i.to
			}
		}
		if len(parts) == 0 || whole || write && !written {
			list = append(list, raceTouch{b, host, write})
			return
		}
		for k := b.from; k < b.to; k++ {
			element, named, writes := raceBytes{b.slice, k, k + 1}, false, false
			for _, i := range parts {
				if i.meets(element) {
					named, writes = true, writes || write && i.kind != vkomp.DependIn
				}
			}
			if named {
				list = append(list, raceTouch{element, host, writes})
			}
		}
	}
	const host, device = true, false
	switch s.kind {
	case "kernel":
		add(s.src, device, false)
		add(s.dst, device, true)
	case "host task":
		for _, i := range s.items {
			list = append(list, raceTouch{i.raceBytes, host, i.kind != vkomp.DependIn})
		}
	case "update to", "enter always":
		add(s.dst, host, false)
		add(s.dst, device, true)
	case "update from":
		add(s.dst, host, true)
		add(s.dst, device, false)
	case "copy", "host kernel":
		add(s.src, host, false)
		add(s.dst, host, true)
	case "fill":
		list = append(list, raceTouch{s.memory(), device, true})
	case "copy from memory":
		list = append(list, raceTouch{s.memory(), device, false})
		add(s.dst, host, true)
	}
	return list
}

// allowed reports whether the depend clauses of two steps let them access common bytes unordered: they exclude each other,
// or both have inoutset items of all these bytes, or of any where no items can name these.
func allowed(a, b *raceStep, common raceBytes) bool {
	for _, i := range a.items {
		for _, j := range b.items {
			exclude := i.kind == vkomp.DependMutexInOutSet && j.kind == vkomp.DependMutexInOutSet
			join := i.kind == vkomp.DependInOutSet && j.kind == vkomp.DependInOutSet && common.slice == memorySlice
			if (exclude || join) && i.meets(j.raceBytes) {
				return true
			}
		}
	}
	joins := func(s *raceStep, element raceBytes) bool {
		for _, i := range s.items {
			if i.kind == vkomp.DependInOutSet && i.meets(element) {
				return true
			}
		}
		return false
	}
	for k := common.from; k < common.to; k++ {
		if element := (raceBytes{common.slice, k, k + 1}); !joins(a, element) || !joins(b, element) {
			return false
		}
	}
	return true
}

// ofOneSet reports whether items of these kinds for the same storage are of one set of tasks, which do not depend on each other
// (OpenMP 5.2 §15.9.5).
func ofOneSet(a, b vkomp.DependKind) bool {
	return a == b && (a == vkomp.DependIn || a == vkomp.DependInOutSet || a == vkomp.DependMutexInOutSet)
}

// orders reports whether b follows a by itself, without others between them.
func orders(a, b *raceStep) bool {
	switch {
	case a.kind == "begin taskgroup" || b.kind == "begin taskgroup":
		return false
	case a.kind == "taskwait" || a.kind == "end taskgroup" || b.kind == "taskwait":
		return true
	case b.kind == "end taskgroup":
		return a.group == b.group
	case !a.noWait:
		return true
	}
	for _, i := range a.items {
		for _, j := range b.items {
			if i.meets(j.raceBytes) && !ofOneSet(i.kind, j.kind) {
				return true
			}
		}
	}
	return false
}

// raceOf returns a race of the program, or "" if there is none.
func raceOf(steps []raceStep) string {
	follows := make([][]bool, len(steps))
	for b := range steps {
		follows[b] = make([]bool, len(steps))
		for a := b - 1; a >= 0; a-- {
			if follows[b][a] || !orders(&steps[a], &steps[b]) {
				continue
			}
			follows[b][a] = true
			for k := range a {
				follows[b][k] = follows[b][k] || follows[a][k]
			}
		}
		for a := range b {
			if follows[b][a] || !steps[a].isTask() || !steps[b].isTask() {
				continue
			}
			for _, p := range steps[a].touches() {
				for _, q := range steps[b].touches() {
					common := raceBytes{p.slice, max(p.from, q.from), min(p.to, q.to)}
					if p.meets(q.raceBytes) && p.host == q.host && (p.write || q.write) && !allowed(&steps[a], &steps[b], common) {
						return fmt.Sprintf("steps %d and %d, %v", a, b, common)
					}
				}
			}
		}
	}
	return ""
}

// drawRaceProgram draws a program.
func drawRaceProgram(r *rapid.T) (steps []raceStep) {
	part := func(slice int) raceBytes {
		from := rapid.IntRange(0, 3).Draw(r, "from")
		return raceBytes{slice, 16 * from, 16 * rapid.IntRange(from+1, 4).Draw(r, "to")}
	}
	kinds := []string{"kernel", "kernel", "kernel", "host task", "update to", "update from", "copy", "host kernel", "enter always", "fill", "copy from memory", "taskwait", "taskwait depend", "taskgroup"}
	open, groups := 0, 0
	for range rapid.IntRange(2, 5).Draw(r, "steps") {
		s := raceStep{kind: rapid.SampledFrom(kinds).Draw(r, "construct"), group: open, noWait: rapid.IntRange(0, 4).Draw(r, "nowait") > 0}
		if vktest.GoRaces && s.kind == "host kernel" {
			s.kind = "kernel" // Go's race detector knows no inoutset, nor that items name parts
		}
		slice := rapid.IntRange(0, 1).Draw(r, "slice")
		s.src, s.dst = part(slice), part(1-slice)
		items, dependKinds := rapid.IntRange(0, 2).Draw(r, "items"), 5
		switch s.kind {
		case "taskgroup":
			if items, s.noWait = 0, false; open > 0 {
				s.kind, open = "end taskgroup", 0
			} else {
				groups++
				s.kind, s.group, open = "begin taskgroup", groups, groups
			}
		case "taskwait":
			items, s.noWait = 0, false
		case "taskwait depend":
			items, dependKinds = 1, 3
		case "fill":
			s.noWait = true
		case "copy", "host kernel", "copy from memory":
			n := min(s.src.to-s.src.from, s.dst.to-s.dst.from)
			s.src.to, s.dst.to, s.noWait = s.src.from+n, s.dst.from+n, s.noWait || s.kind != "host kernel"
		}
		for range items {
			kind := []vkomp.DependKind{vkomp.DependIn, vkomp.DependOut, vkomp.DependInOut, vkomp.DependInOutSet, vkomp.DependMutexInOutSet}[rapid.IntRange(0, dependKinds-1).Draw(r, "kind")]
			s.items = append(s.items, raceItem{part(rapid.IntRange(0, 1).Draw(r, "slice")), kind})
		}
		steps = append(steps, s)
	}
	if open > 0 {
		steps = append(steps, raceStep{kind: "end taskgroup", group: open})
	}
	return steps
}

// run generates the steps from the k-th on, up to the end of the taskgroup that they are in. It returns the number of
// the step where it has ended.
func (p *racing) run(ctx context.Context, steps []raceStep, k int) int {
	of := func(b raceBytes) []float32 { return [][]float32{p.x, p.y}[b.slice][b.from:b.to] }
	for ; k < len(steps); k++ {
		s := &steps[k]
		var depend []vkomp.Depend
		for _, i := range s.items {
			depend = append(depend, vkomp.DependOn(i.kind, of(i.raceBytes)))
		}
		switch s.kind {
		case "begin taskgroup":
			must(p.t, p.rt.Taskgroup(ctx, func(ctx context.Context) error {
				k = p.run(ctx, steps, k+1)
				return nil
			}))
		case "end taskgroup":
			return k
		case "kernel":
			n := min(s.src.to-s.src.from, s.dst.to-s.dst.from)
			must(p.t, p.rt.Target(ctx, vkomp.Target{
				Kernel: p.k, Range: vkomp.Range{X: n}, NoWait: s.noWait, Depend: depend,
				Args: []vkomp.Arg{vkomp.To(of(s.src)), vkomp.ToFrom(of(s.dst)), vkomp.Value(uint32(n)), vkomp.Value(float32(1))},
			}))
		case "host task":
			body := func(context.Context) error { return nil }
			must(p.t, p.rt.Task(ctx, vkomp.Task{Body: body, If: vkomp.If(s.noWait), Depend: depend}))
		case "update to":
			p.update(ctx, s.noWait, vkomp.To(of(s.dst)), depend...)
		case "update from":
			p.update(ctx, s.noWait, vkomp.From(of(s.dst)), depend...)
		case "host kernel":
			n := min(s.src.to-s.src.from, s.dst.to-s.dst.from)
			must(p.t, p.rt.Target(ctx, vkomp.Target{
				Kernel: p.k, Range: vkomp.Range{X: n}, NoWait: s.noWait, Depend: depend, If: vkomp.If(false),
				Args: []vkomp.Arg{vkomp.To(of(s.src)), vkomp.ToFrom(of(s.dst)), vkomp.Value(uint32(n)), vkomp.Value(float32(1))},
			}))
		case "enter always":
			p.enter(ctx, s.noWait, vkomp.To(of(s.dst)).Always(), depend...)
		case "fill":
			must(p.t, p.rt.DefaultDevice(ctx).MemsetAsync(ctx, p.memory.Add(4*s.src.from), 1, 4*(s.src.to-s.src.from), depend...))
		case "copy from memory":
			must(p.t, p.rt.MemcpyAsync(ctx, vkomp.HostPtr(of(s.dst)), p.memory.Add(4*s.src.from), 4*len(of(s.dst)), depend...))
		case "copy":
			to, from := vkomp.HostPtr(of(s.dst)), vkomp.HostPtr(of(s.src))
			must(p.t, p.rt.MemcpyAsync(ctx, to, from, 4*len(of(s.dst)), depend...))
		default: // a taskwait, with depend items or without
			if s.noWait {
				must(p.t, p.rt.TaskwaitNoWait(ctx, depend...))
			} else {
				p.wait(ctx, depend...)
			}
		}
	}
	return k
}

// present runs f while the slices are present, and there is memory.
func (p *racing) present(ctx context.Context, f func()) {
	d := p.rt.DefaultDevice(ctx)
	var err error
	p.memory, err = d.Alloc(ctx, 4*len(p.x))
	must(p.t, err)
	p.enter(ctx, false, vkomp.To(p.x))
	p.enter(ctx, false, vkomp.To(p.y))
	f()
	p.exit(ctx, false, vkomp.Delete(p.x))
	p.exit(ctx, false, vkomp.Delete(p.y))
	must(p.t, d.Free(ctx, p.memory))
}

// A race is reported exactly if two tasks of the program have one by the rules of Options.Race.
func TestRacesOfRandomPrograms(t *testing.T) {
	checkRaces(t, func(r *rapid.T) ([]raceStep, func(ctx context.Context, p *racing)) {
		steps := drawRaceProgram(r)
		return steps, func(ctx context.Context, p *racing) { p.run(ctx, steps, 0) }
	})
}

// checkRaces checks what is reported for random programs. draw draws the steps of one, which it returns with what executes them.
func checkRaces(t *testing.T, draw func(r *rapid.T) (steps []raceStep, run func(ctx context.Context, p *racing))) {
	t.Helper()
	racy, clean := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		steps, run := draw(r)
		var program strings.Builder
		for k := range steps {
			fmt.Fprintf(&program, "\n%d %v", k, &steps[k])
		}
		defer func() {
			if t.Failed() { // a construct was refused
				t.Log(program.String())
			}
		}()
		want := raceOf(steps)
		if want != "" {
			racy++
		} else {
			clean++
		}
		if want != "" && vktest.GoRaces {
			r.Skip("Go's race detector would report it too")
		}
		found := races(t, vkomp.Options{}, func(ctx context.Context, p *racing) {
			p.present(ctx, func() {
				run(ctx, p)
				p.wait(ctx)
			})
		})
		if (len(found) > 0) != (want != "") {
			r.Errorf("found %v, want a race: %q%s", found, want, program.String())
		}
	})
	if racy == 0 || clean == 0 {
		t.Errorf("%d programs have races and %d none: the random programs are of no use", racy, clean)
	}
}
