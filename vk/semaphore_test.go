//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// newTimeline creates a timeline that is destroyed when the test ends.
func newTimeline(t *testing.T, d *Device, initial uint64) Semaphore {
	t.Helper()
	s, err := d.CreateTimeline(initial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroySemaphore(s) })
	return s
}

func checkSemaphore(t *testing.T, d *Device, s Semaphore, want uint64) {
	t.Helper()
	if got, err := d.SemaphoreValue(s); got != want || err != nil {
		t.Errorf("semaphore is at %d, %v; want %d", got, err, want)
	}
}

func TestHostAndQueueSignalATimelineToEachOther(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	toQueue, toProgram := newTimeline(t, d, 7), newTimeline(t, d, 0)
	checkSemaphore(t, d, toQueue, 7)
	b, data := newBlock(t, d, 4)
	for round := range uint64(50) {
		var s Stream
		s.Barrier(Barrier{StageHost, StageTransfer, AccessHostWrite, AccessTransferWrite})
		s.Fill(b.Buffer, 0, 8, uint32(round)+1)
		s.Barrier(toHost)
		value := 8 + round
		signals := []SemaphoreValue{{toProgram, round + 1}}
		if err := q.Submit(&s, []SemaphoreValue{{toQueue, value}}, signals, round+1); err != nil {
			t.Fatal(err)
		}
		if done, err := d.WaitSemaphore(toProgram, round+1, 0); done || err != nil {
			t.Fatalf("round %d: done %v, %v, and its wait has not ended", round, done, err)
		}
		if data[0] != uint32(round) {
			t.Fatalf("round %d began with %d", round, data[0])
		}
		if err := d.SignalSemaphore(toQueue, value); err != nil {
			t.Fatal(err)
		}
		if done, err := d.WaitSemaphore(toProgram, round+1, -1); !done || err != nil {
			t.Fatalf("round %d: done %v, %v", round, done, err)
		}
		if data[0] != uint32(round)+1 {
			t.Fatalf("round %d ended with %d", round, data[0])
		}
		checkSemaphore(t, d, toQueue, value)
	}
	wait(t, q, 50)
}

func TestSubmissionSignalsManyTimelines(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	var timelines []Semaphore
	for range 70 {
		timelines = append(timelines, newTimeline(t, d, 0))
	}
	var value uint64
	for _, n := range []int{1, 70, 0, 3} {
		var signals, waits []SemaphoreValue
		value++
		for k, s := range timelines[:n] {
			signals = append(signals, SemaphoreValue{s, value*100 + uint64(k)})
			if k%2 == 0 {
				now, err := d.SemaphoreValue(s)
				if err != nil {
					t.Fatal(err)
				}
				waits = append(waits, SemaphoreValue{s, now})
			}
		}
		if err := q.Submit(nil, waits, signals, value); err != nil {
			t.Fatal(err)
		}
		wait(t, q, value)
		for _, s := range signals {
			checkSemaphore(t, d, s.Semaphore, s.Value)
		}
	}
}

func TestImpossibleSignalsAreRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	s, other := newTimeline(t, d, 3), newTimeline(t, d, 0)
	for _, c := range []struct {
		waits, signals []SemaphoreValue
		want           string
	}{
		{nil, []SemaphoreValue{{s, 4}, {}}, "signal 1 names no semaphore"},
		{nil, []SemaphoreValue{{q.Timeline(), 4}}, "signal 0 is of the queue's own timeline"},
		{nil, []SemaphoreValue{{s, 4}, {other, 1}, {s, 5}}, "signals 0 and 2 are of one semaphore"},
		{[]SemaphoreValue{{other, 0}, {s, 4}}, []SemaphoreValue{{s, 4}}, "signal 0 is of value 4 and wait 1 for value 4 of one semaphore"},
		{[]SemaphoreValue{{s, 5}}, []SemaphoreValue{{s, 4}}, "signal 0 is of value 4 and wait 0 for value 5 of one semaphore"},
	} {
		if err := q.Submit(nil, c.waits, c.signals, 1); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: %v; want %q", c.waits, c.signals, err, c.want)
		}
	}
	for _, c := range []struct {
		semaphore Semaphore
		value     uint64
		want      string
	}{
		{0, 1, "no semaphore"},
		{s, 3, fmt.Sprintf("value 3 of semaphore %#x, which has 3", uint64(s))},
		{s, 2, fmt.Sprintf("value 2 of semaphore %#x, which has 3", uint64(s))},
		{q.Timeline(), 9, fmt.Sprintf("semaphore %#x is the timeline of a queue", uint64(q.Timeline()))},
	} {
		if err := d.SignalSemaphore(c.semaphore, c.value); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("signal %d of %#x: %v; want %q", c.value, uint64(c.semaphore), err, c.want)
		}
	}
	if _, err := d.SemaphoreValue(0); !errors.Is(err, ErrInvalid) {
		t.Errorf("value of no semaphore: %v", err)
	}
	if _, err := d.WaitSemaphore(0, 1, 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("wait for no semaphore: %v", err)
	}
	// Nothing has changed.
	if err := q.Submit(nil, []SemaphoreValue{{s, 3}}, []SemaphoreValue{{s, 4}, {other, 1}}, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, q, 1)
	checkSemaphore(t, d, s, 4)
	checkSemaphore(t, d, other, 1)
}

func TestOrderLeavesTheQueuesTimelineAlone(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	s, gate := newTimeline(t, d, 0), newTimeline(t, d, 0)
	if err := q.Order([]SemaphoreValue{{gate, 1}}, []SemaphoreValue{{s, 1}}); err != nil {
		t.Fatal(err)
	}
	// Ordered after the waits of the previous submission.
	if err := q.Submit(nil, nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	if done, err := d.WaitSemaphore(s, 1, 0); done || err != nil {
		t.Errorf("done %v, %v, and its wait has not ended", done, err)
	}
	if err := d.SignalSemaphore(gate, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, q, 1)
	if done, err := d.WaitSemaphore(s, 1, -1); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	if err := q.Order(nil, []SemaphoreValue{{q.Timeline(), 2}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a signal of the queue's own timeline: %v", err)
	}
	if now, err := q.Completed(); now != 1 || err != nil {
		t.Errorf("the queue's own timeline is at %d, %v", now, err)
	}
}

func TestSemaphoreThatIsNotTheDevicesIsNotDestroyed(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	s, err := d.CreateTimeline(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Live()["VkSemaphore"]; n != 1 {
		t.Errorf("%d semaphores are live", n)
	}
	for range 2 {
		d.DestroySemaphore(s)
		d.DestroySemaphore(q.Timeline())
		d.DestroySemaphore(0)
	}
	if live := d.Live(); len(live) != 0 {
		t.Errorf("live: %v", live)
	}
	if err := q.Submit(nil, nil, nil, 1); err != nil {
		t.Fatal(err)
	}
	wait(t, q, 1)
}

// A wait does not block the signal that ends it, even if a Close waits in between.
func TestWaitEndsBySignalWhileTheDeviceIsAboutToClose(t *testing.T) {
	// Under validation a wait that the host ends can take ten seconds.
	i, err := Open(InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s := newTimeline(t, d, 0)
	began, waited := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.WaitSemaphore(s, 1, 0)
		began <- err
		done, err := d.WaitSemaphore(s, 1, time.Minute)
		if err == nil && !done {
			err = errors.New("timed out")
		}
		waited <- err
	}()
	if err := <-began; err != nil {
		t.Error(err)
	}
	closing := make(chan struct{})
	go func() {
		d.life.Lock() // as Close does
		defer d.life.Unlock()
		close(closing)
	}()
	<-closing
	if err := d.SignalSemaphore(s, 1); err != nil {
		t.Error(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// Validation reports concurrent calls that use the same VkQueue.
func TestLockerKeepsTheQueueFromOtherSubmissions(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	var foreign sync.WaitGroup
	stop := make(chan struct{})
	entered := make(chan struct{}, 1)
	foreign.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			q.Locker().Lock()
			r := vulkan.QueueWaitIdle(dispatchable[vulkan.Queue](q.Handle()))
			q.Locker().Unlock()
			select {
			case entered <- struct{}{}:
			default:
			}
			if r != vulkan.Success {
				t.Errorf("vkQueueWaitIdle: %v", Result(r))
				return
			}
		}
	})
	for value := uint64(1); value <= 300; value++ {
		if err := q.Submit(nil, nil, nil, value); err != nil {
			t.Error(err)
			break
		}
	}
	<-entered
	close(stop)
	foreign.Wait()
}
