package sched

import (
	"iter"

	"github.com/vkomp/vkomp/vk"
)

// fakeRecording is a stream that was recorded for a queue. blocks are those whose buffers it binds, and last
// is the value of the last submission that executes it.
type fakeRecording struct {
	queue  int
	stream vk.Stream
	blocks map[vk.Buffer]*fakeBlock
	last   uint64
}

// Record implements Device.
func (d *fakeDevice) Record(queue int, s *vk.Stream) (vk.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record != nil {
		if err := d.record(); err != nil {
			return 0, err
		}
	}
	if d.recordings == nil {
		d.recordings = make(map[vk.Recording]*fakeRecording)
	}
	d.handles++
	r := &fakeRecording{queue: queue, blocks: make(map[vk.Buffer]*fakeBlock)}
	r.stream.Append(s)
	for op := range s.Ops() {
		for _, b := range op.Bindings {
			r.blocks[b.Buffer] = d.blocks[b.Buffer]
		}
	}
	d.recordings[vk.Recording(d.handles)] = r
	return vk.Recording(d.handles), nil
}

// Forget implements Device.
func (d *fakeDevice) Forget(queue int, r vk.Recording) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch of := d.recordings[r]; {
	case of == nil || of.queue != queue:
		d.fail("recording %d of queue %d is freed, which there is not", r, queue)
	case of.last > d.queues[queue].completed && !d.lost:
		d.fail("recording %d of queue %d is freed before submission %d, which executes it, is complete", r, queue, of.last)
	}
	delete(d.recordings, r)
}

// operations yields the operations of a stream, with those of a recording in place of its execution.
// decoded counts the operations of the stream itself.
func (d *fakeDevice) operations(queue int, s *vk.Stream, decoded *int) iter.Seq[vk.Op] {
	return func(yield func(vk.Op) bool) {
		for op := range s.Ops() {
			*decoded++
			if op.Code != vk.OpExecute {
				if !yield(op) {
					return
				}
				continue
			}
			r := d.recordings[op.Recording]
			if r == nil || r.queue != queue {
				d.fail("recording %d is executed on queue %d, which has none of that name", op.Recording, queue)
				continue
			}
			d.executions++
			r.last = d.queues[queue].submitted
			for buffer, b := range r.blocks {
				if d.blocks[buffer] != b {
					d.fail("recording %d of queue %d is executed after buffer %d, which it binds, was destroyed", op.Recording, queue, buffer)
				}
			}
			for op := range r.stream.Ops() {
				if !yield(op) {
					return
				}
			}
		}
	}
}
