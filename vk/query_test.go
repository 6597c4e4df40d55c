//go:build cgo

package vk

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// newQueries creates a pool that is destroyed when the test ends.
func newQueries(t *testing.T, d *Device, count uint32) QueryPool {
	t.Helper()
	p, err := d.CreateQueryPool(count)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroyQueryPool(p) })
	return p
}

// stamped appends a command with a timestamp before and after it, and a barrier that
// orders the next command after it.
func stamped(s *Stream, p QueryPool, query uint32, stage Stage, command func()) {
	s.Timestamp(p, query, StageTopOfPipe)
	command()
	s.Timestamp(p, query+1, stage)
	s.Barrier(between)
}

func TestTimestampsOfAChainAreInItsOrder(t *testing.T) {
	withBothBindings(t, func(t *testing.T, d *Device) {
		add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		x, _ := newBlock(t, d, 1<<14)
		y, words := newBlock(t, d, 1<<14)
		p := newQueries(t, d, 8)
		for round := uint64(1); round <= 3; round++ {
			var s Stream
			stamped(&s, p, 0, StageTransfer, func() { s.Fill(x.Buffer, 0, x.Size, uint32(round)) })
			stamped(&s, p, 2, StageTransfer, func() { s.Copy(x.Buffer, y.Buffer, 0, 0, x.Size) })
			stamped(&s, p, 4, StageCompute, func() {
				s.Dispatch(add, []BufferRange{all(x), all(y)}, push(1<<14, 2), [3]uint32{}, [3]uint32{1 << 8, 1, 1})
			})
			stamped(&s, p, 6, StageAllCommands, func() { s.Copy(y.Buffer, x.Buffer, 0, 0, x.Size) })
			s.Barrier(toHost)
			if err := d.ResetQueryPool(p, 0, p.Count); err != nil {
				t.Fatal(err)
			}
			before := make([]uint64, 8)
			var e *Error
			if err := d.Timestamps(p, 0, before); !errors.As(err, &e) || e.Result != NotReady {
				t.Fatalf("timestamps that nobody wrote: %v", err)
			}
			run(t, d, &s, round)
			ticks := make([]uint64, 8)
			if err := d.Timestamps(p, 0, ticks); err != nil {
				t.Fatal(err)
			}
			last := uint64(1)
			for k, now := range ticks {
				if now < last {
					t.Errorf("timestamp %d of %v is before the one before it", k, ticks)
				}
				last = now
			}
			if ticks[7] == ticks[0] {
				t.Errorf("nothing takes time: %v", ticks)
			}
			var middle [2]uint64
			if err := d.Timestamps(p, 3, middle[:]); err != nil || middle != [2]uint64(ticks[3:5]) {
				t.Errorf("timestamps 3 and 4 are %v, %v; of all: %v", middle, err, ticks)
			}
			if words[5] != 3*uint32(round) {
				t.Errorf("the chain left %d", words[5])
			}
		}
	})
}

// checkCalibration makes a queue write a timestamp and compares it with the host's clock
// before the submission and after it.
func checkCalibration(t *testing.T, d *Device, q *Queue, value uint64) {
	t.Helper()
	c, err := d.Calibrate()
	if err != nil {
		t.Fatal(err)
	}
	if c.Deviation <= 0 || c.Bits != q.TimestampBits() || c.Period <= 0 {
		t.Fatalf("calibration %+v", c)
	}
	p := newQueries(t, d, 1)
	var s Stream
	s.Timestamp(p, 0, StageAllCommands)
	before := time.Now()
	if err := q.Submit(&s, nil, nil, value); err != nil {
		t.Fatal(err)
	}
	wait(t, q, value)
	after := time.Now()
	var ticks [1]uint64
	if err := d.Timestamps(p, 0, ticks[:]); err != nil {
		t.Fatal(err)
	}
	at := c.Time(ticks[0])
	if at.Before(before.Add(-c.Deviation)) || at.After(after.Add(c.Deviation)) {
		t.Errorf("written %v after the submission began, which took %v (calibrated to %v)", at.Sub(before),
			after.Sub(before), c.Deviation)
	}
	if c.Host.After(before) {
		t.Errorf("calibrated %v after the calibration", c.Host.Sub(before))
	}
}

func TestCalibrationTranslatesTimestampsToTheHostsClock(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	for value := uint64(1); value <= 5; value++ {
		checkCalibration(t, d, d.Queues()[0], value)
	}
	// The command buffer of the samples is reused.
	if n := d.Queues()[0].commandBuffers(); n > 2 {
		t.Errorf("%d command buffers", n)
	}
	if err := d.Trim(); err != nil {
		t.Fatal(err)
	}
	checkCalibration(t, d, d.Queues()[0], 6)
}

func TestCalibrationsAndSubmissionsGoOnTogether(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	b, words := newBlock(t, d, 64)
	done := make(chan error, 2)
	for range 2 {
		go func() {
			for range 20 {
				if _, err := d.Calibrate(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	var s Stream
	for value := uint64(1); value <= 100; value++ {
		s.Reset()
		s.Fill(b.Buffer, 0, b.Size, uint32(value))
		s.Barrier(toHost)
		run(t, d, &s, value)
		if words[63] != uint32(value) {
			t.Fatalf("submission %d left %d", value, words[63])
		}
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestQueriesThatAreNotThereAreRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	p := newQueries(t, d, 4)
	gone, err := d.CreateQueryPool(1)
	if err != nil {
		t.Fatal(err)
	}
	d.DestroyQueryPool(gone)
	d.DestroyQueryPool(gone)
	_, none := d.CreateQueryPool(0)
	for name, err := range map[string]error{
		"a pool of none":           none,
		"reset past the end":       d.ResetQueryPool(p, 3, 2),
		"reset far past the end":   d.ResetQueryPool(p, 1<<32-1, 1<<32-1),
		"read past the end":        d.Timestamps(p, 1, make([]uint64, 4)),
		"reset of what is gone":    d.ResetQueryPool(gone, 0, 1),
		"reading of what is gone":  d.Timestamps(gone, 0, make([]uint64, 1)),
		"reading of another's":     d.Timestamps(QueryPool{1, 1}, 0, make([]uint64, 1)),
		"no queries of no pool":    d.ResetQueryPool(QueryPool{}, 0, 0),
		"no timestamps of no pool": d.Timestamps(QueryPool{}, 0, nil),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(d.ResetQueryPool(p, 4, 0), d.Timestamps(p, 4, nil)); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
}

func TestDeviceWithoutHostQueryResetHasNoTimestamps(t *testing.T) {
	_, a := openMinimal(t)
	d := adopt(t, a, DeviceOptions{})
	if bits := d.Queues()[0].TimestampBits(); bits != 0 {
		t.Errorf("timestamps of %d bits", bits)
	}
	if _, err := d.CreateQueryPool(1); !errors.Is(err, ErrUnsupported) {
		t.Errorf("CreateQueryPool: %v", err)
	}
	if _, err := d.Calibrate(); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Calibrate: %v", err)
	}
	var s Stream
	s.Timestamp(QueryPool{1, 1}, 0, StageTopOfPipe)
	if err := d.Queues()[0].Submit(&s, nil, nil, 1); !errors.Is(err, ErrInvalid) {
		t.Errorf("Submit: %v", err)
	}
}

func TestAdoptedDeviceIsCalibrated(t *testing.T) {
	_, a := application(t)
	has := slices.Contains(a.Extensions, "VK_EXT_calibrated_timestamps")
	d := adopt(t, a, DeviceOptions{})
	if d.Properties().Features.CalibratedTimestamps != has {
		t.Errorf("the device has the extension: %v", !has)
	}
	checkCalibration(t, d, d.Queues()[0], 1)
	// An adoption that does not name the extension calibrates by submissions.
	a.Extensions = slices.DeleteFunc(slices.Clone(a.Extensions), func(name string) bool { return name == "VK_EXT_calibrated_timestamps" })
	d = adopt(t, a, DeviceOptions{})
	if d.Properties().Features.CalibratedTimestamps {
		t.Error("an extension that is not said to be enabled is used")
	}
	checkCalibration(t, d, d.Queues()[0], 1)
	if n := d.Queues()[0].commandBuffers(); n != 2 {
		t.Errorf("%d command buffers, want one for samples and one for the submission", n)
	}
}

func TestClockIsOfTheQueueWhoseTimestampsHaveTheMostBits(t *testing.T) {
	for _, c := range []struct {
		bits []int
		want int
	}{{nil, -1}, {[]int{0, 0}, -1}, {[]int{36}, 0}, {[]int{0, 36, 64, 64, 40}, 2}, {[]int{64, 36}, 0}} {
		d := &Device{}
		for _, bits := range c.bits {
			d.queues = append(d.queues, &Queue{bits: bits})
		}
		if got := slices.Index(d.queues, d.clock()); got != c.want {
			t.Errorf("of queues with %d bits it is that of number %d, want %d", c.bits, got, c.want)
		}
	}
}
