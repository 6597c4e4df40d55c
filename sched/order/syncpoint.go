package order

// SyncPoint is a place in the order of a device: a level of the batch that signals Value on
// the timeline of a queue. A command that follows the point runs after all commands of the
// batch up to that level, and after what these follow. The zero point is before everything.
type SyncPoint struct {
	// Value is the timeline value that the batch signals.
	Value uint64
	// Level is the level in the batch.
	Level int32
	// Queue is the index of the queue.
	Queue int32
}

// maxLevel is above every level of a batch.
const maxLevel = 1 << 30

// Before reports whether p comes before o, which is on the same queue.
func (p SyncPoint) Before(o SyncPoint) bool {
	return p.Value < o.Value || p.Value == o.Value && p.Level < o.Level
}

// Last returns the point of the last command that runs before those at p.
func (p SyncPoint) Last() SyncPoint {
	p.Level = max(p.Level-1, 0)
	return p
}

// Clock is a vector clock. For each queue, by index, it has the value up to which the queue's work
// happened before. It never decreases.
type Clock []uint64

// Covers reports whether the work at p has happened before.
func (c Clock) Covers(p SyncPoint) bool { return c[p.Queue] >= p.Value }

// Join adds what happened before o.
func (c Clock) Join(o Clock) {
	for i, v := range o {
		c[i] = max(c[i], v)
	}
}
