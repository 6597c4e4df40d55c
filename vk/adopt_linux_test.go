//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Window libraries have a vkGetInstanceProcAddr of their own that wraps the loader's.
func TestAdoptedInstanceMustBeOfTheProcessesLoader(t *testing.T) {
	app, a := application(t)
	get, err := findLibrary([]string{compile(t, "testdata/loader/loader.c")})
	if err != nil {
		t.Fatal(err)
	}
	if get == app.instance.GetInstanceProcAddr() {
		t.Fatal("one function")
	}
	a.GetInstanceProcAddr = get
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	if i.GetInstanceProcAddr() != get {
		t.Errorf("vkGetInstanceProcAddr is %#x, want %#x", i.GetInstanceProcAddr(), get)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	t.Setenv("VKOMP_TEST_LOADER", "1")
	if _, err := Adopt(a); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "of another Vulkan library") {
		t.Errorf("adopted from another loader: %v", err)
	}
}

// Each call on the way to an adopted device fails in turn. Validation reports objects that
// are left, and the application's device stays usable.
func TestAdoptedDeviceThatFailsHalfwayLeavesNothing(t *testing.T) {
	long(t)
	useManyQueues(t)
	app, a := application(t)
	i, err := Adopt(a)
	if err != nil {
		t.Fatal(err)
	}
	for at, family := range manyQueues {
		for call, detail := range map[string]string{"vkCreateCommandPool": "queue family %d", "vkCreateSemaphore": "timeline of a queue of family %d"} {
			t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s@%d=%d", call, at+1, ErrorOutOfHostMemory))
			d, err := i.PhysicalDevices()[0].Open(DeviceOptions{InteropQueues: -1})
			if d != nil || !errors.Is(err, ErrOutOfMemory) || !strings.HasSuffix(err.Error(), fmt.Sprintf(detail, family)) {
				t.Errorf("%s, time %d: %v", call, at+1, err)
			}
		}
	}
	t.Setenv("VKOMP_TEST_FAIL", "")
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	for k, q := range app.Queues() {
		if err := q.Submit(nil, nil, nil, 1); err != nil {
			t.Errorf("queue %d: %v", k, err)
		}
		wait(t, q, 1)
	}
}

func TestQueuesOfAnAdoptedDeviceArePlannedAsItsOwn(t *testing.T) {
	useManyQueues(t)
	app := openDevice(t, DeviceOptions{ComputeQueues: 6, InteropQueues: -1})
	all := adoptionOf(app)
	if len(all.Queues) != 8 {
		t.Fatalf("%d queues", len(all.Queues))
	}
	slices.Reverse(all.Queues)
	for _, c := range []struct {
		adopted       []int // of those of families 2 2 0 0 1 1 1 1
		families      []uint32
		options       DeviceOptions
		want, interop []int
		sharing       string
	}{
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, nil, DeviceOptions{}, manyQueues, []int{0}, "0,1,2"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, nil, DeviceOptions{ComputeQueues: 5, TransferQueues: -1, InteropQueues: -1}, []int{1, 1, 1, 1, 0}, nil, "0,1,2"},
		{[]int{2, 4}, nil, DeviceOptions{ComputeQueues: 1, InteropQueues: -1}, []int{1}, nil, "0,1"},
		{[]int{0, 2, 4}, nil, DeviceOptions{}, []int{1, 0, 2}, nil, "0,1,2"},
		{[]int{5, 4, 0}, nil, DeviceOptions{}, []int{1, 2}, []int{1}, "1,2"},
		{[]int{2, 3}, nil, DeviceOptions{InteropQueues: -1}, []int{0, 0}, nil, ""},
		{[]int{7}, nil, DeviceOptions{}, []int{1}, nil, ""},
		{[]int{4}, []uint32{1}, DeviceOptions{}, []int{1}, nil, ""},
		{[]int{4}, []uint32{2}, DeviceOptions{}, []int{1}, nil, "1,2"},
	} {
		a := all
		a.Queues, a.Families = nil, c.families
		for _, k := range c.adopted {
			a.Queues = append(a.Queues, all.Queues[k])
		}
		i, err := Adopt(a)
		if err != nil {
			t.Fatalf("%v: %v", c.adopted, err)
		}
		d, err := i.PhysicalDevices()[0].Open(c.options)
		if err != nil {
			t.Fatalf("%v: %v", c.adopted, err)
		}
		checkQueues(t, d, c.want, c.interop)
		for _, q := range d.allQueues() {
			k := slices.IndexFunc(a.Queues, func(given AdoptedQueue) bool { return given.Handle == q.Handle() })
			if k < 0 || a.Queues[k].Locker != q.Locker() || a.Queues[k].Family != q.Family() {
				t.Errorf("%v: queue %#x of family %d, with queue %d's lock", c.adopted, q.Handle(), q.Family(), k)
			}
		}
		t.Setenv("VKOMP_TEST_SHARING", c.sharing)
		b, err := d.CreateBlock(64, 0)
		if err != nil {
			t.Errorf("%v: sharing is not %q: %v", c.adopted, c.sharing, err)
		}
		d.DestroyBlock(b)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	if a := all; true {
		a.Queues = all.Queues[:2] // these only support transfers
		if _, err := Adopt(a); !errors.Is(err, ErrUnsupported) || !strings.HasSuffix(err.Error(), "without a compute queue") {
			t.Errorf("queues that only transfer: %v", err)
		}
	}
	_ = app
}

// One lock may serve all queues, as in applications with a single device lock.
func TestQueuesOfAnAdoptedDeviceMayShareALock(t *testing.T) {
	useManyQueues(t)
	_, a := application(t)
	lock := &countingLocker{Locker: new(sync.Mutex)}
	for k := range a.Queues {
		a.Queues[k].Locker = lock
	}
	d := adopt(t, a, DeviceOptions{})
	var ends sync.WaitGroup
	for _, q := range d.allQueues() {
		ends.Go(func() {
			for value := uint64(1); value <= 20; value++ {
				if err := q.Submit(nil, nil, nil, value); err != nil {
					t.Error(err)
				}
			}
			if done, err := q.Wait(20, -1); !done || err != nil {
				t.Error(done, err)
			}
		})
	}
	ends.Wait()
	if want := 20 * len(d.allQueues()); lock.taken != want {
		t.Errorf("the lock is taken %d times for %d submissions", lock.taken, want)
	}
}
