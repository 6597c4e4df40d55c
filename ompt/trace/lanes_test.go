package trace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// at returns an interval in arbitrary units.
func at(begin, end int) interval { return interval{time.Duration(begin), time.Duration(end)} }

func TestLanes(t *testing.T) {
	for _, c := range []struct {
		name string
		all  []laid
		want []int
	}{
		{"nothing", nil, []int{}},
		{"one after the other", []laid{{at(0, 2), none}, {at(2, 4), none}}, []int{0, 0}},
		{"at once", []laid{{at(0, 3), none}, {at(1, 4), none}, {at(2, 5), none}}, []int{0, 1, 2}},
		{"the lowest that is free", []laid{{at(0, 9), none}, {at(0, 3), none}, {at(0, 5), none}, {at(6, 7), none}}, []int{0, 2, 1, 1}},
		{"inside", []laid{{at(0, 9), none}, {at(1, 4), 0}, {at(2, 3), 1}, {at(4, 9), 0}}, []int{0, 0, 0, 0}},
		{"a sibling in the way", []laid{{at(0, 9), none}, {at(1, 4), 0}, {at(3, 5), 0}}, []int{0, 0, 1}},
		{"inside of a sibling", []laid{{at(0, 9), none}, {at(1, 6), 0}, {at(2, 5), 0}, {at(5, 7), 0}}, []int{0, 0, 0, 1}},
		{"beyond the parent", []laid{{at(0, 4), none}, {at(3, 5), 0}}, []int{0, 1}},
		{"before the parent", []laid{{at(3, 9), none}, {at(2, 5), 0}}, []int{1, 0}},
		{"as long as the parent", []laid{{at(0, 4), 1}, {at(0, 4), none}}, []int{0, 0}},
		{"of no length", []laid{{at(1, 1), none}, {at(1, 1), none}, {at(1, 1), 0}}, []int{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lane, count := lanes(c.all)
			if diff := cmp.Diff(c.want, lane); diff != "" {
				t.Errorf("lanes (-want +got):\n%s", diff)
			}
			most := -1
			for _, l := range lane {
				most = max(most, l)
			}
			if count != most+1 {
				t.Errorf("%d lanes, the highest is %d", count, most)
			}
		})
	}
}

func drawInterval(t *rapid.T) interval {
	begin := rapid.IntRange(0, 30).Draw(t, "begin")
	return at(begin, begin+rapid.IntRange(0, 8).Draw(t, "length"))
}

// Compared with the definition, evaluated at every point in time.
func TestLanesAreTheLowestFreeAndHoldNothingThatOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []laid
		for i := range rapid.IntRange(0, 25).Draw(t, "n") {
			v := laid{drawInterval(t), none}
			if i > 0 && rapid.Bool().Draw(t, "nested") {
				v.parent = int32(rapid.IntRange(0, i-1).Draw(t, "parent"))
			}
			all = append(all, v)
		}
		lane, count := lanes(all)
		alone := true
		for i, a := range all {
			alone = alone && a.parent == none
			for j, b := range all {
				if lane[i] == lane[j] && a.begin < b.begin && b.begin < a.end && a.end < b.end {
					t.Fatalf("lane %d has %v and %v", lane[i], a, b)
				}
			}
			if up := a.parent; up != none && lane[i] != lane[up] && all[up].begin <= a.begin && a.end <= all[up].end {
				// Another interval occupies the parent's lane.
				blocked := false
				for j, b := range all {
					blocked = blocked || lane[j] == lane[up] && b.begin <= a.begin && a.begin < b.end && b.end < a.end
				}
				if !blocked {
					t.Fatalf("%v is not with its parent %v", a, all[up])
				}
			}
		}
		if !alone {
			return
		}
		// Without parents there are as many lanes as the most intervals at one time, and
		// each interval begins on the lowest free lane. An empty interval may find its lane
		// occupied.
		least, most := min(len(all), 1), 1
		for now := range time.Duration(40) {
			running, some := 0, 0
			for _, a := range all {
				if a.begin <= now && now < a.end {
					running++
				}
				if a.begin <= now && now < a.end || a.begin == now {
					some++
				}
			}
			least, most = max(least, running), max(most, some)
		}
		if count < least || count > most && len(all) > 0 {
			t.Fatalf("%d lanes for %d to %d intervals at once: %v", count, least, most, all)
		}
	})
}
