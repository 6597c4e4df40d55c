//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// calibrationTries is how many times Calibrate reads the clocks to choose the best reading.
const calibrationTries = 5

// CreateQueryPool creates a pool of timestamp queries, which are reset. The error matches
// ErrUnsupported if the device has no timestamps or was created without the feature
// hostQueryReset.
func (d *Device) CreateQueryPool(count uint32) (QueryPool, error) {
	if err := d.enter(); err != nil {
		return QueryPool{}, err
	}
	defer d.leave()
	if err := d.checkTimestamps(); err != nil {
		return QueryPool{}, err
	}
	if count == 0 {
		return QueryPool{}, invalid("Device.CreateQueryPool", "no queries")
	}
	return d.createQueryPool(count)
}

func (d *Device) createQueryPool(count uint32) (QueryPool, error) {
	info := vulkan.QueryPoolCreateInfo{
		SType:      vulkan.StructureTypeQueryPoolCreateInfo,
		QueryType:  vulkan.QueryTypeTimestamp,
		QueryCount: count,
	}
	var h vulkan.QueryPool
	r := vulkan.CreateQueryPool(d.handle, &info, nil, &h)
	info.Free()
	if err := check("vkCreateQueryPool", Result(r), "%d timestamps", count); err != nil {
		return QueryPool{}, err
	}
	p := QueryPool{Handle: name(h), Count: count}
	C.vko_query_reset(d.c, C.vkoHandle(p.Handle), 0, C.uint32_t(count))
	d.count("VkQueryPool", 1)
	d.mu.Lock()
	d.queries[p.Handle] = struct{}{}
	d.mu.Unlock()
	return p, nil
}

// checkTimestamps returns an error if the device does not support timestamps.
func (d *Device) checkTimestamps() error {
	name := d.physical.properties.Name
	if !d.physical.properties.Features.HostQueryReset {
		return fmt.Errorf("%w: device %q has not the feature hostQueryReset", ErrUnsupported, name)
	}
	if d.clock() == nil {
		return fmt.Errorf("%w: no queue of device %q has timestamps", ErrUnsupported, name)
	}
	return nil
}

// clock returns the queue whose clock Calibrate reads: the first of those whose timestamps have the most bits, because those of
// others can be extended to as many (see Calibration.Extend). It is nil if none has timestamps.
func (d *Device) clock() (most *Queue) {
	for _, q := range d.queues {
		if q.bits > 0 && (most == nil || q.bits > most.bits) {
			most = q
		}
	}
	return most
}

// DestroyQueryPool destroys a pool of this device. Nothing in flight may write to it.
// Unknown pools and pools that were destroyed before are ignored.
func (d *Device) DestroyQueryPool(p QueryPool) {
	if d.enter() != nil {
		return
	}
	defer d.leave()
	d.forgetQueryPool(p)
}

// forgetQueryPool destroys a pool if the device has it.
func (d *Device) forgetQueryPool(p QueryPool) {
	d.mu.Lock()
	_, ok := d.queries[p.Handle]
	delete(d.queries, p.Handle)
	d.mu.Unlock()
	if ok {
		d.destroyQueryPool(p.Handle)
	}
}

func (d *Device) destroyQueryPool(h uint64) {
	vulkan.DestroyQueryPool(d.handle, handle[vulkan.QueryPool](h), nil)
	d.count("VkQueryPool", -1)
}

// ResetQueryPool resets count queries, starting at first, so that they can be written
// again (vkResetQueryPool). Nothing in flight may write to them.
func (d *Device) ResetQueryPool(p QueryPool, first, count uint32) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := d.checkQueries("Device.ResetQueryPool", p, uint64(first), uint64(count)); err != nil || count == 0 {
		return err
	}
	C.vko_query_reset(d.c, C.vkoHandle(p.Handle), C.uint32_t(first), C.uint32_t(count))
	return nil
}

// Timestamps reads queries, starting at first, in ticks of Limits.TimestampPeriod
// nanoseconds (vkGetQueryPoolResults). The commands that write them must have ended: the
// error is VK_NOT_READY if one of them is not written. Vulkan allows timestamps of
// different queues to be compared only if the queues share a clock. They do on every
// device with Features.CalibratedTimestamps, and on all known drivers.
func (d *Device) Timestamps(p QueryPool, first uint32, ticks []uint64) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.leave()
	if err := d.checkQueries("Device.Timestamps", p, uint64(first), uint64(len(ticks))); err != nil || len(ticks) == 0 {
		return err
	}
	return d.readQueries(p, first, ticks)
}

func (d *Device) readQueries(p QueryPool, first uint32, ticks []uint64) error {
	r := d.noteLoss(Result(C.vko_query_results(d.c, C.vkoHandle(p.Handle), C.uint32_t(first), C.uint32_t(len(ticks)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(ticks))))))
	if r == Success {
		return nil // return before the arguments of detail are allocated
	}
	return &Error{Op: "vkGetQueryPoolResults", Result: r,
		Detail: fmt.Sprintf("%d timestamps from %d on", len(ticks), first)}
}

// checkQueries returns an error for queries that the device does not have.
func (d *Device) checkQueries(op string, p QueryPool, first, count uint64) error {
	d.mu.Lock()
	_, ok := d.queries[p.Handle]
	d.mu.Unlock()
	if !ok {
		return invalid(op, "the device has no query pool %#x", p.Handle)
	}
	if first+count > uint64(p.Count) {
		return invalid(op, "%d queries from %d on of a pool of %d", count, first, p.Count)
	}
	return nil
}

// Calibrate reads the device's clock and the host's at the same moment, as nearly as
// several tries allow. With Features.CalibratedTimestamps it queries the device's clock.
// Otherwise it makes tiny submissions to the first of the queues whose timestamps have the
// most bits and waits for them, and so for everything that was submitted to that queue before; it should be
// called when the queue has little to do, and must not be called while the queue waits
// for a signal of the host. The error matches ErrUnsupported if that of
// [Device.CreateQueryPool] would.
func (d *Device) Calibrate() (Calibration, error) {
	if err := d.enter(); err != nil {
		return Calibration{}, err
	}
	defer d.leave()
	if err := d.checkTimestamps(); err != nil {
		return Calibration{}, err
	}
	d.sampling.Lock()
	defer d.sampling.Unlock()
	sample, done, err := d.sampler()
	if err != nil {
		return Calibration{}, err
	}
	defer done()
	best := Calibration{Period: float64(d.physical.properties.Limits.TimestampPeriod), Bits: d.clock().bits}
	for try := range calibrationTries {
		before := time.Now()
		ticks, err := sample()
		took := time.Since(before)
		if err != nil {
			return Calibration{}, err
		}
		// The timestamp was taken between both readings, and some time within a tick.
		deviation := (took+1)/2 + time.Duration(best.Period) + 1
		if try == 0 || deviation < best.Deviation {
			best.Ticks, best.Host, best.Deviation = ticks, before.Add(took/2), deviation
		}
	}
	best.Ticks &= 1<<best.Bits - 1
	return best, nil
}

// sampler returns a function that reads the device's clock and one that cleans up.
func (d *Device) sampler() (sample func() (uint64, error), done func(), err error) {
	if d.physical.properties.Features.CalibratedTimestamps {
		sample = func() (uint64, error) {
			var ticks C.uint64_t
			r := C.vko_device_ticks(d.c, &ticks)
			return uint64(ticks), check("vkGetCalibratedTimestampsEXT", Result(r), "the device's clock")
		}
		return sample, func() {}, nil
	}
	return d.submissionSampler(d.clock())
}

// submissionSampler returns a sampler that makes a queue write a timestamp.
func (d *Device) submissionSampler(q *Queue) (sample func() (uint64, error), done func(), err error) {
	pool, err := d.createQueryPool(1)
	if err != nil {
		return nil, nil, err
	}
	var ended C.vkoHandle
	r := C.vko_semaphore_create(d.c, 0, &ended)
	if err := check("vkCreateSemaphore", Result(r), "of a sample of the device's clock"); err != nil {
		d.forgetQueryPool(pool)
		return nil, nil, err
	}
	var s Stream
	s.Timestamp(pool, 0, StageTopOfPipe)
	value := uint64(0)
	sample = func() (uint64, error) {
		C.vko_query_reset(d.c, C.vkoHandle(pool.Handle), 0, 1)
		var f C.vko_fault
		if err := q.enter(); err != nil {
			return 0, err
		}
		failed := C.vko_queue_sample(q.c, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(s.words))),
			C.uint64_t(len(s.words)), ended, C.uint64_t(value+1), &f)
		q.leave()
		if failed != 0 {
			return 0, d.fault("Device.Calibrate", &f)
		}
		value++
		if r := d.waitSemaphore(d.c, Semaphore(ended), value, -1); r < 0 {
			// The submission may still be using the semaphore and the query.
			if err := q.waitIdle(); err != nil {
				return 0, err
			}
		}
		var ticks [1]uint64
		err := d.readQueries(pool, 0, ticks[:])
		return ticks[0], err
	}
	done = func() {
		vulkan.DestroySemaphore(d.handle, handle[vulkan.Semaphore](uint64(ended)), nil)
		d.forgetQueryPool(pool)
	}
	return sample, done, nil
}
