package sched

import (
	"runtime"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/vk"
)

// recordedCommands are the commands of a compound task that are recorded for a queue. Tasks in flight
// refer to those that their batch executes. When nobody refers to them, the recording is freed: the
// garbage collector, which does so for a Compound that is garbage, does not see how much memory the driver
// has for recordings, so that it alone would let many pile up.
type recordedCommands struct {
	device    Device
	queue     int
	recording vk.Recording
	// users are the Compound and the tasks that refer to the commands.
	users   atomic.Int32
	garbage runtime.Cleanup
}

// release gives up a reference.
func (r *recordedCommands) release() {
	if r.users.Add(-1) == 0 {
		r.garbage.Stop()
		r.device.Forget(r.queue, r.recording)
		runtime.KeepAlive(r) // otherwise the cleanup can have begun
	}
}

// recordLocked returns the commands of c recorded for a queue, or nil if they are to be encoded. They are
// recorded when they are placed on the queue for the second time: storage that moves each time would
// not repay it.
func (c *Compound) recordLocked(q *order.Queue) *recordedCommands {
	i := int(q.Index())
	for len(c.recorded) <= i {
		c.recorded, c.placed = append(c.recorded, nil), append(c.placed, 0)
	}
	if c.placed[i]++; c.placed[i] < 2 || c.recorded[i] != nil {
		return c.recorded[i]
	}
	device := c.s.device
	recording, err := device.Record(i, &c.commands)
	if err != nil {
		return nil // what is wrong with the device shows when the batch is submitted
	}
	r := &recordedCommands{device: device, queue: i, recording: recording}
	r.users.Store(1)
	r.garbage = runtime.AddCleanup(r, func(recording vk.Recording) { device.Forget(i, recording) }, recording)
	c.recorded[i] = r
	c.s.recorders.addLocked(c)
	return r
}

// forgetRecordedLocked gives up all recordings. Those that are being executed stay until they are not.
func (c *Compound) forgetRecordedLocked() {
	for _, r := range c.recorded {
		if r != nil {
			r.release()
		}
	}
	clear(c.recorded)
	clear(c.placed)
}

// recorders are the Compounds that may have recordings, each at least once unless it is garbage. They are
// guarded by Scheduler.mu.
type recorders []weak.Pointer[Compound]

// addLocked adds a Compound.
func (l *recorders) addLocked(c *Compound) {
	if len(*l) == cap(*l) {
		*l = slices.DeleteFunc(*l, func(w weak.Pointer[Compound]) bool { return w.Value() == nil || w.Value() == c })
	}
	*l = append(*l, weak.Make(c))
}

// forgetLocked gives up all recordings.
func (l *recorders) forgetLocked() {
	for _, w := range *l {
		if c := w.Value(); c != nil {
			c.forgetRecordedLocked()
		}
	}
	*l = nil
}

// destroyedBlocks is a device that counts the blocks which are destroyed, and the registrations of buffers
// that end. As long as the number is the same, a VkBuffer that had a handle still has it, and what was
// recorded for it can be executed.
type destroyedBlocks struct {
	allocation.Device
	count atomic.Uint64
}

// DestroyBlock implements allocation.Device.
func (d *destroyedBlocks) DestroyBlock(b vk.Block) {
	d.count.Add(1)
	d.Device.DestroyBlock(b)
}
