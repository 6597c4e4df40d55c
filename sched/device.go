package sched

import (
	"time"

	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/pipeline"
	"github.com/vkomp/vkomp/sched/trace"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// Device is the part of a device that a scheduler uses. Submit is not called concurrently.
type Device interface {
	order.Device
	pipeline.Device
	trace.Device
	allocation.Device
	// QueueInfos describes the queues, by the index that the other methods take. The first queue
	// has compute capability, and queues without it come last. Of the others those come first
	// that do not draw.
	QueueInfos() []order.QueueInfo
	// Record records a stream for a queue, and Forget has the recording freed (see vk.Queue.Record).
	// Forget can be called after Close, and takes no lock that a program can hold.
	Record(queue int, s *vk.Stream) (vk.Recording, error)
	Forget(queue int, r vk.Recording)
	// WaitIdle waits until all submitted work has ended. After a nil error all timelines have
	// reached the submitted values; otherwise the device is lost. It is called without
	// locks that a submission takes.
	WaitIdle() error
	// Trim frees what the device keeps for later submissions.
	Trim() error
	// Close destroys the device, on which nothing may run any more.
	Close() error
}

// FromVulkan returns d as a Device. Closing the one closes the other.
func FromVulkan(d *vk.Device) Device { return vulkanDevice{d} }

type vulkanDevice struct{ *vk.Device }

func (d vulkanDevice) QueueInfos() []order.QueueInfo {
	infos := make([]order.QueueInfo, len(d.Queues()))
	for i, q := range d.Queues() {
		infos[i] = order.QueueInfo{Family: int(q.Family()), Compute: q.Compute(), Draws: q.Draws(), TimestampBits: q.TimestampBits()}
	}
	return infos
}

func (d vulkanDevice) Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) error {
	queues := d.Queues()
	if len(waits) == 0 {
		return queues[queue].Submit(s, foreign.Waits, foreign.Signals, signal)
	}
	var few [8]vk.SemaphoreValue
	semaphores := few[:0]
	for _, p := range waits {
		semaphores = append(semaphores, vk.SemaphoreValue{Semaphore: queues[p.Queue].Timeline(), Value: p.Value})
	}
	semaphores = append(semaphores, foreign.Waits...)
	return queues[queue].Submit(s, semaphores, foreign.Signals, signal)
}

func (d vulkanDevice) Record(queue int, s *vk.Stream) (vk.Recording, error) {
	return d.Queues()[queue].Record(s)
}

func (d vulkanDevice) Forget(queue int, r vk.Recording) { d.Queues()[queue].Forget(r) }

func (d vulkanDevice) Completed(queue int) (uint64, error) {
	return d.Queues()[queue].Completed()
}

func (d vulkanDevice) Wait(queue int, value uint64, timeout time.Duration) (bool, error) {
	return d.Queues()[queue].Wait(value, timeout)
}
