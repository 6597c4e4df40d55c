package order

// Task is the place of a task's last command in the order of the device's work.
type Task struct {
	// Owner is the caller's record of the task, found through Batch.Tasks.
	Owner any
	// At is the point of the task's last command or, if it has none, of the last command that it
	// follows. Its other commands come before that point.
	At SyncPoint
}

// Places are the places of all commands of a task that may have several.
type Places struct {
	Task
	// After has the points of its predecessors or, later, of the last of its own commands, which
	// the next command follows. Used has the points of its commands, the last one on each queue.
	After, Used SyncSet
	// earlier are points that are not in Used because later batches of their queues have
	// commands of the task, except for the copies of rings.
	earlier []SyncPoint
	// Ahead says that the commands placed next need not follow what the task follows. Later
	// commands follow both.
	Ahead bool
}

// Reset forgets everything but the owner.
func (t *Places) Reset() {
	t.At, t.Ahead = SyncPoint{}, false
	t.After.Set(SyncPoint{})
	t.Used.Set(SyncPoint{})
	t.earlier = t.earlier[:0]
}

// Placed records the point of the task's last commands so far, which its next commands follow.
func (t *Places) Placed(at SyncPoint) {
	if !t.Ahead {
		t.After.Set(at)
	}
	t.Ahead = false
	t.At = at
	t.After.Add(at)
	for i := range t.Used.Len() {
		if p := t.Used.At(i); p.Queue == at.Queue && p.Value < at.Value {
			t.earlier = append(t.earlier, p)
		}
	}
	t.Used.Add(at)
}

// PlaceNothing places a task without commands: its point is one that follows all that the task
// follows. The error is that of Begin. s is working memory.
func (o *Queues) PlaceNothing(t *Places, s *WaitSet) error {
	s.Set(SyncPoint{})
	after := o.withoutSkipped(&t.After)
	for i := range after.Len() {
		// Complete commands need no wait, and count as followed (see MayFollow).
		if p := after.At(i); !o.Complete(p) {
			s.Add(p)
		}
	}
	switch s.Len() {
	case 0:
		t.At = t.After.First()
		return nil
	case 1:
		t.At = s.First()
		return nil
	}
	_, at, err := o.Begin(o.AnyQueue(s), s)
	if err == nil {
		t.At = at.Last()
	}
	return err
}

// EndWithBatch makes the task end when the batch of its last point is complete. It reports false
// if that batch is neither pending nor in flight.
func (o *Queues) EndWithBatch(t *Task) bool {
	b := o.UnderWay(t.At)
	if b == nil {
		return false
	}
	b.AddTask(t)
	return true
}

// LastBatch returns the pending or submitted batch with commands of the task that will complete
// last, or nil if there is none.
func (o *Queues) LastBatch(t *Places) *Batch {
	var last *Batch
	consider := func(p SyncPoint) {
		// The batches follow one another, except for those of rings, which end with the task, so
		// the one submitted last completes last. A batch may have been refused.
		b := o.UnderWay(p)
		if b != nil && (last == nil || b.seq == 0 || last.seq != 0 && last.seq < b.seq) {
			last = b
		}
	}
	for i := range t.Used.Len() {
		consider(t.Used.At(i))
	}
	for _, p := range t.earlier {
		consider(p)
	}
	return last
}
