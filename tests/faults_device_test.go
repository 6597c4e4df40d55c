package tests

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// vulkanDevice opens a device without a runtime.
func vulkanDevice(t *testing.T) *vk.Device {
	t.Helper()
	i, err := vk.Open(vk.InstanceOptions{})
	succeed(t, err)
	t.Cleanup(func() { succeed(t, i.Close()) })
	for _, p := range i.PhysicalDevices() {
		if len(p.Missing()) == 0 {
			d, err := p.Open(vk.DeviceOptions{})
			succeed(t, err)
			t.Cleanup(func() { succeed(t, d.Close()) })
			return d
		}
	}
	t.Fatal("no usable device")
	return nil
}

// A wait whose calls fail for want of memory goes on as long as one of the two ways to query the
// value works.
func TestWaitsGoOnAfterFailuresForWantOfMemory(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "3000")
	d := vulkanDevice(t)
	value := uint64(0)
	for name, c := range map[string]struct{ waits, looks int }{
		"one wait": {1, 0}, "some of both": {20, 10}, "all waits": {-1, 0}, "all waits and some looks": {-1, 50},
	} {
		for k, q := range d.Queues() {
			value++
			succeed(t, q.Submit(nil, nil, nil, value))
			f.Fail("vkWaitSemaphores", 1, c.waits, vk.ErrorOutOfHostMemory)
			if c.looks > 0 {
				f.Fail("vkGetSemaphoreCounterValue", 1, c.looks, vk.ErrorOutOfDeviceMemory)
			}
			if done, err := q.Wait(value, -1); !done || err != nil {
				t.Errorf("%s, queue %d: %v, %v", name, k, done, err)
			}
			f.Mend()
		}
	}
}

// A wait that cannot query the value until its timeout returns an error.
func TestWaitThatLearnsNothingFails(t *testing.T) {
	f := vktest.InjectFaults(t)
	d := vulkanDevice(t)
	q := d.Queues()[0]
	f.Fail("vkWaitSemaphores", 1, -1, vk.ErrorOutOfHostMemory)
	f.Fail("vkGetSemaphoreCounterValue", 1, -1, vk.ErrorOutOfHostMemory)
	succeed(t, q.Submit(nil, nil, nil, 1))
	for _, timeout := range []time.Duration{0, time.Millisecond} {
		if done, err := q.Wait(1, timeout); done || !errors.Is(err, vk.ErrOutOfMemory) {
			t.Errorf("a wait of %v: %v, %v", timeout, done, err)
		}
	}
	// vkQueueWaitIdle reports it once it no longer fails.
	f.Fail("vkQueueWaitIdle", 1, 5, vk.ErrorOutOfDeviceMemory)
	succeed(t, d.WaitIdle())
	if n := f.Failed("vkQueueWaitIdle"); n != 5 {
		t.Errorf("%d calls of vkQueueWaitIdle failed, want 5", n)
	}
	f.Mend()
}

// A wait without a timeout survives any number of failures: it ends only with the value or with
// the loss of the device, whichever call reports that.
func TestWaitForEverOutlastsFailures(t *testing.T) {
	vktest.Long(t)
	for name, c := range map[string]struct {
		end  func(f *vktest.Faults, d *vk.Device)
		want error
	}{
		"the value": {end: func(f *vktest.Faults, _ *vk.Device) { f.Mend() }},
		"the loss": {want: vk.ErrDeviceLost, end: func(f *vktest.Faults, d *vk.Device) {
			f.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
			if err := d.Queues()[0].Submit(nil, nil, nil, 2); !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("the submission that loses the device: %v", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := vktest.InjectFaults(t)
			d := vulkanDevice(t)
			q := d.Queues()[0]
			const wait, look = "vkWaitSemaphores", "vkGetSemaphoreCounterValue"
			f.Fail(wait, 1, -1, vk.ErrorOutOfHostMemory)
			f.Fail(look, 1, -1, vk.ErrorOutOfDeviceMemory)
			succeed(t, q.Submit(nil, nil, nil, 1))
			ended := make(chan error, 1)
			go func() {
				done, err := q.Wait(1, -1)
				if done != (c.want == nil) {
					t.Errorf("the wait returned %v", done)
				}
				ended <- err
			}()
			for f.Failed(wait) < 50 || f.Failed(look) < 50 {
				select {
				case err := <-ended:
					t.Fatalf("after %d and %d failures the wait ended: %v", f.Failed(wait), f.Failed(look), err)
				case <-time.After(time.Millisecond):
				}
			}
			c.end(f, d)
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			f.Mend()
		})
	}
}

// A failed wait with a timeout of zero still reads the value.
func TestFailedWaitOfNoTimeFindsTheValue(t *testing.T) {
	f := vktest.InjectFaults(t)
	d := vulkanDevice(t)
	q := d.Queues()[0]
	succeed(t, q.Submit(nil, nil, nil, 1))
	succeed(t, d.WaitIdle())
	for value, want := range map[uint64]bool{1: true, 2: false} {
		f.Fail("vkWaitSemaphores", 1, 1, vk.ErrorOutOfHostMemory)
		if done, err := q.Wait(value, 0); done != want || err != nil {
			t.Errorf("value %d: %v, %v", value, done, err)
		}
	}
}

// The wait for a lost device returns only when the device is idle, whatever runs until then.
func TestLostDeviceIsWaitedForUntilItIsIdle(t *testing.T) {
	vktest.Long(t)
	f := vktest.InjectFaults(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "20000")
	d := vulkanDevice(t)
	b, words := newSeen(t, d, 64)
	queues := d.Queues()
	var s vk.Stream
	for k, q := range queues[1:] {
		s.Reset()
		s.Fill(b.Buffer, uint64(16*k), 16, 7)
		s.Barrier(vk.Barrier{SrcStage: vk.StageTransfer, DstStage: vk.StageHost, SrcAccess: vk.AccessTransferWrite, DstAccess: vk.AccessHostRead})
		succeed(t, q.Submit(&s, nil, nil, 1))
	}
	f.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
	if err := queues[0].Submit(nil, nil, nil, 1); !errors.Is(err, vk.ErrDeviceLost) {
		t.Fatal(err)
	}
	if err := d.WaitIdle(); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("WaitIdle: %v", err)
	}
	for k := range queues[1:] {
		if words[k] != (seen{7, 7, 7, 7}) {
			t.Errorf("queue %d still runs", k+1)
		}
	}
	d.DestroyBlock(b)
}

// A lost device comes to rest although its submissions wait for what nobody signals any more: values
// that the host was to signal, and values of submissions that were refused.
func TestLostDeviceRestsWhereNobodySignals(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers []string
		// early says that the wait for the device begins before it is lost.
		early bool
	}{
		{"the driver's queue", nil, false}, {"many queues", []string{"manyqueue"}, false},
		{"lost while it is waited for", nil, true}, {"many queues that are lost while they are waited for", []string{"manyqueue"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := vktest.InjectFaults(t, c.layers...)
			d := vulkanDevice(t)
			var s [3]vk.Semaphore
			for k := range s {
				var err error
				s[k], err = d.CreateTimeline(0)
				succeed(t, err)
			}
			at := func(k int, value uint64) []vk.SemaphoreValue {
				return []vk.SemaphoreValue{{Semaphore: s[k], Value: value}}
			}
			first, last := d.Queues()[0], d.Queues()[len(d.Queues())-1]
			// The host was to signal 1, and then 3, which is below what is signalled next.
			succeed(t, first.Order(at(0, 1), at(0, 2)))
			succeed(t, first.Order(at(0, 3), at(0, 4)))
			succeed(t, last.Order(at(0, 4), at(1, 5)))
			succeed(t, last.Order(at(1, 7), at(2, 1)))
			succeed(t, last.Order(at(2, 1), nil))

			rest := make(chan error, 1)
			if c.early {
				go func() { rest <- d.WaitIdle() }()
				for f.Calls("vkQueueWaitIdle") == 0 {
					runtime.Gosched()
				}
			}
			f.Fail("vkGetSemaphoreCounterValue", 1, 1, vk.ErrorDeviceLost)
			if _, err := d.SemaphoreValue(s[0]); !errors.Is(err, vk.ErrDeviceLost) {
				t.Fatal(err)
			}
			if !c.early {
				rest <- d.WaitIdle()
			}
			if err := <-rest; !errors.Is(err, vk.ErrDeviceLost) {
				t.Errorf("WaitIdle: %v", err)
			}
			for _, s := range s {
				d.DestroySemaphore(s)
			}
		})
	}
}
