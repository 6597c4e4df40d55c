package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// A history is a sequence of what a program, its foreign code and the device do. The model
// keeps, for each object, the foreign work that it was given and the constructs that it was in,
// and knows which of these have to come one after the other. It knows nothing of semaphore
// values and queues.

type actionKind int

const (
	doInit actionKind = iota
	doUse
	doDestroy
	doMixed         // init, use and destroy of several objects in one construct
	doAtOnce        // two constructs at once, on two goroutines
	doAnnounce      // Next: announces work
	doSubmit        // submits announced work, to a queue of the foreign code's own
	doThread        // a goroutine submits announced work to the shared queue, when Ready returns
	doWithdraw      // withdraws announced work
	doLend          // Submit
	doPlain         // submits work to the object's own queue, if it has one
	doUnannounced   // Submitted, with the values of the properties and without Next
	doHostTask      // generates a host task that runs until doEndTask
	doEndTask       //
	doSteps         // the device takes steps
	doFaultShared   // vkomp's next submission to the shared queue fails
	doFaultOwn      // vkomp's next submission to the object's own queue fails
	doFaultTask     // the scheduler refuses the next task
	doFaultTimeline // the creation of the next semaphore fails
	doFaultCalls    // the next calls with semaphores fail
	actionKinds
)

type action struct {
	Kind actionKind
	// Which picks the object, the announcement or the host task.
	Which int
	// How has the details: nowait and depend of a construct, the outcome of Submit, the number
	// of steps.
	How int
}

// entry is a construct or foreign work in an object's program.
type entry struct {
	// job is the foreign work or the construct's task, nil if there is none, or none yet.
	job *job
	// construct says that the entry is a construct, which is in the programs of all its
	// objects. label is that of its task, if it has one.
	construct bool
	label     string
	// announced says that the work comes after all that was announced before it.
	announced bool
	// cause is the text by which a failure of this entry would be known. Work that has failed
	// need not be complete before what follows.
	cause string
	// predecessor is a host task on which the construct's task depends.
	predecessor *hostTask
}

// program is an object with what was done with it.
type program struct {
	o         interop.Object
	semaphore vk.Semaphore
	alive     bool
	entries   []*entry
	// threads counts the goroutines that have not submitted their work yet.
	threads int
}

// announcement is announced work that was neither submitted nor withdrawn so far.
type announcement struct {
	of           *program
	entry        *entry
	wait, signal uint64
}

type hostTask struct {
	*held
	ended   int
	failure error
}

type model struct {
	*rig
	programs      []*program
	announcements []*announcement
	hostTasks     []*hostTask
	storage       [2]uint64
	// lastHost are the host tasks that the next construct on each storage depends on.
	lastHost [2]*hostTask
	// errs is everything that was reported, and want what has to be in it exactly once.
	errs []error
	want []string
	// causes are pairs of texts: a report that has the first must have the second as well.
	causes [][2]string
	bad    []string
	// Numbers for causes and constructs, and the count of work that never signals.
	counted, constructs, lost int
	// cancels end the contexts of Submit.
	cancels []context.CancelCauseFunc
}

// report notes the errors that err joins.
func (m *model) report(err error) {
	if several, ok := err.(interface{ Unwrap() []error }); ok && fmt.Sprintf("%T", err) == "*errors.joinError" {
		for _, err := range several.Unwrap() {
			m.report(err)
		}
	} else if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.errs = append(m.errs, err)
	}
}

func (m *model) fail(format string, args ...any) { m.bad = append(m.bad, fmt.Sprintf(format, args...)) }

// cause returns an error whose text no other has.
func (m *model) cause(what string) error {
	m.counted++
	return fmt.Errorf("<%s %d>", what, m.counted)
}

// pick returns the program of an object that was not destroyed.
func (m *model) pick(which int) *program {
	var alive []*program
	for _, p := range m.programs {
		if p.alive {
			alive = append(alive, p)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	return alive[which%len(alive)]
}

func values(s vk.Semaphore, value uint64) []vk.SemaphoreValue {
	return []vk.SemaphoreValue{{Semaphore: s, Value: value}}
}

// construct generates a construct that does the same with each of some objects.
func (m *model) construct(all []*program, action foreign.Action, how int) {
	actions := make([]foreign.Action, len(all))
	for k := range actions {
		actions[k] = action
	}
	m.constructOf(all, actions, how)()()
}

// constructOf prepares a construct. The result generates it, and returns a function that notes
// it in the objects' programs.
func (m *model) constructOf(all []*program, actions []foreign.Action, how int) (generate func() (note func())) {
	t, e := m.prepare(all, actions, how)
	return func() func() {
		generated, err := m.device.Generate(t)
		note := func() { m.note(all, t, e, generated, err) }
		return note
	}
}

func (m *model) prepare(all []*program, actions []foreign.Action, how int) (foreign.Task, *entry) {
	m.constructs++
	t := foreign.Task{Construct: construct.Construct{Label: fmt.Sprint("construct ", m.constructs), Scope: m.scope, NoWait: how&1 != 0}}
	for k, p := range all {
		t.Parts = append(t.Parts, foreign.Part{Object: foreign.Object(p.o), Action: actions[k]})
	}
	e := &entry{construct: true}
	if how&2 != 0 {
		k := how >> 2 & 1
		t.Depend = []tasks.Depend{inOut(&m.storage[k])}
		e.predecessor = m.lastHost[k]
	}
	return t, e
}

func (m *model) note(all []*program, t foreign.Task, e *entry, generated bool, err error) {
	m.report(err)
	if err != nil && (!generated || strings.Contains(err.Error(), "<fault")) {
		// The construct was not generated, or was not submitted: nothing is known of its order.
		return
	}
	if t.NoWait || len(t.Depend) > 0 {
		e.label = t.Label
	}
	for _, p := range all {
		p.entries = append(p.entries, e)
	}
}

// foreignQueue returns a new queue of the foreign code, for one submission.
func (m *model) foreignQueue() *queue { return m.newQueue(fmt.Sprint("foreign ", len(m.queues))) }

func (m *model) submit(a *announcement) {
	s := a.of.semaphore
	m.foreignQueue().submit(values(s, a.wait), nil, a.entry.job, values(s, a.signal))
	m.report(a.of.o.Submitted(a.signal))
}

func (m *model) take(which int) *announcement {
	if len(m.announcements) == 0 {
		return nil
	}
	k := which % len(m.announcements)
	a := m.announcements[k]
	m.announcements = append(m.announcements[:k:k], m.announcements[k+1:]...)
	return a
}

func (m *model) do(a action) {
	p := m.pick(a.Which)
	switch a.Kind {
	case doInit, doMixed, doHostTask, doEndTask, doSteps, doFaultShared, doFaultTask, doFaultTimeline, doFaultCalls:
	case doSubmit, doThread, doWithdraw:
		if len(m.announcements) == 0 {
			return
		}
	default:
		if p == nil {
			return
		}
	}
	switch a.Kind {
	case doInit:
		o, err := m.device.Init(foreign.Types(interop.TypeTargetSync))
		m.report(err)
		if err != nil {
			return
		}
		p := &program{o: interop.Object(o), alive: true}
		p.semaphore, _ = o.Semaphore()
		m.programs = append(m.programs, p)
		m.construct([]*program{p}, foreign.ActionInit, a.How)
	case doUse:
		all := []*program{p}
		for k := range a.How >> 3 & 3 {
			if o := m.pick(a.Which + k + 1); !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
		m.construct(all, foreign.ActionUse, a.How)
	case doDestroy:
		m.construct([]*program{p}, foreign.ActionDestroy, a.How)
		m.report(m.device.Destroy(foreign.Object(p.o)))
		p.alive = false
	case doMixed:
		var all []*program
		var actions []foreign.Action
		for range a.How >> 3 % 3 {
			o, err := m.device.Init(foreign.Types(interop.TypeTargetSync))
			m.report(err)
			if err != nil {
				continue
			}
			n := &program{o: interop.Object(o)}
			n.semaphore, _ = o.Semaphore()
			m.programs = append(m.programs, n)
			all, actions = append(all, n), append(actions, foreign.ActionInit)
		}
		for k := range 1 + a.Which%4 {
			if o := m.pick(a.Which + k); o != nil && !slices.Contains(all, o) {
				action := foreign.ActionUse
				if (a.How>>2+k)%3 == 0 {
					action = foreign.ActionDestroy
				}
				all, actions = append(all, o), append(actions, action)
			}
		}
		m.constructOf(all, actions, a.How)()()
		for k, o := range all {
			o.alive = actions[k] != foreign.ActionDestroy
			if !o.alive {
				m.report(m.device.Destroy(foreign.Object(o.o)))
			}
		}
	case doAtOnce:
		var sets [2][]*program
		for i := range sets {
			for k := range 1 + (a.How>>i)%3 {
				if o := m.pick(a.Which + i + 2*k); !slices.Contains(sets[i], o) {
					sets[i] = append(sets[i], o)
				}
			}
		}
		notes := make(chan func(), 2)
		for i, all := range sets {
			actions := make([]foreign.Action, len(all))
			for k := range actions {
				actions[k] = foreign.ActionUse
			}
			generate := m.constructOf(all, actions, a.How>>i&^2)
			go func() { notes <- generate() }()
		}
		(<-notes)()
		(<-notes)()
	case doAnnounce:
		wait, signal, err := p.o.Next()
		m.report(err)
		if err != nil {
			return
		}
		e := &entry{announced: true, job: &job{name: fmt.Sprintf("%v, announced as %d", p.o, signal)}}
		p.entries = append(p.entries, e)
		m.announcements = append(m.announcements, &announcement{p, e, wait, signal})
	case doSubmit:
		m.submit(m.take(a.Which))
	case doThread:
		m.thread(m.take(a.Which))
	case doWithdraw:
		a := m.take(a.Which)
		a.entry.job = nil
		m.report(a.of.o.Withdraw(a.signal))
	case doLend:
		m.lend(p, a.How)
	case doPlain:
		q, _ := p.o.Queue()
		if !q.Implicit {
			m.lend(p, 0)
			return
		}
		e := &entry{job: &job{name: fmt.Sprintf("%v, plain", p.o)}}
		p.entries = append(p.entries, e)
		q.Lock.Lock()
		m.queueOf(q.Handle).submit(nil, nil, e.job, nil)
		q.Lock.Unlock()
	case doUnannounced:
		wait, _ := p.o.Int(interop.PropertyWaitValue)
		signal, _ := p.o.Int(interop.PropertySignalValue)
		e := &entry{announced: true, job: &job{name: fmt.Sprintf("%v, unannounced %d", p.o, signal)}}
		m.foreignQueue().submit(values(p.semaphore, uint64(wait)), nil, e.job, values(p.semaphore, uint64(signal)))
		m.report(p.o.Submitted(uint64(signal)))
		p.entries = append(p.entries, e)
	case doHostTask:
		k := a.Which & 1
		h := &hostTask{held: m.hostTask(&m.storage[k])}
		if a.How&7 == 0 {
			h.failure = m.cause("host task")
			m.want = append(m.want, h.failure.Error())
		}
		m.lastHost[k] = h
		m.hostTasks = append(m.hostTasks, h)
	case doEndTask:
		for k, h := range m.hostTasks {
			if h.node != nil {
				m.hostTasks = append(m.hostTasks[:k:k], m.hostTasks[k+1:]...)
				m.end(h)
				return
			}
		}
	case doSteps:
		r := rand.New(rand.NewPCG(uint64(a.Which), uint64(a.How)))
		for range a.How % 16 {
			m.step(r.IntN(1 << 20))
			synctest.Wait()
		}
	case doFaultShared:
		m.shared.fail(m.fault())
	case doFaultOwn:
		q, _ := p.o.Queue()
		m.queueOf(q.Handle).fail(m.fault())
	case doFaultTask:
		m.scheduler.mu.Lock()
		m.scheduler.refuse = m.fault()
		m.scheduler.mu.Unlock()
	case doFaultTimeline:
		m.refuse = m.fault()
	case doFaultCalls:
		m.failCalls(1+a.How%8, looks, waits, signals)
	}
}

// fault returns an error that must be reported once if some call returns it.
func (m *model) fault() error { return m.cause("fault") }

func (m *model) end(h *hostTask) {
	m.mu.Lock()
	m.clock++
	h.ended = m.clock
	m.mu.Unlock()
	h.complete(h.failure)
}

// thread starts a goroutine that submits announced work when it may be.
func (m *model) thread(a *announcement) {
	a.of.threads++
	s := a.of.semaphore
	go func() {
		err := a.of.o.Ready(context.Background(), a.wait)
		m.shared.lock.Lock()
		m.shared.submit(values(s, a.wait), nil, a.entry.job, values(s, a.signal))
		m.shared.lock.Unlock()
		err = errors.Join(err, a.of.o.Submitted(a.signal))
		m.report(err)
		m.mu.Lock()
		defer m.mu.Unlock()
		a.of.threads--
	}()
}

// lend has the object submit foreign work, by Submit.
func (m *model) lend(p *program, how int) {
	e := &entry{announced: true}
	signal, _ := p.o.Int(interop.PropertySignalValue)
	q, _ := p.o.Queue()
	ctx, cancel := context.WithCancelCause(context.Background())
	m.cancels = append(m.cancels, cancel)
	submit := func(handle uintptr) error {
		e.job = &job{name: fmt.Sprintf("%v, lent", p.o)}
		m.queueOf(handle).submit(nil, nil, e.job, nil)
		return nil
	}
	cause := m.cause("lend")
	switch how % 8 {
	case 0:
		submit = func(uintptr) error { return cause }
	case 1:
		submit = func(uintptr) error { panic(cause.Error()) }
	case 2:
		cancel(cause)
	default:
		cause = nil
	}
	p.entries = append(p.entries, e)
	err := p.o.Submit(ctx, submit)
	m.report(err)
	switch {
	case q.Implicit:
		e.announced = false
		if cause != nil {
			m.want = append(m.want, cause.Error())
		}
	case cause != nil:
		// What vkomp submits before the work may fail instead.
		own := fmt.Sprintf("%v: foreign work of value %d: ", p.o, signal)
		m.want = append(m.want, own)
		m.causes = append(m.causes, [2]string{own, cause.Error()})
	default:
		e.cause = fmt.Sprintf("%v: foreign work of value %d: ", p.o, signal)
	}
}

// finish ends the program as Runtime.Close does.
func (m *model) finish(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	m.failCalls(0)
	settle := func() {
		for {
			synctest.Wait()
			if m.step(r.IntN(1 << 20)) {
				continue
			}
			left := len(m.hostTasks)
			m.do(action{Kind: doEndTask})
			if len(m.hostTasks) == left {
				return
			}
		}
	}
	threads := 0
	for _, p := range m.programs {
		threads += p.threads
	}
	if threads > 0 {
		// A goroutine may wait for any of the announced work.
		for len(m.announcements) > 0 {
			m.submit(m.take(0))
		}
		settle()
	}
	var kept []*announcement
	for _, a := range m.announcements {
		// The work is said to be submitted, and never signals.
		if r.IntN(3) == 0 {
			a.entry.job = nil
			m.report(a.of.o.Submitted(a.signal))
			m.lost++
			m.want = append(m.want, fmt.Sprintf("%v: value %d of %v", interop.ErrNeverSignalled, a.signal, a.of.o))
		} else {
			kept = append(kept, a)
		}
	}
	m.announcements = kept
	for _, a := range m.announcements {
		a.entry.job = nil
		m.want = append(m.want, fmt.Sprintf("%v: value %d of %v", interop.ErrNeverSubmitted, a.signal, a.of.o))
	}
	m.report(m.device.Withdraw())
	settle()
	for k := 0; k < 1000 && m.scope.Pending(); k++ {
		m.report(m.device.Release())
		time.Sleep(foreignTimeout)
		settle()
	}
	if awaits := m.device.Awaits(); len(awaits) > 0 && m.lost == 0 {
		m.fail("the device awaits %q", awaits)
	}
	m.report(m.device.Withdraw())
	if m.scope.Pending() {
		m.fail("tasks are left: %+v", m.graph.Snapshot().Tasks)
		return
	}
	m.report(m.scope.Wait(context.Background(), nil))
	m.device.Close()
	m.failCalls(r.IntN(4), looks, waits, signals)
	freed := make(chan error, 1)
	go func() { freed <- m.device.Free() }()
	for done := false; !done; {
		settle()
		select {
		case err := <-freed:
			m.report(err)
			done = true
		default:
			time.Sleep(10 * time.Millisecond)
		}
	}
	if len(m.semaphores) > 0 {
		m.fail("%d semaphores are left", len(m.semaphores))
	}
	for _, q := range m.queues {
		if len(q.operations)+len(q.running)+len(q.signals) > 0 {
			m.fail("%s has %d operations, %d jobs and %d signals left", q.name, len(q.operations), len(q.running), len(q.signals))
		}
	}
}

// check compares the order in which things have happened with what the programs demand, and
// what was reported with what had to be.
func (m *model) check() {
	m.bad = append(m.bad, m.failures...)
	said := fmt.Sprint(errors.Join(m.errs...))
	for k := 1; k <= m.counted; k++ {
		for _, what := range []string{"fault", "lend", "host task"} {
			if n := strings.Count(said, fmt.Sprintf("<%s %d>", what, k)); n > 1 {
				m.fail("%s %d is reported %d times", what, k, n)
			}
		}
	}
	if n := strings.Count(said, interop.ErrNeverSignalled.Error()); n != m.lost {
		m.fail("%d works never signalled, %d are reported", m.lost, n)
	}
	for _, want := range m.want {
		if n := strings.Count(said, want); n != 1 {
			m.fail("%q is reported %d times", want, n)
		}
	}
	for _, err := range m.errs {
		for _, c := range m.causes {
			if e := err.Error(); strings.Contains(e, c[0]) && !strings.Contains(e, c[1]) && !strings.Contains(e, c[0]+"<fault") {
				m.fail("%q does not say %q", e, c[1])
			}
		}
		if !strings.Contains(err.Error(), "<") && !errors.Is(err, interop.ErrNeverSubmitted) && !errors.Is(err, interop.ErrNeverSignalled) {
			m.fail("reported: %v", err)
		}
	}
	for _, p := range m.programs {
		for k, e := range p.entries {
			if e.construct && e.label != "" {
				e.job = m.scheduler.made[e.label]
			}
			if e.construct {
				m.checkAcross(p, k, said)
			}
			if e.job == nil {
				continue
			}
			if e.job.end == 0 {
				m.fail("%s of %v has not ended", e.job.name, p.o)
				continue
			}
			if h := e.predecessor; h != nil && h.ended >= e.job.begin {
				m.fail("%v: entry %d begins at %d, its predecessor ends at %d", p.o, k, e.job.begin, h.ended)
			}
			between := e.construct
			for i := k - 1; i >= 0; i-- {
				b := p.entries[i]
				ordered := between || b.construct || e.announced && b.announced
				if e.construct && b.construct {
					ordered = false
				}
				if b.job != nil && ordered && b.job.end >= e.job.begin && !b.failed(said) {
					m.fail("%v: entry %d (%s) ends at %d, entry %d (%s) begins at %d", p.o, i, b.job.name, b.job.end, k, e.job.name, e.job.begin)
				}
				between = between || b.construct
			}
		}
	}
}

// checkAcross checks, for a construct of several objects, that foreign work before it in one
// object's program has ended before foreign work after it in another's begins.
func (m *model) checkAcross(p *program, at int, said string) {
	for _, o := range m.programs {
		i := slices.Index(o.entries, p.entries[at])
		if o == p || i < 0 {
			continue
		}
		for _, b := range p.entries[:at] {
			for _, e := range o.entries[i+1:] {
				if b.construct || e.construct || b.job == nil || e.job == nil || b.failed(said) {
					continue
				}
				if b.job.end >= e.job.begin {
					m.fail("across %v and %v: %s ends at %d, %s begins at %d", p.o, o.o, b.job.name, b.job.end, e.job.name, e.job.begin)
				}
			}
		}
	}
}

// failed reports whether the entry's failure is in what was reported.
func (e *entry) failed(said string) bool { return e.cause != "" && strings.Contains(said, e.cause) }

// runHistory runs a history in a synctest bubble and returns what was wrong.
func runHistory(own int, actions []action, seed uint64) []string {
	m := &model{rig: newRig(own)}
	if seed%2 == 0 {
		m.scheduler.postpones = rand.New(rand.NewPCG(seed, 0))
	}
	for k, a := range actions {
		m.do(a)
		m.outlastFailures()
		synctest.Wait()
		if stuck := m.stuck([]*queue{m.shared, m.scheduler.queue}, m.device.HostRuns()); len(stuck) > 0 {
			m.fail("after action %d, what is not submitted holds up %s", k, stuck)
		}
	}
	m.finish(seed)
	for _, cancel := range m.cancels {
		cancel(nil)
	}
	m.check()
	return m.bad
}

func TestRandomHistoriesKeepTheirOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		own := rapid.IntRange(0, 2).Draw(rt, "own queues")
		actions := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) action {
			return action{
				Kind:  rapid.SampledFrom(frequent).Draw(rt, "kind"),
				Which: rapid.IntRange(0, 5).Draw(rt, "which"),
				How:   rapid.IntRange(0, 31).Draw(rt, "how"),
			}
		}), 1, 60).Draw(rt, "actions")
		seed := rapid.Uint64().Draw(rt, "seed")
		var bad []string
		func() {
			// If goroutines are still blocked at the end, the bubble panics.
			defer func() {
				if v := recover(); v != nil {
					bad = append(bad, fmt.Sprint(v))
				}
			}()
			synctest.Test(t, func(*testing.T) { bad = runHistory(own, actions, seed) })
		}()
		if len(bad) > 0 {
			rt.Fatal(strings.Join(bad, "\n"))
		}
	})
}

// frequent has each kind of action as often as it is to be drawn.
var frequent = func() (all []actionKind) {
	for kind := range actionKinds {
		n := 4
		switch kind {
		case doInit, doDestroy:
			n = 2
		case doUse, doAnnounce, doSteps:
			n = 8
		case doFaultShared, doFaultOwn, doFaultTask, doFaultTimeline, doFaultCalls:
			n = 1
		}
		for range n {
			all = append(all, kind)
		}
	}
	return all
}()
