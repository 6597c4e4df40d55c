package race

import "math"

// entry names a position of a chain. It stands for all tasks of that chain up to that position.
type entry struct{ chain, position uint32 }

// set is a vector clock: what a task, or a point of a region, follows. It is immutable, except
// that mark is the number of the last merge to which it was added.
type set struct {
	entries []entry
	mark    uint64
}

// chain is a sequence of tasks, each of which follows all remembered tasks before it. Positions
// begin at 1.
type chain struct {
	tail uint32
	// tasks counts the tasks of the chain that are remembered (see Task.holds). A chain without
	// any can be continued by every task, at the next position.
	tasks int32
	// spare is set while the chain is in the clock's list of spare chains.
	spare bool
}

// clock merges sets. A merge begins with reset; follows can then be asked about what was added,
// and build makes a set of it.
type clock struct {
	chains []chain
	spare  []uint32

	// at is the merge: a position for each chain, 0 for none. touched lists the chains that have
	// a position, and merge is the number of the merge.
	at      []uint32
	touched []uint32
	merge   uint64
}

func (c *clock) reset() {
	for _, i := range c.touched {
		c.at[i] = 0
	}
	c.touched = c.touched[:0]
	c.merge++
}

// add merges s, and reports whether that changed the merge.
func (c *clock) add(s *set) (more bool) {
	if s == nil || s.mark == c.merge {
		return false
	}
	s.mark = c.merge
	for _, e := range s.entries {
		if c.addEntry(e) {
			more = true
		}
	}
	return more
}

func (c *clock) addEntry(e entry) bool {
	if e.position == 0 || c.at[e.chain] >= e.position {
		return false
	}
	if c.at[e.chain] == 0 {
		c.touched = append(c.touched, e.chain)
	}
	c.at[e.chain] = e.position
	return true
}

// follows reports whether the merge contains e.
func (c *clock) follows(e entry) bool { return c.at[e.chain] >= e.position }

// build returns the merge as a set, without chains that have no remembered tasks.
func (c *clock) build() *set {
	n := 0
	for _, i := range c.touched {
		if c.chains[i].tasks > 0 {
			n++
		}
	}
	s := &set{entries: make([]entry, 0, n), mark: c.merge}
	for _, i := range c.touched {
		if c.chains[i].tasks > 0 {
			s.entries = append(s.entries, entry{i, c.at[i]})
		}
	}
	return s
}

// last reports whether the merge contains the last task of a chain, which can then be continued.
func (c *clock) last(i uint32) bool {
	return c.at[i] != 0 && c.at[i] == c.chains[i].tail && c.chains[i].tail < math.MaxUint32
}

// next returns the next position of a chain.
func (c *clock) next(i uint32) entry {
	c.chains[i].tail++
	return entry{i, c.chains[i].tail}
}

// unused returns a chain without remembered tasks.
func (c *clock) unused() uint32 {
	for n := len(c.spare); n > 0; n = len(c.spare) {
		i := c.spare[n-1]
		c.spare = c.spare[:n-1]
		c.chains[i].spare = false
		if c.chains[i].tasks == 0 && c.chains[i].tail < math.MaxUint32 {
			return i
		}
	}
	c.chains = append(c.chains, chain{})
	c.at = append(c.at, 0)
	return uint32(len(c.chains) - 1)
}

// remember counts one more remembered task of a chain.
func (c *clock) remember(i uint32) { c.chains[i].tasks++ }

// forget is the reverse of remember.
func (c *clock) forget(i uint32) {
	at := &c.chains[i]
	at.tasks--
	if at.tasks == 0 && !at.spare {
		at.spare = true
		c.spare = append(c.spare, i)
	}
}
