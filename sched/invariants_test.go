//go:build invariants

package sched

import (
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tasks"
)

// In this build a target that is put into a state which the documentation does not allow after
// its present one panics.
func TestWrongTransitionsShow(t *testing.T) {
	for name, c := range map[string]struct {
		wrong func(r *rig, d *target)
		want  string
	}{
		"entered twice":    {func(_ *rig, d *target) { d.to(taskEntered); d.to(taskEntered) }, `"a" goes from entered to entered`},
		"starved when in":  {func(_ *rig, d *target) { d.to(taskEntered); d.to(taskStarved) }, `"a" goes from entered to starved`},
		"given back early": {func(_ *rig, d *target) { d.to(taskEntered); d.Recycle() }, `goes from entered to idle`},
		"ended twice": {func(r *rig, d *target) {
			d.to(taskComplete)
			r.s.endLocked(d, nil, tasks.NewWork())
		}, `"a" goes from complete to complete`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, memoryModes[0], 1)
			defer r.close()
			d := r.s.newTarget(&Region{})
			d.Label = "a"
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, c.want) {
					t.Errorf("%q, want %s", got, c.want)
				}
			}()
			c.wrong(r, d)
		})
	}
}
