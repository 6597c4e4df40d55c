package trace

import (
	"cmp"
	"slices"
	"time"
)

// busy returns how much of the window the intervals cover together, and the gaps in
// between, longest first.
func busy(all []interval, window interval) (covered time.Duration, gaps []interval) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.begin, b.begin) })
	at := window.begin
	for _, v := range all {
		v.begin, v.end = max(v.begin, at), min(v.end, window.end)
		if v.end <= v.begin {
			continue
		}
		if v.begin > at {
			gaps = append(gaps, interval{at, v.begin})
		}
		covered += v.length()
		at = v.end
	}
	if at < window.end {
		gaps = append(gaps, interval{at, window.end})
	}
	slices.SortStableFunc(gaps, func(a, b interval) int { return cmp.Compare(b.length(), a.length()) })
	return covered, gaps
}

// change is a change of a quantity at a time.
type change struct {
	at   time.Duration
	more int64
}

// level is the value of a quantity from a time on.
type level struct {
	At    time.Duration
	Value uint64
}

// curve sums up changes in order of time; at equal times it keeps the last level. The
// level never falls below 0, because its value before the trace is unknown.
func curve(changes []change) []level {
	changes = slices.Clone(changes)
	// At equal times, increases are counted before decreases.
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
	var levels []level
	now := int64(0)
	for _, c := range changes {
		now = max(now+c.more, 0)
		if n := len(levels); n > 0 && levels[n-1].At == c.at {
			levels[n-1].Value = uint64(now)
			continue
		}
		levels = append(levels, level{c.at, uint64(now)})
	}
	return levels
}
