//go:build cgo

package vk

import (
	"errors"
	"strings"
	"testing"
)

func TestRecordingIsExecutedAmongOtherOperations(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		q := d.Queues()[0]
		add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		x, xs := newBlock(t, d, 100)
		y, ys := newBlock(t, d, 100)
		for k := range xs {
			xs[k], ys[k] = uint32(k), 1
		}
		wantX, wantY := append([]uint32(nil), xs...), append([]uint32(nil), ys...)
		// recordings[k] adds k times to y, and then once to x.
		var recordings [3]Recording
		step := func(s *Stream, from, to Block) {
			s.Dispatch(add, []BufferRange{all(from), all(to)}, push(100, 1), [3]uint32{}, [3]uint32{2, 1, 1})
			s.Barrier(between)
		}
		means := func(from, to []uint32) {
			for i := range to {
				to[i] += from[i]
			}
		}
		for k := range recordings {
			var s Stream
			for range k {
				step(&s, x, y)
			}
			step(&s, y, x)
			var err error
			if recordings[k], err = q.Record(&s); err != nil {
				t.Fatal(err)
			}
		}
		execute := func(s *Stream, k int) {
			s.Execute(recordings[k])
			for range k {
				means(wantX, wantY)
			}
			means(wantY, wantX)
		}
		// Several in flight at once, at the beginning, in the middle and at the end of streams.
		for value := uint64(1); value <= 20; value++ {
			var s Stream
			for k := range int(value) % 5 {
				if (k+int(value))%2 == 0 {
					execute(&s, k%3)
				} else {
					step(&s, x, y)
					means(wantX, wantY)
				}
			}
			execute(&s, int(value)%3)
			if value == 20 {
				s.Barrier(toHost)
			}
			if err := q.Submit(&s, nil, nil, value); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := q.Wait(20, -1); !done || err != nil {
			t.Fatal(done, err)
		}
		for k := range xs {
			if xs[k] != wantX[k] || ys[k] != wantY[k] {
				t.Fatalf("element %d: %d, %d; want %d, %d", k, xs[k], ys[k], wantX[k], wantY[k])
			}
		}
		before := q.commandBuffers()
		// A program may have a task end, whose recording is then freed, while it holds the lock.
		q.Locker().Lock()
		q.Forget(recordings[1])
		q.Locker().Unlock()
		if n := q.commandBuffers(); n != before-1 {
			t.Errorf("%d command buffers, %d before a recording was freed", n, before)
		}
		// The others are freed with the device, and this one is known no more.
		var s Stream
		s.Fill(x.Buffer, 0, 4, 1)
		s.Execute(recordings[1])
		if err := q.Submit(&s, nil, nil, 21); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "none of this queue") {
			t.Errorf("a recording that was freed is executed: %v", err)
		}
		q.Forget(recordings[1])
		s.Reset()
		execute(&s, 0)
		s.Barrier(toHost)
		run(t, d, &s, 21)
		if xs[7] != wantX[7] {
			t.Errorf("element 7 is %d, want %d", xs[7], wantX[7])
		}
	})
}

func TestWhatCannotBeRecordedIsRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	b, _ := newBlock(t, d, 64)
	var fill Stream
	fill.Fill(b.Buffer, 0, 4, 1)
	r, err := q.Record(&fill)
	if err != nil {
		t.Fatal(err)
	}
	before := q.commandBuffers()
	for name, build := range map[string]func(*Stream){
		"a recording in a recording": func(s *Stream) { s.Execute(r) },
		"a fill of nothing":          func(s *Stream) { s.Fill(b.Buffer, 0, 0, 1) },
		"no recording":               func(s *Stream) { s.Execute(0) },
	} {
		var s Stream
		build(&s)
		if _, err := q.Record(&s); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var unknown Stream
	unknown.Execute(r + 1)
	if err := q.Submit(&unknown, nil, nil, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("a recording that nobody made: %v", err)
	}
	if n := q.commandBuffers(); n != before {
		t.Errorf("%d command buffers, %d before", n, before)
	}
	var s Stream
	s.Execute(r)
	run(t, d, &s, 1)
}
