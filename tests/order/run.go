package order

import (
	"fmt"
	"io"
	"math"
)

// Run is what the threads of the host did in a recorded run, as far as it takes time, in the order
// of the log.
type Run struct {
	// Calls are the calls of all threads, in the order of the log.
	Calls []Call
	// Unknown counts commands that the log does not describe.
	Unknown int
}

// CallKind is a kind of Call.
type CallKind uint8

// The kinds of calls.
const (
	CallRecord     CallKind = iota // a command buffer was recorded: Commands
	CallSubmit                     // Batches
	CallSee                        // the host saw Points and Fences, and that Idle are idle
	CallSignal                     // the host signalled Points
	CallFlush                      // the host wrote Bytes of memory with Properties
	CallInvalidate                 // the host reads Bytes of memory with Properties
)

// Call is a call of Vulkan by a thread of the host.
type Call struct {
	Kind   CallKind // what the call does, and which of the other fields it has
	Thread int      // number of the thread of the host
	Line   int      // of the log
	// Commands counts what a command buffer consists of.
	Commands CommandCount
	Batches  []Batch
	Points   []SemaphorePoint
	Fences   []int
	Idle     []*QueueTotals
	// Polled says that the host asked for a value rather than waiting for it.
	Polled     bool
	Bytes      uint64
	Properties uint64 // VkMemoryPropertyFlags
}

// CommandCount counts commands of a command buffer.
type CommandCount struct {
	Barriers, Others int // pipeline barriers, and all other commands
}

// SemaphorePoint is a value of a semaphore, or a signal of a binary one.
type SemaphorePoint struct {
	Semaphore int    // number of the semaphore
	Value     uint64 // of a timeline
	Binary    bool   // whether the semaphore is binary
}

// Batch is one batch of a vkQueueSubmit.
type Batch struct {
	*Submission
	// Waits have to be reached before the commands begin, and Signals are when they have ended.
	Waits, Signals []SemaphorePoint
	Fence          int         // 0 for none
	Commands       []Operation // in their order
}

// OperationKind is a kind of Operation.
type OperationKind uint8

// The kinds of operations.
const (
	OperationDispatch OperationKind = iota // a dispatch, direct or indirect
	OperationCopy                          // a copy between buffers
	OperationFill                          // a fill or an update
	OperationBarrier                       // a pipeline barrier
)

// Operation is a command of a batch.
type Operation struct {
	Kind OperationKind // what the command does
	// Groups is the number of workgroups of a dispatch; of an indirect one it is not known, and 1.
	Groups uint64
	// Copies says that the kernel of a dispatch stores nothing but what it loads: it copies what is
	// bound to it.
	Copies bool
	// Part says that a dispatch is one with the dispatch before it, of another launch of its kernel.
	Part bool
	// Regions are the ranges of memory that a command accesses. A copy has two for each of its
	// regions, the source first.
	Regions []Region
	// Dependencies are the masks of a barrier.
	Dependencies []Dependency
}

// Region is a range of memory that a command accesses. For a kernel it is what is bound, of which
// it may use a part.
type Region struct {
	Bytes       uint64 // size of the range
	Properties  uint64 // VkMemoryPropertyFlags
	Read, Write bool   // how the command accesses it
}

// Dependency has the masks of one memory barrier (VkPipelineStageFlags2, VkAccessFlags2).
type Dependency struct {
	SrcStages, DstStages, SrcAccess, DstAccess uint64 // the masks
}

// Read reads a log to its end. The error matches ErrLog if it cannot be read, or if it is cut off
// in the middle of a line; a run is returned all the same, of the part that was read.
func Read(log io.Reader) (*Run, error) {
	c := newChecker(Options{})
	r := &runReader{checker: c, run: &Run{}}
	c.trace, c.recorded = r.event, r.recorded
	err := c.run(log)
	if err == nil && c.cut {
		err = fmt.Errorf("%w: line %d is cut off", ErrLog, c.line+1)
	}
	return r.run, err
}

// runReader makes a run of the events of a checker.
type runReader struct {
	checker *checker
	run     *Run
	// last is the last command that was added.
	last *Command
}

// add begins a call, or returns the last one if it is of the same kind and line.
func (r *runReader) add(kind CallKind, line int) *Call {
	if n := len(r.run.Calls); n > 0 && r.run.Calls[n-1].Line == line && r.run.Calls[n-1].Kind == kind {
		return &r.run.Calls[n-1]
	}
	r.run.Calls = append(r.run.Calls, Call{Kind: kind, Thread: r.checker.thread.Thread, Line: line})
	return &r.run.Calls[len(r.run.Calls)-1]
}

// recorded adds the recording of a command buffer.
func (r *runReader) recorded(b *commandBuffer) {
	call := r.add(CallRecord, r.checker.line)
	for i := range b.commands {
		switch x := &b.commands[i]; {
		case x.kind == "unknown":
			r.run.Unknown++
		case x.kind == "barrier":
			call.Commands.Barriers++
		case x.part:
		default:
			call.Commands.Others++
		}
	}
}

func (r *runReader) event(ev *event) {
	switch ev.kind {
	case evSubmit:
		call := r.add(CallSubmit, ev.line)
		call.Batches = append(call.Batches, Batch{Submission: r.checker.submitting.last})
	case evWait:
		b := r.batch()
		b.Waits = append(b.Waits, r.point(ev))
	case evSignal:
		b := r.batch()
		b.Signals = append(b.Signals, r.point(ev))
	case evFence:
		if ev.queue < 0 { // a fence that is created signalled
			call := r.add(CallSignal, ev.line)
			call.Fences = append(call.Fences, ev.semaphore)
			return
		}
		// A submission may have a fence and no batch.
		if call := r.add(CallSubmit, ev.line); len(call.Batches) == 0 {
			call.Batches = append(call.Batches, Batch{Submission: &Submission{Queue: r.checker.submitting.QueueTotals}})
		}
		r.batch().Fence = ev.semaphore
	case evCommand, evBarrier:
		if r.last == ev.command {
			return // an indirect dispatch has two events
		}
		r.last = ev.command
		b := r.batch()
		b.Commands = append(b.Commands, operation(r.checker.executing))
	case evReach, evFenceMet, evIdle:
		r.seen(ev)
	case evSemaphore, evHostSignal:
		if !ev.binary {
			call := r.add(CallSignal, ev.line)
			call.Points = append(call.Points, r.point(ev))
		}
	case evHost:
		kind := CallInvalidate
		if ev.command.What == "flush" {
			kind = CallFlush
		}
		call := r.add(kind, ev.line)
		at := ev.touched[len(ev.touched)-1]
		call.Bytes, call.Properties = at.hi-at.lo, r.checker.accessing.properties
	}
}

// point returns the point of an event's semaphore.
func (r *runReader) point(ev *event) SemaphorePoint {
	s := r.checker.semaphores[ev.semaphore]
	return SemaphorePoint{ev.semaphore, ev.value, s != nil && s.binary}
}

// batch returns the last batch.
func (r *runReader) batch() *Batch {
	last := &r.run.Calls[len(r.run.Calls)-1]
	return &last.Batches[len(last.Batches)-1]
}

// seen adds what a wait or a query of the host showed.
func (r *runReader) seen(ev *event) {
	call := r.add(CallSee, ev.line)
	call.Polled = r.checker.how == "count" || r.checker.how == "n"
	switch ev.kind {
	case evReach:
		call.Points = append(call.Points, r.point(ev))
	case evFenceMet:
		call.Fences = append(call.Fences, ev.semaphore)
	case evIdle:
		for _, q := range r.checker.queues {
			if q.lane() == ev.queue {
				call.Idle = append(call.Idle, q.QueueTotals)
			}
		}
	}
}

// operation returns what a run says of a command.
func operation(x *command) Operation {
	o := Operation{Kind: OperationDispatch, Groups: 1, Part: x.part}
	switch {
	case x.kind == "barrier":
		o.Kind = OperationBarrier
		for _, d := range x.dependencies {
			o.Dependencies = append(o.Dependencies, Dependency{d.srcStages, d.dstStages, d.srcAccess, d.dstAccess})
		}
	case x.class == copying:
		o.Kind = OperationCopy
	case x.class == clearing:
		o.Kind = OperationFill
	case x.kind == "dispatch":
		o.Groups = x.groups
	}
	if x.class == computing && x.pipeline != nil {
		o.Copies = x.pipeline.copies
	}
	for _, u := range x.uses {
		r := Region{Bytes: u.size, Read: u.read, Write: u.write}
		if r.Bytes == math.MaxUint64 {
			r.Bytes = u.buffer.size - min(u.offset, u.buffer.size)
		}
		if u.buffer.memory != nil {
			r.Properties = u.buffer.memory.properties
		}
		o.Regions = append(o.Regions, r)
	}
	return o
}
