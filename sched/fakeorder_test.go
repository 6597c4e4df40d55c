package sched

import (
	"fmt"

	"github.com/vkomp/vkomp/vk"
)

// orderCheck knows which commands of a queue are ordered, and what of their
// writes others see. Program order orders nothing: two commands are ordered if
// a chain of barriers leads from the one to the other, if the later submission
// waits for a semaphore that the earlier signals, or if the host has seen that
// signal before it submits. A write is seen if such a barrier makes it available
// and such a barrier makes it visible.
//
// It decides from the stream alone, and shares no code with the scheduler.
type orderCheck struct {
	// open are commands that some later one might not be ordered after; retired
	// those that everything is ordered after and sees.
	open, retired []*command
	// ran is the number of retired commands, from the first on, that have been
	// executed.
	ran   int
	count int
	// seen is the value that the host has waited for.
	seen uint64
}

// command is what orderCheck knows of one.
type command struct {
	number   int
	batch    uint64
	label    string
	pipeline uint64
	stage    vk.Stage
	accesses []access

	// reached are the stages ordered after the command, available says that its
	// writes are, visible to which accesses.
	reached   vk.Stage
	available bool
	visible   vk.Access

	// after are open commands that this one is ordered after, and so are the
	// first afterRetired that were retired.
	after        []*command
	afterRetired int
	executed     bool
}

// access is a range of bytes that a command may read or write.
type access struct {
	buffer      vk.Buffer
	lo, hi      uint64
	read, write vk.Access
	writes      bool
	// handed: what was written is the host's, which saw it, and saw to it that
	// the device sees what the host makes of it.
	handed bool
}

func (c *command) String() string {
	return fmt.Sprintf("%s (command %d, submission %d)", c.label, c.number, c.batch)
}

const (
	deviceStages   = vk.StageCompute | vk.StageTransfer
	deviceAccesses = vk.AccessShaderRead | vk.AccessShaderWrite | vk.AccessTransferRead | vk.AccessTransferWrite
)

func stagesOf(s vk.Stage) vk.Stage {
	if s&vk.StageAllCommands != 0 {
		s |= deviceStages
	}
	return s
}

func accessesOf(a vk.Access) vk.Access {
	if a&vk.AccessMemoryRead != 0 {
		a |= vk.AccessShaderRead | vk.AccessTransferRead | vk.AccessHostRead
	}
	if a&vk.AccessMemoryWrite != 0 {
		a |= vk.AccessShaderWrite | vk.AccessTransferWrite | vk.AccessHostWrite
	}
	return a
}

// stageAccesses are the accesses that stages make.
func stageAccesses(s vk.Stage) vk.Access {
	var a vk.Access
	if s&vk.StageCompute != 0 {
		a |= vk.AccessShaderRead | vk.AccessShaderWrite
	}
	if s&vk.StageTransfer != 0 {
		a |= vk.AccessTransferRead | vk.AccessTransferWrite
	}
	return a
}

// before reports whether the command is in the first scope of the barrier.
func (c *command) before(b vk.Barrier) bool {
	return stagesOf(b.SrcStage)&(c.stage|c.reached) != 0
}

// madeAvailable reports whether the command's writes are available after the
// barrier.
func (c *command) madeAvailable(b vk.Barrier) bool {
	if !c.before(b) {
		return false
	}
	var writes vk.Access
	for _, a := range c.accesses {
		writes |= a.write
	}
	return c.available || accessesOf(b.SrcAccess)&writes == writes
}

func (o *orderCheck) barrier(b vk.Barrier) {
	kept := o.open[:0]
	for _, c := range o.open {
		if c.before(b) {
			c.available = c.madeAvailable(b)
			if c.available {
				c.visible |= accessesOf(b.DstAccess) & stageAccesses(stagesOf(b.DstStage))
			}
			c.reached |= stagesOf(b.DstStage)
		}
		kept = o.keep(kept, c)
	}
	clear(o.open[len(kept):])
	o.open = kept
}

// keep appends c to kept, or retires it.
func (o *orderCheck) keep(kept []*command, c *command) []*command {
	if c.reached&deviceStages == deviceStages && c.visible&deviceAccesses == deviceAccesses {
		o.retired = append(o.retired, c)
		return kept
	}
	return append(kept, c)
}

// waited: what is submitted from now on waits for a semaphore of this value, a
// full dependency.
func (o *orderCheck) waited(value uint64) {
	kept := o.open[:0]
	for _, c := range o.open {
		if c.batch <= value {
			c.reached, c.available, c.visible = deviceStages, true, deviceAccesses
		}
		kept = o.keep(kept, c)
	}
	clear(o.open[len(kept):])
	o.open = kept
}

// hostWaited: the host has seen value before it submits what follows. That
// orders, and the signal made writes available, but makes them visible to no
// read on the device.
func (o *orderCheck) hostWaited(value uint64) {
	if value == o.seen {
		return
	}
	o.seen = value
	for _, c := range o.open {
		if c.batch <= value {
			c.reached |= deviceStages
			c.available = true
			c.visible |= vk.AccessShaderWrite | vk.AccessTransferWrite
		}
	}
}

// add enters a command, and returns what is wrong with its place.
func (o *orderCheck) add(c *command) (wrong []string) {
	o.count++
	c.number = o.count
	c.afterRetired = len(o.retired)
	for _, e := range o.open {
		ordered := e.reached&c.stage != 0
		if ordered && !e.executed {
			c.after = append(c.after, e)
		}
		if what := e.conflict(c, ordered); what != "" {
			wrong = append(wrong, what)
		}
	}
	o.open = append(o.open, c)
	return wrong
}

// conflict describes a conflict between e and the later c that nothing orders.
func (e *command) conflict(c *command, ordered bool) string {
	for _, x := range e.accesses {
		for _, y := range c.accesses {
			if x.buffer != y.buffer || x.hi <= y.lo || y.hi <= x.lo || !x.writes && !y.writes {
				continue
			}
			where := fmt.Sprintf("of bytes %d to %d of buffer %d", max(x.lo, y.lo), min(x.hi, y.hi), x.buffer)
			if !ordered {
				return fmt.Sprintf("nothing orders the accesses %s by %s and %s", where, e, c)
			}
			if !x.writes || x.handed {
				continue
			}
			if want := y.read | y.write; e.visible&want != want {
				return fmt.Sprintf("what %s wrote %s is not visible to %s", e, where, c)
			}
		}
	}
	return ""
}

// ready reports whether all that the command is ordered after was executed.
func (c *command) ready(o *orderCheck) bool {
	for o.ran < len(o.retired) && o.retired[o.ran].executed {
		o.ran++
	}
	if o.ran < c.afterRetired {
		return false
	}
	for _, e := range c.after {
		if !e.executed {
			return false
		}
	}
	c.after = nil
	return true
}

// unobserved returns the commands that the host has not seen the end of.
func (o *orderCheck) unobserved(observed uint64) (cs []*command) {
	for _, list := range [][]*command{o.retired, o.open} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].batch > observed {
				cs = append(cs, list[i])
			}
		}
	}
	return cs
}
