package sched

import (
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/vk"
)

// orderCheck knows which commands of a device are ordered, and which of their writes are
// visible to the others. The order of submission alone orders nothing. Two commands are ordered
// if a chain of barriers, and of semaphores between queues, leads from one to the other, or if
// the host has seen a signal behind the first before it submits the second. A write is visible
// to a command if a barrier or a signal of that chain makes it available, and a barrier or a
// wait makes it visible.
//
// The check works on the submitted streams alone, and shares no code with the scheduler.
type orderCheck struct {
	// open are the commands that a later command may not be ordered after; retired are those
	// that every later command is ordered after and sees the writes of.
	open, retired []*command
	// ran is the number of commands at the start of retired that have been executed.
	ran    int
	count  int
	queues int
	// told has, for each queue, how many of the retired commands know by which value of the
	// queue they are signalled.
	told []int
}

// command is a command as orderCheck knows it.
type command struct {
	number int
	// batch is the number of its submission among those of all queues.
	batch    uint64
	queue    int
	label    string
	pipeline uint64
	stage    vk.Stage
	accesses []access

	// How far the command's effects have come. reached has, for each queue, the stages that are
	// ordered after it; visible the accesses that see its writes; signalled the first value of
	// the queue's timeline that comes after it, 0 if there is none yet. available says that its
	// writes are available.
	reached   []vk.Stage
	available bool
	visible   []vk.Access
	signalled []uint64

	// The command comes after those in after, which were open when it was submitted, and after
	// the first afterRetired of the retired commands.
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
	// handed says that the host has seen what was written, and owns the bytes now: what it
	// writes there reaches the device with a later submission.
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

// stageAccesses returns the accesses that stages can make.
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

// before reports whether the command is in the first synchronization scope of a barrier of the
// queue.
func (c *command) before(b vk.Barrier, queue int) bool {
	stages := c.reached[queue]
	if c.queue == queue {
		stages |= c.stage
	}
	return stagesOf(b.SrcStage)&stages != 0
}

// madeAvailable reports whether the command's writes are available after a barrier of the
// queue.
func (c *command) madeAvailable(b vk.Barrier, queue int) bool {
	if !c.before(b, queue) {
		return false
	}
	var writes vk.Access
	for _, a := range c.accesses {
		writes |= a.write
	}
	return c.available || accessesOf(b.SrcAccess)&writes == writes
}

func (o *orderCheck) barrier(b vk.Barrier, queue int) {
	o.each(func(c *command) {
		if c.before(b, queue) {
			c.available = c.madeAvailable(b, queue)
			if c.available {
				c.visible[queue] |= accessesOf(b.DstAccess) & stageAccesses(stagesOf(b.DstStage))
			}
			c.reached[queue] |= stagesOf(b.DstStage)
		}
	})
}

// each calls f for every open command, and retires those that every later command is ordered
// after and sees the writes of.
func (o *orderCheck) each(f func(*command)) {
	kept := o.open[:0]
	for _, c := range o.open {
		f(c)
		done := true
		for q := range o.queues {
			done = done && c.reached[q]&deviceStages == deviceStages && c.visible[q]&deviceAccesses == deviceAccesses
		}
		if done {
			o.retired = append(o.retired, c)
		} else {
			kept = append(kept, c)
		}
	}
	clear(o.open[len(kept):])
	o.open = kept
}

// signals notes that the queue signals a value behind all commands that were submitted to it,
// and behind all that these follow.
func (o *orderCheck) signals(queue int, value uint64) {
	follows := func(c *command) {
		if c.signalled[queue] == 0 && (c.queue == queue || c.reached[queue] != 0) {
			c.signalled[queue] = value
			c.available = true
		}
	}
	o.each(follows)
	for _, c := range o.retired[o.told[queue]:] {
		follows(c)
	}
	o.told[queue] = len(o.retired)
}

// waited notes that what is submitted to a queue from now on waits for a value of another
// queue's timeline. A semaphore orders everything and makes all writes visible.
func (o *orderCheck) waited(queue, other int, value uint64) {
	o.each(func(c *command) {
		if v := c.signalled[other]; v != 0 && v <= value {
			c.reached[queue], c.visible[queue] = deviceStages, deviceAccesses
		}
	})
}

// hostWaited notes that the host has seen a value of a queue's timeline before its next
// submission. That orders the commands, and the signal has made their writes available; but
// without a barrier no read of the device sees them.
func (o *orderCheck) hostWaited(queue int, value uint64) {
	o.each(func(c *command) {
		if v := c.signalled[queue]; v != 0 && v <= value {
			for q := range o.queues {
				c.reached[q] |= deviceStages
				c.visible[q] |= vk.AccessShaderWrite | vk.AccessTransferWrite
			}
		}
	})
}

// add takes a command that is being submitted, and returns what is wrong with its order.
func (o *orderCheck) add(c *command) (wrong []string) {
	o.count++
	c.number = o.count
	c.afterRetired = len(o.retired)
	c.reached, c.visible, c.signalled = make([]vk.Stage, o.queues), make([]vk.Access, o.queues), make([]uint64, o.queues)
	for _, e := range o.open {
		ordered := e.reached[c.queue]&c.stage != 0
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

// conflict describes how the later command c conflicts with e, "" if it does not.
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
			if want := y.read | y.write; e.visible[c.queue]&want != want {
				return fmt.Sprintf("what %s wrote %s is not visible to %s", e, where, c)
			}
		}
	}
	return ""
}

// ready reports whether all commands that c comes after were executed.
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

// unobserved returns the commands whose end the host has not seen, where observed has the
// values of the queues that it has.
func (o *orderCheck) unobserved(observed []uint64) (cs []*command) {
	for _, list := range [][]*command{o.retired, o.open} {
		for _, c := range slices.Backward(list) {
			seen := false
			for q, v := range observed {
				seen = seen || c.signalled[q] != 0 && c.signalled[q] <= v
			}
			if !seen {
				cs = append(cs, c)
			}
		}
	}
	return cs
}
