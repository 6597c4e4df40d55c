package sched

import (
	"context"
	"errors"
	"testing"
)

var errEnded = errors.New("the context has ended")

// countingPlace counts how often it is left and how often it is taken again.
type countingPlace struct {
	left, returned int
	leave          func()
}

func (p *countingPlace) Leave() {
	p.left++
	if p.leave != nil {
		p.leave()
	}
}
func (p *countingPlace) Return() { p.returned++ }

func TestIncludedTargetTaskLeavesThePlaceWhileItWaits(t *testing.T) {
	for _, cut := range []bool{false, true} {
		inEveryMemory(t, func(t *testing.T, r *rig) {
			x := filled(16, 1)
			r.d.hold()
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			place := &countingPlace{leave: r.d.release}
			if cut {
				place.leave = func() { cancel(errEnded) }
			}
			err := r.s.Run(ctx, r.region(launch{label: "waits", kernel: "add", args: []arg{tofrom(x)}, constant: 1, included: true, place: place}))
			if cut != errors.Is(err, errEnded) || !cut && err != nil || place.left != 1 || place.returned != 1 {
				t.Errorf("the place was left %d times and taken %d times, %v", place.left, place.returned, err)
			}
			r.d.release()
			r.taskwait()
			r.expect("x", x, filled(16, 2)...)
		})
	}
}
