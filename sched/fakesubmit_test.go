package sched

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

var errLost = &vk.Error{Op: "vkQueueSubmit", Result: vk.ErrorDeviceLost}

// Submit implements Device. Where a submission fails because the device is lost, its commands
// may run all the same, as Vulkan allows.
func (d *fakeDevice) Submit(queue int, s *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost {
		return errLost
	}
	d.submits++
	if d.submit != nil {
		if err := d.submit(d.submits); errors.Is(err, vk.ErrDeviceLost) {
			d.accept(queue, s, waits, foreign, signal)
			d.lose()
			return err
		} else if err != nil {
			return err
		}
	}
	d.accept(queue, s, waits, foreign, signal)
	return nil
}

// submissions returns the number of calls of Submit so far, for a test that waits for one.
func (d *fakeDevice) submissions() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.submits
}

// submittedTo returns the last value that a submission to the queue is to signal.
func (d *fakeDevice) submittedTo(queue int) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queues[queue].submitted
}

// accept checks a submission and adds its commands to the pending ones.
func (d *fakeDevice) accept(queue int, s *vk.Stream, waits []timeline.Point, foreign order.Foreign, signal uint64) {
	q := &d.queues[queue]
	if d.closed || signal <= q.submitted {
		d.fail("submission of value %d to queue %d, after %d (closed %v)", signal, queue, q.submitted, d.closed)
	}
	d.submitted++
	batch := &fakeBatch{number: d.submitted, value: signal, waits: slices.Clone(waits), implies: slices.Clone(q.implies)}
	for i, w := range waits {
		if int(w.Queue) == queue || w.Value == 0 || w.Value > d.queues[w.Queue].submitted {
			d.fail("submission of value %d to queue %d waits for %v: it may never end", signal, queue, w)
		}
		for k, o := range waits {
			if q.implies[w.Queue] >= w.Value || k != i && d.queues[o.Queue].impliedBy(o.Value, w) {
				d.fail("submission of value %d to queue %d waits for %v, which is implied already (%v)", signal, queue, w, waits)
			}
		}
		d.order.waited(queue, int(w.Queue), w.Value)
		for _, b := range d.queues[w.Queue].all {
			if b.value <= w.Value {
				batch.follows(b.implies)
			}
		}
		batch.implies[w.Queue] = max(batch.implies[w.Queue], w.Value)
	}
	for _, w := range foreign.Waits {
		i := slices.IndexFunc(d.semaphores[w.Semaphore], func(s fakeSignal) bool { return s.value >= w.Value })
		if i < 0 {
			d.fail("submission of value %d to queue %d waits for value %d of semaphore %d, which nothing submitted signals", signal, queue, w.Value, w.Semaphore)
			continue
		}
		by := d.semaphores[w.Semaphore][i].by
		batch.waits = append(batch.waits, by)
		d.order.waited(queue, int(by.Queue), by.Value)
	}
	for _, w := range foreign.Signals {
		if d.semaphores == nil {
			d.semaphores = make(map[vk.Semaphore][]fakeSignal)
		}
		all := d.semaphores[w.Semaphore]
		if len(all) > 0 && all[len(all)-1].value >= w.Value {
			d.fail("submission of value %d to queue %d signals value %d of semaphore %d, after %v", signal, queue, w.Value, w.Semaphore, all)
		}
		d.semaphores[w.Semaphore] = append(all, fakeSignal{w.Value, timeline.Point{Queue: timeline.Queue(queue), Value: signal}})
	}
	d.waits += len(waits)
	for i := range d.queues {
		if o := d.queues[i].observed; o > d.hostSeen[i] {
			d.hostSeen[i] = o
			d.order.hostWaited(i, o)
		}
	}
	q.implies = slices.Clone(batch.implies)
	batch.implies[queue] = signal
	q.submitted = signal
	q.all = append(q.all, batch)
	q.batches = append(q.batches, batch)
	barriers, ops, decoded := 0, 0, 0
	var last *fakeCommand
	var timed fakeTimestamps
	for _, c := range d.pending {
		if c.command.queue == queue {
			timed.before = append(timed.before, c)
		}
	}
	for op := range d.operations(queue, s, &decoded) {
		ops++
		if op.Code == vk.OpBarrier {
			barriers++
			d.barrier(op.Barrier, queue, signal)
			last = nil
			continue
		}
		if op.Code == vk.OpTimestamp {
			d.timestamp(op, queue, &timed)
			continue
		}
		c := d.decode(op, ops)
		if c == nil {
			continue
		}
		timed.around(d, c)
		if last != nil && op.Code == vk.OpDispatch && last.continues(c) {
			// Consecutive dispatches of one launch count as one command: no barrier has to be
			// between them, whatever they write.
			first := last.run
			last.run = func() { first(); c.run() }
			continue
		}
		if c.stage == vk.StageCompute && !d.infos[queue].Compute {
			d.fail("%s on queue %d, which only transfers", &c.command, queue)
		}
		c.batch = batch
		c.command.batch, c.command.queue = d.submitted, queue
		d.hostWrites(c)
		for _, what := range d.order.add(&c.command) {
			d.fail("%s", what)
		}
		for i := range c.accesses {
			if a := &c.accesses[i]; a.writes && d.blocks[a.buffer].host != nil {
				d.flushes = append(d.flushes, &hostFlush{by: &c.command, access: a, buffer: a.buffer, lo: a.lo, hi: a.hi})
			}
		}
		d.pending = append(d.pending, c)
		batch.left++
		last = c
	}
	if decoded != s.Len() {
		d.fail("submission %d: %d of %d operations can be decoded", signal, decoded, s.Len())
	}
	d.order.signals(queue, signal)
	d.barriers = append(d.barriers, barriers)
	d.changed.Broadcast()
}

// fakeSignal is a signal on a semaphore that is not a queue's timeline, with the submission
// that makes it.
type fakeSignal struct {
	value uint64
	by    timeline.Point
}

// barrier takes a barrier that is in the queue's batch which signals value.
func (d *fakeDevice) barrier(b vk.Barrier, queue int, value uint64) {
	d.masks[b]++
	if b.SrcStage == 0 || b.DstStage == 0 {
		d.fail("submission %d: a barrier without stages", value)
	}
	if !d.infos[queue].Compute && (b.SrcStage|b.DstStage)&vk.StageCompute != 0 {
		d.fail("submission %d: a barrier of compute shaders on queue %d, which only transfers", value, queue)
	}
	const toHost = vk.AccessHostRead | vk.AccessHostWrite
	if b.DstStage&vk.StageHost != 0 && accessesOf(b.DstAccess)&toHost == toHost {
		for _, f := range d.flushes {
			if f.by.madeAvailable(b, queue) {
				f.visible = append(f.visible, timeline.Point{Queue: timeline.Queue(queue), Value: value})
			}
		}
	}
	d.order.barrier(b, queue)
}

// decode turns an operation of a stream into a command, nil if it makes no sense.
func (d *fakeDevice) decode(op vk.Op, n int) *fakeCommand {
	c := &fakeCommand{}
	inside := func(r vk.BufferRange) bool {
		b := d.blocks[r.Buffer]
		if b == nil || r.Size == 0 || r.Offset+r.Size > b.size {
			d.fail("submission %d, operation %d (%v): range %+v is in no block", d.submitted, n, op.Code, r)
			return false
		}
		return true
	}
	touch := func(r vk.BufferRange, read, write vk.Access) {
		c.accesses = append(c.accesses, access{r.Buffer, r.Offset, r.Offset + r.Size, read, write, write != 0, false})
	}
	bytesOf := func(r vk.BufferRange) []byte { return d.blocks[r.Buffer].device[r.Offset : r.Offset+r.Size] }
	switch op.Code {
	case vk.OpCopy:
		c.stage, c.label = vk.StageTransfer, "copy"
		type move struct{ to, from []byte }
		var moves []move
		for _, r := range op.Regions {
			src, dst := vk.BufferRange{Buffer: op.From, Offset: r.SrcOffset, Size: r.Size}, vk.BufferRange{Buffer: op.To, Offset: r.DstOffset, Size: r.Size}
			if !inside(src) || !inside(dst) {
				return nil
			}
			touch(src, vk.AccessTransferRead, 0)
			touch(dst, 0, vk.AccessTransferWrite)
			moves = append(moves, move{bytesOf(dst), bytesOf(src)})
		}
		if len(moves) == 0 {
			d.fail("submission %d, operation %d: a copy of nothing", d.submitted, n)
			return nil
		}
		c.run = func() {
			for _, m := range moves {
				copy(m.to, m.from)
			}
		}
	case vk.OpFill:
		if !inside(op.Dst) {
			return nil
		}
		c.stage, c.label = vk.StageTransfer, "fill"
		touch(op.Dst, 0, vk.AccessTransferWrite)
		c.run = func() {
			for i, b := 0, bytesOf(op.Dst); i < len(b); i++ {
				b[i] = byte(op.Value >> (8 * (i % 4)))
			}
		}
	case vk.OpDispatch:
		o, ok := d.pipelines[op.Pipeline.Handle]
		if !ok || len(op.Bindings) != len(o.Bindings) || uint32(len(op.Push)) > o.PushConstants {
			d.fail("submission %d, operation %d: dispatch of pipeline %d with %d bindings and %d bytes", d.submitted, n, op.Pipeline.Handle, len(op.Bindings), len(op.Push))
			return nil
		}
		for i, limit := range d.props.Limits.MaxComputeWorkGroupCount {
			if op.Count[i] == 0 || uint64(op.Base[i])+uint64(op.Count[i]) > uint64(limit) {
				d.fail("submission %d, operation %d: dispatch of %v workgroups from %v", d.submitted, n, op.Count, op.Base)
			}
		}
		k, _ := fakeKernelOf(o.Label)
		c.stage, c.label, c.pipeline = vk.StageCompute, o.Label, op.Pipeline.Handle
		push := words(bytes.Clone(op.Push))
		ranges := append([]vk.BufferRange(nil), op.Bindings...)
		for i, r := range ranges {
			if !inside(r) {
				return nil
			}
			if r.Offset%d.props.Limits.MinStorageBufferOffsetAlignment != 0 {
				d.fail("submission %d, operation %d: binding at offset %d", d.submitted, n, r.Offset)
			}
			// A binding begins at a multiple of the alignment, and the kernel's argument where
			// its offset member says.
			if at := k.arguments[i].offset; at >= 0 {
				ranges[i].Offset += 4 * uint64(push[at])
				ranges[i].Size -= 4 * uint64(push[at])
			}
			read, write := vk.AccessShaderRead, vk.Access(0)
			if k.arguments[i].writes {
				write = vk.AccessShaderWrite
			}
			// The argument may be longer than the elements that the kernel touches.
			touched := ranges[i]
			touched.Size = min(touched.Size, 4*uint64(push[0]))
			touch(touched, read, write)
			d.blocks[r.Buffer].bound = true
		}
		base, count, limit := op.Base, op.Count, d.props.Limits.MaxComputeWorkGroupCount[0]
		c.run = func() {
			buffers := make([][]uint32, len(ranges))
			for i, r := range ranges {
				buffers[i] = words(bytesOf(r))
			}
			for z := base[2]; z < base[2]+count[2]; z++ {
				// A range that is folded along x continues in the layers along z: see
				// Kernel.planDispatch.
				from := 4 * (uint64(z)*uint64(limit) + uint64(base[0]))
				k.run(buffers, push, from, from+4*uint64(count[0]))
			}
		}
	}
	return c
}

// continues reports whether o is another dispatch of the launch that c belongs to.
func (c *fakeCommand) continues(o *fakeCommand) bool {
	if c.pipeline == 0 || c.pipeline != o.pipeline || len(c.accesses) != len(o.accesses) {
		return false
	}
	for i := range c.accesses {
		if c.accesses[i] != o.accesses[i] {
			return false
		}
	}
	return o.run != nil
}

// checkHostWrites reports writes of the host to bytes that a command, submitted and not yet
// run, uses: the command could see them or not.
func (d *fakeDevice) checkHostWrites(c *fakeCommand) {
	for _, a := range c.accesses {
		b := d.blocks[a.buffer]
		if b == nil || b.host == nil || bytes.Equal(b.host[a.lo:a.hi], b.synced[a.lo:a.hi]) {
			continue
		}
		for i := a.lo; i < a.hi; i++ {
			if b.host[i] != b.synced[i] && (b.known == nil || b.known[i]) {
				d.fail("the host wrote byte %d of buffer %d before %s, which was submitted to use it, had run", i, a.buffer, &c.command)
				return
			}
		}
	}
}

// hostWrites copies to the device what the host wrote to the ranges of c: a submission makes
// the host's earlier writes visible to its commands. It reports where the host wrote while
// commands of the device could use the bytes, or before what the device wrote there was visible
// to it.
func (d *fakeDevice) hostWrites(c *fakeCommand) {
	for _, a := range c.accesses {
		b := d.blocks[a.buffer]
		if b.imported {
			for i := a.lo; i < a.hi; i++ {
				if !b.known[i] {
					b.known[i], b.device[i], b.synced[i] = true, b.host[i], b.host[i]
				}
			}
		}
		if b.host == nil || bytes.Equal(b.host[a.lo:a.hi], b.synced[a.lo:a.hi]) {
			continue
		}
		for i := a.lo; i < a.hi; i++ {
			if b.host[i] == b.synced[i] {
				continue
			}
			for _, f := range d.flushes {
				if f.buffer == a.buffer && f.lo <= i && i < f.hi && f.by != &c.command {
					d.fail("the host wrote byte %d of buffer %d, for %s, before what %s wrote there was visible to it", i, a.buffer, &c.command, f.by)
					return
				}
			}
			for _, o := range d.order.unobserved(d.hostSeen) {
				for _, x := range o.accesses {
					if x.buffer == a.buffer && x.lo <= i && i < x.hi && o.batch < d.submitted {
						d.fail("the host wrote byte %d of buffer %d, for %s, while %s could use it", i, a.buffer, &c.command, o)
						return
					}
				}
			}
			b.device[i], b.synced[i] = b.host[i], b.host[i]
		}
	}
}

// words returns bytes as words.
func words(b []byte) []uint32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
}
