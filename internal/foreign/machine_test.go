package foreign_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// machine is a small model of a Vulkan device. A queue begins its operations in their order,
// and an operation that waits delays those behind it. Jobs that have begun run side by side,
// and a signal comes when the jobs before it have ended. Things happen only when step is
// called.
type machine struct {
	mu         sync.Mutex
	semaphores map[vk.Semaphore]*semaphore
	created    int
	queues     []*queue
	clock      int
	// failures are the uses of the machine that Vulkan does not allow.
	failures []string
	// refuse, if not nil, is the error of the next creation of a semaphore. lost, if not nil,
	// is the error of all calls, and nothing happens any more.
	refuse, lost error
	// failing, if not nil, has the results of the next calls with semaphores, by the calls'
	// names; a nil element is a call that succeeds.
	failing map[string][]error
	// lingers, if not nil, keeps the next wait of the host for a semaphore from returning until
	// it is closed.
	lingers chan struct{}
	// hostSignals counts the calls with which the host has signalled, hostLooks those with which it has asked for a value.
	hostSignals, hostLooks int
	// owed are the signals of constructs that were refused: the host is to make them.
	owed []vk.SemaphoreValue
	// submissions has the name of the queue of each submission, and destroyed the last value of
	// each destroyed semaphore.
	submissions []string
	destroyed   map[vk.Semaphore]uint64
	// held are the semaphores that submissions use, until somebody has waited for the machine
	// to be idle.
	held map[vk.Semaphore]string
}

type semaphore struct {
	value   uint64
	changed chan struct{}
	// hostWaits are the values that goroutines of the host wait for.
	hostWaits []uint64
}

// job is work that takes time. Its times are counts of the machine's steps, 0 before it begins
// or ends.
type job struct {
	name       string
	begin, end int
	// ended, if not nil, is called when the job ends.
	ended func()
}

// operation is a part of a submission: a wait, a job or a signal.
type operation struct {
	wait, signal vk.SemaphoreValue
	follows, job *job
	// after are the jobs before a signal.
	after []*job
}

type queue struct {
	m      *machine
	name   string
	family uint32
	lock   lock
	// refuse, if not nil, is the error of the next submission.
	refuse error

	// m.mu guards the operations that have not begun, the jobs that run, and the signals to
	// come.
	operations []operation
	running    []*job
	signals    []operation
}

// lock is a lock made of a channel: synctest sees that a goroutine which waits for it is
// blocked.
type lock chan struct{}

// Lock implements sync.Locker.
func (l lock) Lock() { l <- struct{}{} }

// Unlock implements sync.Locker.
func (l lock) Unlock() { <-l }

// held reports whether somebody has the lock.
func (l lock) held() bool { return len(l) > 0 }

func newMachine() *machine {
	return &machine{semaphores: map[vk.Semaphore]*semaphore{}, destroyed: map[vk.Semaphore]uint64{}, held: map[vk.Semaphore]string{}}
}

func (m *machine) newQueue(name string) *queue {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &queue{m: m, name: name, family: uint32(len(m.queues) + 1), lock: make(lock, 1)}
	m.queues = append(m.queues, q)
	return q
}

func (m *machine) queueOf(handle uintptr) *queue {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := slices.IndexFunc(m.queues, func(q *queue) bool { return q.Handle() == handle })
	return m.queues[k]
}

// fail makes the next submission by Order fail.
func (q *queue) fail(err error) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.refuse = err
}

// Handle implements foreign.Queue.
func (q *queue) Handle() uintptr { return uintptr(q.family) << 12 }

// Family implements foreign.Queue.
func (q *queue) Family() uint32 { return q.family }

// Locker implements foreign.Queue.
func (q *queue) Locker() sync.Locker { return q.lock }

// Order implements foreign.Queue.
func (q *queue) Order(waits, signals []vk.SemaphoreValue) error {
	q.lock.Lock()
	defer q.lock.Unlock()
	if err := q.m.gone(); err != nil {
		return err
	}
	if err := q.refuse; err != nil {
		q.refuse = nil
		if len(signals) > 1 {
			q.m.owes(signals)
		}
		return err
	}
	q.submit(waits, nil, nil, signals)
	return nil
}

// gone returns the error of a lost machine.
func (m *machine) gone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// lose makes the machine lost: nothing of what was submitted happens any more.
func (m *machine) lose(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = err
}

func (m *machine) owes(signals []vk.SemaphoreValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed = append(m.owed, signals...)
}

// submit makes a submission. The caller holds the queue's lock.
func (q *queue) submit(waits []vk.SemaphoreValue, follows []*job, j *job, signals []vk.SemaphoreValue) {
	q.m.mu.Lock()
	defer q.m.mu.Unlock()
	q.m.submissions = append(q.m.submissions, q.name)
	for _, v := range slices.Concat(waits, signals) {
		q.m.held[v.Semaphore] = q.name
	}
	for _, v := range waits {
		q.operations = append(q.operations, operation{wait: v})
	}
	for _, f := range follows {
		q.operations = append(q.operations, operation{follows: f})
	}
	if j != nil {
		q.operations = append(q.operations, operation{job: j})
	}
	for _, v := range signals {
		q.operations = append(q.operations, operation{signal: v})
	}
}

// CreateTimeline implements foreign.Timelines.
func (m *machine) CreateTimeline(initial uint64) (vk.Semaphore, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := cmp.Or(m.lost, m.refuse); err != nil {
		m.refuse = nil
		return 0, err
	}
	m.created++
	s := vk.Semaphore(1000 + m.created)
	m.semaphores[s] = &semaphore{value: initial, changed: make(chan struct{})}
	return s, nil
}

// WaitIdle implements foreign.Timelines.
func (m *machine) WaitIdle() error {
	for m.step(0) {
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, q := range m.queues {
		if len(q.operations)+len(q.signals) > 0 && m.lost == nil {
			m.failures = append(m.failures, fmt.Sprintf("%s is waited for and never comes to its end", q.name))
		}
		q.operations, q.signals = nil, nil
	}
	clear(m.held)
	return m.lost
}

// DestroySemaphore implements foreign.Timelines.
func (m *machine) DestroySemaphore(s vk.Semaphore) {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := m.semaphores[s]
	if here == nil {
		m.failures = append(m.failures, fmt.Sprintf("semaphore %d is destroyed, and is none", s))
		return
	}
	if len(here.hostWaits) > 0 {
		m.failures = append(m.failures, fmt.Sprintf("semaphore %d is destroyed, and the host waits for it", s))
	}
	m.destroyed[s] = here.value
	if by, ok := m.held[s]; ok {
		m.failures = append(m.failures, fmt.Sprintf("semaphore %d is destroyed, and %s may still use it", s, by))
	}
	delete(m.semaphores, s)
}

var errNoSemaphore = errors.New("no such semaphore")

// fails returns the error of the next call of that name. The caller holds mu.
func (m *machine) fails(call string) (err error) {
	if next := m.failing[call]; len(next) > 0 {
		err, m.failing[call] = next[0], next[1:]
	}
	return err
}

// failCalls makes the next n calls of each of those names fail for want of memory.
func (m *machine) failCalls(n int, calls ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = map[string][]error{}
	for _, call := range calls {
		m.failing[call] = slices.Repeat([]error{&vk.Error{Op: call, Result: vk.ErrorOutOfHostMemory}}, n)
	}
}

// outlastFailures returns when no goroutine is about to repeat a call that has failed: when a
// second has passed without a failure, which is much longer than anybody waits to try again. No
// fixed time would do, because one goroutine may meet all the failures that failCalls has
// prepared, one after the other.
func (m *machine) outlastFailures() {
	left, prepared := m.failuresLeft()
	for before := -1; prepared && left != before; {
		before = left
		time.Sleep(time.Second)
		left, _ = m.failuresLeft()
	}
}

// failuresLeft returns how many calls are still to fail, and whether failCalls was called.
func (m *machine) failuresLeft() (n int, prepared bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, next := range m.failing {
		n += len(next)
	}
	return n, m.failing != nil
}

// The calls that failCalls can make fail.
const looks, waits, signals = "vkGetSemaphoreCounterValue", "vkWaitSemaphores", "vkSignalSemaphore"

// SemaphoreValue implements foreign.Timelines.
func (m *machine) SemaphoreValue(s vk.Semaphore) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return 0, m.lost
	}
	if m.semaphores[s] == nil {
		m.failures = append(m.failures, fmt.Sprintf("the value of semaphore %d is asked for, which there is not", s))
		return 0, errNoSemaphore
	}
	m.hostLooks++
	if err := m.fails(looks); err != nil {
		return 0, err
	}
	return m.semaphores[s].value, nil
}

// WaitSemaphore implements foreign.Timelines.
func (m *machine) WaitSemaphore(s vk.Semaphore, value uint64, timeout time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	here := m.semaphores[s]
	if m.lost != nil {
		return false, m.lost
	}
	if here == nil {
		m.failures = append(m.failures, fmt.Sprintf("semaphore %d is waited for, which there is not", s))
		return false, errNoSemaphore
	}
	here.hostWaits = append(here.hostWaits, value)
	lingers := m.lingers
	m.lingers = nil
	defer func() {
		if lingers != nil {
			m.mu.Unlock()
			<-lingers
			m.mu.Lock()
		}
		k := slices.Index(here.hostWaits, value)
		here.hostWaits = slices.Delete(here.hostWaits, k, k+1)
	}()
	after := time.After(timeout)
	if err := m.fails(waits); err != nil {
		m.mu.Unlock()
		<-after
		m.mu.Lock()
		return false, err
	}
	for here.value < value {
		changed := here.changed
		m.mu.Unlock()
		select {
		case <-changed:
			m.mu.Lock()
		case <-after:
			m.mu.Lock()
			return here.value >= value, nil
		}
	}
	return true, nil
}

// SignalSemaphore implements foreign.Timelines.
func (m *machine) SignalSemaphore(s vk.Semaphore, value uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if here := m.semaphores[s]; here == nil || value <= here.value {
		m.failures = append(m.failures, fmt.Sprintf("the host signals %d of semaphore %d", value, s))
		return errNoSemaphore
	}
	if err := m.fails(signals); err != nil {
		return err
	}
	// The host may signal several values at once, but none that a queue is to signal.
	for _, q := range m.queues {
		for _, o := range append(slices.Clone(q.operations), q.signals...) {
			if o.signal.Semaphore == s && o.signal.Value <= value {
				m.failures = append(m.failures, fmt.Sprintf("the host signals %d of semaphore %d, of which %s is to signal %d", value, s, q.name, o.signal.Value))
			}
		}
	}
	m.hostSignals++
	m.raise(vk.SemaphoreValue{Semaphore: s, Value: value})
	return nil
}

// signal raises a semaphore for a queue. The values of queues have to be signalled one by one.
// The caller holds m.mu.
func (m *machine) signal(v vk.SemaphoreValue) {
	if s := m.semaphores[v.Semaphore]; v.Value != s.value+1 {
		m.failures = append(m.failures, fmt.Sprintf("value %d of semaphore %d is signalled: it has %d", v.Value, v.Semaphore, s.value))
	}
	m.raise(v)
}

// raise raises a semaphore. The caller holds m.mu.
func (m *machine) raise(v vk.SemaphoreValue) {
	s := m.semaphores[v.Semaphore]
	s.value = max(s.value, v.Value)
	close(s.changed)
	s.changed = make(chan struct{})
}

// can returns what the queue can do next: begin an operation, end a job, or signal. value
// returns the value of a semaphore, and over whether a job has ended.
func (q *queue) can(value func(vk.Semaphore) uint64, over func(*job) bool) (takeUp bool, end []*job, signal bool) {
	if len(q.operations) > 0 {
		o := q.operations[0]
		takeUp = (o.wait.Semaphore == 0 || value(o.wait.Semaphore) >= o.wait.Value) && (o.follows == nil || over(o.follows))
	}
	if len(q.signals) > 0 {
		signal = !slices.ContainsFunc(q.signals[0].after, func(j *job) bool { return !over(j) })
	}
	return takeUp, q.running, signal
}

// takeUp begins the first operation, and returns its job if it is one.
func (q *queue) takeUp() *job {
	o := q.operations[0]
	q.operations = q.operations[1:]
	switch {
	case o.job != nil:
		q.running = append(q.running, o.job)
	case o.signal.Semaphore != 0:
		o.after = slices.Clone(q.running)
		q.signals = append(q.signals, o)
	}
	return o.job
}

// step does one of the things that the queues can do, and reports whether there was one.
func (m *machine) step(choice int) bool {
	m.mu.Lock()
	if m.lost != nil {
		m.mu.Unlock()
		return false
	}
	var can []func() (ended func())
	for _, q := range m.queues {
		takeUp, end, signal := q.can(func(s vk.Semaphore) uint64 { return m.semaphores[s].value }, func(j *job) bool { return j.end > 0 })
		if takeUp {
			can = append(can, func() func() {
				if j := q.takeUp(); j != nil {
					j.begin = m.clock
				}
				return nil
			})
		}
		for k, j := range end {
			can = append(can, func() func() {
				q.running = slices.Delete(slices.Clone(q.running), k, k+1)
				j.end = m.clock
				return j.ended
			})
		}
		if signal {
			can = append(can, func() func() {
				v := q.signals[0].signal
				q.signals = q.signals[1:]
				m.signal(v)
				return nil
			})
		}
	}
	if len(can) == 0 {
		m.mu.Unlock()
		return false
	}
	m.clock++
	ended := can[choice%len(can)]()
	m.mu.Unlock()
	if ended != nil {
		ended()
	}
	return true
}

// stuck names those of the given queues that cannot finish, because what is left on them waits
// for something that nobody has submitted. A signal counts as submitted if a goroutine of the
// host waits to make it, or will make it after others; runs has, for each semaphore of which the
// host waits to signal values that follow one another, the first and the last of them.
func (m *machine) stuck(among []*queue, runs map[vk.Semaphore][2]uint64) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, over := map[vk.Semaphore]uint64{}, map[*job]bool{}
	for s, here := range m.semaphores {
		value[s] = here.value
	}
	ahead := make([]*queue, len(m.queues))
	for k, q := range m.queues {
		ahead[k] = &queue{operations: slices.Clone(q.operations), running: slices.Clone(q.running), signals: slices.Clone(q.signals)}
	}
	for again := true; again; {
		again = false
		for _, q := range ahead {
			takeUp, end, signal := q.can(func(s vk.Semaphore) uint64 { return value[s] }, func(j *job) bool { return over[j] || j.end > 0 })
			again = again || takeUp || len(end) > 0 || signal
			for _, j := range end {
				over[j] = true
			}
			q.running = nil
			if takeUp {
				q.takeUp()
			}
			if signal {
				value[q.signals[0].signal.Semaphore] = q.signals[0].signal.Value
				q.signals = q.signals[1:]
			}
		}
		for s, here := range m.semaphores {
			if slices.Contains(here.hostWaits, value[s]) {
				value[s]++
				if run := runs[s]; run[0] == value[s] {
					value[s] = run[1]
				}
				again = true
			}
		}
		for _, v := range m.owed {
			if value[v.Semaphore] == v.Value-1 {
				value[v.Semaphore]++
				again = true
			}
		}
	}
	var names []string
	for k, q := range ahead {
		if len(q.operations)+len(q.signals) > 0 && slices.Contains(among, m.queues[k]) {
			names = append(names, fmt.Sprintf("%s: %+v", m.queues[k].name, append(q.operations, q.signals...)))
		}
	}
	return names
}

// scheduler executes the tasks of constructs on a queue of its own.
type scheduler struct {
	queue *queue

	mu sync.Mutex
	// refuse, if not nil, is the error of the next task.
	refuse error
	// lost is the error with which the device was lost, and device is told of it.
	lost   error
	device *foreign.Device
	// asked, if not nil, is called when Lost is.
	asked func()
	// failing waits for the goroutine that fails all tasks after the loss.
	failing sync.WaitGroup
	// jobs are the tasks that are not complete, and made are all tasks by their labels.
	jobs map[*tasks.Node]*job
	made map[string]*job
	// postpones, if not nil, chooses which tasks are postponed, and parked are those that wait for the end of a job.
	postpones *rand.Rand
	parked    map[*tasks.Node][]*tasks.Node
}

// Lost implements foreign.Scheduler.
func (s *scheduler) Lost() error {
	if s.asked != nil {
		s.asked()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// Lose implements foreign.Scheduler: it fails all tasks.
func (s *scheduler) Lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return
	}
	s.lost = err
	jobs, parked := s.jobs, s.parked
	s.jobs, s.parked = map[*tasks.Node]*job{}, nil
	s.failing.Go(func() {
		s.device.Lose()
		w := tasks.NewWork()
		for n := range jobs {
			n.Complete(err, w)
			restart(parked[n], w)
		}
		w.Finish()
	})
}

// Postpone implements foreign.Scheduler.
func (s *scheduler) Postpone(n *tasks.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postpones == nil {
		return false
	}
	for _, p := range n.Predecessors() {
		if s.jobs[p] != nil && s.postpones.IntN(2) == 0 {
			if s.parked == nil {
				s.parked = map[*tasks.Node][]*tasks.Node{}
			}
			s.parked[p] = append(s.parked[p], n)
			return true
		}
	}
	return false
}

// restart starts postponed tasks again.
func restart(parked []*tasks.Node, w *tasks.Work) {
	for _, n := range parked {
		w.Restart(n)
	}
}

// Order implements foreign.Scheduler.
func (s *scheduler) Order(n *tasks.Node, f sched.Foreign, w *tasks.Work) error {
	if err := s.queue.m.gone(); err != nil {
		s.Lose(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := cmp.Or(s.lost, s.refuse); err != nil {
		s.refuse = nil
		s.queue.m.owes(f.Signals)
		n.Complete(err, w)
		return err
	}
	j := &job{name: n.Label()}
	j.ended = func() {
		w := tasks.NewWork()
		s.mu.Lock()
		parked := s.parked[n]
		delete(s.jobs, n)
		delete(s.parked, n)
		s.mu.Unlock()
		n.Complete(f.Failure, w)
		restart(parked, w)
		w.Finish()
	}
	s.made[n.Label()] = j
	var follows []*job
	for _, p := range n.Predecessors() {
		if earlier := s.jobs[p]; earlier != nil {
			follows = append(follows, earlier)
		}
	}
	s.jobs[n] = j
	s.queue.lock.Lock()
	s.queue.submit(f.Waits, follows, j, f.Signals)
	s.queue.lock.Unlock()
	n.Placed(w)
	return nil
}

// rig is a device of interop objects on a machine.
type rig struct {
	*machine
	shared    *queue
	own       []*queue
	scheduler *scheduler
	graph     tasks.Graph
	scope     *tasks.Scope
	device    *foreign.Device
}

var handles = interop.Handles{Instance: 0x1000, PhysicalDevice: 0x2000, Device: 0x3000, GetInstanceProcAddr: 0x4000}

const foreignTimeout = 10 * time.Second

// newRig returns a rig with that many queues for objects of their own.
func newRig(own int) *rig {
	r := &rig{machine: newMachine()}
	r.shared = r.newQueue("shared")
	r.scheduler = &scheduler{queue: r.newQueue("scheduler"), jobs: map[*tasks.Node]*job{}, made: map[string]*job{}}
	o := foreign.Options{Number: 3, Domain: 4, Handles: foreign.Handles(handles), Timelines: r.machine, Scheduler: r.scheduler, Shared: r.shared, Timeout: foreignTimeout}
	for k := range own {
		q := r.newQueue(fmt.Sprint("own ", k))
		r.own = append(r.own, q)
		o.Own = append(o.Own, q)
	}
	r.device = foreign.NewDevice(o)
	r.scheduler.device = r.device
	r.scope = r.graph.NewScope()
	return r
}

// steps lets the device do all that it can.
func (r *rig) steps() {
	for r.step(0) {
	}
}

// release calls Release for as long as foreign work has to signal, and once more.
func (r *rig) release() error {
	var errs []error
	for range foreignTimeout / time.Second {
		errs = append(errs, r.device.Release())
		time.Sleep(time.Second)
	}
	return errors.Join(append(errs, r.device.Release())...)
}

// free frees the device's objects and checks that nothing is left.
func (r *rig) free(t *testing.T) {
	t.Helper()
	r.device.Close()
	if err := r.device.Free(); err != nil {
		t.Error(err)
	}
	if len(r.semaphores) > 0 {
		t.Errorf("%d semaphores are left", len(r.semaphores))
	}
	for _, failure := range r.failures {
		t.Error(failure)
	}
}
