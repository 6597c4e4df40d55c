package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// WriteChrome writes the trace in the Trace Event Format, as JSON, which Perfetto
// (ui.perfetto.dev) and chrome://tracing open.
//
// There is a process for the host and one for each device. A device has a track for each
// of its queues, and further ones for operations that overlap on a queue. A device
// without records has tracks of its target regions instead, as the host observed them.
// The host has tracks of task bodies and of waits. Arrows go from a task to its dependents,
// and device memory in use is a counter.
func (t *Trace) WriteChrome(w io.Writer) error {
	c := chromeWriter{w: bufio.NewWriter(w), first: true}
	c.text(`{"displayTimeUnit":"ms","otherData":`)
	c.value(map[string]any{"started": t.start.Format(time.RFC3339Nano), "dropped": t.dropped, "problems": t.problems})
	c.text(`,"traceEvents":[`)
	for p := host; p < len(t.devices); p++ {
		c.event(chromeEvent{Name: "process_name", Phase: "M", PID: chromePID(p), Args: map[string]any{"name": t.deviceName(p)}})
		c.event(chromeEvent{Name: "process_sort_index", Phase: "M", PID: chromePID(p), Args: map[string]any{"sort_index": p + 1}})
	}
	for i, of := range t.tracks {
		c.event(chromeEvent{Name: "thread_name", Phase: "M", PID: chromePID(of.process), TID: i + 1, Args: map[string]any{"name": of.name}})
		c.event(chromeEvent{Name: "thread_sort_index", Phase: "M", PID: chromePID(of.process), TID: i + 1, Args: map[string]any{"sort_index": i}})
	}
	critical := map[int32]bool{}
	for _, task := range t.critical {
		critical[task] = true
	}
	for i := range t.slices {
		s := &t.slices[i]
		args := map[string]any{}
		if s.task != none && t.tasks[s.task].id != 0 {
			args["task"] = t.tasks[s.task].id
		}
		if s.bytes != 0 {
			args["bytes"] = s.bytes
		}
		if s.task != none && critical[s.task] && s.kind != kindWait {
			args["critical path"] = true
		}
		e := t.at(s, s.begin)
		e.Name, e.Category, e.Phase, e.Duration, e.Args = s.label, s.kind.String(), "X", new(chromeTime(s.length())), args
		c.event(e)
	}
	t.chromeRegions(&c)
	t.chromeFlows(&c)
	for p, levels := range t.memory {
		for _, l := range levels {
			c.event(chromeEvent{Name: "device memory in use", Phase: "C", Time: chromeTime(l.At), PID: chromePID(p), Args: map[string]any{"bytes": l.Value}})
		}
	}
	for i := range t.loads {
		if l := &t.loads[i]; t.process(l.device) != host {
			c.event(chromeEvent{Name: "load " + l.label, Category: "device load", Phase: "i", Scope: "p", Time: chromeTime(l.at),
				PID: chromePID(t.process(l.device)), Args: map[string]any{"bytes": l.bytes}})
		}
	}
	c.text("\n]}\n")
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}

// chromeRegions writes the target regions of devices whose queues have tracks, since these
// regions have no box.
func (t *Trace) chromeRegions(c *chromeWriter) {
	queues := map[int]bool{}
	for _, of := range t.tracks {
		queues[of.process] = queues[of.process] || of.queue != none
	}
	for i := range t.regions {
		r := &t.regions[i]
		p := t.process(r.device)
		if p == host || !queues[p] {
			continue
		}
		e := chromeEvent{Name: t.regionLabel(r), Category: "target region", ID: fmt.Sprintf("region %d", i+1), PID: chromePID(p)}
		e.Phase, e.Time = "b", chromeTime(r.begin)
		c.event(e)
		e.Phase, e.Time = "e", chromeTime(max(r.begin, r.end))
		c.event(e)
	}
}

// chromeFlows draws an arrow for each dependence between tasks that have boxes. It goes
// from the end of the first box, or, if the second box begins earlier by the host's events
// or by the clocks, from within the first.
func (t *Trace) chromeFlows(c *chromeWriter) {
	for i, e := range t.edges {
		from, to := t.anchors[e.from].last, t.anchors[e.to].first
		if from == none || to == none {
			continue
		}
		a, b := &t.slices[from], &t.slices[to]
		// An interval does not include its end.
		leaves := min(max(a.end-1, a.begin), max(b.begin, a.begin))
		arrives := max(b.begin, leaves)
		if arrives > max(b.end-1, b.begin) {
			continue
		}
		start := t.at(a, leaves)
		start.Name, start.Category, start.Phase, start.ID = "depend", "dependence", "s", fmt.Sprint(i+1)
		end := t.at(b, arrives)
		end.Name, end.Category, end.Phase, end.ID, end.Binding = "depend", "dependence", "f", fmt.Sprint(i+1), "e"
		c.event(start)
		c.event(end)
	}
}

// at returns an event on a slice's track.
func (t *Trace) at(s *slice, when time.Duration) chromeEvent {
	return chromeEvent{Time: chromeTime(when), PID: chromePID(t.tracks[s.track].process), TID: int(s.track) + 1}
}

// chromePID returns the number of a process, from 1.
func chromePID(process int) int { return process + 2 }

// chromeEvent is an event of the format.
type chromeEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Time     chromeTime     `json:"ts"`
	Duration *chromeTime    `json:"dur,omitempty"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid,omitempty"`
	ID       string         `json:"id,omitempty"`
	Binding  string         `json:"bp,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// chromeTime is written in microseconds, with three decimals.
type chromeTime time.Duration

// MarshalJSON writes every digit, which float64 would not.
func (v chromeTime) MarshalJSON() ([]byte, error) {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	return fmt.Appendf(nil, "%s%d.%03d", sign, v/1000, v%1000), nil
}

// chromeWriter writes JSON and keeps the first error.
type chromeWriter struct {
	w     *bufio.Writer
	first bool
	err   error
}

func (c *chromeWriter) text(s string) {
	if c.err == nil {
		_, c.err = c.w.WriteString(s)
	}
}

func (c *chromeWriter) value(v any) {
	if c.err != nil {
		return
	}
	encoded, err := json.Marshal(v)
	if err == nil {
		_, err = c.w.Write(encoded)
	}
	c.err = err
}

func (c *chromeWriter) event(e chromeEvent) {
	if !c.first {
		c.text(",")
	}
	c.first = false
	c.text("\n")
	c.value(e)
}
