package cost

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vkomp/vkomp/tests/order"
)

// ErrRun matches the error for a run that cannot be simulated.
var ErrRun = errors.New("the run cannot be simulated")

// Options are the options of Of.
type Options struct {
	// Profile is that of the device; nil means H100.
	Profile *Profile
	// Workgroup is what a workgroup of a kernel takes, beyond the Dispatch of the profile.
	Workgroup time.Duration
}

// model is a simulation.
type model struct {
	parts
	profile   *Profile
	workgroup float64
	flow      flow
	threads   []*thread
	queues    []*queue
	byQueue   map[*order.QueueTotals]*queue
	turns     map[[2]int]*turn // by device and family
	signals   map[int]*semaphore
	fences    map[int]*signal
	run       *order.Run
	// order are the indices of the calls that do something rather than wait, of which made have been
	// made, the last one from begun on.
	order []int
	made  int
	begun *moment
	// calls are the moments at which waits have returned, by their index in the run. known is when
	// the first thread knew of a value.
	calls  []*moment
	known  map[order.SemaphorePoint]*moment
	timers timers
	last   *moment
}

// signal is what ends and can be waited for.
type signal struct {
	value  uint64
	at     *moment
	family int // that signalled, -1 for the host
	queue  *queue
}

type semaphore struct {
	signals []signal // in the order in which they happened
	taken   int      // of a binary one: waits
}

// Of computes what a run costs. The error matches ErrRun if the run waits for something that does
// not happen, if the profile has no family like one of the run's, or if a time is longer than a
// time.Duration can be.
func Of(run *order.Run, o Options) (*Report, error) {
	p := o.Profile
	if p == nil {
		p = H100
	}
	m := &model{
		parts: parts{names: map[string]int{}}, profile: p, workgroup: float64(o.Workgroup),
		flow:    flow{load: map[int]*[resources]float64{}},
		byQueue: map[*order.QueueTotals]*queue{}, turns: map[[2]int]*turn{}, signals: map[int]*semaphore{}, fences: map[int]*signal{},
		run: run, calls: make([]*moment, len(run.Calls)), known: map[order.SemaphorePoint]*moment{}, begun: &moment{}, last: &moment{},
	}
	if err := m.load(); err != nil {
		return nil, err
	}
	if err := m.simulate(); err != nil {
		return nil, err
	}
	if err := m.tooLong(m.last); err != nil {
		return nil, err
	}
	r := &Report{Profile: p, Makespan: time.Duration(m.last.at + 0.5), Parts: m.report(m.last), Unknown: run.Unknown}
	for _, q := range m.queues {
		r.Queues = append(r.Queues, QueueTime{q.name, q.family, q.done, time.Duration(q.busy + 0.5)})
	}
	return r, nil
}

// load makes the processes.
func (m *model) load() error {
	threads := map[int]*thread{}
	for i := range m.run.Calls {
		c := &m.run.Calls[i]
		if c.Kind != order.CallSee {
			m.order = append(m.order, i)
		}
		t := threads[c.Thread]
		if t == nil {
			t = &thread{number: c.Thread, now: &moment{}}
			threads[c.Thread] = t
			m.threads = append(m.threads, t)
		}
		t.calls = append(t.calls, thing{c, i})
		for k := range c.Batches {
			if err := m.addBatch(&c.Batches[k], c.Line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) addBatch(b *order.Batch, line int) error {
	totals := b.Queue
	q := m.byQueue[totals]
	if q == nil {
		family, ok := m.profile.family(totals.Family, totals.Flags)
		if !ok {
			return fmt.Errorf("%w: line %d: profile %s has no queue family like %v's, with flags %x", ErrRun, line, m.profile.Name, totals, totals.Flags)
		}
		q = &queue{name: totals.String(), totals: totals, family: family, f: &m.profile.Families[family], now: &moment{}}
		if !q.f.SideBySide {
			key := [2]int{totals.Device, family}
			if m.turns[key] == nil {
				m.turns[key] = &turn{}
			}
			q.turn = m.turns[key]
		}
		m.byQueue[totals] = q
		m.queues = append(m.queues, q)
	}
	batch := &submitted{Batch: b, line: line}
	for _, w := range b.Waits {
		ticket := 0
		if w.Binary {
			s := m.semaphore(w.Semaphore)
			ticket = s.taken
			s.taken++
		}
		batch.tickets = append(batch.tickets, ticket)
	}
	q.batches = append(q.batches, batch)
	return nil
}

func (m *model) semaphore(id int) *semaphore {
	s := m.signals[id]
	if s == nil {
		s = &semaphore{}
		m.signals[id] = s
	}
	return s
}

// reached returns the signal with which a semaphore has a value, or nil. For a binary one the
// ticket is the number of the signal.
func (m *model) reached(p order.SemaphorePoint, ticket int) *signal {
	signals := m.semaphore(p.Semaphore).signals
	if p.Binary {
		if ticket < len(signals) {
			return &signals[ticket]
		}
		return nil
	}
	i, _ := slices.BinarySearchFunc(signals, p.Value, func(s signal, v uint64) int { return cmp.Compare(s.value, v) })
	if i == len(signals) {
		return nil
	}
	return &signals[i]
}

func (m *model) signal(p order.SemaphorePoint, at *moment, q *queue) {
	s := m.semaphore(p.Semaphore)
	s.signals = append(s.signals, signal{p.Value, at, familyOf(q), q})
}

func familyOf(q *queue) int {
	if q == nil {
		return -1
	}
	return q.family
}

// simulate goes on until nothing is left.
func (m *model) simulate() error {
	now := 0.0
	for {
		m.settle(now)
		end, index := m.flow.next()
		switch {
		case index >= 0 && (len(m.timers) == 0 || end <= m.timers[0]):
			now = end
			m.flow.advance(now)
			m.ended(m.flow.end(index), now)
		case len(m.timers) > 0:
			now = m.timers[0]
			for len(m.timers) > 0 && m.timers[0] <= now {
				heap.Pop(&m.timers)
			}
			m.flow.advance(now)
		default:
			return m.stuck()
		}
	}
}

// settle lets all processes go on until none can.
func (m *model) settle(now float64) {
	for again := true; again; {
		again = false
		for _, t := range m.threads {
			again = t.advance(m, now) || again
		}
		for _, q := range m.queues {
			again = q.advance(m, now) || again
		}
	}
}

// stuck returns an error that names what still waits, or nil if nothing does.
func (m *model) stuck() error {
	for _, q := range m.queues {
		if s := q.state(); s != "" {
			return fmt.Errorf("%w: %s", ErrRun, s)
		}
	}
	for _, t := range m.threads {
		if s := t.state(); s != "" {
			return fmt.Errorf("%w: %s", ErrRun, s)
		}
	}
	return nil
}

// wake has the processes looked at when a moment has come.
func (m *model) wake(at *moment) {
	m.last = latest(m.last, at)
	heap.Push(&m.timers, at.at)
}

// timers is a heap of times.
type timers []float64

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i] < t[j] }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(float64)) }

func (t *timers) Pop() any {
	n := len(*t) - 1
	x := (*t)[n]
	*t = (*t)[:n]
	return x
}
