package order

import "slices"

// hostColumn is the column of the host's accesses; the columns of queues follow.
const hostColumn = 0

// knowledge is what later commands of one class are ordered after.
type knowledge struct {
	// done is what has executed, available whose writes are available to the device, and read and
	// written whose writes are visible to reads and to writes of the class.
	done, available, read, written vector
}

// part is knowledge of the writes to one section, which comes from buffer barriers.
type part struct {
	section
	class                    class
	available, read, written vector
}

// signal is a submitted signal operation. Its vectors are shared.
type signal struct {
	value           uint64
	queue           int // -1 for the host
	done, available vector
	// What barriers have made visible to the host's reads and writes.
	hostRead, hostWritten vector
	parts                 []part // for the host
}

// waiting is a wait whose signal has not been submitted.
type waiting struct {
	value uint64
	of    *event
}

// semaphore is a semaphore of either type. A binary one has at most one signal, which has no value.
type semaphore struct {
	binary bool
	// last is the largest submitted value, and passed at first the initial one. Signals up to passed are
	// forgotten: the host knew what they took before all submissions whose waits are to come, and passes it on
	// with these.
	last, passed uint64
	// by is the queue of the last signal, -1 for the host, and pos that of the signal's batch.
	by      int
	pos     uint64
	signals []signal // ascending
	waiting []waiting
}

// lane is the knowledge of one queue.
type lane struct {
	column int    // the first of its deviceClasses columns
	pos    uint64 // of its last command, or its last batch if that has none
	batch  uint64 // pos of its last batch
	after  [classes]knowledge
	// What barriers have made visible to the host.
	hostRead, hostWritten vector
	parts                 []part
	// submitted are the batches that have not begun.
	submitted []submission
}

// submission is what the host passes on with a batch.
type submission struct {
	pos             uint64 // of what the host did
	done, available vector
}

// hearing says what a submission passes on of what the host has seen of the device.
type hearing uint8

const (
	// hearsAll: what the host has seen is executed, and its writes are visible, for all commands
	// of the submission: its second access scope is all accesses of the device.
	hearsAll hearing = iota
	// hearsEnd: it is executed and its writes are available, and visible only after a barrier: the
	// first access scope of a submission is only what the host wrote.
	hearsEnd
	// deaf: nothing of it, and the host is assumed to act as early as it can.
	deaf
)

// engine replays synchronization: everything that orders commands, but not their accesses.
type engine struct {
	lanes      []*lane
	host       knowledge
	hostParts  []part
	hostPos    uint64
	semaphores map[int]*semaphore
	fences     map[int]*signal
	hears      hearing
	// found is called for each violation, with the event and the missing order, if it is one.
	found func(problem, *event, *need)
}

// problem is a kind of violation.
type problem uint8

const (
	unordered     problem = iota // an order that accesses need is missing
	early                        // a wait was submitted before its signal
	hang                         // a wait is never signalled
	notGrowing                   // a timeline is signalled with a value that is not larger
	doubleSignal                 // a binary semaphore is signalled twice
	racing                       // nothing orders a timeline's signal after its last one
	sawUnsignaled                // the host saw a value that nothing signals
)

// needKind says in which way a command must come after another.
type needKind uint8

const (
	needDone    needKind = iota // the earlier command is executed before
	needRead                    // and its writes are visible to the later command's reads
	needWritten                 // and its writes are visible to the later command's writes
	needEnded                   // all stages of the batch at pos have executed; column is the first of its queue
)

// need is an order that two accesses or a clause require.
type need struct {
	kind   needKind
	column int
	pos    uint64
	other  *Command
	at     section // that both access; without a space if the order is a clause's
	edge   string  // the clause's edge
}

// eventKind is the kind of an event.
type eventKind uint8

const (
	evQueue eventKind = iota // a queue is created: queue
	evSemaphore
	evSubmit   // the host submits a batch to the queue
	evBegin    // the first batch that has not begun begins: pos, which no command of it has
	evWait     // of a batch: semaphore, value, stages
	evBarrier  // dependencies
	evCommand  // of the queue: class, pos, needs
	evSignal   // of a batch: semaphore, value, stages
	evFence    // of the queue
	evHost     // an access by the host: pos, needs
	evReach    // the host saw a semaphore's value
	evFenceMet // the host saw the fence signalled
	evIdle     // the host saw the queue idle
	evHostSignal
	evRetire // an object goes: needs
	evForget // a semaphore is destroyed
)

// touch is an access to bytes, or the end of their memory.
type touch struct {
	section
	memory      *memory // through which; imported memory may share bytes with another import
	read, write bool
	retired     bool // the memory ends
}

// event is one step of a replay.
type event struct {
	kind         eventKind
	class        class
	binary       bool
	queue        int
	semaphore    int // or fence
	value        uint64
	stages       uint64
	pos          uint64
	dependencies []dependency
	needs        []need
	command      *Command
	line         int
	// foretold are, for a signal, the orders needed by later accesses of the host that it may make
	// once it sees this signal; only kept for traces.
	foretold []need
	// touched are the accesses of a command or the host, or the memory that ends; only kept for
	// traces.
	touched []touch
}

func newEngine() *engine {
	return &engine{semaphores: map[int]*semaphore{}, fences: map[int]*signal{}}
}

// do processes one event.
func (e *engine) do(ev *event) {
	switch ev.kind {
	case evQueue:
		for len(e.lanes) <= ev.queue {
			e.lanes = append(e.lanes, nil)
		}
		e.lanes[ev.queue] = &lane{column: 1 + ev.queue*deviceClasses, pos: ev.pos}
	case evSemaphore:
		e.semaphores[ev.semaphore] = &semaphore{binary: ev.binary, last: ev.value, passed: ev.value, by: -1}
	case evForget:
		e.forget(ev)
	case evSubmit:
		e.submit(e.lanes[ev.queue])
	case evBegin:
		e.begin(e.lanes[ev.queue])
		e.lanes[ev.queue].pos, e.lanes[ev.queue].batch = ev.pos, ev.pos
	case evWait:
		e.wait(ev)
	case evBarrier:
		e.lanes[ev.queue].barrier(ev.dependencies)
	case evCommand:
		l := e.lanes[ev.queue]
		for i := range ev.needs {
			if n := &ev.needs[i]; !l.follows(ev.class, n) {
				e.found(unordered, ev, n)
			}
		}
		l.pos = ev.pos
	case evSignal:
		e.signal(ev)
	case evFence:
		var s signal // of a fence that is created signalled
		if ev.queue >= 0 {
			s = e.lanes[ev.queue].signals(source(stageAllCommands))
			e.foretell(ev, &s)
		}
		e.fences[ev.semaphore] = &s
	case evHost, evRetire:
		for i := range ev.needs {
			if n := &ev.needs[i]; !e.hostFollows(n) {
				e.found(unordered, ev, n)
			}
		}
		e.hostPos = max(e.hostPos, ev.pos)
	case evReach:
		e.reach(ev)
	case evFenceMet:
		if s := e.fences[ev.semaphore]; s != nil {
			e.learn(s)
		} else {
			e.found(sawUnsignaled, ev, nil)
		}
	case evIdle:
		s := e.lanes[ev.queue].signals(source(stageAllCommands))
		e.foretell(ev, &s)
		e.learn(&s)
	case evHostSignal:
		e.hostSignal(ev)
	}
}

// submit keeps what the host knows for the batch that it submits.
func (e *engine) submit(l *lane) {
	s := submission{pos: e.hostPos}
	if e.hears != deaf {
		e.host.done.raise(hostColumn, e.hostPos)
		e.host.available.raise(hostColumn, e.hostPos)
		s.done, s.available = e.host.done.clone(), e.host.available.clone()
	}
	l.submitted = append(slices.Clip(l.submitted), s)
}

// begin orders a batch after everything that the host knew when it submitted it (Vulkan 1.3 §7.9, "Host
// Write Ordering Guarantees").
func (e *engine) begin(l *lane) {
	s := l.submitted[0]
	l.submitted = l.submitted[1:]
	for c := range deviceClasses {
		k := &l.after[c]
		for _, v := range [...]*vector{&k.done, &k.available, &k.read, &k.written} {
			v.raise(hostColumn, s.pos)
		}
		k.done.join(s.done)
		k.available.join(s.available)
		if e.hears == hearsAll {
			k.read.join(s.available)
			k.written.join(s.available)
		}
	}
	l.after[hosting].done.join(s.done)
	l.after[hosting].available.join(s.available)
}

// scope is the first scopes of a dependency.
type scope struct {
	done vector
	// before was available already; available includes what the dependency makes available.
	before, available vector
	parts             []part
}

func (l *lane) scope(d *dependency) scope {
	var s scope
	src, available := source(d.srcStages), d.available()
	for c := range classes {
		if !src.has(c) {
			continue
		}
		s.done.join(l.after[c].done)
		s.before.join(l.after[c].available)
	}
	s.available = s.before.clone()
	for c := range classes {
		if !src.has(c) {
			continue
		}
		if c < hosting {
			s.done.raise(l.column+int(c), l.pos)
			if available.has(c) {
				s.available.raise(l.column+int(c), l.pos)
			}
		} else if available.has(c) {
			s.available.raise(hostColumn, l.after[c].done.at(hostColumn))
		}
	}
	for _, p := range l.parts {
		if src.has(p.class) && len(p.available) > 0 {
			s.parts = append(s.parts, p)
		}
	}
	return s
}

// barrier processes the dependencies of one pipeline barrier, which do not order each other.
func (l *lane) barrier(dependencies []dependency) {
	var room [2]scope
	scopes := room[:0]
	for i := range dependencies {
		scopes = append(scopes, l.scope(&dependencies[i]))
	}
	for i := range dependencies {
		l.second(&dependencies[i], &scopes[i])
	}
}

func (l *lane) second(d *dependency, s *scope) {
	dst := destination(d.dstStages)
	read, written := d.visible()
	all := s.available
	if d.within != nil {
		all = s.before
	}
	for c := range classes {
		if !dst.has(c) {
			continue
		}
		l.after[c].done.join(s.done)
		l.after[c].available.join(all)
		if d.within != nil {
			l.learnPart(*d.within, c, s.available, read.only(c, s.available), written.only(c, s.available))
		}
		for _, p := range s.parts {
			if d.within == nil {
				l.learnPart(p.section, c, p.available, read.only(c, p.available), written.only(c, p.available))
				continue
			}
			l.learnPart(p.section, c, p.available, nil, nil)
			if at := intersection(p.section, *d.within); at.lo < at.hi {
				l.learnPart(at, c, nil, read.only(c, p.available), written.only(c, p.available))
			}
		}
		if d.within != nil {
			continue
		}
		if c < hosting {
			if read.has(c) {
				l.after[c].read.join(all)
			}
			if written.has(c) {
				l.after[c].written.join(all)
			}
			continue
		}
		if read.has(c) {
			l.hostRead.join(all)
		}
		if written.has(c) {
			l.hostWritten.join(all)
		}
	}
}

func intersection(a, b section) section {
	if a.space != b.space {
		return section{}
	}
	return section{a.space, max(a.lo, b.lo), min(a.hi, b.hi)}
}

// learnPart adds knowledge of a section; nil vectors add nothing.
func (l *lane) learnPart(at section, c class, available, read, written vector) {
	l.parts = learnPart(l.parts, at, c, available, read, written)
}

// learnPart returns a new list, because parts may be shared.
func learnPart(parts []part, at section, c class, available, read, written vector) []part {
	i := slices.IndexFunc(parts, func(p part) bool { return p.section == at && p.class == c })
	if i < 0 {
		parts = append(slices.Clip(parts), part{section: at, class: c})
		i = len(parts) - 1
	} else {
		parts = slices.Clone(parts)
	}
	p := &parts[i]
	p.available, p.read, p.written = p.available.clone(), p.read.clone(), p.written.clone()
	p.available.join(available)
	p.read.join(read)
	p.written.join(written)
	return parts
}

// only returns the vector if the set contains the class.
func (s classSet) only(c class, v vector) vector {
	if s.has(c) {
		return v
	}
	return nil
}

// follows reports whether a command of the class that comes next is after the command that n
// names, in the way that n requires.
func (l *lane) follows(c class, n *need) bool {
	k := &l.after[c]
	switch n.kind {
	case needDone:
		return k.done.at(n.column) >= n.pos
	case needRead:
		return k.read.at(n.column) >= n.pos || covered(l.parts, c, n)
	}
	return k.written.at(n.column) >= n.pos || covered(l.parts, c, n)
}

func (e *engine) hostFollows(n *need) bool {
	switch n.kind {
	case needDone:
		return e.host.done.at(n.column) >= n.pos
	case needRead:
		return e.host.read.at(n.column) >= n.pos || covered(e.hostParts, hosting, n)
	case needEnded:
		for c := range deviceClasses {
			if e.host.done.at(n.column+c) < n.pos {
				return false
			}
		}
		return true
	}
	return e.host.written.at(n.column) >= n.pos || covered(e.hostParts, hosting, n)
}

// foretell finds the orders that the host lacks if it sees only a signal and continues at once.
func (e *engine) foretell(ev *event, s *signal) {
	if e.hears != deaf {
		return
	}
	for i := range ev.foretold {
		n := &ev.foretold[i]
		v := s.hostRead
		switch n.kind {
		case needDone:
			v = s.done
		case needWritten:
			v = s.hostWritten
		}
		if v.at(n.column) < n.pos && (n.kind == needDone || !covered(s.parts, hosting, n)) {
			e.found(unordered, ev, n)
		}
	}
}

// covered reports whether the parts together satisfy n for all its bytes.
func covered(parts []part, c class, n *need) bool {
	if n.at.space == nil {
		return false
	}
	for lo := n.at.lo; ; {
		next := lo
		for i := range parts {
			p := &parts[i]
			v := p.read
			if n.kind == needWritten {
				v = p.written
			}
			if p.class == c && p.space == n.at.space && p.lo <= lo && v.at(n.column) >= n.pos {
				next = max(next, p.hi)
			}
		}
		if next >= n.at.hi {
			return true
		}
		if next == lo {
			return false
		}
		lo = next
	}
}

// signals returns a signal operation of the queue after all its commands so far.
func (l *lane) signals(src classSet) signal {
	s := signal{hostRead: l.hostRead.clone(), hostWritten: l.hostWritten.clone()}
	var host uint64
	for c := range classes {
		if src.has(c) && c < hosting {
			s.done.join(l.after[c].done)
			s.done.raise(l.column+int(c), l.pos)
			host = max(host, l.after[c].available.at(hostColumn))
		}
	}
	// Everything that the device has executed becomes available: the access scope of a signal is all
	// accesses of the device.
	s.available = s.done
	if host < s.done.at(hostColumn) {
		s.available = s.done.clone()
		s.available[hostColumn] = host
	}
	s.hostRead.meet(s.done)
	s.hostWritten.meet(s.done)
	for _, p := range l.parts {
		if p.class == hosting {
			p.available, p.read, p.written = nil, p.read.clone(), p.written.clone()
			p.read.meet(s.done)
			p.written.meet(s.done)
			s.parts = append(s.parts, p)
		}
	}
	return s
}

func (e *engine) signal(ev *event) {
	l, sem := e.lanes[ev.queue], e.semaphores[ev.semaphore]
	s := l.signals(source(ev.stages))
	s.queue, s.value = ev.queue, ev.value
	e.foretell(ev, &s)
	e.add(ev, sem, s)
	l.prune()
}

// prune removes parts that the queue's knowledge of all memory implies.
func (l *lane) prune() {
	if len(l.parts) == 0 {
		return
	}
	l.parts = slices.DeleteFunc(slices.Clone(l.parts), func(p part) bool {
		if p.class == hosting {
			return p.read.within(l.hostRead) && p.written.within(l.hostWritten)
		}
		k := &l.after[p.class]
		return p.available.within(k.available) && p.read.within(k.read) && p.written.within(k.written)
	})
}

func (e *engine) add(ev *event, sem *semaphore, s signal) {
	if sem.binary {
		if len(sem.signals) > 0 {
			e.found(doubleSignal, ev, nil)
		}
		sem.signals = append(sem.signals[:0:0], s)
		sem.waiting = sem.waiting[:0:0]
		return
	}
	if s.value <= sem.last {
		e.found(notGrowing, ev, nil)
		return
	}
	if sem.by >= 0 && sem.by != s.queue && !s.after(sem.by, sem.pos) {
		e.found(racing, ev, nil)
	}
	sem.last, sem.by = s.value, s.queue
	if s.queue >= 0 {
		sem.pos = e.lanes[s.queue].batch
	}
	sem.signals = append(sem.signals, s)
	sem.waiting = slices.DeleteFunc(slices.Clone(sem.waiting), func(w waiting) bool { return w.value <= s.value })
}

// after reports whether the signal comes after one of a queue. Signals of a queue come one after the other,
// whatever their stages; those of one batch count as one.
func (s *signal) after(queue int, pos uint64) bool {
	for c := range deviceClasses {
		if s.done.at(1+queue*deviceClasses+c) >= pos {
			return true
		}
	}
	return false
}

func (e *engine) hostSignal(ev *event) {
	e.host.done.raise(hostColumn, e.hostPos)
	e.add(ev, e.semaphores[ev.semaphore], signal{value: ev.value, queue: -1, done: e.host.done.clone(), available: e.host.available.clone()})
}

// first returns the index of the first signal with at least that value.
func (s *semaphore) first(value uint64) int {
	i, _ := slices.BinarySearchFunc(s.signals, value, func(s signal, value uint64) int {
		if s.value < value {
			return -1
		}
		return 1
	})
	return i
}

// signalled reports whether a wait for a value has its signal. One of a binary semaphore must have it
// when it is submitted.
func (e *engine) signalled(semaphore int, value uint64) bool {
	sem := e.semaphores[semaphore]
	return sem.binary || value <= sem.last
}

func (e *engine) wait(ev *event) {
	sem := e.semaphores[ev.semaphore]
	i := 0
	if !sem.binary {
		if ev.value <= sem.passed {
			return
		}
		i = sem.first(ev.value)
	}
	if i == len(sem.signals) {
		e.found(early, ev, nil)
		sem.waiting = append(slices.Clip(sem.waiting), waiting{ev.value, ev})
		return
	}
	s := &sem.signals[i]
	l := e.lanes[ev.queue]
	dst := destination(ev.stages)
	for c := range classes {
		if !dst.has(c) || c == hosting {
			continue
		}
		k := &l.after[c]
		k.done.join(s.done)
		k.available.join(s.available)
		k.read.join(s.available)
		k.written.join(s.available)
	}
	l.hostRead.join(s.hostRead)
	l.hostWritten.join(s.hostWritten)
	if s.queue < 0 {
		l.after[hosting].done.join(s.done)
		l.after[hosting].available.join(s.available)
	}
	for _, p := range s.parts {
		l.learnPart(p.section, hosting, nil, p.read, p.written)
	}
	if sem.binary {
		sem.signals = nil
	}
}

func (e *engine) reach(ev *event) {
	sem := e.semaphores[ev.semaphore]
	if ev.value <= sem.passed {
		return
	}
	i := sem.first(ev.value)
	if i == len(sem.signals) {
		e.found(sawUnsignaled, ev, nil)
		return
	}
	e.learn(&sem.signals[i])
	if e.hears != hearsAll || slices.ContainsFunc(e.lanes, func(l *lane) bool { return l != nil && len(l.submitted) > 0 }) {
		return // a later wait may be the first one of a queue
	}
	if slices.ContainsFunc(sem.signals[:i], func(s signal) bool { return !e.knows(&s) }) {
		return // an earlier signal took what this one, of fewer stages, did not
	}
	if sem.signals[i].value == ev.value {
		i++
	}
	sem.signals, sem.passed = sem.signals[i:], ev.value
}

// knows reports whether the host has learned all of a signal.
func (e *engine) knows(s *signal) bool {
	return s.done.within(e.host.done) && s.available.within(e.host.available) && s.hostRead.within(e.host.read) && s.hostWritten.within(e.host.written) &&
		!slices.ContainsFunc(s.parts, func(p part) bool {
			return !slices.ContainsFunc(e.hostParts, func(q part) bool {
				return q.section == p.section && p.read.within(q.read) && p.written.within(q.written)
			})
		})
}

// learn adds what the host learns from a signal.
func (e *engine) learn(s *signal) {
	e.host.done.join(s.done)
	e.host.available.join(s.available)
	e.host.read.join(s.hostRead)
	e.host.written.join(s.hostWritten)
	for _, p := range s.parts {
		e.hostParts = learnPart(e.hostParts, p.section, hosting, nil, p.read, p.written)
	}
}

func (e *engine) forget(ev *event) {
	if sem := e.semaphores[ev.semaphore]; sem != nil {
		for _, w := range sem.waiting {
			e.found(hang, w.of, nil)
		}
		delete(e.semaphores, ev.semaphore)
	}
}

// end reports the waits that were never satisfied.
func (e *engine) end() {
	for _, sem := range e.semaphores {
		for _, w := range sem.waiting {
			e.found(hang, w.of, nil)
		}
	}
}
