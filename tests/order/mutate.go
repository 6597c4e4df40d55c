package order

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrViolations matches the error of Mutate for a log with violations before any change.
var ErrViolations = errors.New("the log has violations")

// Mutation is one change of the synchronization in a log.
type Mutation struct {
	What  string // kind of change, such as "barrier removed"
	Line  int    // of the log
	Text  string // description of the change
	Waste bool   // if no order is lost, the operation was not needed

	change
}

// MutationCount counts mutations of one kind.
type MutationCount struct {
	What   string // kind of change
	Total  int    // number of mutations
	Caught int    // the checker reports the lost order
	// Kept counts those that lose no order that accesses need, ByHost those for which that is only
	// because of what the host had already seen.
	Kept, ByHost int
	// Examined is how many of them the oracle judged too. Missed is how many of these lose an order
	// without being caught, Spurious how many are caught without losing one.
	Examined, Missed, Spurious int
}

// Mutations is the result of Mutate.
type Mutations struct {
	Counts []*MutationCount // by kind
	// Synchronizations counts the barriers, waits and signals of the log, Wasted those that can
	// each be removed because others on the device give the same order. Those that can only be
	// removed because of what the host had seen in this run are not wasted. Overtaken counts
	// those whose operations the host had already seen to end when it submitted, or, where they
	// allow the host to access memory, those after which the host accessed it only when others
	// had allowed that too. Revealing counts those that make visible what the host had seen,
	// where it relied on that and submitted no wait; by one reading of Vulkan 1.3 §7.9 the
	// submission makes it visible too, by another it does not.
	Synchronizations, Wasted, Overtaken, Revealing int
	// Untold counts barriers to the host in a log without flushes and invalidations. The host's
	// accesses are not in such a log, so these barriers are not judged and not counted in
	// Synchronizations.
	Untold int
	// Unneeded are the first mutations that show waste; Missed and Spurious are the first on which
	// the oracle and the checker disagree.
	Unneeded, Missed, Spurious []Mutation
}

// Waste returns the share of wasted synchronization in percent.
func (m *Mutations) Waste() float64 {
	if m.Synchronizations == 0 {
		return 0
	}
	return 100 * float64(m.Wasted) / float64(m.Synchronizations)
}

// Print writes the result as text.
func (m *Mutations) Print(w io.Writer) error {
	var b strings.Builder
	var all MutationCount
	fmt.Fprintf(&b, "%-32s %8s %8s %8s %8s %9s %7s %9s\n", "mutation", "all", "caught", "no loss", "by host", "by oracle", "missed", "spurious")
	for _, c := range m.Counts {
		c.print(&b)
		all.Total += c.Total
		all.Caught += c.Caught
		all.Kept += c.Kept
		all.ByHost += c.ByHost
		all.Examined += c.Examined
		all.Missed += c.Missed
		all.Spurious += c.Spurious
	}
	all.What = "all"
	all.print(&b)
	for _, u := range m.Missed {
		fmt.Fprintf(&b, "missed: line %d: %s: %s\n", u.Line, u.What, u.Text)
	}
	for _, u := range m.Spurious {
		fmt.Fprintf(&b, "spurious: line %d: %s: %s\n", u.Line, u.What, u.Text)
	}
	for _, u := range m.Unneeded {
		fmt.Fprintf(&b, "not needed: line %d: %s\n", u.Line, u.Text)
	}
	fmt.Fprintf(&b, "%d of %d barriers, waits and signals are not needed: %.2f %%; %d more were overtaken by the host, %d make visible what it had seen\n",
		m.Wasted, m.Synchronizations, m.Waste(), m.Overtaken, m.Revealing)
	if m.Untold > 0 {
		fmt.Fprintf(&b, "%d barriers to the host are not among them: the log does not say what the host does\n", m.Untold)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *MutationCount) print(b *strings.Builder) {
	fmt.Fprintf(b, "%-32s %8d %8d %8d %8d %9d %7d %9d\n", c.What, c.Total, c.Caught, c.Kept, c.ByHost, c.Examined, c.Missed, c.Spurious)
}

// OracleBounded makes the oracle examine as many mutations as it can in some seconds: all of a
// log of a hundred calls, none of one of some thousands.
const OracleBounded = -1

// MutateOptions are the options of Mutate.
type MutateOptions struct {
	Options
	// Oracle is the number of mutations, spread over the log, that the oracle examines, or
	// OracleBounded. Each takes more than cubic time in the length of the log. 0 means none.
	Oracle int
	// List is the largest length of each list of unneeded, missed and spurious ones; 0 means 10.
	List int
}

// Mutate changes the synchronization of a log, one change at a time, and checks each result. The
// log itself must have no violations; otherwise Mutate returns an error with the report of the
// check.
func Mutate(log io.Reader, o MutateOptions) (*Mutations, *Report, error) {
	t, report, err := readTrace(log, o.Options)
	if err != nil {
		return nil, report, err
	}
	if report.Total > 0 {
		return nil, report, fmt.Errorf("%w: %d", ErrViolations, report.Total)
	}
	if o.List == 0 {
		o.List = 10
	}
	all := t.mutations()
	type judged struct{ caught, overtaken, revealing, examined, loses bool }
	results := make([]judged, len(all))
	stride := 0
	if most := t.examined(o.Oracle); most > 0 {
		stride = max(1, (len(all)-1)/most+1)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				r := &results[i]
				r.caught = t.replay(hearsAll, all[i].change)
				if !r.caught && all[i].Waste {
					r.overtaken = t.replay(deaf, all[i].change)
					r.revealing = !r.overtaken && t.replay(hearsEnd, all[i].change)
				}
				if stride > 0 && i%stride == 0 {
					r.examined = true
					r.loses = loses(t.changed(all[i].change))
				}
			}
		})
	}
	wg.Wait()

	m := &Mutations{}
	byWhat := map[string]*MutationCount{}
	for i := range all {
		c := byWhat[all[i].What]
		if c == nil {
			c = &MutationCount{What: all[i].What}
			byWhat[c.What] = c
			m.Counts = append(m.Counts, c)
		}
		r := results[i]
		c.Total++
		switch {
		case r.caught:
			c.Caught++
		default:
			c.Kept++
			switch {
			case r.overtaken:
				c.ByHost++
				m.Overtaken++
			case r.revealing:
				c.ByHost++
				m.Revealing++
			case all[i].Waste:
				m.Wasted++
				if len(m.Unneeded) < o.List {
					m.Unneeded = append(m.Unneeded, all[i])
				}
			}
		}
		if r.examined {
			c.Examined++
			if r.loses && !r.caught {
				c.Missed++
				if len(m.Missed) < o.List {
					m.Missed = append(m.Missed, all[i])
				}
			}
			if !r.loses && r.caught {
				c.Spurious++
				if len(m.Spurious) < o.List {
					m.Spurious = append(m.Spurious, all[i])
				}
			}
		}
	}
	for i := range t.events {
		switch ev := &t.events[i]; ev.kind {
		case evBarrier, evWait, evSignal:
			if t.untold(ev) {
				m.Untold++
			} else {
				m.Synchronizations++
			}
		}
	}
	return m, report, nil
}

// examined returns the largest number of mutations for the oracle to examine.
func (t *trace) examined(oracle int) int {
	// About ten seconds of processor time.
	const work uint64 = 1 << 32
	if oracle != OracleBounded {
		return oracle
	}
	n := uint64(max(1<<6, len(t.events)))
	return int(work / n / n / n)
}

// mutations returns the changes of a trace.
func (t *trace) mutations() []Mutation {
	var all []Mutation
	used := t.usedSignals()
	begin := map[int]int{} // by queue: where the commands of its batch begin
	for i := range t.events {
		ev := &t.events[i]
		add := func(what string, with *event, to int, waste bool, format string, args ...any) {
			all = append(all, Mutation{What: what, Line: ev.line, Waste: waste, change: change{i, with, to},
				Text: fmt.Sprintf("%v: ", ev.command) + fmt.Sprintf(format, args...)})
		}
		switch ev.kind {
		case evBegin:
			begin[ev.queue] = i + 1
		case evBarrier:
			add("barrier removed", nil, -1, !t.untold(ev), "barrier %s", masks(ev.dependencies))
			t.narrowBarrier(ev, add)
		case evWait:
			if begin[ev.queue] == i {
				begin[ev.queue] = i + 1
			}
			add("wait removed", nil, -1, true, "wait for semaphore %d value %d", ev.semaphore, ev.value)
			if ev.value > 1 {
				with := *ev
				with.value--
				add("wait lowered by one", &with, -1, false, "wait for semaphore %d value %d", ev.semaphore, ev.value)
			}
			for _, stages := range narrower(ev.stages, true) {
				with := *ev
				with.stages = stages
				add("wait narrowed", &with, -1, false, "stages %x for %x", stages, ev.stages)
			}
		case evSignal:
			add("signal removed", nil, -1, !used[i], "signal of semaphore %d value %d", ev.semaphore, ev.value)
			lowered, raised := *ev, *ev
			lowered.value--
			raised.value++
			add("signal lowered by one", &lowered, -1, false, "signal of semaphore %d value %d", ev.semaphore, ev.value)
			add("signal raised by one", &raised, -1, false, "signal of semaphore %d value %d", ev.semaphore, ev.value)
			if to := begin[ev.queue]; to < i {
				with := *ev
				add("signal before its batch", &with, to, false, "signal of semaphore %d value %d", ev.semaphore, ev.value)
			}
		case evReach:
			if used[i] {
				continue // another query has shown it
			}
			add("host wait removed", nil, -1, false, "host's wait for semaphore %d value %d", ev.semaphore, ev.value)
			if ev.value > 1 {
				with := *ev
				with.value--
				add("host wait lowered by one", &with, -1, false, "host's wait for semaphore %d value %d", ev.semaphore, ev.value)
			}
		case evHostSignal:
			add("host signal removed", nil, -1, false, "host's signal of semaphore %d value %d", ev.semaphore, ev.value)
		case evIdle, evFenceMet:
			add("host wait removed", nil, -1, false, "host's wait")
		}
	}
	return all
}

// untold reports whether an event is a barrier to the host only, in a trace without the host's
// accesses.
func (t *trace) untold(ev *event) bool {
	if ev.kind != evBarrier || t.hostAccesses {
		return false
	}
	return !slices.ContainsFunc(ev.dependencies, func(d dependency) bool { return d.dstStages != stageHost })
}

// usedSignals returns the signals that a wait of a queue needs or that the host saw, possibly
// through a later one, and the queries of the host that showed nothing new.
func (t *trace) usedSignals() map[int]bool {
	used := map[int]bool{}
	signals := map[int][]int{} // by semaphore
	binary := map[int]bool{}
	seen := map[int]uint64{}
	for i := range t.events {
		ev := &t.events[i]
		switch ev.kind {
		case evSemaphore:
			binary[ev.semaphore] = ev.binary
			seen[ev.semaphore] = ev.value
			delete(signals, ev.semaphore)
		case evSignal:
			signals[ev.semaphore] = append(signals[ev.semaphore], i)
		case evReach, evWait:
			if ev.kind == evReach {
				if ev.value <= seen[ev.semaphore] {
					used[i] = true
				}
				seen[ev.semaphore] = max(seen[ev.semaphore], ev.value)
			}
			for _, s := range signals[ev.semaphore] {
				if binary[ev.semaphore] {
					used[s] = true
				} else if v := t.events[s].value; v >= ev.value {
					used[s] = true
					break
				} else if ev.kind == evReach {
					used[s] = true
				}
			}
		}
	}
	return used
}

func masks(dependencies []dependency) string {
	var b strings.Builder
	for _, d := range dependencies {
		fmt.Fprintf(&b, "%x:%x:%x:%x ", d.srcStages, d.dstStages, d.srcAccess, d.dstAccess)
	}
	return strings.TrimSpace(b.String())
}

// narrowBarrier removes each bit from each mask of a barrier in turn.
func (t *trace) narrowBarrier(ev *event, add func(string, *event, int, bool, string, ...any)) {
	for k := range ev.dependencies {
		for _, field := range [...]struct {
			name   string
			stages bool
			of     func(*dependency) *uint64
		}{
			{"source stage", true, func(d *dependency) *uint64 { return &d.srcStages }},
			{"destination stage", true, func(d *dependency) *uint64 { return &d.dstStages }},
			{"source access", false, func(d *dependency) *uint64 { return &d.srcAccess }},
			{"destination access", false, func(d *dependency) *uint64 { return &d.dstAccess }},
		} {
			mask := *field.of(&ev.dependencies[k])
			for _, narrow := range narrower(mask, field.stages) {
				with := *ev
				with.dependencies = append([]dependency(nil), ev.dependencies...)
				*field.of(&with.dependencies[k]) = narrow
				add(field.name+" narrowed", &with, -1, false, "%x for %x", narrow, mask)
			}
		}
	}
}

// narrower returns the masks with one bit less. A stage that stands for several is first replaced
// by these.
func narrower(mask uint64, stages bool) []uint64 {
	if stages && mask&stageAllCommands != 0 {
		mask = mask&^stageAllCommands | stageCompute | stageTransfer | stageDrawIndirect
	}
	var out []uint64
	for rest := mask; rest != 0; rest &= rest - 1 {
		out = append(out, mask&^(1<<bits.TrailingZeros64(rest)))
	}
	return out
}
