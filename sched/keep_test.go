package sched

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/tasks"
)

// A task keeps the memory to which its pointers point, and gives it back even if it does not run.
func TestTasksThatDoNotRunGiveBackWhatTheyKeep(t *testing.T) {
	cancelled := tasks.NewGroup(nil)
	cancelled.Cancel()
	for name, c := range map[string]struct {
		launch launch
		// change changes the region or the rig, and the result, if not nil, is called at the end.
		change func(r *rig, region *Region) (undo func())
		fails  bool // Run, rather than a wait
	}{
		"it runs": {},
		"its construct is refused": {
			change: func(_ *rig, region *Region) func() { region.Values = nil; return nil }, fails: true,
		},
		"its scope takes none": {
			change: func(r *rig, _ *Region) func() { r.scope.Seal(errors.New("sealed")); return nil }, fails: true,
		},
		"its taskgroup is cancelled": {launch: launch{group: cancelled}},
		"its storage cannot be entered": {
			change: func(r *rig, region *Region) func() {
				x := filled(4, 1)
				r.run(launch{label: "enter", enter: []arg{to(x[:2])}, included: true})
				region.Enter[0] = to(x).item("x")
				return func() { r.run(launch{label: "exit", exit: []arg{from(x[:2])}, included: true}) }
			},
		},
		"the device is lost": {
			change: func(r *rig, _ *Region) func() {
				r.failNext()
				r.s.Run(t.Context(), r.region(launch{label: "lost", kernel: "add", args: []arg{tofrom(filled(4, 1))}, included: true}))
				return nil
			},
		},
	} {
		keep := func(t *testing.T, bound, present bool) {
			r := newRig(t, memoryModes[0], 1)
			defer r.close()
			p := r.allocate(16)
			l := c.launch
			x := filled(4, 1)
			l.label, l.kernel, l.args = "keeps", "set", []arg{tofrom(x)}
			if bound {
				l.kernel, l.args = "mix", []arg{tofrom(x), reaches(p, 16), reaches(p, 16)}
			}
			if present {
				r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
				defer func() {
					_ = r.s.Run(t.Context(), r.region(launch{label: "exit", exit: []arg{from(x)}, included: true, scope: r.graph.NewScope()}))
				}()
			}
			region := r.region(l)
			if !bound {
				region.Pointers = []Pointer{p}
			}
			var undo func()
			if c.change != nil {
				undo = c.change(r, region)
			}
			if err := r.s.Run(t.Context(), region); (err != nil) != c.fails {
				t.Errorf("the construct returned %v", err)
			}
			_ = r.scope.Wait(t.Context(), nil)
			if n := r.keepers(p); n != 1 {
				t.Errorf("%d keep the memory, not only the program", n)
			}
			r.free(p)
			if undo != nil {
				undo()
			}
		}
		t.Run(name, func(t *testing.T) { keep(t, false, false) })
		t.Run(name+", with a binding", func(t *testing.T) { keep(t, true, false) })
		t.Run(name+", with a binding beside present storage", func(t *testing.T) { keep(t, true, true) })
	}
}
