package main

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/vkomp/vkomp"
)

// hostSide is the host's side of a graph with host tasks: the host storage of the slots and its
// depend items. An update task copies a slot to the host after the task that writes it on the
// device, and back to the device after a host task:
//
//	kernel ─→ update from ─→ host task ─→ update to ─→ kernel
type hostSide struct {
	// objects has a byte for each slot that stands for its host storage in depend clauses, where
	// the slot itself stands for its device storage. reads and writes are the items.
	objects       []byte
	reads, writes []vkomp.Depend
	// fetched is, for each slot, the step whose result the created tasks bring to its host
	// storage, -1 if there is none.
	fetched []int
	// wanted counts the host tasks created, bodies those that have run.
	wanted int
	bodies atomic.Int64
}

func newHostSide(g *stressGraph) *hostSide {
	h := &hostSide{fetched: slices.Repeat([]int{-1}, g.rows*g.width)}
	if g.device.IsInitial() {
		// On the initial device both are the same storage.
		h.reads, h.writes = g.reads, g.writes
		return h
	}
	h.objects = make([]byte, g.rows*g.width)
	for at := range h.objects {
		h.reads = append(h.reads, vkomp.In(h.objects[at:][:1]))
		h.writes = append(h.writes, vkomp.Out(h.objects[at:][:1]))
	}
	return h
}

// fetch generates the update that copies a slot to the host, unless there is one already.
func (g *stressGraph) fetch(ctx context.Context, step, point int) error {
	at := g.index(step, point)
	if g.host.fetched[at] == step {
		return nil
	}
	g.host.fetched[at] = step
	g.others++
	return g.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Device: g.device, Motions: []vkomp.Arg{vkomp.From(g.slot(at).elements())},
		Depend: []vkomp.Depend{g.reads[at], g.host.writes[at]}, NoWait: true})
}

// createOnHost generates the task (step, point) as a host task.
func (g *stressGraph) createOnHost(ctx context.Context, step, point int) error {
	h, own := g.host, g.index(step, point)
	depend := []vkomp.Depend{h.writes[own]}
	if g.gated && step < g.rows {
		depend = append(depend, vkomp.In(g.gate))
	}
	var taken []int
	for _, s := range g.spans {
		for i := s.first; i <= s.last; i++ {
			if err := g.fetch(ctx, step-1, i); err != nil {
				return err
			}
			taken = append(taken, i)
			depend = append(depend, h.reads[g.index(step-1, i)])
		}
	}
	who := g.who(step, point)
	h.wanted++
	g.clauses.task(step, point, true, g.keysOfInputs(step), own)
	err := g.rt.Task(ctx, vkomp.Task{Label: "stress host", Depend: depend, Body: func(context.Context) error {
		lanes := beginning(who)
		for _, i := range taken {
			value := g.checkOnHost(step-1, i)
			lanes.take(&value, uint32(i))
		}
		lanes.work(who)
		g.slot(own).leave(who, &lanes)
		h.bodies.Add(1)
		return nil
	}})
	if err != nil {
		return err
	}
	h.fetched[own] = step
	g.others++
	return g.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Device: g.device, Motions: []vkomp.Arg{vkomp.To(g.slot(own).elements())},
		Depend: []vkomp.Depend{h.reads[own], g.writes[own]}, NoWait: true})
}

// checkOnHost checks the host storage of a slot and returns its values.
func (g *stressGraph) checkOnHost(step, point int) laneValues {
	in := g.slot(g.index(step, point))
	value := in.lanes()
	who := g.who(step, point)
	var messages []string
	in.check(who, &value, func(element int, found []uint32) {
		messages = append(messages, violation("a host task read a result", element, who, found))
	})
	if len(messages) > 0 {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.found.add(len(messages), messages)
	}
	return value
}
