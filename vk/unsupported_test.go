//go:build !cgo

package vk

import (
	"errors"
	"strings"
	"testing"
)

func TestEverythingIsUnsupportedWithoutCgo(t *testing.T) {
	i, err := Open(InstanceOptions{})
	if i != nil || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "built without cgo") {
		t.Errorf("Open: %v, %v", i, err)
	}
	var p PhysicalDevice
	var d Device
	var q Queue
	calls := map[string]error{"Submit": q.Submit(nil, nil, nil, 1)}
	_, calls["PhysicalDevice.Open"] = p.Open(DeviceOptions{})
	_, calls["CreateBlock"] = d.CreateBlock(1, 0)
	_, calls["BlockMemoryTypes"] = d.BlockMemoryTypes(1)
	_, calls["AdoptBuffer"] = d.AdoptBuffer(ForeignBuffer{})
	_, calls["Adopt"] = Adopt(Adoption{})
	_, calls["ImportBlock"] = d.ImportBlock(0, 1)
	calls["Flush"], calls["Invalidate"] = d.Flush(nil), d.Invalidate(nil)
	_, calls["CreateTimeline"] = d.CreateTimeline(0)
	_, calls["SemaphoreValue"] = d.SemaphoreValue(1)
	_, calls["WaitSemaphore"] = d.WaitSemaphore(1, 1, 0)
	calls["SignalSemaphore"] = d.SignalSemaphore(1, 1)
	_, calls["CreatePipeline"] = d.CreatePipeline(PipelineOptions{})
	_, calls["PipelineCacheData"] = d.PipelineCacheData(nil)
	_, calls["CreateQueryPool"] = d.CreateQueryPool(1)
	calls["ResetQueryPool"], calls["Timestamps"] = d.ResetQueryPool(QueryPool{}, 0, 1), d.Timestamps(QueryPool{}, 0, nil)
	_, calls["Calibrate"] = d.Calibrate()
	_, calls["Completed"] = q.Completed()
	_, calls["Wait"] = q.Wait(1, 0)
	for name, err := range calls {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := d.MemoryBudget(); ok {
		t.Error("a budget of no device")
	}
	if len(p.Missing()) == 0 {
		t.Error("a device that cannot be opened misses nothing")
	}
}
