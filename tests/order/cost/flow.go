package cost

// resource is something that activities on a device share.
type resource uint8

const (
	workgroups resource = iota // places for workgroups
	bandwidth                  // of the device's memory
	toDevice                   // the bus, in each direction
	toHost
	engine // the queue's own means to copy and to fill
	resources
)

// activity is a command that is being executed.
type activity struct {
	queue *queue
	name  string // of its part
	begin *moment
	bytes uint64
	// alone is the time that it takes alone, and left what is left of it, in nanoseconds. share is
	// what it uses of each resource meanwhile, 1 for all of it.
	alone, left float64
	share       [resources]float64
}

// flow executes the activities of all devices side by side.
type flow struct {
	active []*activity
	at     float64
	load   map[int]*[resources]float64 // by device
	slow   []float64                   // by index of active: by how much it is slower than alone
}

// advance lets time pass.
func (f *flow) advance(at float64) {
	for i, a := range f.active {
		a.left -= (at - f.at) / f.slow[i]
	}
	f.at = at
}

// share computes how fast each activity is, after active has changed.
func (f *flow) share() {
	for _, l := range f.load {
		*l = [resources]float64{}
	}
	for _, a := range f.active {
		a.queue.engine = 0
	}
	for _, a := range f.active {
		l := f.load[a.queue.totals.Device]
		if l == nil {
			l = &[resources]float64{}
			f.load[a.queue.totals.Device] = l
		}
		for r := range engine {
			l[r] += a.share[r]
		}
		a.queue.engine += a.share[engine]
	}
	f.slow = f.slow[:0]
	for _, a := range f.active {
		slow := 1.0
		l := f.load[a.queue.totals.Device]
		for r := range engine {
			if a.share[r] > 0 {
				slow = max(slow, l[r])
			}
		}
		if a.share[engine] > 0 {
			slow = max(slow, a.queue.engine)
		}
		f.slow = append(f.slow, slow)
	}
}

// begin adds an activity.
func (f *flow) begin(a *activity) {
	f.active = append(f.active, a)
	f.share()
}

// next returns when the next activity ends, and its index, or -1 if there is none.
func (f *flow) next() (at float64, index int) {
	index = -1
	for i, a := range f.active {
		if end := f.at + max(a.left, 0)*f.slow[i]; index < 0 || end < at {
			at, index = end, i
		}
	}
	return at, index
}

// end removes an activity.
func (f *flow) end(i int) *activity {
	a := f.active[i]
	f.active = append(f.active[:i], f.active[i+1:]...)
	f.share()
	return a
}
