package host

import (
	"runtime"
	"sync"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Job is a host task that is ready to run.
type Job interface {
	// Run is called once, on a goroutine of the pool that holds a place. It does not panic. If it
	// calls runtime.Goexit, it must hold a place then, as it must when it returns.
	Run()
}

// Pool runs host tasks on a bounded number of places. A body holds a place
// while it runs, and gives it back for as long as it blocks, so that no depth of
// nesting can exhaust the pool:
//
//	parent  Run ── Submit(child) ── Leave ┄┄ waits ┄┄┄┄┄ Return ┄┄┄ ── ends
//	                                     ╲ place        ╱ place
//	child                                 Run ──── ends
//
// The places bound the bodies that run, not the goroutines: a body that has left
// keeps its own. A pool with nothing to do has no goroutine and needs no Close.
//
// A Pool is safe for concurrent use. Submit happens before the job's Run, and the actions of one
// holder of a place happen before those of the next.
//
// Submit, Leave and Return cost O(1) for jobs of priority 0 and O(log n) for n
// ready jobs of other priorities, and do not allocate in steady state.
type Pool struct {
	places int

	// mu guards all fields below, and two facts that hold whenever it is unlocked:
	//
	//	(1) free + held == places
	//	(2) free > 0 implies that no job is ready and nobody waits to return
	//
	// A place is held by a worker, from hire until pass, or by a returner from
	// the moment that it is off the list; a body between Leave and Return holds
	// none. A place changes hands under mu and its holder names the next one:
	// nobody competes for a place that was announced, so no announcement can
	// reach the wrong goroutine or none.
	//
	// (1) bounds the bodies. It holds because a place is only taken by free--,
	// given up by free++ in pass, or passed on with free as it was.
	// (2) rules out a lost wake-up. Only three steps could break it: Submit and
	// Return add a wish, and do so only if free is 0; pass adds to free, and does
	// so only if there is no wish.
	mu        lockrank.Mutex[lockrank.HostPool]
	free      int
	ready     readyJobs
	returners returnerList
	// jobTurn says that the next Yield prefers a ready job to a returner if there are both.
	jobTurn bool
	// workers counts the goroutines of the pool, hired those that have ever been started.
	workers int
	hired   uint64
	// dismissed is signalled when no worker is left.
	dismissed *sync.Cond

	// spareWorkers and spareReturners keep records for reuse. They are sync.Pools, so that the
	// garbage collector frees what a burst of jobs leaves.
	spareWorkers   sync.Pool
	spareReturners sync.Pool
}

// NewPool returns a pool of the given number of places, at least 1.
func NewPool(places int) *Pool {
	places = max(places, 1)
	p := &Pool{places: places, free: places}
	p.dismissed = sync.NewCond(&p.mu)
	return p
}

// Places returns the number of bodies that may run at once.
func (p *Pool) Places() int { return p.places }

// Submit makes j ready to run. Jobs start in the order of priority, the highest first, and
// in the order of submission within a priority. Submit neither blocks nor runs j on the caller's
// goroutine, which need not hold a place.
func (p *Pool) Submit(j Job, priority int) {
	p.mu.Lock()
	if p.free == 0 {
		p.ready.push(j, priority)
		p.mu.Unlock()
		return
	}
	p.free--
	w := p.hire(j)
	p.mu.Unlock()
	go w.loop()
}

// Leave gives up the caller's place to the first goroutine that waits to return, or else to the
// first ready job. The caller must hold a place.
func (p *Pool) Leave() {
	p.mu.Lock()
	g := p.pass()
	p.mu.Unlock()
	g.deliver()
}

// Return takes a place, and blocks until there is one. Goroutines that wait to return are served
// in order, and before all jobs that have no place yet. The caller must not hold a place. It need
// not be a goroutine of the pool: one that runs a body itself calls Return before and Leave after
// it.
func (p *Pool) Return() {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return
	}
	r := p.queue()
	p.mu.Unlock()
	p.await(r)
}

// Yield gives the caller's place to a goroutine that waits to return or to a ready job, if there
// is one, and then takes a place again as Return does. If there are both, successive calls favour
// them by turns: otherwise two bodies that poll by Yield could pass a place to and fro for ever,
// and the job for which they wait would never start. If there is neither, Yield calls
// runtime.Gosched. The caller must hold a place.
func (p *Pool) Yield() {
	p.mu.Lock()
	returner, job := p.returners.first != nil, p.ready.len() > 0
	if !returner && !job {
		p.mu.Unlock()
		runtime.Gosched()
		return
	}
	if returner && job {
		returner = !p.jobTurn
		p.jobTurn = !p.jobTurn
	}
	var g grant
	if returner {
		g.returner = p.returners.pop()
	} else {
		g.worker = p.hire(p.ready.pop())
	}
	r := p.queue()
	p.mu.Unlock()
	g.deliver()
	p.await(r)
}

// Drain waits until the pool has no goroutine, and frees the records that it keeps for later
// jobs. The caller must not hold a place, and no job may be submitted meanwhile.
func (p *Pool) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.workers > 0 {
		p.dismissed.Wait()
	}
	p.ready = readyJobs{number: p.ready.number}
}

// Idle reports whether every submitted job has ended and no place is held.
func (p *Pool) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workers == 0 && p.free == p.places
}

// pass takes the caller's place and assigns it to the next holder. mu is held; the caller delivers
// the grant after it has unlocked mu.
func (p *Pool) pass() grant {
	switch {
	case p.returners.first != nil:
		return grant{returner: p.returners.pop()}
	case p.ready.len() > 0:
		return grant{worker: p.hire(p.ready.pop())}
	}
	p.free++
	return grant{}
}

// grant is a place on its way to its next holder. Delivery needs no lock: the holder has been
// removed from all lists, so no other place can be granted to it.
type grant struct {
	returner *returner
	worker   *worker
}

func (g grant) deliver() {
	switch {
	case g.returner != nil:
		g.returner.place <- struct{}{}
	case g.worker != nil:
		go g.worker.loop()
	}
}

// worker is a goroutine of the pool. It holds a place except between Leave and Return of its body.
type worker struct {
	pool *Pool
	// job is the first job that the worker runs, set by hire and taken by work.
	job Job
	// loop is the method value of work: a go statement with a func() variable does not allocate.
	loop func()
}

// hire binds j and a place to a worker whose loop the caller starts. mu is held.
func (p *Pool) hire(j Job) *worker {
	w, _ := p.spareWorkers.Get().(*worker)
	if w == nil {
		w = &worker{pool: p}
		w.loop = w.work
	}
	w.job = j
	p.workers++
	p.hired++
	return w
}

func (w *worker) work() {
	j := w.job
	w.job = nil
	// Deferred, so that a body that calls runtime.Goexit passes its place on.
	defer w.dismiss()
	for j != nil {
		j.Run()
		j = w.pool.next()
	}
}

// next returns the next job for the caller's place, or nil if a goroutine waits to return or
// no job is ready.
func (p *Pool) next() Job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.returners.first != nil || p.ready.len() == 0 {
		return nil
	}
	return p.ready.pop()
}

// dismiss ends the worker and passes its place on.
func (w *worker) dismiss() {
	p := w.pool
	p.mu.Lock()
	if p.workers--; p.workers == 0 {
		p.dismissed.Broadcast()
	}
	g := p.pass()
	p.mu.Unlock()
	g.deliver()
	p.spareWorkers.Put(w)
}

// returner is a goroutine that waits for a place.
type returner struct {
	// place has a buffer of one. It is empty while the returner is on the list, so the sender
	// never blocks, and the receiver may come later.
	place chan struct{}
	next  *returner
}

// queue puts the caller at the end of those who wait to return. mu is held.
func (p *Pool) queue() *returner {
	r, _ := p.spareReturners.Get().(*returner)
	if r == nil {
		r = &returner{place: make(chan struct{}, 1)}
	}
	p.returners.push(r)
	return r
}

// await blocks until r was granted a place.
func (p *Pool) await(r *returner) {
	<-r.place
	p.spareReturners.Put(r)
}

// returnerList is the queue of goroutines that wait to return.
type returnerList struct {
	first, last *returner
}

func (l *returnerList) push(r *returner) {
	if l.first == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
}

// pop removes and returns the first element of the list, which must not be empty.
func (l *returnerList) pop() *returner {
	r := l.first
	l.first, r.next = r.next, nil
	if l.first == nil {
		l.last = nil
	}
	return r
}

// readyJobs holds the jobs without a place: a queue for those of priority 0, which are
// nearly all, and a heap for the others.
type readyJobs struct {
	unranked jobQueue
	ranked   jobHeap
	// number is the number of the last ranked job.
	number uint64
}

func (r *readyJobs) len() int { return r.unranked.n + len(r.ranked) }

func (r *readyJobs) push(j Job, priority int) {
	if priority == 0 {
		r.unranked.push(j)
		return
	}
	r.number++
	r.ranked.push(rankedJob{job: j, priority: priority, number: r.number})
}

// pop removes and returns the first job. There must be one.
func (r *readyJobs) pop() Job {
	if r.unranked.n > 0 && (len(r.ranked) == 0 || r.ranked[0].priority < 0) {
		return r.unranked.pop()
	}
	return r.ranked.pop()
}

// jobQueue is a first-in first-out queue, stored as a list of chunks. It does not refer to popped
// jobs, and keeps at most jobChunksKept chunks besides those that its jobs are in.
type jobQueue struct {
	head, tail *jobChunk
	// first is the index in head of the next job to pop, end the index in tail at which the next
	// one is pushed.
	first, end int
	n          int
	// spare is a list of empty chunks, spares its length.
	spare  *jobChunk
	spares int
}

// jobChunksKept is the number of empty chunks that a queue keeps, which suffices for bursts of
// about 1,000 jobs.
const jobChunksKept = 8

// jobChunk is about 2 kB.
type jobChunk struct {
	jobs [128]Job
	next *jobChunk
}

func (q *jobQueue) push(j Job) {
	if q.tail == nil || q.end == len(q.tail.jobs) {
		q.extend()
	}
	q.tail.jobs[q.end] = j
	q.end++
	q.n++
}

func (q *jobQueue) extend() {
	c := q.spare
	if c == nil {
		c = new(jobChunk)
	} else {
		q.spare, c.next = c.next, nil
		q.spares--
	}
	if q.tail == nil {
		q.head = c
	} else {
		q.tail.next = c
	}
	q.tail, q.end = c, 0
}

// pop removes and returns the first job of the queue, which must not be empty.
func (q *jobQueue) pop() Job {
	c := q.head
	j := c.jobs[q.first]
	c.jobs[q.first] = nil
	q.first++
	q.n--
	switch {
	case q.n == 0:
		// Only the tail is left, and can be filled from its beginning.
		q.first, q.end = 0, 0
	case q.first == len(c.jobs):
		q.head, q.first = c.next, 0
		if q.spares < jobChunksKept {
			q.spare, c.next = c, q.spare
			q.spares++
		}
	}
	return j
}

// rankedJob is a job of a priority other than 0.
type rankedJob struct {
	job      Job
	priority int
	// number orders the jobs of one priority by submission.
	number uint64
}

func (a rankedJob) before(b rankedJob) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.number < b.number
}

// jobHeap is a binary heap whose first element is the next job to pop.
type jobHeap []rankedJob

func (h *jobHeap) push(j rankedJob) {
	s := append(*h, j)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !j.before(s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = j
	*h = s
}

// jobHeapKept is the capacity, in jobs of 32 bytes, below which a heap keeps its
// storage.
const jobHeapKept = 1024

// pop removes and returns the first job of the heap, which must not be empty. It halves the
// storage of a heap that is three quarters empty.
func (h *jobHeap) pop() Job {
	s := *h
	first := s[0].job
	n := len(s) - 1
	j := s[n]
	s[n] = rankedJob{}
	s = s[:n]
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(j) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if n > 0 {
		s[i] = j
	}
	if cap(s) > jobHeapKept && n < cap(s)/4 {
		s = append(make(jobHeap, 0, cap(s)/2), s...)
	}
	*h = s
	return first
}
