package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLayOutTakesThoseOfThePathThenTheEarliest(t *testing.T) {
	nodes := layOut(10, func(v int32) bool { return v == 0 }, []edge{{1, 7}, {7, 9}}, []int32{1, 7, 9}, 5)
	// Positions refer to the tasks that are shown.
	if diff := cmp.Diff([]node{{1, 0, 0}, {2, 0, 2}, {3, 1, 2}, {7, 1, 0}, {9, 2, 0}}, nodes, cmp.AllowUnexported(node{})); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}
