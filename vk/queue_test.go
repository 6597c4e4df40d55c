//go:build cgo

package vk

import (
	"errors"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFillThenBarrierThenCopyIsClean(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	src, _ := newBlock(t, d, 1024)
	dst, data := newBlock(t, d, 1024)
	var s Stream
	s.Fill(src.Buffer, 0, src.Size, 0xfeedbeef)
	s.Barrier(between)
	s.Copy(src.Buffer, dst.Buffer, 4, 0, src.Size-4)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	for k, v := range data[:1023] {
		if v != 0xfeedbeef {
			t.Fatalf("word %d is %#x", k, v)
		}
	}
	if data[1023] != 0 {
		t.Errorf("the copy went past its end: %#x", data[1023])
	}
}

// fillThenCopy runs both commands without a barrier between them, under validation.
func fillThenCopy(t *testing.T, o InstanceOptions) (messages uint64) {
	o.Validation = true
	i, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	t.Run("submit", func(t *testing.T) {
		src, _ := newBlock(t, d, 64)
		dst, _ := newBlock(t, d, 64)
		var s Stream
		s.Fill(src.Buffer, 0, src.Size, 1)
		s.Copy(src.Buffer, dst.Buffer, 0, 0, src.Size)
		s.Barrier(toHost)
		run(t, d, &s, 1)
	})
	return i.Messages()
}

// Without this test, a clean run of the one above could mean that validation is off.
func TestFillThenCopyWithoutBarrierIsReported(t *testing.T) {
	log := &recorder{}
	if fillThenCopy(t, InstanceOptions{Logger: slog.New(log)}) == 0 {
		t.Error("Messages is 0")
	}
	rec, ok := log.find("SYNC-HAZARD-READ-AFTER-WRITE")
	if !ok {
		t.Fatal("the hazard is not in the log")
	}
	finding := false
	rec.Attrs(func(a slog.Attr) bool {
		finding = finding || a.Key == "validation"
		return true
	})
	if !finding {
		t.Errorf("the message lacks the attribute %q", "validation")
	}
	if rec.Level != slog.LevelError {
		t.Errorf("logged at level %v", rec.Level)
	}
}

func TestSynchronizationChecksCanBeLeftOut(t *testing.T) {
	if n := fillThenCopy(t, InstanceOptions{NoSynchronizationChecks: true}); n != 0 {
		t.Errorf("%d messages", n)
	}
}

func TestThousandDispatchesInOneBatchRunInOrder(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		x, xs := newBlock(t, d, 100)
		y, ys := newBlock(t, d, 100)
		for k := range xs {
			xs[k], ys[k] = uint32(k), 1
		}
		// The kernel adds x to y and y to x in turns, as a naive model does. The buffers
		// change with every dispatch, so descriptor pools need a set for each.
		wantX, wantY := append([]uint32(nil), xs...), append([]uint32(nil), ys...)
		var s Stream
		for value := uint64(1); value <= 3; value++ {
			s.Reset()
			for n := range 1000 {
				src, dst, from, to := x, y, wantX, wantY
				if n%2 == 1 {
					src, dst, from, to = y, x, wantY, wantX
				}
				a := uint32(n%3 + 1)
				s.Dispatch(add, []BufferRange{all(src), all(dst)}, push(90, a), [3]uint32{}, [3]uint32{2, 1, 1})
				s.Barrier(between)
				for k := range 90 {
					to[k] += a * from[k]
				}
			}
			s.Barrier(toHost)
			run(t, d, &s, value)
		}
		for k := range xs {
			if xs[k] != wantX[k] || ys[k] != wantY[k] {
				t.Fatalf("element %d: %d, %d; want %d, %d", k, xs[k], ys[k], wantX[k], wantY[k])
			}
		}
	})
}

func TestRepeatedBindingsAndPushConstantsStayInEffect(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		x, xs := newBlock(t, d, 64)
		y, ys := newBlock(t, d, 64)
		for k := range xs {
			xs[k] = 1
		}
		xy := []BufferRange{all(x), all(y)}
		one := [3]uint32{1, 1, 1}
		var s Stream
		step := func(p Pipeline, b []BufferRange, c []byte) {
			s.Dispatch(p, b, c, [3]uint32{}, one)
			s.Barrier(between)
		}
		step(add, xy, push(64, 1))
		step(add, xy, push(64, 1))                           // nothing changes
		step(add, xy, push(64, 5))                           // only the constants
		step(add, xy, push(1, 5))                            // one of them
		step(group, []BufferRange{all(x)}, push(1, 1))       // another layout: x[0]++
		step(add, xy, push(1, 5))                            // back: all is bound again
		step(add, []BufferRange{all(y), all(x)}, push(1, 5)) // only the buffers change: x[0] += 5*y[0]
		step(add, xy, push(64, 0)[:4])                       // a stays 5: y += 5*x
		step(add, xy, push(64, 0))                           // a is 0 again, as before the push of 4 bytes
		s.Barrier(toHost)
		run(t, d, &s, 1)
		if xs[0] != 2+5*22 || xs[1] != 1 {
			t.Errorf("x is %d, %d; want 112, 1", xs[0], xs[1])
		}
		if ys[0] != 22+5*112 || ys[1] != 7+5 {
			t.Errorf("y is %d, %d; want 582, 12", ys[0], ys[1])
		}
	})
}

// Sets bound for one layout are not valid for another. On drivers that ignore the difference only
// validation detects it.
func TestSameBuffersAreBoundAgainForAnotherLayout(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		b, data := newBlock(t, d, 64)
		spec := newPipeline(t, d, "spec", PipelineOptions{
			Bindings: []uint32{0}, Specialization: []SpecEntry{{0, 1, 4}}})
		small := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		large := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 16})
		var s Stream
		for _, p := range []Pipeline{spec, small, large, small, spec, large} {
			constants := push(1, 1)
			if p == spec {
				constants = nil
			}
			s.Dispatch(p, []BufferRange{all(b)}, constants, [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(between)
		}
		s.Barrier(toHost)
		run(t, d, &s, 1)
		if data[0] != 2 || data[1] != 7 {
			t.Errorf("words %d, %d; want 2, 7", data[0], data[1])
		}
	})
}

func TestDispatchBaseOffsetsWorkgroupIdentifiers(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	const width, height, depth = 5, 4, 3
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	b, data := newBlock(t, d, width*height*depth)
	for _, c := range []struct{ base, count [3]uint32 }{
		{[3]uint32{}, [3]uint32{width, height, depth}},
		{[3]uint32{1, 2, 1}, [3]uint32{4, 2, 2}},
		{[3]uint32{3, 0, 0}, [3]uint32{2, 1, 1}},
		{[3]uint32{0, 0, 2}, [3]uint32{5, 4, 1}},
		{[3]uint32{2, 2, 2}, [3]uint32{0, 1, 1}},
	} {
		clear(data)
		var s Stream
		s.Dispatch(group, []BufferRange{all(b)}, push(width, height), c.base, c.count)
		s.Barrier(toHost)
		completed, err := d.Queues()[0].Completed()
		if err != nil {
			t.Fatal(err)
		}
		run(t, d, &s, completed+1)
		for k, got := range data {
			id := [3]uint32{uint32(k) % width, uint32(k) / width % height, uint32(k) / (width * height)}
			want := 1 + id[0] + 100*id[1] + 10000*id[2]
			for dim := range 3 {
				if id[dim] < c.base[dim] || id[dim] >= c.base[dim]+c.count[dim] {
					want = 0
				}
			}
			if got != want {
				t.Fatalf("base %v, count %v: workgroup %v wrote %d, want %d", c.base, c.count, id, got, want)
			}
		}
	}
}

func TestBindingNumbersMayHaveGaps(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		gaps := newPipeline(t, d, "gaps", PipelineOptions{Bindings: []uint32{1, 4, 31}})
		block, data := newBlock(t, d, 3*256)
		var ranges []BufferRange
		for k := range uint64(3) {
			ranges = append(ranges, BufferRange{block.Buffer, k * 1024, 4})
		}
		var s Stream
		s.Dispatch(gaps, ranges, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		s.Barrier(toHost)
		run(t, d, &s, 1)
		if data[0] != 11 || data[256] != 44 || data[512] != 3131 {
			t.Errorf("bindings 1, 4, 31 wrote %d, %d, %d", data[0], data[256], data[512])
		}
	})
}

func TestKernelWithoutBindingsWritesThroughAddress(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		b, data := newBlock(t, d, 8)
		if !d.Properties().Features.BufferDeviceAddress {
			if b.Address != 0 {
				t.Error("an address from a device that has none")
			}
			return
		}
		none := newPipeline(t, d, "none", PipelineOptions{PushConstants: 16})
		var s Stream
		s.Dispatch(none, nil, append(push(uint32(b.Address), uint32(b.Address>>32)), push(40, 0)...),
			[3]uint32{}, [3]uint32{3, 1, 1})
		s.Barrier(toHost)
		run(t, d, &s, 1)
		for k, want := range []uint32{40, 41, 42, 0} {
			if data[k] != want {
				t.Errorf("word %d is %d, want %d", k, data[k], want)
			}
		}
	})
}

// Addresses come as push constants, as one 64-bit value and as two words, from a buffer
// that is bound, and from a buffer that is only reachable by its address.
func TestKernelFollowsAddressesKeptInBuffers(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		if !d.Properties().Features.BufferDeviceAddress {
			t.Fatalf("device %q has no addresses", d.Properties().Name)
		}
		const n = 6
		address := func(b Block) []uint32 { return []uint32{uint32(b.Address), uint32(b.Address >> 32)} }
		table, tableWords := newBlock(t, d, 2*n)
		plus, plusWords := newBlock(t, d, n)
		bound, boundWords := newBlock(t, d, 2+2*2)
		boundWords[0], boundWords[1] = 100, 2
		var into [2][]uint32
		for k := range into {
			b, words := newBlock(t, d, n)
			copy(boundWords[2+2*k:], address(b))
			into[k] = words
		}
		for k := range n {
			b, words := newBlock(t, d, 1)
			words[0], plusWords[k] = uint32(k)+1, 10*uint32(k)
			copy(tableWords[2*k:], address(b))
		}
		chase := newPipeline(t, d, "chase", PipelineOptions{Bindings: []uint32{0}, PushConstants: 20})
		constants := append(push(address(table)[0], address(table)[1]), push(address(plus)[0], address(plus)[1])...)
		var s Stream
		s.Dispatch(chase, []BufferRange{all(bound)}, append(constants, push(1000, 0)[:4]...), [3]uint32{}, [3]uint32{n, 1, 1})
		s.Barrier(toHost)
		run(t, d, &s, 1)
		for k := range uint32(n) {
			want := (k+1)*100 + 10*k + 1000
			if got := into[k%2][k]; got != want || into[1-k%2][k] != 0 {
				t.Errorf("word %d is %d, want %d; beside it %d", k, got, want, into[1-k%2][k])
			}
		}
	})
}

func TestWaitEndsAtItsTimeout(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		if done, err := q.Wait(1, timeout); done || err != nil {
			t.Errorf("timeout %v: done %v, error %v", timeout, done, err)
		}
	}
	if err := q.Submit(nil, nil, nil, 7); err != nil {
		t.Fatal(err)
	}
	if done, err := q.Wait(7, -1); !done || err != nil {
		t.Errorf("for ever: done %v, error %v", done, err)
	}
	if value, err := q.Completed(); value != 7 || err != nil {
		t.Errorf("completed %d, error %v", value, err)
	}
	if done, err := q.Wait(3, 0); !done || err != nil {
		t.Errorf("a value long passed: done %v, error %v", done, err)
	}
}

// openWithoutValidation opens a device for a test that does what validation does not allow.
func openWithoutValidation(t *testing.T, o DeviceOptions) *Device {
	t.Helper()
	i, err := Open(InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	d, err := usable(t, i).Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// A lost device's waits may succeed, and its timelines have any value: the largest there is with some drivers, which is
// signalled here.
func TestNothingIsReachedOnALostDevice(t *testing.T) {
	for name, lose := range map[string]func(d *Device) (value uint64){
		"largest value":        func(*Device) uint64 { return math.MaxUint64 },
		"reported by any call": func(d *Device) uint64 { d.noteLoss(ErrorDeviceLost); return 1 },
	} {
		t.Run(name, func(t *testing.T) {
			d := openWithoutValidation(t, DeviceOptions{})
			q, reached := d.Queues()[0], newTimeline(t, d, 1)
			if err := q.Submit(nil, nil, nil, lose(d)); err != nil {
				t.Fatal(err)
			}
			for _, timeout := range []time.Duration{-1, time.Hour} {
				if done, err := q.Wait(1, timeout); done || !errors.Is(err, ErrDeviceLost) {
					t.Errorf("a wait: %v, %v", done, err)
				}
			}
			if now, err := q.Completed(); !errors.Is(err, ErrDeviceLost) {
				t.Errorf("the timeline is at %d, %v", now, err)
			}
			if done, err := d.WaitSemaphore(reached, 1, -1); done || !errors.Is(err, ErrDeviceLost) {
				t.Errorf("a wait for another timeline: %v, %v", done, err)
			}
		})
	}
}

func TestWaiterInAnotherGoroutineWakes(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	woken := make(chan error, 1)
	go func() {
		done, err := q.Wait(2, -1)
		if err == nil && !done {
			err = errors.New("not done")
		}
		woken <- err
	}()
	for value := uint64(1); value <= 2; value++ {
		if err := q.Submit(new(Stream), []SemaphoreValue{{q.Timeline(), value - 1}}, nil, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-woken; err != nil {
		t.Error(err)
	}
}

func TestManyWaitsInOneSubmission(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	if err := q.Submit(nil, nil, nil, 5); err != nil {
		t.Fatal(err)
	}
	for k, n := range []int{1, 70, 3} {
		waits := make([]SemaphoreValue, n)
		for w := range waits {
			waits[w] = SemaphoreValue{q.Timeline(), uint64(w%5 + 1)}
		}
		if err := q.Submit(nil, waits, nil, uint64(6+k)); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, q, 8)
}

func TestRefusedSubmissionLeavesTheQueueUsable(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		q := d.Queues()[0]
		group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		b, data := newBlock(t, d, 256)
		limits := d.Properties().Limits
		one := [3]uint32{1, 1, 1}
		ok := []BufferRange{all(b)}
		align := limits.MinStorageBufferOffsetAlignment
		beyond := limits.MaxComputeWorkGroupCount
		dispatch := func(p Pipeline, b []BufferRange, c []byte, base, count [3]uint32) func(*Stream) {
			return func(s *Stream) { s.Dispatch(p, b, c, base, count) }
		}
		for name, build := range map[string]func(*Stream){
			"dispatch without pipeline":  dispatch(Pipeline{}, nil, nil, [3]uint32{}, one),
			"too few buffers":            dispatch(group, nil, push(1, 1), [3]uint32{}, one),
			"too many buffers":           dispatch(group, append(ok, ok...), push(1, 1), [3]uint32{}, one),
			"no buffer":                  dispatch(group, []BufferRange{{0, 0, 4}}, push(1, 1), [3]uint32{}, one),
			"empty range":                dispatch(group, []BufferRange{{b.Buffer, 0, 0}}, push(1, 1), [3]uint32{}, one),
			"misaligned range":           dispatch(group, []BufferRange{{b.Buffer, align / 2, 4}}, push(1, 1), [3]uint32{}, one),
			"range too large":            dispatch(group, []BufferRange{{b.Buffer, 0, 1 << 40}}, push(1, 1), [3]uint32{}, one),
			"too many push constants":    dispatch(group, ok, make([]byte, 12), [3]uint32{}, one),
			"push constants of 3 bytes":  dispatch(group, ok, make([]byte, 3), [3]uint32{}, one),
			"too many workgroups":        dispatch(group, ok, push(1, 1), [3]uint32{1, 0, 0}, [3]uint32{beyond[0], 1, 1}),
			"base at the limit":          dispatch(group, ok, push(1, 1), [3]uint32{0, beyond[1], 0}, [3]uint32{1, 0, 1}),
			"workgroups wrap around":     dispatch(group, ok, push(1, 1), [3]uint32{0, 0, 1<<32 - 1}, one),
			"copy from nothing":          func(s *Stream) { s.Copy(0, b.Buffer, 0, 0, 4) },
			"copy of nothing":            func(s *Stream) { s.Copy(b.Buffer, b.Buffer, 0, 64, 0) },
			"overlapping copy":           func(s *Stream) { s.Copy(b.Buffer, b.Buffer, 0, 4, 8) },
			"copy that wraps around":     func(s *Stream) { s.Copy(b.Buffer, b.Buffer, 1<<64-4, 0, 8) },
			"copy of no regions":         func(s *Stream) { s.CopyRegions(b.Buffer, b.Buffer, nil) },
			"an empty region":            func(s *Stream) { s.CopyRegions(b.Buffer, b.Buffer, []CopyRegion{{0, 64, 4}, {4, 68, 0}}) },
			"a region that wraps around": func(s *Stream) { s.CopyRegions(1, b.Buffer, []CopyRegion{{0, 64, 4}, {4, 1<<64 - 4, 8}}) },
			"regions of no buffer":       func(s *Stream) { s.CopyRegions(b.Buffer, 0, []CopyRegion{{0, 64, 4}}) },
			"overlapping regions":        func(s *Stream) { s.CopyRegions(b.Buffer, b.Buffer, []CopyRegion{{0, 8, 4}, {8, 16, 4}}) },
			"a region of two words":      func(s *Stream) { s.words = append(s.words, header(OpCopy, 0, copyWords+2), 1, 2, 0, 0) },
			"a copy with bindings":       func(s *Stream) { s.words = append(s.words, header(OpCopy, 1, copyWords+3), 1, 2, 0, 0, 4) },
			"timestamp of no pool":       func(s *Stream) { s.Timestamp(QueryPool{Count: 1}, 0, StageCompute) },
			"timestamp past its pool":    func(s *Stream) { s.Timestamp(QueryPool{1, 2}, 2, StageCompute) },
			"timestamp of no stage":      func(s *Stream) { s.Timestamp(QueryPool{1, 2}, 1, 0) },
			"timestamp of two stages":    func(s *Stream) { s.Timestamp(QueryPool{1, 2}, 1, StageCompute|StageTransfer) },
			"timestamp of the host":      func(s *Stream) { s.Timestamp(QueryPool{1, 2}, 1, StageHost) },
			"timestamp of a wide stage":  func(s *Stream) { s.words = append(s.words, header(OpTimestamp, 0, stampWords), 1, 1<<32, 1<<32|1) },
			"timestamp of three words":   func(s *Stream) { s.words = append(s.words, header(OpTimestamp, 0, 3), 1, 1<<32) },
			"timestamp with bindings":    func(s *Stream) { s.words = append(s.words, header(OpTimestamp, 1, stampWords), 1, 1<<32, 1) },
			"fill of nothing":            func(s *Stream) { s.Fill(b.Buffer, 0, 0, 1) },
			"fill at an odd offset":      func(s *Stream) { s.Fill(b.Buffer, 2, 4, 1) },
			"fill of an odd size":        func(s *Stream) { s.Fill(b.Buffer, 0, 6, 1) },
			"barrier without stages":     func(s *Stream) { s.Barrier(Barrier{}) },
			"a zero word":                func(s *Stream) { s.words = append(s.words, 0) },
			"unknown operation":          func(s *Stream) { s.words = append(s.words, header(9, 0, 1)) },
			"operation cut off":          func(s *Stream) { s.words = append(s.words, header(OpFill, 0, fillWords), 1) },
			"operation longer than all":  func(s *Stream) { s.words = append(s.words, header(OpFill, 0, 1<<31)) },
			"bindings longer than all":   func(s *Stream) { s.words = append(s.words, header(OpDispatch, 1<<24-1, 9), 1, 1, 1, 0, 0, 0, 0, 0) },
			"barrier of the wrong size":  func(s *Stream) { s.words = append(s.words, header(OpBarrier, 0, 2), 0) },
			"push constants without end": func(s *Stream) { s.words = append(s.words, header(OpDispatch, 0, 9), 1, 1, 1, 0, 0, 0, 0, 1<<32-1) },
		} {
			var s Stream
			s.Fill(b.Buffer, 0, 4, 99)
			build(&s)
			if err := q.Submit(&s, nil, nil, 1); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		var s Stream
		for name, c := range map[string]struct {
			waits  []SemaphoreValue
			signal uint64
		}{
			"signal not above the last": {nil, 0},
			"wait for no semaphore":     {[]SemaphoreValue{{}}, 1},
			"wait for itself":           {[]SemaphoreValue{{q.Timeline(), 1}}, 1},
		} {
			if err := q.Submit(&s, c.waits, nil, c.signal); !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		s.Dispatch(group, ok, push(1, 1), [3]uint32{}, one)
		s.Barrier(toHost)
		run(t, d, &s, 1)
		if data[0] != 1 {
			t.Errorf("the submission after the refused ones wrote %d", data[0])
		}
	})
}

func TestTransferOnlyQueueRefusesWhatComputes(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	transfers := &Queue{device: d, family: 5}
	main := d.Queues()[0]
	if !main.Compute() || transfers.Compute() {
		t.Errorf("computing: main queue %v, transfer queue %v", main.Compute(), transfers.Compute())
	}
	for name, c := range map[string]struct {
		want  string // end of the error; "" if there is none
		build func(*Stream)
	}{
		"fill": {"", func(s *Stream) { s.Fill(1, 0, 64, 1) }},
		"copy": {"", func(s *Stream) { s.Copy(1, 2, 0, 0, 64) }},
		"barrier between transfers": {"", func(s *Stream) {
			s.Barrier(Barrier{StageTransfer, StageTransfer, AccessTransferWrite, AccessTransferRead})
		}},
		"barrier to the host": {"", func(s *Stream) { s.Barrier(toHost) }},
		"dispatch": {"word 0: dispatch: queue family 5 only transfers", func(s *Stream) {
			s.Dispatch(Pipeline{Handle: 1, Layout: 2}, nil, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		}},
		"barrier after compute": {"word 6: barrier: queue family 5 only transfers and has no compute stage", func(s *Stream) {
			s.Copy(1, 2, 0, 0, 64)
			s.Barrier(Barrier{StageCompute | StageTransfer, StageTransfer, AccessTransferWrite, AccessTransferRead})
		}},
		"barrier before compute": {"word 0: barrier: queue family 5 only transfers and has no compute stage", func(s *Stream) {
			s.Barrier(Barrier{StageTransfer, StageCompute, AccessTransferWrite, AccessShaderRead})
			s.Fill(1, 0, 64, 1)
		}},
	} {
		var s Stream
		c.build(&s)
		if _, _, err := main.scan(&s); err != nil {
			t.Errorf("%s, on a queue that computes: %v", name, err)
		}
		_, _, err := transfers.scan(&s)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrInvalid) || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stream that ends inside an operation is refused, even if the missing words follow in
// memory.
func TestStreamCutAnywhereInsideAnOperationIsRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	range1 := BufferRange{1, 0, 64}
	var s Stream
	whole := map[int]bool{0: true}
	for _, appendOp := range []func(){
		func() { s.Fill(1, 0, 64, 1) },
		func() { s.Barrier(between) },
		func() {
			s.Dispatch(Pipeline{1, 2, 3, 2, 3, 16, 0, false}, []BufferRange{range1, range1}, make([]byte, 12), [3]uint32{}, [3]uint32{1, 1, 1})
		},
		func() { s.Copy(1, 2, 0, 0, 64) },
		func() { s.CopyRegions(1, 2, []CopyRegion{{0, 0, 64}, {64, 128, 7}, {71, 256, 1}}) },
	} {
		appendOp()
		whole[len(s.words)] = true
	}
	for end := range len(s.words) + 1 {
		_, _, err := d.Queues()[0].scan(&Stream{words: s.words[:end]})
		if whole[end] && err != nil || !whole[end] && !errors.Is(err, ErrInvalid) {
			t.Errorf("the first %d words: %v", end, err)
		}
	}
}

func TestPoolGrowsWithSetsAndWithDescriptors(t *testing.T) {
	d := openDevice(t, DeviceOptions{NoPushDescriptors: true})
	add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	x, _ := newBlock(t, d, 64)
	y, _ := newBlock(t, d, 64)
	ranges := []BufferRange{all(x), all(y)}
	var value uint64
	// Dispatches with one binding, then with two: exhausting sets, descriptors, or both.
	for _, c := range [][2]int{{64, 0}, {0, 64}, {65, 0}, {0, 300}, {2000, 300}, {1, 1}, {2000, 300}} {
		var s Stream
		for k := range c[0] {
			s.Dispatch(group, ranges[k%2:k%2+1], push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(between)
		}
		for k := range c[1] {
			pair := []BufferRange{ranges[k%2], ranges[1-k%2]}
			s.Dispatch(add, pair, push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(between)
		}
		value++
		run(t, d, &s, value)
	}
}

func TestCommandBuffersAreRecycled(t *testing.T) {
	long(t)
	withBothBindings(t, func(t *testing.T, d *Device) {
		q := d.Queues()[0]
		group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		b, _ := newBlock(t, d, 64)
		var s Stream
		for value := uint64(1); value <= 200; value++ {
			s.Reset()
			// Growing batches make descriptor pools be replaced by larger ones.
			for range value {
				s.Dispatch(group, []BufferRange{all(b)}, push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
				s.Barrier(between)
			}
			run(t, d, &s, value)
		}
		if n := q.commandBuffers(); n != 1 {
			t.Errorf("%d command buffers for submissions that never overlapped", n)
		}
		// Unused pools can be freed, and are created again.
		if err := d.Trim(); err != nil {
			t.Fatal(err)
		}
		if n := q.commandBuffers(); n != 0 {
			t.Errorf("%d command buffers are left", n)
		}
		run(t, d, &s, 201)
		if n := q.commandBuffers(); n != 1 {
			t.Errorf("%d command buffers for one submission", n)
		}
	})
}

func TestSubmissionsFromManyGoroutines(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	b, data := newBlock(t, d, 64)
	group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
	var mu sync.Mutex // values must be submitted in order
	var last uint64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var s Stream
			for range 25 {
				s.Reset()
				s.Barrier(between)
				s.Dispatch(group, []BufferRange{{b.Buffer, 0, b.Size}}, push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
				s.Barrier(toHost)
				mu.Lock()
				last++
				value := last
				err := q.Submit(&s, nil, nil, value)
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				if done, err := q.Wait(value, time.Minute); !done || err != nil {
					t.Errorf("wait: done %v, error %v", done, err)
				}
			}
		})
	}
	all.Wait()
	if data[0] != 200 {
		t.Errorf("200 increments gave %d", data[0])
	}
}

func TestSubmissionSurvivesGarbageCollection(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		stop := make(chan struct{})
		var collector sync.WaitGroup
		collector.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
				}
			}
		})
		defer collector.Wait()
		defer close(stop)
		group := newPipeline(t, d, "group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8})
		b, data := newBlock(t, d, 64)
		for value := uint64(1); value <= 150; value++ {
			s := new(Stream)
			s.Barrier(between)
			s.Dispatch(group, []BufferRange{all(b)}, push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(toHost)
			if err := d.Queues()[0].Submit(s, []SemaphoreValue{{d.Queues()[0].Timeline(), value - 1}}, nil, value); err != nil {
				t.Fatal(err)
			}
			_ = strings.Repeat("x", 4096) // overwrites freed memory of the stream
		}
		wait(t, d.Queues()[0], 150)
		if data[0] != 150 {
			t.Errorf("150 increments gave %d", data[0])
		}
	})
}

// The caller's lists of semaphores stay where they are, on its stack for instance.
func TestSubmissionsWithSemaphoresDoNotAllocate(t *testing.T) {
	d := openWithoutValidation(t, DeviceOptions{})
	q, reached, raised := d.Queues()[0], newTimeline(t, d, 5), newTimeline(t, d, 0)
	var value uint64
	allocations := testing.AllocsPerRun(100, func() {
		value++
		waits, signals := [...]SemaphoreValue{{reached, 5}}, [...]SemaphoreValue{{raised, 2 * value}}
		order := [...]SemaphoreValue{{raised, 2*value + 1}}
		if q.Submit(nil, waits[:], signals[:], value) != nil || q.Order(waits[:], order[:]) != nil {
			t.Error("failed")
		}
		if done, err := q.Wait(value, time.Minute); !done || err != nil {
			t.Error("not complete:", err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	if err := d.WaitIdle(); err != nil {
		t.Error(err)
	}
	checkSemaphore(t, d, raised, 2*value+1)
}
