package host

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"weak"

	"pgregory.net/rapid"
)

// poolFunc is a job that calls a function.
type poolFunc func()

func (f poolFunc) Run() { f() }

// poolBody is a body that does what the test says, one command at a time. The test reads the
// state when every goroutine of its bubble is blocked.
type poolBody struct {
	pool    *Pool
	state   bodyState
	command chan func(*poolBody)
}

type bodyState string

const (
	bodyReady     bodyState = "ready"
	bodyRunning   bodyState = "running"
	bodyLeft      bodyState = "left"
	bodyReturning bodyState = "returning"
	bodyEnded     bodyState = "ended"
)

func (b *poolBody) Run() {
	b.state = bodyRunning
	for command := range b.command {
		command(b)
	}
	if b.state == bodyLeft {
		b.takePlace()
	}
	b.state = bodyEnded
}

// runOutside runs the body on a goroutine that is not one of the pool's.
func (b *poolBody) runOutside() {
	b.takePlace()
	b.Run()
	b.pool.Leave()
}

func (b *poolBody) leave() {
	b.state = bodyLeft
	b.pool.Leave()
}

func (b *poolBody) takePlace() {
	b.state = bodyReturning
	b.pool.Return()
	b.state = bodyRunning
}

func (b *poolBody) yield() {
	b.state = bodyReturning
	b.pool.Yield()
	b.state = bodyRunning
}

// poolModel says who holds a place after each step. It keeps everything in simple slices.
type poolModel struct {
	free      int
	states    []bodyState
	ready     []modelJob
	returners []int
	jobTurn   bool
}

type modelJob struct{ id, priority int }

func (m *poolModel) submit(id, priority int) {
	m.states = append(m.states, bodyReady)
	m.ready = append(m.ready, modelJob{id, priority})
	slices.SortStableFunc(m.ready, func(a, b modelJob) int { return cmp.Compare(b.priority, a.priority) })
	m.settle()
}

func (m *poolModel) outside(id int) {
	m.states = append(m.states, bodyReady)
	m.takePlace(id)
}

func (m *poolModel) takePlace(id int) {
	m.states[id] = bodyReturning
	m.returners = append(m.returners, id)
	m.settle()
}

func (m *poolModel) giveUp(id int, to bodyState) {
	m.states[id] = to
	m.free++
	m.settle()
}

func (m *poolModel) yield(id int) {
	both := len(m.returners) > 0 && len(m.ready) > 0
	switch {
	case len(m.returners) == 0 && len(m.ready) == 0:
		return
	case len(m.returners) == 0, both && m.jobTurn:
		m.startJob()
	default:
		m.resume()
	}
	if both {
		m.jobTurn = !m.jobTurn
	}
	m.states[id] = bodyReturning
	m.returners = append(m.returners, id)
}

// settle gives free places to those who want one.
func (m *poolModel) settle() {
	for ; m.free > 0 && len(m.returners) > 0; m.free-- {
		m.resume()
	}
	for ; m.free > 0 && len(m.ready) > 0; m.free-- {
		m.startJob()
	}
}

func (m *poolModel) resume() {
	m.states[m.returners[0]] = bodyRunning
	m.returners = m.returners[1:]
}

func (m *poolModel) startJob() {
	m.states[m.ready[0].id] = bodyRunning
	m.ready = m.ready[1:]
}

func (m *poolModel) in(state bodyState) []int {
	var ids []int
	for id, s := range m.states {
		if s == state {
			ids = append(ids, id)
		}
	}
	return ids
}

// poolStep is one step of a history: what a body does.
type poolStep struct {
	action   string
	body     int
	priority int
}

func (m *poolModel) do(s poolStep) {
	switch s.action {
	case "submit":
		m.submit(s.body, s.priority)
	case "outside":
		m.outside(s.body)
	case "end":
		m.giveUp(s.body, bodyEnded)
	case "leave":
		m.giveUp(s.body, bodyLeft)
	case "yield":
		m.yield(s.body)
	case "return":
		m.takePlace(s.body)
	}
}

// drawPoolHistory returns steps of which each is possible when its turn comes.
func drawPoolHistory(t *rapid.T, places int) []poolStep {
	m := &poolModel{free: places}
	steps := make([]poolStep, rapid.IntRange(1, 60).Draw(t, "steps"))
	for i := range steps {
		running, left := m.in(bodyRunning), m.in(bodyLeft)
		actions := []string{"submit", "submit", "outside"}
		if len(running) > 0 {
			actions = append(actions, "end", "leave", "leave", "yield", "yield")
		}
		if len(left) > 0 {
			actions = append(actions, "return", "return")
		}
		s := poolStep{action: rapid.SampledFrom(actions).Draw(t, "action"), body: len(m.states)}
		switch s.action {
		case "submit":
			s.priority = rapid.SampledFrom([]int{0, 0, 0, -1, 1, 2}).Draw(t, "priority")
		case "end", "leave", "yield":
			s.body = rapid.SampledFrom(running).Draw(t, "body")
		case "return":
			s.body = rapid.SampledFrom(left).Draw(t, "body")
		}
		steps[i] = s
		m.do(s)
	}
	return steps
}

// TestPoolAgreesWithModel runs random histories, one step at a time. After each step, exactly
// the bodies that the model names hold a place: a place that is free while somebody wants it
// would show, and so would one too many.
func TestPoolAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.IntRange(1, 4).Draw(rt, "places")
		steps := drawPoolHistory(rt, places)
		var err error
		synctest.Test(t, func(*testing.T) { err = replayPoolHistory(places, steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// replayPoolHistory runs a history in the bubble of the caller.
func replayPoolHistory(places int, steps []poolStep) error {
	p, m := NewPool(places), &poolModel{free: places}
	var bodies []*poolBody
	var wrong error
	for i, s := range steps {
		if s.body == len(bodies) {
			b := &poolBody{pool: p, state: bodyReady, command: make(chan func(*poolBody))}
			bodies = append(bodies, b)
		}
		switch b := bodies[s.body]; s.action {
		case "submit":
			p.Submit(b, s.priority)
		case "outside":
			go b.runOutside()
		case "end":
			close(b.command)
			b.command = nil
		case "leave":
			b.command <- (*poolBody).leave
		case "yield":
			b.command <- (*poolBody).yield
		case "return":
			b.command <- (*poolBody).takePlace
		}
		m.do(s)
		synctest.Wait()
		if wrong = comparePool(p, bodies, m); wrong != nil {
			wrong = fmt.Errorf("step %d, %+v: %w", i, s, wrong)
			break
		}
	}
	for _, b := range bodies {
		if b.command != nil {
			close(b.command)
		}
	}
	synctest.Wait()
	s := p.stats()
	if wrong == nil && (!p.Idle() || s.Running+s.Ready+s.Returning+s.Workers != 0) {
		wrong = fmt.Errorf("all bodies may end, stats are %+v", s)
	}
	return wrong
}

// poolStats describes a pool at one moment.
type poolStats struct {
	// Running is the number of places held, Ready the number of jobs without a place, and
	// Returning the number of goroutines that wait in Return or Yield.
	Running, Ready, Returning int
	// Workers is the number of the pool's goroutines, including those whose body has left.
	Workers int
	// Hired is the number of goroutines that the pool has ever started.
	Hired uint64
}

func (p *Pool) stats() poolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := poolStats{Running: p.places - p.free, Ready: p.ready.len(), Workers: p.workers, Hired: p.hired}
	for r := p.returners.first; r != nil; r = r.next {
		s.Returning++
	}
	return s
}

func comparePool(p *Pool, bodies []*poolBody, m *poolModel) error {
	for id, want := range m.states {
		if got := bodies[id].state; got != want {
			return fmt.Errorf("body %d is %s, want %s", id, got, want)
		}
	}
	s, held := p.stats(), len(m.in(bodyRunning))
	if s.Running != held || s.Ready != len(m.ready) || s.Returning != len(m.returners) {
		return fmt.Errorf("stats are %+v, want %d running, %d ready, %d returning",
			s, held, len(m.ready), len(m.returners))
	}
	if want := min(p.Places(), held+len(m.ready)+len(m.returners)); held != want {
		return fmt.Errorf("the model has %d bodies running, want %d", held, want)
	}
	return nil
}

// TestPoolKeepsItsBoundUnderStress runs random trees of bodies that submit,
// leave, return, yield and end in every order that the goroutines find, with
// goroutines from outside among them.
func TestPoolKeepsItsBoundUnderStress(t *testing.T) {
	for _, places := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprintf("places=%d", places), func(t *testing.T) {
			for seed := range uint64(30) {
				s := &poolStress{pool: NewPool(places), places: int64(places)}
				for i := range uint64(8) {
					s.submit(7, rand.New(rand.NewPCG(seed, i)), s.ended.Done)
				}
				for i := range uint64(3) {
					s.ended.Add(1)
					go func() {
						defer s.ended.Done()
						s.pool.Return()
						s.body(6, rand.New(rand.NewPCG(seed, 100+i)))
						s.pool.Leave()
					}()
				}
				s.ended.Wait()
				if n := s.over.Load(); n > 0 {
					t.Fatalf("seed %d: %d times more bodies ran than the %d places", seed, n, places)
				}
				if started, done := s.submitted.Load(), s.ran.Load(); started != done {
					t.Fatalf("seed %d: %d jobs submitted, %d ran", seed, started, done)
				}
			}
		})
	}
}

// A worker of the pool ends when it finds no more jobs. A job that is submitted just then must
// not be missed: each job is submitted as soon as the one before has run, and none comes later
// that would make up for it. The producer spins, since a goroutine that blocks would be woken
// too late to meet the worker.
func TestPoolLosesNoJobToAWorkerThatGoesAway(t *testing.T) {
	p := NewPool(1)
	var ran atomic.Int64
	job := poolFunc(func() { ran.Add(1) })
	for i := range int64(20_000) {
		p.Submit(job, 0)
		for spins := 1; ran.Load() <= i; spins++ {
			if spins%2000 == 0 {
				runtime.Gosched()
			}
		}
	}
}

type poolStress struct {
	pool                          *Pool
	places                        int64
	running, over, submitted, ran atomic.Int64
	ended                         sync.WaitGroup
}

func (s *poolStress) submit(depth int, r *rand.Rand, done func()) {
	s.submitted.Add(1)
	s.ended.Add(1)
	priority := 0
	if r.IntN(4) == 0 {
		priority = r.IntN(3)
	}
	s.pool.Submit(poolFunc(func() {
		s.ran.Add(1)
		s.body(depth, r)
		done()
	}), priority)
}

// body holds a place when it is called and when it returns.
func (s *poolStress) body(depth int, r *rand.Rand) {
	s.count()
	defer s.running.Add(-1)
	var children sync.WaitGroup
	for range r.IntN(8) {
		switch r.IntN(6) {
		case 0:
			s.running.Add(-1)
			s.pool.Yield()
			s.count()
		case 1:
			s.running.Add(-1)
			s.pool.Leave()
			children.Wait()
			s.pool.Return()
			s.count()
		case 2:
			runtime.Gosched()
		default:
			if depth > 0 {
				children.Add(1)
				child := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
				s.submit(depth-1, child, func() { children.Done(); s.ended.Done() })
			}
		}
	}
}

func (s *poolStress) count() {
	if s.running.Add(1) > s.places {
		s.over.Add(1)
	}
}

// runNested runs depth bodies, each of which submits the next and waits for it.
// It reports whether the innermost ran.
func runNested(p *Pool, depth int) bool {
	p.Return()
	defer p.Leave()
	return nest(p, depth)
}

// nest is a body, of which depth more are nested in it.
func nest(p *Pool, depth int) (bottom bool) {
	if depth == 0 {
		return true
	}
	done := make(chan bool, 1)
	p.Submit(poolFunc(func() { done <- nest(p, depth-1) }), 0)
	p.Leave()
	bottom = <-done
	p.Return()
	return bottom
}

func TestPoolDeepNestingNeedsOnePlace(t *testing.T) {
	for _, places := range []int{1, 3} {
		if !runNested(NewPool(places), 10_000) {
			t.Errorf("places=%d: the innermost body did not run", places)
		}
	}
}

// TestPoolReturnersAreServedOneByOne has 10,000 bodies waiting to return, and a single place
// for them.
func TestPoolReturnersAreServedOneByOne(t *testing.T) {
	const bodies = 10_000
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		var running, ended atomic.Int64
		left := make(chan struct{})
		for range bodies {
			p.Submit(poolFunc(func() {
				p.Leave()
				<-left
				p.Return()
				if n := running.Add(1); n > 1 {
					t.Errorf("%d bodies run on one place", n)
				}
				running.Add(-1)
				ended.Add(1)
			}), 0)
		}
		synctest.Wait()
		p.Return()
		close(left)
		synctest.Wait()
		if s := p.stats(); s.Returning != bodies || ended.Load() != 0 {
			t.Fatalf("%d wait to return, %d have ended, want %d and 0", s.Returning, ended.Load(), bodies)
		}
		p.Leave()
		synctest.Wait()
		if ended.Load() != bodies || !p.Idle() {
			t.Fatalf("%d of %d bodies ended, stats are %+v", ended.Load(), bodies, p.stats())
		}
	})
}

func TestPoolWithoutPlacesHasOne(t *testing.T) {
	for _, places := range []int{1, 0, -3} {
		p := NewPool(places)
		if p.Places() != 1 {
			t.Errorf("NewPool(%d) has %d places, want 1", places, p.Places())
		}
		done := make(chan struct{})
		p.Submit(poolFunc(func() { close(done) }), 0)
		<-done
	}
}

func TestPoolReturnerComesBeforeReadyJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		var order []string
		wait := make(chan struct{})
		p.Submit(poolFunc(func() {
			p.Leave()
			<-wait
			p.Return()
			order = append(order, "returner")
		}), 0)
		synctest.Wait()
		p.Return()
		p.Submit(poolFunc(func() { order = append(order, "job") }), 5)
		close(wait)
		synctest.Wait()
		p.Leave()
		synctest.Wait()
		if want := []string{"returner", "job"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

func TestPoolYieldLetsAReadyJobGoFirst(t *testing.T) {
	p := NewPool(1)
	var order []string
	done := make(chan struct{})
	p.Submit(poolFunc(func() {
		p.Submit(poolFunc(func() { order = append(order, "child") }), 0)
		order = append(order, "before")
		p.Yield()
		order = append(order, "after")
		close(done)
	}), 0)
	<-done
	if want := []string{"before", "child", "after"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

// Bodies yield their places until a job has run, for which they wait. Those that want their
// place back otherwise come before new jobs, and each of these bodies always is one of them:
// the job must get a place all the same.
func TestPoolYieldersDoNotStarveTheJobThatTheyPollFor(t *testing.T) {
	p := NewPool(1)
	var flag atomic.Bool
	var pollers sync.WaitGroup
	p.Return()
	for range 2 {
		pollers.Add(1)
		p.Submit(poolFunc(func() {
			defer pollers.Done()
			for !flag.Load() {
				p.Yield()
			}
		}), 1)
	}
	p.Submit(poolFunc(func() { flag.Store(true) }), 0)
	p.Leave()
	pollers.Wait()
}

func TestPoolStartsJobsByPriorityThenSubmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		p.Return()
		var got []modelJob
		var want []modelJob
		r := rand.New(rand.NewPCG(1, 2))
		for id := range 1000 {
			job := modelJob{id: id, priority: max(0, r.IntN(12)-5) - r.IntN(2)}
			want = append(want, job)
			p.Submit(poolFunc(func() { got = append(got, job) }), job.priority)
		}
		slices.SortStableFunc(want, func(a, b modelJob) int { return cmp.Compare(b.priority, a.priority) })
		p.Leave()
		synctest.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
	})
}

func TestPoolBusyWorkerTakesTheNextJobItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 3
		p := NewPool(places)
		gate := make(chan struct{})
		for range 1000 {
			p.Submit(poolFunc(func() { <-gate }), 0)
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if s := p.stats(); s.Hired != places || s.Workers != 0 {
			t.Errorf("stats are %+v, want %d goroutines hired and none left", s, places)
		}
	})
}

func TestPoolBodyThatEndsInGoexitPassesItsPlaceOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1)
		ran := false
		p.Submit(poolFunc(runtime.Goexit), 0)
		p.Submit(poolFunc(func() { ran = true }), 0)
		synctest.Wait()
		if !ran || !p.Idle() {
			t.Errorf("the next job ran: %v, stats are %+v", ran, p.stats())
		}
	})
}

// poolLoad is a job large enough to show in the heap if it stays reachable.
type poolLoad struct {
	_    [256]byte
	done func()
}

func (j *poolLoad) Run() { j.done() }

func TestPoolMillionJobsFlowWithFlatMemory(t *testing.T) {
	const window = 1000
	for priority, jobs := range []int64{0: 1_000_000, 1: 100_000} {
		p := NewPool(2)
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		var ended sync.WaitGroup
		var ran atomic.Int64
		done := func() { ran.Add(1); ended.Done() }
		var early int64
		for i := range jobs / window {
			ended.Add(window)
			for range window {
				p.Submit(&poolLoad{done: done}, priority)
			}
			ended.Wait()
			if i == 10 {
				early = heap()
			}
		}
		if n := ran.Load(); n != jobs {
			t.Errorf("priority %d: %d jobs ran, want %d", priority, n, jobs)
		}
		if grown := heap() - early; grown > 1<<20 {
			t.Errorf("priority %d: the heap grew by %d bytes", priority, grown)
		}
		runtime.KeepAlive(p)
	}
}

// After a burst of jobs, the pool keeps neither the jobs, even while it is still busy, nor the
// memory of its queues once they are empty.
func TestPoolLetsGoOfWhatABurstHeld(t *testing.T) {
	const jobs = 20_000
	for _, priority := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			p := NewPool(1)
			open, shut := make(chan struct{}), make(chan struct{})
			refs := make([]weak.Pointer[poolLoad], 0, jobs+1)
			submit := func(done func()) {
				j := &poolLoad{done: done}
				refs = append(refs, weak.Make(j))
				p.Submit(j, priority)
			}
			submit(func() { <-open })
			for range jobs {
				submit(func() {})
			}
			p.Submit(poolFunc(func() { <-shut }), priority-1)
			var chunks []weak.Pointer[jobChunk]
			for c := p.ready.unranked.head; c != nil; c = c.next {
				chunks = append(chunks, weak.Make(c))
			}
			close(open)
			synctest.Wait()
			runtime.GC()
			reachable := 0
			for _, r := range refs {
				if r.Value() != nil {
					reachable++
				}
			}
			if reachable > 0 {
				t.Errorf("priority %d: %d jobs that have run are reachable", priority, reachable)
			}
			kept := 0
			for _, c := range chunks {
				if c.Value() != nil {
					kept++
				}
			}
			const most = 1 + jobChunksKept
			if priority == 0 && len(chunks) < jobs/len(jobChunk{}.jobs) || kept > most {
				t.Errorf("priority %d: %d of %d chunks are kept, want at most %d", priority, kept, len(chunks), most)
			}
			if n := cap(p.ready.ranked); n > jobHeapKept {
				t.Errorf("priority %d: the heap keeps room for %d jobs, want at most %d", priority, n, jobHeapKept)
			}
			close(shut)
			synctest.Wait()
			if !p.Idle() {
				t.Errorf("stats are %+v", p.stats())
			}
		})
	}
}

// TestPoolAllocatesNothingInSteadyState takes the least of several measurements: a garbage
// collection empties a sync.Pool, and under the race detector it drops a quarter of what is put
// in.
func TestPoolAllocatesNothingInSteadyState(t *testing.T) {
	p := NewPool(1)
	done := make(chan struct{}, 1)
	var end Job = poolFunc(func() { done <- struct{}{} })
	var nothing Job = poolFunc(func() {})
	for _, c := range []struct {
		name string
		op   func()
	}{
		{"Submit to a free place", func() { p.Submit(end, 0); <-done }},
		{"Submit to the queue", func() {
			p.Return()
			p.Submit(nothing, 0)
			p.Submit(end, 0)
			p.Leave()
			<-done
		}},
		{"Submit ranked", func() {
			p.Return()
			p.Submit(nothing, 2)
			p.Submit(end, 1)
			p.Leave()
			<-done
		}},
		{"Leave and Return", func() { p.Return(); p.Leave() }},
		{"Yield", func() {
			p.Return()
			p.Submit(nothing, 0)
			p.Yield()
			p.Leave()
		}},
	} {
		least := testing.AllocsPerRun(20, c.op)
		for range 20 {
			least = min(least, testing.AllocsPerRun(20, c.op))
		}
		if least != 0 {
			t.Errorf("%s: %v allocations, want 0", c.name, least)
		}
	}
}

// jobNumber is a job that is queued and never run. Its number tells it from others.
type jobNumber int

func (jobNumber) Run() {}

// TestJobQueueKeepsOrderAcrossChunks fills and empties the queue to random levels, and compares
// it with a slice.
func TestJobQueueKeepsOrderAcrossChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q jobQueue
		in, out := 0, 0
		for _, n := range rapid.SliceOfN(rapid.IntRange(-1500, 1500), 1, 20).Draw(t, "moves") {
			for ; n > 0; n-- {
				q.push(jobNumber(in))
				in++
			}
			for ; n < 0 && out < in; n++ {
				if got := int(q.pop().(jobNumber)); got != out {
					t.Fatalf("job %d came out, want %d", got, out)
				}
				out++
			}
			if q.n != in-out {
				t.Fatalf("the queue counts %d jobs, want %d", q.n, in-out)
			}
			chunks, spares, most := 0, 0, (in-out)/len(jobChunk{}.jobs)+2
			for c := q.head; c != nil; c = c.next {
				chunks++
			}
			for c := q.spare; c != nil; c = c.next {
				spares++
			}
			if chunks > most || spares != q.spares || spares > jobChunksKept {
				t.Fatalf("%d jobs are held in %d chunks, want at most %d, with %d spares, %d counted",
					in-out, chunks, most, spares, q.spares)
			}
		}
	})
}

func TestJobQueueReusesItsChunks(t *testing.T) {
	var q jobQueue
	var j Job = poolFunc(func() {})
	for _, depth := range []int{1, 100, jobChunksKept * len(jobChunk{}.jobs)} {
		n := testing.AllocsPerRun(10, func() {
			for range 2000 / depth {
				for range depth {
					q.push(j)
				}
				for range depth {
					q.pop()
				}
			}
		})
		if n != 0 {
			t.Errorf("depth %d: %v allocations, want 0", depth, n)
		}
	}
}
