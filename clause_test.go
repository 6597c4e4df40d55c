package vkomp

import (
	"fmt"
	"testing"
)

// Items have their labels whatever their number is, and in whichever order they are asked for.
func TestEachItemHasItsLabel(t *testing.T) {
	l := newItemLabels("item")
	first := len(l.first)
	for _, k := range []int{0, first - 1, first, 10 * first, first + 1, 0, 3*first - 1, 100 * first} {
		if got, want := l.of(k), fmt.Sprintf("item %d", k); got != want {
			t.Errorf("item %d is called %q", k, got)
		}
	}
}
