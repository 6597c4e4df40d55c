package order

import "slices"

// The oracle decides by the definitions whether an order is missing in a trace: it compares every
// access with every other one, and follows every chain of synchronization between them in an
// explicit graph. It shares nothing with the engine except the events and the meaning of masks.
// Its time and memory are at least quadratic in the length of the trace.

// loses reports whether an order that accesses or clauses need is missing, or a wait has no signal.
func loses(events []*event) bool { return firstLoss(events, hearsAll) >= 0 }

// firstLoss returns the first event at which that shows, -1 if none does. hears says what a
// submission passes on of what the host has seen.
func firstLoss(events []*event, hears hearing) int {
	g := &graph{events: events, hears: hears}
	unresolved := g.resolve()
	if unresolved >= 0 {
		g.events = events[:unresolved]
	}
	g.connect()
	for j := range g.events {
		for i := range j {
			if g.conflict(i, j) {
				return j
			}
		}
		if g.edges(j) || g.races(j) {
			return j
		}
	}
	return unresolved
}

// node is a synchronization operation: one dependency of a barrier, a wait, the submission, the beginning
// or the signal of a batch, or a step of the host.
type node struct {
	event int
	kind  eventKind
	queue int // -1 for none
	dep   *dependency
	// from are the classes of the queue's earlier commands that come before it, to those of
	// later commands that come after it.
	from, to classSet
	host     bool // a step of the host
	reach    []uint64
}

type graph struct {
	events []*event
	hears  hearing
	nodes  []node
	first  []int // first node of each event, with an additional entry at the end
	// source is, for each wait, the event of its signal, -1 for none, for each signal of a timeline the
	// event of the one before, and for the beginning of a batch its submission.
	source []int
}

// resolve finds the signal of each wait. It returns the first event without one, or with a wrong
// value, and -1 if there is none.
func (g *graph) resolve() int {
	g.source = make([]int, len(g.events))
	type timeline struct {
		binary  bool
		begin   uint64
		last    uint64
		signals []int
	}
	all := map[int]*timeline{}
	fences := map[int]int{}
	submitted := map[int][]int{} // by queue
	for i, ev := range g.events {
		g.source[i] = -1
		s := all[ev.semaphore]
		switch ev.kind {
		case evSemaphore:
			all[ev.semaphore] = &timeline{binary: ev.binary, begin: ev.value, last: ev.value}
		case evSignal, evHostSignal:
			if s.binary && len(s.signals) > 0 || !s.binary && ev.value <= s.last {
				return i
			}
			s.last = ev.value
			if !s.binary && len(s.signals) > 0 {
				g.source[i] = s.signals[len(s.signals)-1]
			}
			s.signals = append(s.signals, i)
		case evWait, evReach:
			if !s.binary && ev.value <= s.begin {
				continue
			}
			k := slices.IndexFunc(s.signals, func(k int) bool { return s.binary || g.events[k].value >= ev.value })
			if k < 0 {
				return i
			}
			g.source[i] = s.signals[k]
			if s.binary {
				s.signals = nil
			}
		case evSubmit:
			submitted[ev.queue] = append(submitted[ev.queue], i)
		case evBegin:
			g.source[i] = submitted[ev.queue][0]
			submitted[ev.queue] = submitted[ev.queue][1:]
		case evFence:
			fences[ev.semaphore] = i
		case evFenceMet:
			k, ok := fences[ev.semaphore]
			if !ok {
				return i
			}
			g.source[i] = k
		}
	}
	return -1
}

func (g *graph) connect() {
	for i, ev := range g.events {
		g.first = append(g.first, len(g.nodes))
		n := node{event: i, kind: ev.kind, queue: -1}
		switch ev.kind {
		case evBarrier:
			for k := range ev.dependencies {
				n.queue, n.dep = ev.queue, &ev.dependencies[k]
				n.from, n.to = source(n.dep.srcStages), destination(n.dep.dstStages)
				g.nodes = append(g.nodes, n)
			}
			continue
		case evBegin:
			n.queue, n.to = ev.queue, onDevice|1<<hosting
		case evWait:
			n.queue, n.to = ev.queue, destination(ev.stages)&onDevice
			if s := g.source[i]; s >= 0 && g.events[s].kind == evHostSignal {
				n.to |= 1 << hosting
			}
		case evSignal:
			n.queue, n.from = ev.queue, source(ev.stages)&onDevice
		case evFence:
			n.queue, n.from = ev.queue, onDevice
		case evIdle:
			n.queue, n.from, n.host = ev.queue, onDevice, true
		case evSubmit, evHost, evReach, evFenceMet, evHostSignal, evRetire:
			n.host = true
		default:
			continue
		}
		g.nodes = append(g.nodes, n)
	}
	g.first = append(g.first, len(g.nodes))
	words := (len(g.nodes) + 63) / 64
	for a := len(g.nodes) - 1; a >= 0; a-- {
		n := &g.nodes[a]
		n.reach = make([]uint64, words)
		n.reach[a/64] |= 1 << (a % 64)
		for b := a + 1; b < len(g.nodes); b++ {
			if n.reach[b/64]>>(b%64)&1 == 0 && g.follows(n, &g.nodes[b]) {
				for w, bitsOf := range g.nodes[b].reach {
					n.reach[w] |= bitsOf
				}
			}
		}
	}
}

// follows reports whether m, which is later in the log, comes directly after n.
func (g *graph) follows(n, m *node) bool {
	switch {
	case n.event == m.event:
		return false
	case n.host && m.host:
		return true
	case n.queue >= 0 && n.queue == m.queue && n.to&m.from != 0:
		return true
	}
	return g.source[m.event] == n.event && m.kind != evSignal && m.kind != evHostSignal
}

func (n *node) reaches(m int) bool { return n.reach[m/64]>>(m%64)&1 != 0 }

// after reports whether node a comes directly after event i.
func (g *graph) after(i int, a *node) bool {
	ev := g.events[i]
	if ev.kind != evCommand {
		return a.host && a.event > i
	}
	return a.event > i && a.queue == ev.queue && a.from.has(ev.class)
}

// before reports whether node a comes directly before event j.
func (g *graph) before(a *node, j int) bool {
	ev := g.events[j]
	if ev.kind != evCommand {
		return a.host && a.event < j
	}
	return a.event < j && a.queue == ev.queue && a.to.has(ev.class)
}

// executed reports whether event j comes after event i.
func (g *graph) executed(i, j int) bool {
	if g.events[i].kind != evCommand && g.events[j].kind != evCommand {
		return true // the host is one agent
	}
	for a := range g.nodes {
		if !g.after(i, &g.nodes[a]) {
			continue
		}
		for b := a; b < len(g.nodes); b++ {
			if g.nodes[a].reaches(b) && g.before(&g.nodes[b], j) {
				return true
			}
		}
	}
	return false
}

// within reports whether a barrier applies to the section.
func (n *node) within(at section) bool {
	w := n.dep.within
	return w == nil || w.space == at.space && w.lo <= at.lo && at.hi <= w.hi
}

// reachable returns the nodes that come after event i.
func (g *graph) reachable(i int) []bool {
	out := make([]bool, len(g.nodes))
	for a := range g.nodes {
		if !g.after(i, &g.nodes[a]) {
			continue
		}
		for b := a; b < len(g.nodes); b++ {
			out[b] = out[b] || g.nodes[a].reaches(b)
		}
	}
	return out
}

// visible reports whether the writes of event i to the section are visible to accesses of event j.
func (g *graph) visible(i, j int, at section, write bool) bool {
	from, to := g.events[i], g.events[j]
	if from.kind != evCommand && to.kind != evCommand {
		return true
	}
	done := g.reachable(i)
	available := make([]bool, len(g.nodes))
	for a := range g.nodes {
		n := &g.nodes[a]
		switch {
		case !done[a]:
		case n.kind == evSignal || n.kind == evFence || n.kind == evIdle:
			available[a] = from.kind == evCommand
		case n.kind == evSubmit:
			available[a] = from.kind != evCommand
		case n.kind == evBarrier && n.within(at) && from.kind == evCommand:
			available[a] = g.after(i, n) && n.dep.available().has(from.class)
		case n.kind == evBarrier && n.within(at):
			available[a] = n.dep.available().has(hosting) && g.reachedAsHost(done, n)
		}
	}
	g.spread(available)
	if to.kind == evCommand {
		for a := range g.nodes {
			if n := &g.nodes[a]; available[a] && g.before(n, j) && g.sees(n, to.class, at, write) {
				if n.kind != evBegin || g.hears == hearsAll || from.kind != evCommand {
					return true
				}
			}
		}
		return false
	}
	return g.visibleToHost(available, done, j, at, write)
}

// reachedAsHost reports whether the barrier's source stage HOST includes what the host did.
func (g *graph) reachedAsHost(done []bool, n *node) bool {
	for a := range g.nodes {
		if m := &g.nodes[a]; done[a] && m.event < n.event && m.queue == n.queue && m.to.has(hosting) && n.from.has(hosting) {
			return true
		}
	}
	return false
}

// spread propagates availability along chains.
func (g *graph) spread(available []bool) {
	for a := range g.nodes {
		if !available[a] {
			continue
		}
		n := &g.nodes[a]
		for b := a + 1; b < len(g.nodes); b++ {
			m := &g.nodes[b]
			if g.follows(n, m) {
				available[b] = true
			}
		}
	}
}

// sees reports whether the node makes what is available visible to such accesses.
func (g *graph) sees(n *node, c class, at section, write bool) bool {
	if n.kind != evBarrier {
		return n.kind == evWait || n.kind == evBegin
	}
	read, written := n.dep.visible()
	if write {
		read = written
	}
	return n.within(at) && read.has(c)
}

// visibleToHost reports whether a barrier made it visible to the host, and the host has learned
// of the barrier's end.
func (g *graph) visibleToHost(available, done []bool, j int, at section, write bool) bool {
	told := make([]bool, len(g.nodes))
	for a := range g.nodes {
		n := &g.nodes[a]
		if n.kind == evBarrier && available[a] && g.sees(n, hosting, at, write) {
			told[a] = true
		}
		if !told[a] {
			continue
		}
		if n.host && n.event < j {
			return true
		}
		for b := a + 1; b < len(g.nodes); b++ {
			m := &g.nodes[b]
			switch {
			case n.queue >= 0 && n.queue == m.queue && (n.kind == evBarrier || n.kind == evWait) &&
				(m.kind == evSignal || m.kind == evFence || m.kind == evIdle):
				told[b] = told[b] || done[b]
			case g.source[m.event] == n.event && (m.kind == evWait || m.kind == evReach || m.kind == evFenceMet):
				told[b] = true
			}
		}
	}
	return false
}

// conflict reports whether events i and j touch the same bytes without the order that this
// requires.
func (g *graph) conflict(i, j int) bool {
	a, b := g.events[i], g.events[j]
	if len(a.touched) == 0 || len(b.touched) == 0 || a.command == b.command ||
		a.kind != evCommand && b.kind != evCommand {
		return false
	}
	for _, x := range a.touched {
		for _, y := range b.touched {
			at := intersection(x.section, y.section)
			if at.lo >= at.hi || x.retired {
				continue
			}
			if y.retired {
				if x.memory == y.memory && !g.executed(i, j) {
					return true
				}
				continue
			}
			if !x.write && !y.write {
				continue
			}
			if !g.executed(i, j) || x.write && g.unseen(i, j, at, y) {
				return true
			}
		}
	}
	return false
}

// unseen reports whether event j does not see all of what event i wrote, and nothing has overwritten
// since. Several buffer barriers together may make it visible.
func (g *graph) unseen(i, j int, at section, y touch) bool {
	cuts := []uint64{at.lo, at.hi}
	var over []section
	for _, ev := range g.events[i+1 : j] {
		for _, x := range ev.touched {
			if in := intersection(x.section, at); x.write && in.lo < in.hi {
				over = append(over, in)
				cuts = append(cuts, in.lo, in.hi)
			}
		}
	}
	for a := range g.nodes {
		if d := g.nodes[a].dep; d != nil && d.within != nil && d.within.space == at.space {
			for _, cut := range [...]uint64{d.within.lo, d.within.hi} {
				if at.lo < cut && cut < at.hi {
					cuts = append(cuts, cut)
				}
			}
		}
	}
	slices.Sort(cuts)
	for k := 1; k < len(cuts); k++ {
		piece := section{at.space, cuts[k-1], cuts[k]}
		overwritten := slices.ContainsFunc(over, func(o section) bool { return o.lo <= piece.lo && piece.hi <= o.hi })
		if piece.lo < piece.hi && !overwritten && (y.read && !g.visible(i, j, piece, false) || y.write && !g.visible(i, j, piece, true)) {
			return true
		}
	}
	return false
}

// ended reports whether event j comes after the batch that begins with event i, whatever stages the
// batch has work for.
func (g *graph) ended(i, j int) bool {
	for c := range class(deviceClasses) {
		after := false
		for a := range g.nodes {
			n := &g.nodes[a]
			for b := a; n.event > i && n.queue == g.events[i].queue && n.from.has(c) && b < len(g.nodes); b++ {
				after = after || n.reaches(b) && g.before(&g.nodes[b], j)
			}
		}
		if !after {
			return false
		}
	}
	return true
}

// races reports whether event j is a signal of a timeline that may come before the one with the next
// smaller value, which another queue signals: no signal of that queue in its batch, or in a later one, and no
// wait of the host for the queue comes before event j.
func (g *graph) races(j int) bool {
	k := g.source[j]
	if kind := g.events[j].kind; k < 0 || kind != evSignal && kind != evHostSignal || g.events[k].kind == evHostSignal ||
		kind == evSignal && g.events[j].queue == g.events[k].queue {
		return false
	}
	begin := k
	for g.events[begin].kind != evBegin || g.events[begin].queue != g.events[k].queue {
		begin--
	}
	for a := range g.nodes {
		n := &g.nodes[a]
		if n.event > begin && n.event < j && n.queue == g.events[k].queue && n.from != 0 &&
			(n.kind == evSignal || n.kind == evFence || n.kind == evIdle) && n.reaches(g.first[j]) {
			return false
		}
	}
	return true
}

// edges reports whether an order is missing that event j needs other than for bytes: an edge of
// clauses, or the end of what uses an object before the end of the object.
func (g *graph) edges(j int) bool {
	for _, n := range g.events[j].needs {
		if n.at.space != nil {
			continue
		}
		if n.kind == needEnded {
			i := slices.IndexFunc(g.events[:j], func(ev *event) bool { return ev.kind == evBegin && ev.command == n.other })
			if i < 0 || !g.ended(i, j) {
				return true
			}
			continue
		}
		for i, ev := range g.events[:j] {
			if ev.kind != evCommand || ev.command != n.other || int(ev.class) != (n.column-1)%deviceClasses {
				continue
			}
			if !g.executed(i, j) || n.kind != needDone && !g.visible(i, j, section{}, n.kind == needWritten) {
				return true
			}
		}
	}
	return false
}
