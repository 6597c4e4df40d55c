package race

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/tasks"
)

// memory is what depend items of a random program name. Accesses are offsets into it: space 1
// has the same bytes.
var memory [16]byte

var base = uint64(uintptr(unsafe.Pointer(&memory[0])))

// node is a point in the execution of a program, with the points that it directly follows.
type node struct {
	after []*node
}

// follows reports whether a path leads from o to n.
func (n *node) follows(o *node) bool {
	seen := map[*node]bool{}
	var search func(n *node) bool
	search = func(n *node) bool {
		if n == o {
			return true
		}
		if seen[n] {
			return false
		}
		seen[n] = true
		for _, p := range n.after {
			if search(p) {
				return true
			}
		}
		return false
	}
	return search(n)
}

// modelTask is a task of a random program, with what the model knows of it.
type modelTask struct {
	number   int
	parent   *modelTask
	group    *modelGroup
	depend   []tasks.Depend
	accesses []Access
	body     bool
	included bool
	event    bool
	// never says that the body is not run, as in a cancelled taskgroup.
	never            bool
	imports, exports bool

	start, end *node
	// now is the point that the region has reached.
	now *node
	// The sets of OpenMP's text, with a bit for each task: matches are the tasks whose items
	// demand an order with this one's, compatible the preceding dependence-compatible tasks,
	// antecedents those of them that match, and predecessors the antecedents with their
	// predecessors.
	matches, compatible, antecedents, predecessors uint64

	begun, left, fulfilled, complete bool
	steps                            int
	// waiting returns the tasks that the region waits for, and resume is what it does
	// afterwards.
	waiting func() []*modelTask
	resume  func()
	groups  []*modelGroup

	task *Task
}

type modelGroup struct {
	parent  *modelGroup
	members []*modelTask
	group   *Group
}

type pair struct{ a, b int }

// program is a random program while it runs.
type program struct {
	t        *rapid.T
	detector *Detector
	initial  *modelTask
	all      []*modelTask
	// reported is what the detector has reported, and found are the bytes of the pairs there.
	reported []Conflict
	found    map[pair]map[uint64]bool
	limit    int
	// transparent says that the children of the initial task have bodies and are transparent.
	transparent bool
	// related is the number of tasks that the rules have been applied to.
	related int
	trace   strings.Builder
}

func (p *program) say(format string, args ...any) { fmt.Fprintf(&p.trace, format+"\n", args...) }

func newProgram(t *rapid.T) *program {
	p := &program{t: t, found: make(map[pair]map[uint64]bool), limit: rapid.IntRange(2, 18).Draw(t, "tasks"), transparent: rapid.Bool().Draw(t, "transparent")}
	p.detector = New(func(c Conflict) {
		a, b := c.First.Info().(*modelTask), c.Second.Info().(*modelTask)
		if a.number >= b.number {
			t.Fatalf("pair %d, %d is not in order of making", a.number, b.number)
		}
		if c.FirstAccess.Space != c.SecondAccess.Space || !c.FirstAccess.Write && !c.SecondAccess.Write {
			t.Fatalf("pair %d, %d does not conflict: %+v %+v", a.number, b.number, c.FirstAccess, c.SecondAccess)
		}
		p.reported = append(p.reported, c)
		bytes := p.found[pair{a.number, b.number}]
		if bytes == nil {
			bytes = make(map[uint64]bool)
			p.found[pair{a.number, b.number}] = bytes
		}
		for i := c.Start; i < c.Start+c.Size; i++ {
			bytes[uint64(c.FirstAccess.Space)<<60|i] = true
		}
	})
	n := &node{}
	p.initial = &modelTask{body: true, begun: true, start: n, end: &node{}, now: n, task: p.detector.Initial(), steps: 40}
	return p
}

var kinds = []tasks.DependKind{
	tasks.DependIn, tasks.DependIn, tasks.DependOut, tasks.DependInOut, tasks.DependMutexInOutSet, tasks.DependInOutSet, tasks.DependInOutAllMemory,
}

func drawRange(t *rapid.T) (start, size int) {
	if rapid.IntRange(0, 2).Draw(t, "block") > 0 {
		// Most slices are drawn from a few, as programs use the same ones.
		return 4 * rapid.IntRange(0, 3).Draw(t, "slice"), 4
	}
	start = rapid.IntRange(0, len(memory)-1).Draw(t, "start")
	return start, rapid.IntRange(0, len(memory)-start).Draw(t, "size")
}

func drawDepend(t *rapid.T) []tasks.Depend {
	var depend []tasks.Depend
	for range rapid.SampledFrom([]int{0, 1, 1, 2, 3}).Draw(t, "items") {
		d := tasks.Depend{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		if !d.Kind.AllMemory() {
			start, size := drawRange(t)
			d.Ptr, d.Size = unsafe.Pointer(&memory[start]), uint64(size)
		}
		depend = append(depend, d)
	}
	return depend
}

func drawAccesses(t *rapid.T) []Access {
	var accesses []Access
	for range rapid.IntRange(0, 2).Draw(t, "accesses") {
		start, size := drawRange(t)
		a := Access{Space: 1, Start: base + uint64(start), Size: uint64(size), Write: rapid.Bool().Draw(t, "write")}
		switch rapid.IntRange(0, 5).Draw(t, "other space") {
		case 0:
			a.Space, a.Unnamed = 2, true
		case 1: // items name the bytes as elsewhere, but the space has them at other addresses
			a.Offset = uint64(rapid.IntRange(0, 1).Draw(t, "offset"))
			a.Space, a.Start = 2, a.Start-a.Offset
		}
		a.Local = rapid.IntRange(0, 5).Draw(t, "local") == 0
		accesses = append(accesses, a)
	}
	return accesses
}

// create generates a task in the region of parent.
func (p *program) create(parent *modelTask) {
	t := p.t
	c := &modelTask{
		number: len(p.all), parent: parent, depend: drawDepend(t), accesses: drawAccesses(t),
		body: rapid.IntRange(0, 2).Draw(t, "host") == 0 || p.transparent && parent == p.initial, included: rapid.IntRange(0, 4).Draw(t, "included") == 0,
		start: &node{}, end: &node{},
	}
	if n := len(parent.groups); n > 0 {
		c.group = parent.groups[n-1]
	} else {
		c.group = parent.group
	}
	s := Spec{Info: c, Parent: parent.task, Depend: c.depend, Accesses: c.accesses, Body: c.body, Included: c.included}
	if c.group != nil {
		s.Group = c.group.group
		c.group.members = append(c.group.members, c)
	}
	if c.body {
		c.steps = rapid.IntRange(0, 6).Draw(t, "steps")
		c.never = rapid.IntRange(0, 7).Draw(t, "never") == 0
		c.event = rapid.IntRange(0, 4).Draw(t, "event") == 0
		s.Event = c.event
		if rapid.IntRange(0, 3).Draw(t, "transparent") == 0 || p.transparent {
			s.Transparency = tasks.Transparency(rapid.IntRange(1, 3).Draw(t, "transparency"))
			c.imports, c.exports = s.Transparency&tasks.Import != 0, s.Transparency&tasks.Export != 0
		}
		if c.included && c.exports {
			// Later siblings find the children of such a task when it is complete.
			c.event, s.Event = false, false
		}
	}
	c.start.after = append(c.start.after, parent.now)
	p.all = append(p.all, c)
	p.say("%d makes %d: body %v included %v event %v never %v imports %v exports %v depend %v accesses %v", parent.id(), c.number, c.body, c.included, c.event, c.never, c.imports, c.exports, spell(c.depend), spellAccesses(c.accesses))
	c.task = p.detector.Create(s)
	if c.included {
		p.waitIncluded(parent, c)
	}
}

// waitIncluded makes a region wait for an included task. It goes on when the task waits for its event alone.
func (p *program) waitIncluded(m, c *modelTask) {
	bodyOver := func() bool { return c.left && c.event && !c.fulfilled }
	p.wait(m, func() []*modelTask {
		if bodyOver() {
			return nil
		}
		return []*modelTask{c}
	}, func() { p.say("%d goes on after %d", m.id(), c.number); p.detector.Returned(c.task) })
	goOn := m.resume
	m.resume = func() {
		if bodyOver() {
			m.now = &node{after: []*node{m.now, c.now}}
		}
		goOn()
	}
}

func (m *modelTask) id() int {
	if m.parent == nil {
		return -1
	}
	return m.number
}

func spell(depend []tasks.Depend) string {
	var b strings.Builder
	for _, d := range depend {
		fmt.Fprintf(&b, " %v:%d+%d", d.Kind, int64(uintptr(d.Ptr))-int64(base), d.Size)
	}
	return b.String()
}

func spellAccesses(accesses []Access) string {
	var b strings.Builder
	for _, a := range accesses {
		fmt.Fprintf(&b, " %d:%d+%d write %v", a.Space, a.Start-base, a.Size, a.Write)
	}
	return b.String()
}

// wait makes a region wait for tasks. told tells the detector when it has.
func (p *program) wait(m *modelTask, what func() []*modelTask, told func()) {
	m.waiting = what
	m.resume = func() {
		now := &node{after: []*node{m.now}}
		for _, c := range what() {
			now.after = append(now.after, c.end)
		}
		m.now, m.waiting, m.resume = now, nil, nil
		told()
	}
}

// modelOrdered is the table of OpenMP 5.2 §15.9.5.
func modelOrdered(a, b tasks.DependKind, exclusionToo bool) bool {
	switch {
	case a == tasks.DependIn && b == tasks.DependIn, a == tasks.DependInOutSet && b == tasks.DependInOutSet:
		return false
	case a == tasks.DependMutexInOutSet && b == tasks.DependMutexInOutSet:
		return exclusionToo
	}
	return true
}

func named(depend []tasks.Depend) bool {
	for _, d := range depend {
		if d.Kind.AllMemory() || d.Size > 0 {
			return true
		}
	}
	return false
}

// kindAt returns the kind with which a task names a byte; several kinds count as out.
func kindAt(m *modelTask, at int) (tasks.DependKind, bool) {
	found := tasks.DependKind(0)
	for _, d := range m.depend {
		start := int(int64(uintptr(d.Ptr)) - int64(base))
		if d.Kind.AllMemory() || at < start || at >= start+int(d.Size) {
			continue
		}
		k := d.Kind
		if k == tasks.DependOut || k == tasks.DependMutexInOutSet && m.imports {
			k = tasks.DependInOut
		}
		if found != 0 && found != k {
			k = tasks.DependInOut
		}
		found = k
	}
	return found, found != 0
}

func hasAll(m *modelTask) bool {
	for _, d := range m.depend {
		if d.Kind.AllMemory() {
			return true
		}
	}
	return false
}

// matches reports whether b, the later one, follows a by their items.
func matches(a, b *modelTask, exclusionToo bool) bool {
	if hasAll(a) && named(b.depend) || hasAll(b) && named(a.depend) {
		return true
	}
	for at := range memory {
		x, ok := kindAt(a, at)
		y, ok2 := kindAt(b, at)
		if ok && ok2 && modelOrdered(x, y, exclusionToo) {
			return true
		}
	}
	return false
}

// in reports whether a set has the task; sets have a bit for each task's number.
func (m *modelTask) in(set uint64) bool { return m != nil && m.parent != nil && set>>m.number&1 != 0 }

func (m *modelTask) isImporting() bool { return m != nil && m.imports }
func (m *modelTask) isExporting() bool { return m != nil && m.exports }

// precedes reports whether a is a preceding dependence-compatible task of b (OpenMP 6.0
// §17.9.5), by what is known of the other tasks so far.
func precedes(a, b *modelTask) bool {
	switch {
	case a == b:
		return false
	case a.parent == b.parent && a.number < b.number:
		// A is a sibling of B that was generated before.
		return true
	case b.parent.isImporting() && a.in(b.parent.compatible):
		// A precedes the importing task that B is a child of.
		return true
	case a.parent.isExporting() && a.parent.in(b.predecessors):
		// A is a child of an exporting task that is a predecessor of B.
		return true
	}
	// A is a child of an undeferred exporting task that precedes B.
	return a.parent.isExporting() && a.parent.included && a.parent.in(b.compatible)
}

// relate applies the rules to the tasks generated so far, until nothing changes.
func (p *program) relate() {
	if p.related == len(p.all) {
		return
	}
	for _, b := range p.all[p.related:] {
		for _, a := range p.all[:b.number] {
			a.matches |= matchBit(a, b)
			b.matches |= matchBit(b, a)
		}
	}
	p.related = len(p.all)
	for changed := true; changed; {
		changed = false
		for _, b := range p.all {
			compatible, predecessors := b.compatible, b.predecessors
			for _, a := range p.all {
				if !a.in(compatible) && precedes(a, b) {
					compatible |= 1 << a.number
				}
			}
			b.antecedents = compatible & b.matches
			predecessors |= b.antecedents
			for _, a := range p.all {
				if a.in(b.antecedents) {
					predecessors |= a.predecessors
				}
			}
			changed = changed || compatible != b.compatible || predecessors != b.predecessors
			b.compatible, b.predecessors = compatible, predecessors
		}
	}
}

// matchBit returns the bit of a if b's items demand that it follows a. Exclusion between tasks
// of different regions counts, since it is kept by an order.
func matchBit(b, a *modelTask) uint64 {
	if matches(a, b, a.parent != b.parent) {
		return 1 << a.number
	}
	return 0
}

// predecessors returns those of the generated tasks that m depends on.
func (p *program) predecessors(m *modelTask) []*modelTask {
	p.relate()
	var found []*modelTask
	for _, o := range p.all {
		if o.in(m.antecedents) {
			found = append(found, o)
		}
	}
	return found
}

func completed(list []*modelTask) bool {
	for _, c := range list {
		if !c.complete {
			return false
		}
	}
	return true
}

// step takes one step of the program, and reports whether there was one to take.
func (p *program) step() bool {
	var steps []func()
	for _, m := range append([]*modelTask{p.initial}, p.all...) {
		switch {
		case m.complete:
		case !m.begun:
			if completed(p.predecessors(m)) {
				steps = append(steps, func() { p.begin(m) })
			}
		case m.left || !m.body:
			if !m.event || m.fulfilled {
				steps = append(steps, func() { m.complete = true })
			}
		case m.resume != nil:
			if completed(m.waiting()) {
				steps = append(steps, m.resume)
			}
		default:
			steps = append(steps, func() { p.act(m) })
		}
	}
	if len(steps) == 0 {
		return false
	}
	steps[rapid.IntRange(0, len(steps)-1).Draw(p.t, "next")]()
	return true
}

func (p *program) begin(m *modelTask) {
	m.begun, m.now = true, m.start
	if !m.body {
		return
	}
	if m.never {
		m.left, m.event = true, false
		return
	}
	p.say("%d begins", m.number)
	p.detector.Begin(m.task)
}

// act lets the body of a task do something.
func (p *program) act(m *modelTask) {
	t := p.t
	if m.steps == 0 {
		p.leave(m)
		return
	}
	m.steps--
	switch what := rapid.IntRange(0, 11).Draw(t, "act"); {
	case what <= 6:
		if len(p.all) < p.limit {
			p.create(m)
		}
	case what <= 8:
		var children []*modelTask
		for _, c := range p.all {
			if c.parent == m {
				children = append(children, c)
			}
		}
		p.say("%d waits", m.id())
		w := p.detector.Wait(m.task)
		if rapid.IntRange(0, 5).Draw(t, "gives up") == 0 {
			p.detector.GaveUp(w)
			return
		}
		p.wait(m, func() []*modelTask { return children }, func() { p.say("%d waited", m.id()); p.detector.Waited(w) })
	case what == 9:
		g := &modelGroup{parent: m.group}
		if n := len(m.groups); n > 0 {
			g.parent = m.groups[n-1]
		}
		var outer *Group
		if g.parent != nil {
			outer = g.parent.group
		}
		p.say("%d opens a group", m.id())
		g.group = p.detector.NewGroup(outer)
		m.groups = append(m.groups, g)
	case what == 10 && len(m.groups) > 0:
		p.closeGroup(m)
	default:
		for _, o := range p.all {
			if o.event && !o.fulfilled && !o.complete {
				p.fulfill(o)
				return
			}
		}
	}
}

func (p *program) fulfill(o *modelTask) {
	p.say("%d is fulfilled", o.number)
	for _, r := range append([]*modelTask{p.initial}, p.all...) {
		if r.body && r.begun && !r.left && !r.never {
			o.end.after = append(o.end.after, r.now)
		}
	}
	o.fulfilled = true
	p.detector.Fulfill(o.task)
}

// in reports whether g is outer or inside of it.
func (g *modelGroup) in(outer *modelGroup) bool {
	for ; g != nil; g = g.parent {
		if g == outer {
			return true
		}
	}
	return false
}

// closeGroup ends the innermost taskgroup of a region.
func (p *program) closeGroup(m *modelTask) {
	g := m.groups[len(m.groups)-1]
	m.groups = m.groups[:len(m.groups)-1]
	w := p.detector.WaitGroup(m.task, g.group)
	// Tasks of the taskgroup may generate more: its members are those at the end of the wait.
	p.wait(m, func() []*modelTask {
		var members []*modelTask
		for _, o := range p.all {
			if o.group.in(g) {
				members = append(members, o)
			}
		}
		return members
	}, func() { p.say("%d ends a group", m.id()); p.detector.Waited(w) })
}

func (p *program) leave(m *modelTask) {
	if len(m.groups) > 0 {
		p.closeGroup(m)
		return
	}
	if m == p.initial {
		m.complete = true
		return
	}
	m.left = true
	failed := m.event && rapid.IntRange(0, 5).Draw(p.t, "fails") == 0
	if failed {
		m.event = false
	}
	p.say("%d ends, failed %v", m.number, failed)
	m.end.after = append(m.end.after, m.now)
	p.detector.End(m.task, failed)
}

// finish runs the program to its end.
func (p *program) finish() {
	for range 4000 {
		done := true
		for _, m := range append([]*modelTask{p.initial}, p.all...) {
			done = done && m.complete
		}
		if done {
			break
		}
		if !p.step() {
			// Nothing else can run: the remaining tasks wait for an event.
			for _, o := range p.all {
				if o.event && !o.fulfilled && !o.complete {
					p.fulfill(o)
					break
				}
			}
		}
	}
	p.detector.Close()
	for _, m := range p.all {
		if !m.complete {
			p.t.Skip("the program did not come to its end")
		}
		m.end.after = append(m.end.after, m.start)
		for _, o := range p.predecessors(m) {
			m.start.after = append(m.start.after, o.end)
		}
	}
}

// compare compares what the detector found with all pairs of the program's tasks.
func (p *program) compare() {
	races := make(map[pair]map[uint64]bool)
	for j, b := range p.all {
		for _, a := range p.all[:j] {
			bytes := conflicting(a, b)
			if len(bytes) == 0 || b.start.follows(a.start) || a.start.follows(b.start) {
				continue
			}
			races[pair{a.number, b.number}] = bytes
		}
	}
	for i := range p.reported {
		p.check(&p.reported[i], races)
	}
	found := func(a, b int, at uint64) bool { return p.found[pair{min(a, b), max(a, b)}][at] }
	for pr, bytes := range races {
		a, b := p.all[pr.a], p.all[pr.b]
		for at := range bytes {
			ok := false
			for _, o := range p.all {
				// A race with another task may be reported in place of one of this pair: with a
				// task that follows the first and races with the second.
				ok = ok || o != b && (o == a || o.start.follows(a.start)) && found(o.number, b.number, at)
				ok = ok || o != a && (o == b || o.start.follows(b.start)) && found(o.number, a.number, at)
			}
			if !ok {
				p.t.Fatalf("%s\nnot reported: tasks %d and %d at byte %#x; found %v", p.trace.String(), pr.a, pr.b, at, p.found)
			}
		}
	}
}

// check checks a report. A run of bytes is reported as a whole, although a part of it can belong to an inoutset.
func (p *program) check(c *Conflict, races map[pair]map[uint64]bool) {
	pr := pair{c.First.Info().(*modelTask).number, c.Second.Info().(*modelTask).number}
	racing := false
	for at := c.Start; at < c.Start+c.Size; at++ {
		switch {
		case races[pr][uint64(c.FirstAccess.Space)<<60|at]:
			racing = true
		case !c.FirstAccess.SameNames(c.SecondAccess) || !p.byteExempt(pr, at+c.FirstAccess.Offset):
			p.t.Fatalf("%s\nreported: tasks %d and %d at byte %#x of space %d, where they do not race", p.trace.String(), pr.a, pr.b, at, c.FirstAccess.Space)
		}
	}
	if !racing {
		p.t.Fatalf("%s\nreported: tasks %d and %d, which do not race: %+v", p.trace.String(), pr.a, pr.b, c)
	}
}

// byteExempt reports whether the tasks' depend clauses let them use the byte of that name in any order.
func (p *program) byteExempt(pr pair, name uint64) bool {
	a, b, siblings := modelKin(p.all[pr.a], p.all[pr.b])
	o := int(name - base)
	x, _ := kindAt(a, o)
	y, _ := kindAt(b, o)
	return siblings && x == tasks.DependInOutSet && y == tasks.DependInOutSet || bothJoin(p.all[pr.a], p.all[pr.b], o)
}

// bothJoin reports whether both tasks name a byte with inoutset.
func bothJoin(a, b *modelTask, at int) bool {
	x, _ := kindAt(a, at)
	y, _ := kindAt(b, at)
	return x == tasks.DependInOutSet && y == x
}

// modelKin returns the two siblings that the tasks are or descend from.
func modelKin(a, b *modelTask) (one, other *modelTask, ok bool) {
	for x := a; x.parent != nil; x = x.parent {
		for y := b; y.parent != nil; y = y.parent {
			if x != y && x.parent == y.parent {
				return x, y, true
			}
		}
	}
	return a, b, false
}

// inRegion reports whether a task descends from another.
func inRegion(m, region *modelTask) bool {
	for ; m != nil; m = m.parent {
		if m == region {
			return true
		}
	}
	return false
}

// conflicting returns the bytes that one of the tasks writes and the other uses, without those
// that their depend clauses let them use in any order.
func conflicting(a, b *modelTask) map[uint64]bool {
	bytes := make(map[uint64]bool)
	first, second, siblings := modelKin(a, b)
	joint := false
	for at := range memory {
		x, _ := kindAt(first, at)
		y, _ := kindAt(second, at)
		if siblings && x == tasks.DependMutexInOutSet && y == x {
			return nil
		}
		joint = joint || siblings && x == tasks.DependInOutSet && y == x || bothJoin(a, b, at)
	}
	for _, x := range a.accesses {
		for _, y := range b.accesses {
			if x.Local && !inRegion(b, a.parent) || y.Local && !inRegion(a, b.parent) {
				continue
			}
			named := !x.Unnamed && !y.Unnamed && x.Offset == y.Offset
			if x.Space != y.Space || !x.Write && !y.Write || !named && joint {
				continue
			}
			for at := max(x.Start, y.Start); at < min(x.end(), y.end()); at++ {
				name := int(at + x.Offset - base)
				i, _ := kindAt(first, name)
				j, _ := kindAt(second, name)
				if named && (siblings && i == tasks.DependInOutSet && j == i || bothJoin(a, b, name)) {
					continue
				}
				bytes[uint64(x.Space)<<60|at] = true
			}
		}
	}
	return bytes
}

// TestRandomProgramsAgainstAllPairs runs random programs in random orders, and compares what
// the detector reports with the paths between all pairs of tasks.
func TestRandomProgramsAgainstAllPairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newProgram(t)
		for !p.initial.complete && p.step() {
		}
		p.finish()
		p.compare()
		p.clean()
	})
}

// clean checks that the detector's counts agree with what it keeps.
func (p *program) clean() {
	d := p.detector
	holds := map[*Task]int32{}
	remembered := 0
	d.eachUse(func(o use) { holds[o.task]++; remembered++ })
	if remembered != d.remembered {
		p.t.Fatalf("%d accesses are remembered, %d counted", remembered, d.remembered)
	}
	count := func(d *depends) {
		named := 0
		hold := func(t *Task) { holds[t]++; named++ }
		d.by.each(func(at *segment[users]) { at.value.each(hold) })
		if d.all != nil {
			hold(d.all)
		}
		for _, t := range d.included {
			hold(t)
		}
		if named != d.named {
			p.t.Fatalf("%d places are named, %d counted", named, d.named)
		}
	}
	count(&p.initial.task.depends)
	refs := map[*trail]int{}
	var lead func(r *trail)
	lead = func(r *trail) {
		refs[r]++
		if refs[r] > 1 {
			return
		}
		if r.children != nil {
			count(r.children)
		}
		for _, b := range r.before {
			lead(b)
		}
	}
	for _, m := range p.all {
		count(&m.task.depends)
		if len(m.task.trails) > 0 {
			p.t.Fatalf("task %d has started and has trails of others", m.number)
		}
		if r := m.task.trail; r != nil {
			lead(r)
		}
	}
	for r, n := range refs {
		if r.refs != n {
			p.t.Fatalf("a trail has %d references, %d counted", n, r.refs)
		}
	}
	chains := map[uint32]int32{}
	for _, m := range p.all {
		if m.task.holds != holds[m.task] {
			p.t.Fatalf("task %d is held %d times, %d counted", m.number, holds[m.task], m.task.holds)
		}
		if m.task.holds > 0 {
			chains[m.task.at.chain]++
		}
	}
	for i := range d.clock.chains {
		if d.clock.chains[i].tasks != chains[uint32(i)] {
			p.t.Fatalf("chain %d has %d tasks, %d counted", i, chains[uint32(i)], d.clock.chains[i].tasks)
		}
	}
}
