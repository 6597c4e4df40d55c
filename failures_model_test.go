package vkomp_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vkomp/vkomp"
)

// failModel says what a random program with failures does, from the documentation alone: it takes the steps in order and
// looks at all pairs of tasks. A task that nothing keeps waiting is complete at once, as the program waits for that before
// each step for which it matters. Where the documentation leaves a choice, choose makes it.
type failModel struct {
	choose func(n int) int
	// got is what each step has returned, and ran says whose body or kernel has run.
	got    []string
	ran    []bool
	tasks  []*failTask
	counts []*failCount
	// gates are the detachable tasks whose events have not been fulfilled.
	gates failGates
	// ending ends contexts, those of steps with ending set.
	ending []context.CancelCauseFunc
	ended  bool
}

// failRegion is a task region.
type failRegion struct {
	final bool
	steps []*failStep
}

// failGroup is a taskgroup. Its wait is given up if cut is set, when last tasks had been generated.
type failGroup struct {
	parent         *failGroup
	cancel         context.CancelCauseFunc
	cancelled, cut bool
	last           int
}

// failRoot is the failure of a task that has failed itself. Unrun says that it was dropped when its context ended.
type failRoot struct {
	label, cause string
	unrun        bool
	// count counts the task.
	count *failCount
}

func (f *failRoot) String() string { return fmt.Sprintf("%s(%s)", f.label, f.cause) }

// failPlace is where a construct is encountered. Outer is the place outside of the taskgroup if it is in the same region.
type failPlace struct {
	ctx    context.Context
	region *failRegion
	group  *failGroup
	outer  *failPlace
	// inline says that the program's own goroutine is there, and none of the pool.
	inline bool
}

// failTask is a task.
type failTask struct {
	failPlace
	step     *failStep
	number   int
	included bool
	// follows are the earlier tasks on which it depends, causes the failures because of which it is not run.
	follows                      []*failTask
	causes                       []*failRoot
	started, fulfilled, complete bool
	failed, because              *failRoot
	// always says that it runs whatever happens to the tasks on which it depends.
	always bool
	// counts are the failures that keep later tasks that depend on it from running until they are reported.
	counts []*failCount
}

// failCount is a failure as a wait reports it, for the tasks of one region and taskgroup: with the number of those that
// were not run because of it. returned says that a wait outside of the taskgroup has returned it, idle that it keeps no
// task from running.
type failCount struct {
	root                     *failRoot
	region                   *failRegion
	group                    *failGroup
	dropped                  int
	reported, returned, idle bool
}

func (g *failGroup) stopped() bool { return g != nil && (g.cancelled || g.parent.stopped()) }

// around reports whether g is inner or around it. No group is around all.
func (g *failGroup) around(inner *failGroup) bool {
	return g == nil || inner != nil && (g == inner || g.around(inner.parent))
}

// reporter is the group that reports the failures of g's tasks.
func (g *failGroup) reporter() *failGroup {
	if g != nil && g.cut {
		return g.parent.reporter()
	}
	return g
}

// left reports whether the wait for g, or for one around it, was given up before the k-th task was generated.
func (g *failGroup) left(k int) bool { return g != nil && (g.cut && k >= g.last || g.parent.left(k)) }

// conflicts reports whether a task with the items b depends on an earlier one with the items a.
func conflicts(a, b []failItem) bool {
	for _, i := range a {
		for _, j := range b {
			meet := i.from < j.to && j.from < i.to || i.kind.AllMemory() || j.kind.AllMemory()
			if meet && !ofOneSet(i.kind, j.kind) {
				return true
			}
		}
	}
	return false
}

// both joins texts of errors.
func both(errs ...string) string {
	errs = slices.DeleteFunc(slices.Clone(errs), func(e string) bool { return e == "" })
	slices.Sort(errs)
	if len(errs) < 2 {
		return strings.Join(errs, "")
	}
	return "{" + strings.Join(errs, " ") + "}"
}

// onlyCancelled reports whether an error says of nothing but that taskgroups are cancelled.
func onlyCancelled(text string) bool {
	rest := strings.ReplaceAll(text, "CANCELLED", "")
	return rest != text && strings.ToLower(rest) == rest
}

// reported is what a wait with these failures returns.
func reported(counts []*failCount) string {
	var texts []string
	known, number, dropped := make(map[*failRoot]bool), make(map[string]int), 0
	for _, c := range counts {
		text := c.root.String()
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
		if !known[c.root] {
			known[c.root] = true
			number[text]++
		}
		dropped += c.dropped
	}
	for i, text := range texts {
		if number[text] > 1 {
			texts[i] = fmt.Sprintf("%s*%d", text, number[text])
		}
	}
	return countDropped(both(texts...), dropped)
}

func countDropped(text string, dropped int) string {
	if dropped == 0 {
		return text
	}
	return fmt.Sprintf("[%s]#%d", text, dropped)
}

// take returns the failures that no wait has reported, and marks them as reported by a wait that is for them.
func (m *failModel) take(returned func(c *failCount) bool, reports func(g *failGroup) bool) (list []*failCount) {
	for _, c := range m.counts {
		if !c.reported && returned(c) {
			list = append(list, c)
			c.returned, c.reported = true, reports(c.group.reporter())
		}
	}
	return list
}

// add generates a task.
func (m *failModel) add(s *failStep, p failPlace, included, always bool) *failTask {
	t := &failTask{failPlace: p, step: s, number: len(m.tasks), included: included, always: always}
	for _, e := range m.tasks {
		if e.region == p.region && conflicts(e.step.items, s.items) {
			t.follows = append(t.follows, e)
			for _, c := range e.counts {
				if !c.reported && !c.idle {
					t.causes = append(t.causes, c.root)
				}
			}
		}
	}
	m.tasks = append(m.tasks, t)
	m.settle()
	return t
}

// settle starts the tasks that nothing keeps waiting.
func (m *failModel) settle() {
	for changed := true; changed; {
		changed = false
		for _, t := range m.tasks {
			if !t.started && !slices.ContainsFunc(t.follows, func(e *failTask) bool { return !e.complete }) {
				changed = true
				m.start(t)
			}
		}
	}
}

// start runs a task, or drops it.
func (m *failModel) start(t *failTask) {
	t.started = true
	s := t.step
	switch {
	case t.always:
		for _, root := range t.causes {
			if root.count != nil {
				t.counts = append(t.counts, root.count)
			}
		}
	case len(t.causes) > 0:
		t.because = t.causes[m.choose(len(t.causes))]
	case t.group.stopped():
	case t.ctx.Err() != nil:
		t.failed = &failRoot{label: s.label(), cause: said(context.Cause(t.ctx)), unrun: true}
	default:
		cause := m.body(s, failPlace{ctx: t.ctx, region: &failRegion{final: t.region.final || s.final}, group: t.group, inline: t.inline && t.included})
		if onlyCancelled(cause) && t.group.stopped() {
			break
		}
		if cause != "" {
			t.failed = &failRoot{label: s.label(), cause: cause}
		}
		if cause == "" && s.detach && !t.fulfilled {
			return
		}
	}
	m.complete(t)
}

// complete completes a task.
func (m *failModel) complete(t *failTask) {
	t.complete = true
	root, cut := t.failed, t.group.left(math.MaxInt)
	if root == nil {
		root = t.because
	}
	if root == nil {
		return
	}
	for _, later := range m.tasks {
		if slices.Contains(later.follows, t) && !t.group.left(later.number) {
			later.causes = append(later.causes, root)
		}
	}
	if !t.included && !(cut && (t.failed == nil || root.unrun)) {
		m.note(root, t, cut)
	}
}

// note counts the failure of a deferred task.
func (m *failModel) note(root *failRoot, t *failTask, cut bool) {
	for _, c := range m.counts {
		if c.root == root && c.region == t.region && c.group.reporter() == t.group.reporter() && !c.reported && !c.returned {
			t.counts = []*failCount{c}
		}
	}
	if t.counts == nil {
		t.counts = []*failCount{{root: root, region: t.region, group: t.group, idle: cut}}
		m.counts = append(m.counts, t.counts...)
	}
	if c := t.counts[0]; t.failed == nil {
		c.dropped++
	} else {
		root.count = c
	}
}

// body runs the body of a task or of a taskgroup, or a kernel, and returns its failure.
func (m *failModel) body(s *failStep, inside failPlace) string {
	m.ran[s.id] = s.kind == "task" || s.kind == "target" && s.ends == ""
	errs := m.region(s.body, inside)
	if !s.pass {
		errs = ""
	}
	if s.fulfills {
		errs = both(errs, m.fulfill(s.of))
	}
	switch {
	case s.ends == "PANIC" || s.ends == "GOEXIT":
		return s.ends
	case s.cancels:
		return both(errs, m.cancel(inside))
	}
	return both(errs, s.failure())
}

func (m *failModel) cancel(p failPlace) string {
	if p.group == nil {
		return "INVALID"
	}
	p.group.cancelled = true
	p.group.cancel(vkomp.ErrCancelled)
	return "CANCELLED"
}

// region executes steps and returns their errors.
func (m *failModel) region(steps []failStep, p failPlace) string {
	var errs []string
	for k := range steps {
		s := &steps[k]
		m.got[s.id] = m.step(s, p)
		errs = append(errs, m.got[s.id])
	}
	return both(errs...)
}

// step executes a step and returns its error.
func (m *failModel) step(s *failStep, p failPlace) string {
	if s.outside && p.outer != nil {
		p = *p.outer
	}
	if s.ending {
		var end context.CancelCauseFunc
		p.ctx, end = context.WithCancelCause(p.ctx)
		m.ending = append(m.ending, end)
		if m.ended {
			end(errEnding)
		}
	}
	if p.inline && p.ctx.Err() == nil && m.gates.hold(s, p.region.steps, p.region.final) {
		m.free()
	}
	p.region.steps = append(p.region.steps, s)
	switch s.kind {
	case "fulfill":
		return m.fulfill(s.of)
	case "end":
		m.ended = true
		for _, end := range m.ending {
			end(errEnding)
		}
		return ""
	case "cancel":
		return m.cancel(p)
	case "point":
		if p.group.stopped() {
			return "CANCELLED"
		}
		return ""
	case "wait":
		return m.wait(p)
	}
	if p.ctx.Err() != nil {
		return said(context.Cause(p.ctx))
	}
	included := s.undeferred || s.kind == "wait depend" || p.region.final
	switch {
	case s.kind == "group":
		return m.group(s, p)
	case s.kind == "data":
		return m.data(s, p)
	case s.merges(p.region.final):
		if cause := m.body(s, p); cause != "" && !(onlyCancelled(cause) && p.group.stopped()) {
			return (&failRoot{label: s.label(), cause: cause}).String()
		}
		return ""
	}
	t := m.add(s, p, included, false)
	if s.detach {
		m.gates = append(m.gates, s)
	}
	switch {
	case !included:
		return ""
	case t.failed != nil:
		return t.failed.String()
	case t.because != nil && s.kind == "wait depend":
		return m.reportFor(t)
	case t.because != nil:
		return fmt.Sprintf("%s<-%v", s.label(), t.because)
	}
	t.included = t.complete
	return ""
}

// reportFor returns the failure because of which an empty task with the items of a wait was not run, which is reported by that.
func (m *failModel) reportFor(t *failTask) string {
	dropped := 0
	for _, c := range m.take(func(c *failCount) bool {
		return c.root == t.because && c.region == t.region && c.group.reporter().around(t.group)
	}, func(*failGroup) bool { return true }) {
		dropped += c.dropped
	}
	return countDropped(fmt.Sprintf("%s<-%v", t.step.label(), t.because), dropped)
}

// data is a target data region.
func (m *failModel) data(s *failStep, p failPlace) (err string) {
	wait := failStep{id: s.id, kind: "data", items: slices.Clone(s.items)}
	for k := range wait.items {
		if wait.items[k].kind == vkomp.DependMutexInOutSet {
			wait.items[k].kind = vkomp.DependInOut
		}
	}
	if t := m.add(&wait, p, true, false); t.because != nil {
		return m.reportFor(t)
	}
	if s.ends != "" {
		return (&failRoot{label: s.label(), cause: s.ends}).String()
	}
	if s.noGroup {
		if err = m.body(s, p); p.inline {
			m.free()
		}
	} else {
		err = m.group(s, p)
	}
	m.add(&failStep{items: s.items}, p, true, true)
	return err
}

func (m *failModel) fulfill(id int) string {
	m.gates.remove(id)
	for _, t := range m.tasks {
		switch {
		case t.step.id != id || t.complete:
		case t.fulfilled:
			return "FULFILLED"
		default:
			t.fulfilled = true
			if t.started {
				m.complete(t)
				m.settle()
			}
		}
	}
	return ""
}

// free fulfills all events.
func (m *failModel) free() {
	for _, s := range slices.Clone(m.gates) {
		m.fulfill(s.id)
	}
}

// awaits reports whether a task for which a wait is has not ended.
func (m *failModel) awaits(waits func(t *failTask) bool) bool {
	return slices.ContainsFunc(m.tasks, func(t *failTask) bool { return !t.complete && waits(t) })
}

// wait is a taskwait.
func (m *failModel) wait(p failPlace) string {
	if p.ctx.Err() != nil && m.awaits(func(t *failTask) bool { return t.region == p.region }) {
		return said(context.Cause(p.ctx))
	}
	return reported(m.take(func(c *failCount) bool { return c.region == p.region && !c.returned },
		func(g *failGroup) bool { return g.around(p.group) }))
}

// group is a taskgroup.
func (m *failModel) group(s *failStep, p failPlace) string {
	g := &failGroup{parent: p.group}
	ctx, cancel := context.WithCancelCause(p.ctx)
	g.cancel = cancel
	body := m.body(s, failPlace{ctx, p.region, g, &p, p.inline})
	if g.stopped() && !g.parent.stopped() && onlyCancelled(body) {
		body = ""
	}
	if p.inline && (p.ctx.Err() == nil || s.kind == "data") {
		m.free()
	}
	if m.awaits(func(t *failTask) bool { return g.around(t.group) }) {
		for _, c := range m.counts {
			if c.group.reporter() == g {
				c.idle = true
				c.reported = c.reported || c.root.unrun
			}
		}
		g.cut, g.last = true, len(m.tasks)
		return both(body, said(context.Cause(p.ctx)))
	}
	list := m.take(func(c *failCount) bool { return c.group.reporter() == g }, func(*failGroup) bool { return true })
	if len(list) == 0 {
		return body
	}
	return both(body, list[m.choose(len(list))].root.String())
}

// close closes the runtime.
func (m *failModel) close() string {
	m.free()
	return reported(m.take(func(c *failCount) bool { return !c.returned }, func(*failGroup) bool { return true }))
}
