// Package tracecheck checks traces in the Trace Event Format field by field, more strictly than
// viewers do.
package tracecheck

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// event is an event of the format; missing fields are nil.
type event struct {
	Name     *string                    `json:"name"`
	Category *string                    `json:"cat"`
	Phase    *string                    `json:"ph"`
	Time     *float64                   `json:"ts"`
	Duration *float64                   `json:"dur"`
	PID      *int                       `json:"pid"`
	TID      *int                       `json:"tid"`
	ID       *string                    `json:"id"`
	Binding  *string                    `json:"bp"`
	Scope    *string                    `json:"s"`
	Args     map[string]json.RawMessage `json:"args"`
}

type track struct{ pid, tid int }

// box is an X event, in nanoseconds.
type box struct {
	begin, end int64
	name       string
}

// flow is the events of an arrow.
type flow struct{ starts, ends []event }

// Counts holds the numbers of events in a trace.
type Counts struct {
	Phases map[string]int // number of events by phase
	// Processes and Threads are the names given by metadata events.
	Processes, Threads []string
	// Names counts slices by name.
	Names map[string]int
	// Counters are the last values of counters, by name.
	Counters map[string]float64
}

// maxErrors is the largest number of errors reported for one trace.
const maxErrors = 20

type checker struct {
	errs   []error
	counts Counts
	boxes  map[track][]box
	// ends holds, for each slice in order, the latest end of the slices up to it.
	ends      map[track][]int64
	open      map[track][]string
	async     map[string]int
	flows     map[string]*flow
	processes map[int]bool
	threads   map[track]bool
}

func (c *checker) fail(format string, args ...any) {
	if len(c.errs) < maxErrors {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

// Check returns the numbers of events in a trace, and an error that lists its defects: fields
// that are missing or of the wrong type, negative durations, slices that overlap on a track
// without nesting, ends without begins, arrows with one end, arrows that go back in time or begin
// or end outside of any slice, counters that are not numbers, processes and threads without a
// name or with two.
func Check(trace []byte) (Counts, error) {
	c := checker{
		counts: Counts{Phases: map[string]int{}, Names: map[string]int{}, Counters: map[string]float64{}},
		boxes:  map[track][]box{}, ends: map[track][]int64{}, open: map[track][]string{}, async: map[string]int{}, flows: map[string]*flow{},
		processes: map[int]bool{}, threads: map[track]bool{},
	}
	var file struct {
		Events *[]json.RawMessage `json:"traceEvents"`
		Unit   string             `json:"displayTimeUnit"`
	}
	if err := json.Unmarshal(trace, &file); err != nil {
		return c.counts, err
	}
	if file.Events == nil {
		return c.counts, errors.New("no traceEvents")
	}
	if file.Unit != "" && file.Unit != "ms" && file.Unit != "ns" {
		c.fail("displayTimeUnit %q is neither ms nor ns", file.Unit)
	}
	for i, raw := range *file.Events {
		var e event
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&e); err != nil {
			c.fail("event %d: %v: %s", i, err, raw)
			continue
		}
		c.event(i, &e)
	}
	c.whole()
	return c.counts, errors.Join(c.errs...)
}

// event checks a single event.
func (c *checker) event(i int, e *event) {
	if e.Phase == nil {
		c.fail("event %d: no ph", i)
		return
	}
	phase := *e.Phase
	needs := map[string]bool{"name": e.Name != nil, "pid": e.PID != nil, "ts": e.Time != nil}
	switch phase {
	case "M":
		delete(needs, "ts")
		needs["args"] = e.Args != nil
	case "X":
		needs["dur"], needs["tid"] = e.Duration != nil, e.TID != nil
	case "B":
		needs["tid"] = e.TID != nil
	case "E":
		delete(needs, "name")
		needs["tid"] = e.TID != nil
	case "b", "e":
		needs["id"], needs["cat"] = e.ID != nil, e.Category != nil
	case "s", "f":
		needs["id"], needs["cat"], needs["tid"] = e.ID != nil, e.Category != nil, e.TID != nil
	case "C":
		needs["args"] = len(e.Args) > 0
	case "i":
		needs["s"] = e.Scope != nil && slices.Contains([]string{"g", "p", "t"}, *e.Scope)
	default:
		c.fail("event %d: unknown ph %q", i, phase)
		return
	}
	missing := false
	for _, field := range []string{"name", "pid", "ts", "dur", "tid", "id", "cat", "args", "s"} {
		if there, needed := needs[field]; needed && !there {
			c.fail("event %d: ph %s has no good %s", i, phase, field)
			missing = true
		}
	}
	if missing {
		return
	}
	c.counts.Phases[phase]++
	on := track{*e.PID, 0}
	if e.TID != nil {
		on.tid = *e.TID
	}
	switch phase {
	case "M":
		c.metadata(i, e, on)
	case "X":
		if *e.Duration < 0 {
			c.fail("event %d: %q lasts %v µs", i, *e.Name, *e.Duration)
			return
		}
		begin := nanoseconds(*e.Time)
		c.boxes[on] = append(c.boxes[on], box{begin, begin + nanoseconds(*e.Duration), *e.Name})
		c.counts.Names[*e.Name]++
	case "B":
		c.open[on] = append(c.open[on], *e.Name)
	case "E":
		stack := c.open[on]
		if len(stack) == 0 {
			c.fail("event %d: an E without a B", i)
			return
		}
		if last := stack[len(stack)-1]; e.Name != nil && *e.Name != last {
			c.fail("event %d: E of %q ends %q", i, *e.Name, last)
		}
		c.open[on] = stack[:len(stack)-1]
	case "b", "e":
		key := fmt.Sprintf("%d/%s/%s", *e.PID, *e.Category, *e.ID)
		c.async[key] += map[string]int{"b": 1, "e": -1}[phase]
		if c.async[key] < 0 {
			c.fail("event %d: an e of %s without a b", i, key)
		}
	case "s", "f":
		key := *e.Category + "/" + *e.Name + "/" + *e.ID
		f := c.flows[key]
		if f == nil {
			f = &flow{}
			c.flows[key] = f
		}
		if phase == "s" {
			f.starts = append(f.starts, *e)
			return
		}
		if e.Binding == nil || *e.Binding != "e" {
			c.fail("event %d: an f without bp e goes to the next slice", i)
		}
		f.ends = append(f.ends, *e)
	case "C":
		for name, value := range e.Args {
			var v float64
			if err := json.Unmarshal(value, &v); err != nil {
				c.fail("event %d: counter %s is %s, no number", i, name, value)
			}
			c.counts.Counters[*e.Name] = v
		}
	}
}

func (c *checker) metadata(i int, e *event, on track) {
	text := func(field string) string {
		var s string
		if err := json.Unmarshal(e.Args[field], &s); err != nil {
			c.fail("event %d: %s has no args.%s of text", i, *e.Name, field)
		}
		return s
	}
	switch *e.Name {
	case "process_name":
		c.counts.Processes = append(c.counts.Processes, text("name"))
		if c.processes[on.pid] {
			c.fail("event %d: process %d has two names", i, on.pid)
		}
		c.processes[on.pid] = true
	case "thread_name":
		c.counts.Threads = append(c.counts.Threads, text("name"))
		if c.threads[on] {
			c.fail("event %d: thread %v has two names", i, on)
		}
		c.threads[on] = true
	case "process_sort_index", "thread_sort_index":
		var n float64
		if err := json.Unmarshal(e.Args["sort_index"], &n); err != nil {
			c.fail("event %d: %s has no args.sort_index of a number", i, *e.Name)
		}
	default:
		c.fail("event %d: unknown metadata %q", i, *e.Name)
	}
}

// whole checks what involves all events.
func (c *checker) whole() {
	for on, boxes := range c.boxes {
		if !c.threads[on] || !c.processes[on.pid] {
			c.fail("thread %v has slices and no name, or none of its process", on)
		}
		slices.SortFunc(boxes, func(a, b box) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
		var stack []box
		for _, b := range boxes {
			for len(stack) > 0 && stack[len(stack)-1].end <= b.begin {
				stack = stack[:len(stack)-1]
			}
			if n := len(stack); n > 0 && b.end > stack[n-1].end {
				c.fail("thread %v: %q, %d to %d ns, begins in %q and ends after it, at %d", on, b.name, b.begin, b.end, stack[n-1].name, stack[n-1].end)
				continue
			}
			stack = append(stack, b)
		}
	}
	for on, names := range c.open {
		if len(names) > 0 {
			c.fail("thread %v: %q does not end", on, names)
		}
	}
	for key, n := range c.async {
		if n > 0 {
			c.fail("%s does not end", key)
		}
	}
	for key, f := range c.flows {
		if len(f.starts) != 1 || len(f.ends) != 1 {
			c.fail("flow %s has %d begins and %d ends", key, len(f.starts), len(f.ends))
			continue
		}
		if *f.ends[0].Time < *f.starts[0].Time {
			c.fail("flow %s ends before it begins", key)
		}
		for _, end := range []event{f.starts[0], f.ends[0]} {
			if !c.inside(track{*end.PID, *end.TID}, nanoseconds(*end.Time)) {
				c.fail("flow %s: its %s at %v µs is in no slice of its thread", key, *end.Phase, *end.Time)
			}
		}
	}
}

// inside reports whether a slice of a track, which whole has sorted, exists at a time. The end
// does not belong to a slice, unless it is empty.
func (c *checker) inside(on track, at int64) bool {
	boxes, ends := c.boxes[on], c.ends[on]
	if ends == nil {
		last := int64(math.MinInt64)
		for _, b := range boxes {
			last = max(last, b.end)
			ends = append(ends, last)
		}
		c.ends[on] = ends
	}
	// The slices before n begin early enough.
	n, _ := slices.BinarySearchFunc(boxes, at+1, func(b box, at int64) int { return cmp.Compare(b.begin, at) })
	return n > 0 && (ends[n-1] > at || boxes[n-1].begin == at)
}

func nanoseconds(microseconds float64) int64 { return int64(math.Round(microseconds * 1000)) }
