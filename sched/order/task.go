package order

// Task is where the commands of a task are in the order of the device's work.
type Task struct {
	// Owner is whom the Task is part of, for whoever gets it from a batch.
	Owner any
	// At is where the task's last command is, or the last command that it follows when it
	// has none. Its other commands come before it.
	At SyncPoint
	// After has the points of its predecessors, or of the last of its own commands, to which
	// that of the next one is added. Used has the points of its commands, the last on each
	// queue.
	After, Used SyncSet
	// earlier are points that are not in Used since later batches of their queues have
	// commands of the task, the copies of rings apart.
	earlier []SyncPoint
	// Ahead: the commands that are placed next go ahead of what the task follows, and later
	// commands follow both.
	Ahead bool
}

// Reset forgets everything but the owner.
func (t *Task) Reset() {
	t.At, t.Ahead = SyncPoint{}, false
	t.After.Set(SyncPoint{})
	t.Used.Set(SyncPoint{})
	t.earlier = t.earlier[:0]
}

// Placed notes the point of the task's last commands so far, which the next ones follow.
func (t *Task) Placed(at SyncPoint) {
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

// PlaceNothing places a task that has no commands: its point follows what the task does.
// An error is that of Begin. s is working memory.
func (o *Queues) PlaceNothing(t *Task, s *WaitSet) error {
	s.Set(SyncPoint{})
	after := o.withoutSkipped(&t.After)
	for i := range after.Len() {
		// What is complete needs no waiting for, and counts as followed (see MayFollow).
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
	_, at, err := o.Begin(o.AnyQueue(s, 0), s)
	if err == nil {
		t.At = at.Last()
	}
	return err
}

// EndWithBatch has the task end when the batch of its last point is done. It reports false
// if that is neither pending nor in flight.
func (o *Queues) EndWithBatch(t *Task) bool {
	b := o.UnderWay(t.At)
	if b == nil {
		return false
	}
	b.AddTask(t)
	return true
}

// LastBatch returns the batch, pending or in flight, of the task's commands that will be
// complete last; nil if there is none.
func (o *Queues) LastBatch(t *Task) *Batch {
	var last *Batch
	consider := func(p SyncPoint) {
		// The batches follow one another, but for those of rings, which end with the task:
		// what was submitted last is complete last. One may be a batch that was refused.
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
