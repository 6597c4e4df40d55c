package trace

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/ompt"
)

// tracedTool is the tool's side of a trace. It gives buffers of the sizes that next returns, or
// refuses where that is 0, and checks what comes back.
type tracedTool struct {
	t    reporter
	next func() int
	// requests and completions count the calls of the tool.
	requests, completions int
	buffer                []ompt.Record
	got                   int // the number of records completed in the buffer
	records               []ompt.Record
}

func (c *tracedTool) request(device int) []ompt.Record {
	if device != 7 || c.buffer != nil {
		c.t.Errorf("device %d asks for a buffer, and has one of %d", device, len(c.buffer))
	}
	c.requests++
	c.buffer, c.got = make([]ompt.Record, c.next()), 0
	if len(c.buffer) == 0 {
		c.buffer = nil
	}
	return c.buffer
}

func (c *tracedTool) complete(device int, records []ompt.Record, owned bool) {
	c.completions++
	switch {
	case device != 7 || c.buffer == nil:
		c.t.Errorf("device %d completes %d records of no buffer", device, len(records))
		return
	case len(records) == 0 && !owned:
		c.t.Errorf("a flush of nothing")
	case c.got+len(records) > len(c.buffer), len(records) > 0 && &records[0] != &c.buffer[c.got]:
		c.t.Errorf("%d records are not the next of the buffer, which has had %d of %d", len(records), c.got, len(c.buffer))
	case c.got+len(records) == len(c.buffer) && !owned:
		c.t.Errorf("a full buffer is kept")
	}
	c.records = append(c.records, records...)
	if c.got += len(records); owned {
		c.buffer = nil
	}
}

func TestBuffersAreFilledCompletedAndRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tool := &tracedTool{t: t}
		refused := false
		tool.next = func() int {
			if refused {
				t.Errorf("a buffer is asked for after one was refused")
			}
			n := rapid.IntRange(0, 4).Draw(t, "capacity")
			refused = n == 0
			return n
		}
		b := buffers{device: 7, request: tool.request, complete: tool.complete}
		var want []ompt.Record
		for n := range rapid.IntRange(0, 40).Draw(t, "calls") {
			if rapid.IntRange(0, 3).Draw(t, "flush") == 0 {
				b.flush()
				if len(tool.records) != len(want) {
					t.Fatalf("%d records after a flush, want %d", len(tool.records), len(want))
				}
				continue
			}
			r := ompt.Record{Time: uint64(n) + 1}
			b.add(&r)
			if !refused {
				want = append(want, r)
			}
		}
		b.stop()
		if tool.buffer != nil {
			t.Fatal("the last buffer is not given back")
		}
		if !slices.Equal(tool.records, want) {
			t.Fatalf("records %v, want %v", tool.records, want)
		}
		before := tool.completions
		b.stop()
		b.flush()
		if tool.completions != before {
			t.Fatal("what is stopped completes something")
		}
	})
}

func TestBufferWithoutLengthIsFilledUpToItsCapacity(t *testing.T) {
	var got [][]ompt.Record
	b := buffers{
		request:  func(int) []ompt.Record { return make([]ompt.Record, 0, 2) },
		complete: func(_ int, records []ompt.Record, owned bool) { got = append(got, records) },
	}
	for n := range uint64(3) {
		b.add(&ompt.Record{Time: n})
	}
	b.stop()
	if len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 1 || got[1][0].Time != 2 {
		t.Errorf("completed %v", got)
	}
}
