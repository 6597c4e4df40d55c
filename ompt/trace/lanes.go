package trace

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// interval is a half-open interval of time.
type interval struct{ begin, end time.Duration }

func (v interval) length() time.Duration { return v.end - v.begin }

// Begin returns v.begin, for the report's template.
func (v interval) Begin() time.Duration { return v.begin }

// Length returns v.length(), for the report's template.
func (v interval) Length() time.Duration { return v.length() }

// laid is an interval that is drawn on a lane. If it has a parent, the index of another
// interval, it is drawn inside that if possible.
type laid struct {
	interval
	parent int32
}

// lanes returns the lane of each interval and the number of lanes. An interval gets the
// lowest lane that is free when it begins. One with a parent gets the parent's lane, if the
// parent contains it and nothing else on the lane ends inside it. Two intervals that
// overlap are on one lane only if one contains the other.
func lanes(all []laid) (lane []int, count int) {
	lane = make([]int, len(all))
	order := make([]int32, len(all))
	// Parents come before their children, whatever their times are.
	depth := make([]int, len(all))
	for i := range all {
		order[i] = int32(i)
		for up := all[i].parent; up != none && depth[i] <= len(all); up = all[up].parent {
			depth[i]++
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(all[a].begin, all[b].begin), cmp.Compare(depth[a], depth[b]), cmp.Compare(all[b].end, all[a].end), cmp.Compare(a, b))
	})
	// ends holds, for each lane, the ends of the nested intervals that are open there.
	var ends [][]time.Duration
	placed := make([]bool, len(all))
	var free freeLanes
	var busy busyLanes
	for _, i := range order {
		v := all[i]
		placed[i] = true
		if up := v.parent; up != none && placed[up] {
			in := ends[lane[up]]
			for len(in) > 1 && in[len(in)-1] <= v.begin {
				in = in[:len(in)-1]
			}
			if v.end <= in[len(in)-1] {
				lane[i], ends[lane[up]] = lane[up], append(in, v.end)
				continue
			}
		}
		for len(busy) > 0 && busy[0].until <= v.begin {
			heap.Push(&free, heap.Pop(&busy).(busyLane).lane)
		}
		if len(free) > 0 {
			lane[i] = heap.Pop(&free).(int)
		} else {
			lane[i], count = count, count+1
			ends = append(ends, nil)
		}
		ends[lane[i]] = append(ends[lane[i]][:0], v.end)
		heap.Push(&busy, busyLane{v.end, lane[i]})
	}
	return lane, count
}

// freeLanes is a heap of free lanes, lowest first.
type freeLanes []int

func (h freeLanes) Len() int           { return len(h) }
func (h freeLanes) Less(i, j int) bool { return h[i] < h[j] }
func (h freeLanes) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *freeLanes) Push(v any)        { *h = append(*h, v.(int)) }
func (h *freeLanes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// busyLanes is a heap of lanes ordered by the time at which they become free.
type (
	busyLanes []busyLane
	busyLane  struct {
		until time.Duration
		lane  int
	}
)

func (h busyLanes) Len() int           { return len(h) }
func (h busyLanes) Less(i, j int) bool { return h[i].until < h[j].until }
func (h busyLanes) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *busyLanes) Push(v any)        { *h = append(*h, v.(busyLane)) }
func (h *busyLanes) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
