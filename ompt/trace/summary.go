package trace

import (
	"cmp"
	"slices"
	"time"
)

// labelSummary sums up the tasks of one label.
type labelSummary struct {
	Label                string
	Tasks                int
	Total, Mean, Longest time.Duration
	ToDevice, FromDevice uint64
	Copied               uint64
}

// summaries sums up tasks by label, largest total time first. Times are own times.
func (t *Trace) summaries() []labelSummary {
	byLabel := map[string]*labelSummary{}
	bytes := t.taskBytes()
	for i := range t.tasks {
		if t.implicit(int32(i)) {
			continue
		}
		label := t.tasks[i].label
		if label == "" {
			label = "(no label)"
		}
		s := byLabel[label]
		if s == nil {
			s = &labelSummary{Label: label}
			byLabel[label] = s
		}
		s.Tasks++
		s.Total += t.own[i]
		s.Longest = max(s.Longest, t.own[i])
		s.ToDevice += bytes[i].to
		s.FromDevice += bytes[i].from
		s.Copied += bytes[i].other
	}
	all := make([]labelSummary, 0, len(byLabel))
	for _, s := range byLabel {
		s.Mean = s.Total / time.Duration(s.Tasks)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b labelSummary) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Label, b.Label))
	})
	return all
}

// moved counts bytes by direction.
type moved struct{ to, from, other uint64 }

// taskBytes returns the bytes that each task moved, from the operations seen by the host.
func (t *Trace) taskBytes() []moved {
	bytes := make([]moved, len(t.tasks))
	for i := range t.ops {
		o := &t.ops[i]
		if o.task == none {
			continue
		}
		switch t.kindOf(o.dataOp, o.src, o.dest) {
		case kindToDevice:
			bytes[o.task].to += o.bytes
		case kindFromDevice:
			bytes[o.task].from += o.bytes
		case kindCopy:
			bytes[o.task].other += o.bytes
		}
	}
	return bytes
}

// use describes how busy a queue or a device was.
type use struct {
	Process int
	Name    string
	Busy    time.Duration
	Window  interval
	Gaps    []interval
	// Whole says that the use is that of all queues of the device.
	Whole bool
}

// Idle returns the rest of the window.
func (u use) Idle() time.Duration { return u.Window.length() - u.Busy }

// uses returns how busy each device and each of its queues was, between the first and the
// last operation in the trace. A device without records counts as busy while it has target
// regions.
func (t *Trace) uses() []use {
	var all []use
	for p := range t.devices {
		recorded := slices.ContainsFunc(t.tracks, func(of track) bool { return of.process == p && of.queue != none })
		queues := map[int32][]interval{}
		var whole []interval
		window, some := interval{}, false
		widen := func(v interval) {
			if !some {
				window, some = v, true
			}
			window = interval{min(window.begin, v.begin), max(window.end, v.end)}
		}
		for i := range t.slices {
			s := &t.slices[i]
			of := &t.tracks[s.track]
			if of.process != p {
				continue
			}
			widen(s.interval)
			if recorded && of.queue == none || !recorded && s.kind != kindRegion {
				continue
			}
			queues[of.queue] = append(queues[of.queue], s.interval)
			whole = append(whole, s.interval)
		}
		for i := range t.regions {
			if t.regions[i].device == t.devices[p].num {
				widen(interval{t.regions[i].begin, t.regions[i].end})
			}
		}
		if !some {
			continue
		}
		measured := func(name string, busyTimes []interval, isWhole bool) {
			u := use{Process: p, Name: name, Window: window, Whole: isWhole}
			u.Busy, u.Gaps = busy(busyTimes, window)
			all = append(all, u)
		}
		measured(t.deviceName(p), whole, true)
		seen := map[int32]bool{}
		for _, of := range t.tracks {
			if of.process == p && of.queue != none && !seen[of.queue] {
				seen[of.queue] = true
				measured(of.queueName(), queues[of.queue], false)
			}
		}
	}
	return all
}
