package trace

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBusyIsWhatSomeIntervalCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawInterval), 0, 8).Draw(t, "all")
		window := drawInterval(t)
		covered, gaps := busy(all, window)
		want := time.Duration(0)
		for now := window.begin; now < window.end; now++ {
			is := slices.ContainsFunc(all, func(v interval) bool { return v.begin <= now && now < v.end })
			if is {
				want++
			}
			if in := slices.ContainsFunc(gaps, func(v interval) bool { return v.begin <= now && now < v.end }); in == is {
				t.Fatalf("at %d: covered %v and in a gap %v; gaps %v", now, is, in, gaps)
			}
		}
		if covered != want {
			t.Fatalf("%d covered, want %d", covered, want)
		}
		for i, gap := range gaps {
			if gap.length() <= 0 || gap.begin < window.begin || gap.end > window.end {
				t.Fatalf("gap %v in window %v", gap, window)
			}
			if i > 0 && gap.length() > gaps[i-1].length() {
				t.Fatalf("gaps %v are not in order", gaps)
			}
			if slices.ContainsFunc(gaps, func(v interval) bool { return v.begin == gap.end }) {
				t.Fatalf("gaps %v: two are one", gaps)
			}
		}
	})
}

func TestCurveIsTheSumSoFar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Every decrement follows its increment, so that the count never falls below 0.
		var changes []change
		for range rapid.IntRange(0, 8).Draw(t, "n") {
			life, bytes := drawInterval(t), int64(rapid.IntRange(1, 9).Draw(t, "bytes"))
			changes = append(changes, change{life.begin, bytes}, change{life.end, -bytes})
		}
		changes = rapid.Permutation(changes).Draw(t, "order")
		levels := curve(changes)
		for now := range time.Duration(50) {
			want, got := int64(0), uint64(0)
			for _, c := range changes {
				if c.at <= now {
					want += c.more
				}
			}
			for _, l := range levels {
				if l.At <= now {
					got = l.Value
				}
			}
			if got != uint64(want) {
				t.Fatalf("at %d: %d, want %d", now, got, want)
			}
		}
	})
}

func TestCurveDoesNotFallBelowNothing(t *testing.T) {
	got := curve([]change{{5, 7}, {1, -3}, {1, 2}, {5, -1}})
	if diff := cmp.Diff([]level{{1, 0}, {5, 6}}, got); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}
