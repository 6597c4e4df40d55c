package main

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp"
)

// traffic is the copies in addition to the kernels of stressMemory. Each kind is generated after
// a random share of the tasks:
//
//	sent ─map(to)─→ carrier ─map(from)─→ answer     a kernel that asserts a task's slot and
//	                                                what the host sent, and answers both
//	sent, answer ─map(to), map(tofrom)─→ carrier
//	slot ─memcpy─→ mirror ─→ carrier                as above, on a copy on the device
//	slot ─update from─→ host task                   which asserts it
type traffic struct {
	g *stressGraph
	// carriers are the kernels of this kind that have been generated. Each has two slots of storage,
	// sent and answer.
	carriers []carrier
	byTask   map[[2]int]int // step and point, to an index of carriers
	storage  []uint32
	// mirror is device memory for a copy of each point's slot; objects has a byte for each that
	// stands for it in depend clauses.
	mirror  vkomp.DevicePtr
	objects []byte
}

type carrier struct {
	who, task [4]uint32
}

const (
	// trafficBytes bounds the storage of the carriers of a graph; later tasks have none.
	trafficBytes = 64 << 20
	// Each kind of traffic follows one of trafficShare tasks.
	trafficShare = 16
)

// newTraffic allocates the storage for a graph.
func newTraffic(ctx context.Context, g *stressGraph) (t *traffic, err error) {
	t = &traffic{g: g, byTask: map[[2]int]int{}, objects: make([]byte, g.width)}
	t.storage = g.allocate(min(g.tasks(), trafficBytes/4/(2*g.slotSize)) * 2 * g.slotSize)
	if g.unpinned != nil {
		return t, g.unpinned
	}
	t.mirror, err = g.device.Alloc(ctx, g.width*g.slotSize*4)
	return t, err
}

func (t *traffic) free(ctx context.Context) error { return t.g.device.Free(ctx, t.mirror) }

// follow generates the traffic after the task (step, point).
func (t *traffic) follow(ctx context.Context, step, point int) error {
	switch kind := mix(t.g.seed, uint64(step), uint64(point), 5000) % trafficShare; kind {
	case 0, 1, 2:
		return t.carry(ctx, step, point, kind == 1, kind == 2)
	case 3:
		return t.bringHome(ctx, step, point)
	}
	return nil
}

// carry generates a carrier after the task (step, point).
func (t *traffic) carry(ctx context.Context, step, point int, both, mirrored bool) error {
	g := t.g
	size, at := g.slotSize, 2*len(t.carriers)*g.slotSize
	if at+2*size > len(t.storage) {
		return nil
	}
	sent, answer := slot(t.storage[at:][:size:size]), slot(t.storage[at+size:][:size:size])
	// A carrier's point is above those of the pattern.
	c := carrier{who: [4]uint32{uint32(step), uint32(g.width + point), g.number}, task: [4]uint32{uint32(step), uint32(point), g.number}}
	hello := beginning(c.who)
	sent.leave(c.who, &hello)
	back := vkomp.From([]uint32(answer))
	if both {
		c.who[3] = 1
		answer.leave(c.who, &hello)
		back = vkomp.ToFrom([]uint32(answer))
	}
	t.byTask[[2]int{step, point}] = len(t.carriers)
	t.carriers = append(t.carriers, c)

	slotAt := g.index(step, point)
	source, depend, key := g.bindings[slotAt], []vkomp.Depend{g.reads[slotAt]}, slotAt
	if mirrored {
		mirror, object := t.mirror.Add(point*size*4), t.objects[point:][:1]
		original := g.device.MappedPtr(vkomp.HostPtr([]uint32(g.slot(slotAt))))
		if err := g.rt.MemcpyAsync(ctx, mirror, original, size*4, g.reads[slotAt], vkomp.Out(object)); err != nil {
			return err
		}
		g.others++
		// Above the keys of slots, and above the points of carriers.
		key = g.rows*g.width + point
		g.clauses.task(step, 2*g.width+point, true, []int{slotAt}, key)
		source, depend = vkomp.HasDeviceAddr[uint32](mirror, size), []vkomp.Depend{vkomp.In(object)}
	}
	g.clauses.task(step, g.width+point, false, []int{key}, -1)
	g.others++
	return g.rt.Target(ctx, vkomp.Target{Device: g.device, Kernel: g.kernels.carry, Range: vkomp.Range{X: slotLanes}, NoWait: true, Depend: depend,
		Args: []vkomp.Arg{back, source, vkomp.To([]uint32(sent)), vkomp.Value(c.who), vkomp.Value(c.task)}})
}

// bringHome generates an update of a slot's host storage, and a host task that checks it.
func (t *traffic) bringHome(ctx context.Context, step, point int) error {
	g := t.g
	if err := g.fetch(ctx, step, point); err != nil {
		return err
	}
	g.host.wanted++
	g.others++
	return g.rt.Task(ctx, vkomp.Task{Label: "stress host", Depend: []vkomp.Depend{g.host.reads[g.index(step, point)]},
		Body: func(context.Context) error {
			g.checkOnHost(step, point)
			g.host.bodies.Add(1)
			return nil
		}})
}

// inspect checks the answer about a task whose values are v.
func (t *traffic) inspect(step, point int, v *laneValues) {
	k, ok := t.byTask[[2]int{step, point}]
	if !ok {
		return
	}
	g, c := t.g, &t.carriers[k]
	answer := slot(t.storage[(2*k+1)*g.slotSize:][:g.slotSize])
	want := beginning(c.who)
	for l := range want {
		want[l] += v[l]
	}
	var messages []string
	whole := true
	answer.check(c.who, &want, func(element int, found []uint32) {
		whole = whole && [3]uint32(found) == [3]uint32(c.who[:])
		messages = append(messages, badValue(fmt.Sprintf("the answer about step %d point %d", step, point), element, c.who, &want, found))
	})
	if whole {
		// The answer is this carrier's, with its record.
		g.found.add(answer.violations(g.number, 0))
	}
	g.found.add(len(messages), messages)
}
