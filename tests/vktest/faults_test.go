package vktest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp/vk"
)

// openVulkan opens a device with package vk.
func openVulkan(t *testing.T) *vk.Device {
	t.Helper()
	i, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, p := range i.PhysicalDevices() {
		if len(p.Missing()) > 0 {
			continue
		}
		d, err := p.Open(vk.DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return d
	}
	t.Fatal("no usable device")
	return nil
}

func TestChosenCallsFailAndNoOthers(t *testing.T) {
	f := InjectFaults(t)
	d := openVulkan(t)
	f.Fail("vkCreateSemaphore", 2, 3, vk.ErrorOutOfHostMemory)
	f.Fail("vkSignalSemaphore", 1, 1, vk.ErrorOutOfDeviceMemory)
	before := f.Calls("vkCreateSemaphore")
	for n, want := range []bool{true, false, false, false, true} {
		s, err := d.CreateTimeline(0)
		if made := err == nil; made != want || !made && (s != 0 || !errors.Is(err, vk.ErrOutOfMemory)) {
			t.Errorf("semaphore %d: %#x, %v", n+1, uint64(s), err)
		}
		if err == nil {
			defer d.DestroySemaphore(s)
		}
	}
	if n := f.Calls("vkCreateSemaphore") - before; n != 5 || f.Commands()["vkCreateSemaphore"] != before+5 {
		t.Errorf("%d calls counted, want 5", n)
	}
	if n := f.Failed("vkCreateSemaphore"); n != 3 {
		t.Errorf("%d of them failed, want 3", n)
	}
	f.Fail("vkCreateSemaphore", 1, -1, vk.ErrorOutOfHostMemory)
	for range 3 {
		if _, err := d.CreateTimeline(0); !errors.Is(err, vk.ErrOutOfMemory) {
			t.Errorf("after all calls were to fail: %v", err)
		}
	}
	f.Mend()
	s, err := d.CreateTimeline(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroySemaphore(s)
	if err := d.SignalSemaphore(s, 1); err != nil {
		t.Errorf("what was chosen before Mend fails after it: %v", err)
	}
}

// A device for which one call has reported the loss stays lost, and waits for it return. Other
// devices are not affected.
func TestLossOfADeviceIsForGood(t *testing.T) {
	f := InjectFaults(t, "manyqueue")
	d, other := openVulkan(t), openVulkan(t)
	q := d.Queues()[0]
	never, err := d.CreateTimeline(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroySemaphore(never)
	waits := f.Calls("vkWaitSemaphores")
	waited := make(chan error)
	go func() {
		_, err := d.WaitSemaphore(never, 1, -1)
		waited <- err
	}()
	for f.Calls("vkWaitSemaphores") == waits {
		time.Sleep(time.Millisecond)
	}
	f.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
	if err := q.Submit(nil, nil, nil, 1); !errors.Is(err, vk.ErrDeviceLost) {
		t.Fatalf("the submission that loses the device: %v", err)
	}
	if err := <-waited; !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("the wait that had begun: %v", err)
	}
	if err := q.Submit(nil, nil, nil, 2); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("the next submission: %v", err)
	}
	if _, err := q.Completed(); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("a look at a timeline: %v", err)
	}
	if _, err := q.Wait(1, time.Minute); !errors.Is(err, vk.ErrDeviceLost) {
		t.Errorf("a wait: %v", err)
	}
	if n := f.Failed("vkQueueSubmit"); n != 1 {
		t.Errorf("%d submissions count as made to fail, want 1", n)
	}
	o := other.Queues()[0]
	if err := o.Submit(nil, nil, nil, 1); err != nil {
		t.Errorf("another device: %v", err)
	}
	if done, err := o.Wait(1, time.Minute); !done || err != nil {
		t.Errorf("another device: %v, %v", done, err)
	}
}

// Environment variables choose the calls of a program that does not know the layer.
func TestFaultsAreChosenInTheEnvironment(t *testing.T) {
	if os.Getenv("VKOMP_FAULT") != "" {
		_, err := vk.Open(vk.InstanceOptions{})
		t.Fatal(err)
	}
	Layers(t, "fault")
	for text, want := range map[string]string{
		"vkCreateInstance@1=-1":                     "vkCreateInstance: VK_ERROR_OUT_OF_HOST_MEMORY",
		"vkQueueSubmit@1=-4,vkCreateInstance@1+=-3": "vkCreateInstance: VK_ERROR_INITIALIZATION_FAILED",
		"vkEnumeratePhysicalDevices@1+5=-2":         "vkEnumeratePhysicalDevices: VK_ERROR_OUT_OF_DEVICE_MEMORY",
		"vkCreateInstances@1=-1":                    "vkCreateInstances is not among the layer's commands",
		"vkCreateInstance@0=-1":                     "not like vkQueueSubmit@3+1=-4",
	} {
		program := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		program.Env = append(os.Environ(), "VKOMP_FAULT="+text)
		out, err := program.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("VKOMP_FAULT=%s: %v, want %q in\n%s", text, err, want, out)
		}
	}
}
