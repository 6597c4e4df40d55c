package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/vkomp/vkomp/ompt"
)

// history is what a collector has recorded.
type history struct {
	start    time.Time
	now      time.Duration
	dropped  uint64
	devices  []device
	problems []string

	tasks   []task
	regions []region
	ops     []op
	runs    []run
	waits   []wait
	records []record
	edges   []edge
	loads   []load

	closings []closing
}

// Trace is what a collector has recorded up to some time. It is immutable.
type Trace struct {
	history
	// begin is the begin of the first region or other thing that is drawn.
	begin time.Duration
	// slices are the boxes that are drawn, in tracks; tracks of the host come first.
	slices []slice
	tracks []track
	// spans holds the time in which each task worked, own how long it worked by itself
	// (see ownTimes). A task without any work has an empty span at its end.
	spans []interval
	own   []time.Duration
	// anchors holds the slices at which arrows from and to a task begin and end, none if
	// it has no slice.
	anchors []anchor
	// critical is the critical path, and criticalTime the sum of its tasks' own times.
	critical     []int32
	criticalTime time.Duration
	// memory holds, for each of devices, the memory in use over time.
	memory [][]level
}

// host is the process of slices that belong to no device, in place of an index of devices.
const host = -1

// kind is the kind of a slice.
type kind uint8

const (
	kindBody kind = iota
	kindWait
	kindRegion
	kindKernel
	kindToDevice
	kindFromDevice
	kindCopy
	kindOther
)

var kindNames = [...]string{"task", "wait", "target region", "kernel", "to the device", "from the device", "copy", "operation"}

func (k kind) String() string { return kindNames[k] }

// slice is a box of the timeline.
type slice struct {
	laid
	kind  kind
	task  int32
	track int32
	label string
	bytes uint64
}

// track is a row of boxes. Its process is host or an index of devices.
type track struct {
	process int
	name    string
	// queue is the queue's index if the track has records of the device, else none.
	// Operations that overlap are on further tracks of the same queue.
	queue int32
}

// queueName returns the name of the track's queue.
func (of track) queueName() string { return fmt.Sprintf("queue %d", of.queue) }

type anchor struct{ first, last int32 }

// group is a set of slices that share lanes of one name.
type group struct {
	process int
	name    string
	queue   int32
	members []int32
}

// newTrace evaluates a history.
func newTrace(h history) *Trace {
	t := &Trace{history: h}
	t.close()
	b := builder{t: t}
	b.build()
	t.edges = distinct(t.edges)
	t.own = ownTimes(t.spans, t.edges)
	t.critical, t.criticalTime = longestPath(t.own, t.edges)
	t.measureMemory()
	t.begin = t.now
	for i := range t.slices {
		t.begin = min(t.begin, t.slices[i].begin)
	}
	for i := range t.regions {
		t.begin = min(t.begin, t.regions[i].begin)
	}
	return t
}

// close extends everything that has not ended to now, the end of the trace.
func (t *Trace) close() {
	for i := range t.records {
		t.now = max(t.now, t.records[i].end)
	}
	for i := range t.tasks {
		t.now = max(t.now, t.tasks[i].ended)
	}
	closed := func(end *time.Duration) {
		if *end == never {
			*end = t.now
		}
	}
	for i := range t.regions {
		closed(&t.regions[i].end)
	}
	for i := range t.ops {
		closed(&t.ops[i].end)
	}
	for i := range t.runs {
		closed(&t.runs[i].end)
	}
	for i := range t.waits {
		closed(&t.waits[i].end)
	}
}

// distinct returns the edges without duplicates and loops.
func distinct(edges []edge) []edge {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	edges = slices.Compact(edges)
	return slices.DeleteFunc(edges, func(e edge) bool { return e.from == e.to })
}

// process returns the index of a device, host if it is not a known device.
func (t *Trace) process(device int) int {
	for i := range t.devices {
		if t.devices[i].num == device {
			return i
		}
	}
	return host
}

// builder builds the slices of a trace.
type builder struct {
	t *Trace
	// in is the group of each slice.
	groups []group
	in     []int
	// recorded says which devices have records. regionByID and opByID find the region
	// and operation of a record.
	recorded   []bool
	regionByID map[ompt.ID]int32
	opByID     map[ompt.ID]int32
	// ofRun and ofRegion hold the slices of runs and regions, none if there is none.
	ofRun, ofRegion []int32
	// withRecord says which operations have a record of the device.
	withRecord []bool
}

func (b *builder) build() {
	t := b.t
	b.recorded = make([]bool, len(t.devices))
	b.regionByID, b.opByID = map[ompt.ID]int32{}, map[ompt.ID]int32{}
	for i := range t.regions {
		b.regionByID[t.regions[i].id] = int32(i)
	}
	for i := range t.ops {
		b.opByID[t.ops[i].id] = int32(i)
	}
	b.withRecord = make([]bool, len(t.ops))
	for i := range t.records {
		if p := t.process(t.records[i].device); p != host {
			b.recorded[p] = true
		}
		if o, ok := b.opByID[t.records[i].op]; ok {
			b.withRecord[o] = true
		}
	}
	b.addRuns()
	b.addRegions()
	b.addWaits()
	b.addRecords()
	b.addOps()
	b.lay()
	b.measure()
}

// add adds a slice to a group, and returns its index.
func (b *builder) add(process int, name string, queue int32, s slice) int32 {
	g := slices.IndexFunc(b.groups, func(g group) bool { return g.process == process && g.name == name })
	if g < 0 {
		g = len(b.groups)
		b.groups = append(b.groups, group{process: process, name: name, queue: queue})
	}
	return b.addTo(g, s)
}

func (b *builder) addTo(g int, s slice) int32 {
	i := int32(len(b.t.slices))
	// Clocks differ slightly; make sure that nothing ends before it begins.
	s.end = max(s.end, s.begin)
	b.t.slices = append(b.t.slices, s)
	b.in = append(b.in, g)
	b.groups[g].members = append(b.groups[g].members, i)
	return i
}

// Names of tracks.
const (
	workers      = "worker"
	programWaits = "the program waits"
	regionTracks = "target regions"
	dataTracks   = "data, by the host"
)

// addRuns adds the bodies that ran on the host. Host work of a target task on a device
// belongs to its target region.
func (b *builder) addRuns() {
	t := b.t
	b.ofRun = make([]int32, len(t.runs))
	for i, r := range t.runs {
		b.ofRun[i] = none
		of := &t.tasks[r.task]
		if of.flags&ompt.TaskTarget != 0 {
			continue
		}
		s := slice{laid: laid{interval{r.begin, r.end}, none}, kind: kindBody, task: r.task, label: t.taskLabel(r.task)}
		if r.parent != none {
			s.parent = b.ofRun[r.parent]
		}
		b.ofRun[i] = b.add(host, workers, none, s)
	}
}

func (b *builder) addRegions() {
	t := b.t
	b.ofRegion = make([]int32, len(t.regions))
	// outer is the run of another task's body in which a target task runs.
	outer := map[int32]int32{}
	for _, r := range t.runs {
		if r.parent != none && t.tasks[r.task].flags&ompt.TaskTarget != 0 {
			outer[r.task] = b.ofRun[r.parent]
		}
	}
	for i, r := range t.regions {
		b.ofRegion[i] = none
		s := slice{laid: laid{interval{r.begin, r.end}, none}, kind: kindRegion, task: r.task, label: t.regionLabel(&r)}
		switch p := t.process(r.device); {
		case p == host:
			if up, ok := outer[r.task]; ok && r.task != none {
				s.parent = up
			}
			b.ofRegion[i] = b.add(host, workers, none, s)
		case !b.recorded[p]:
			b.ofRegion[i] = b.add(p, regionTracks, none, s)
		}
	}
}

func (b *builder) addWaits() {
	t := b.t
	for _, w := range t.waits {
		s := slice{laid: laid{interval{w.begin, w.end}, none}, kind: kindWait, task: w.task, label: waitName(w.kind)}
		if w.run != none && b.ofRun[w.run] != none {
			s.parent = b.ofRun[w.run]
			b.addTo(b.in[s.parent], s)
			continue
		}
		b.add(host, programWaits, none, s)
	}
}

// waitName returns the name of a kind of wait in the program.
func waitName(k ompt.SyncRegion) string {
	return strings.TrimPrefix(k.String(), "ompt_sync_region_")
}

func (b *builder) addRecords() {
	t := b.t
	for i, r := range t.records {
		s := slice{laid: laid{interval{r.begin, r.end}, none}, task: b.taskOfRecord(&r), bytes: r.bytes, label: r.label}
		s.kind = t.kindOf(r.dataOp, r.src, r.dest)
		if s.label == "" {
			s.label = s.kind.String()
		}
		p := t.process(r.device)
		t.records[i].begin, t.records[i].end = s.begin, max(s.begin, s.end)
		if p != host {
			b.add(p, track{queue: int32(r.queue)}.queueName(), int32(r.queue), s)
		}
	}
}

func (b *builder) taskOfRecord(r *record) int32 {
	if i, ok := b.regionByID[r.region]; ok && r.region != 0 {
		return b.t.regions[i].task
	}
	if i, ok := b.opByID[r.op]; ok {
		return b.t.ops[i].task
	}
	return none
}

// addOps adds the operations without a record of a device.
func (b *builder) addOps() {
	t := b.t
	for i := range t.ops {
		o := &t.ops[i]
		if b.withRecord[i] {
			continue
		}
		s := slice{laid: laid{interval{o.begin, o.end}, none}, kind: t.kindOf(o.dataOp, o.src, o.dest), task: o.task, bytes: o.bytes, label: o.label}
		if o.dataOp == 0 {
			// The event tells when the kernel was submitted, not when it ran.
			s.kind, s.label = kindOther, "submit "+o.label
		} else if s.kind == kindOther {
			s.label = opName(o.dataOp) + " " + o.label
		}
		if o.region != none && b.ofRegion[o.region] != none {
			s.parent = b.ofRegion[o.region]
			b.addTo(b.in[s.parent], s)
			continue
		}
		p := t.process(o.dest)
		if p == host {
			p = t.process(o.src)
		}
		if o.dataOp != 0 && p != host {
			b.add(p, dataTracks, none, s)
		}
	}
}

// kindOf returns the kind of a slice for an operation; 0 is a kernel. The direction of a
// memory routine's transfer follows from its devices.
func (t *Trace) kindOf(o ompt.TargetDataOp, src, dest int) kind {
	switch {
	case o == 0:
		return kindKernel
	case !moves(o):
		return kindOther
	case src == ompt.NoDevice || (t.process(src) == host) == (t.process(dest) == host):
		return kindCopy
	case t.process(src) == host:
		return kindToDevice
	}
	return kindFromDevice
}

// moves reports whether an operation writes data.
func moves(o ompt.TargetDataOp) bool {
	switch o {
	case ompt.TargetDataAlloc, ompt.TargetDataAllocAsync, ompt.TargetDataDelete, ompt.TargetDataDeleteAsync,
		ompt.TargetDataAssociate, ompt.TargetDataDisassociate:
		return false
	}
	return true
}

// opName returns a short name of a data operation.
func opName(o ompt.TargetDataOp) string {
	switch o {
	case ompt.TargetDataAlloc, ompt.TargetDataAllocAsync:
		return "alloc"
	case ompt.TargetDataDelete, ompt.TargetDataDeleteAsync:
		return "delete"
	case ompt.TargetDataAssociate:
		return "associate"
	case ompt.TargetDataDisassociate:
		return "disassociate"
	}
	return strings.TrimPrefix(o.String(), "ompt_target_data_")
}

// lay assigns each slice to a track.
func (b *builder) lay() {
	t := b.t
	rank := map[string]int{workers: 0, programWaits: 1, dataTracks: 3, regionTracks: 4}
	slices.SortStableFunc(b.groups, func(a, b group) int {
		order := func(g group) int {
			if n, ok := rank[g.name]; ok {
				return n
			}
			return 2
		}
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(order(a), order(b)), cmp.Compare(a.queue, b.queue))
	})
	for _, g := range b.groups {
		all, place := make([]laid, len(g.members)), map[int32]int32{}
		for i, member := range g.members {
			all[i], place[member] = t.slices[member].laid, int32(i)
		}
		for i := range all {
			if up := all[i].parent; up != none {
				var ok bool
				if all[i].parent, ok = place[up]; !ok {
					all[i].parent = none
				}
			}
		}
		lane, count := lanes(all)
		first := int32(len(t.tracks))
		for i := range count {
			name := g.name
			if count > 1 {
				name = fmt.Sprintf("%s, %d", g.name, i+1)
			}
			if g.name == workers {
				name = fmt.Sprintf("%s %d", workers, i+1)
			}
			t.tracks = append(t.tracks, track{g.process, name, g.queue})
		}
		for i, member := range g.members {
			t.slices[member].track = first + int32(lane[i])
		}
	}
}

// measure determines when each task worked, and where its arrows begin and end.
func (b *builder) measure() {
	t := b.t
	t.spans, t.anchors = make([]interval, len(t.tasks)), make([]anchor, len(t.tasks))
	for i := range t.anchors {
		t.anchors[i] = anchor{none, none}
	}
	some := make([]bool, len(t.tasks))
	cover := func(task int32, v interval) {
		if task == none {
			return
		}
		if !some[task] {
			some[task], t.spans[task] = true, v
			return
		}
		t.spans[task] = interval{min(t.spans[task].begin, v.begin), max(t.spans[task].end, v.end)}
	}
	// Arrows go to kernels if there are any.
	better := func(now int32, than kind) bool {
		return now == none || t.slices[now].kind != kindKernel && than == kindKernel
	}
	for i := range t.slices {
		s := &t.slices[i]
		if s.kind == kindWait || s.kind == kindOther || s.task == none || s.task >= int32(len(t.tasks)) {
			continue
		}
		cover(s.task, s.interval)
		a := &t.anchors[s.task]
		same := func(now int32) bool { return (t.slices[now].kind == kindKernel) == (s.kind == kindKernel) }
		// An operation inside its own region is not where the dependence applies.
		if s.parent != none && t.slices[s.parent].task == s.task {
			continue
		}
		if better(a.first, s.kind) || same(a.first) && s.begin < t.slices[a.first].begin {
			a.first = int32(i)
		}
		if better(a.last, s.kind) || same(a.last) && s.end > t.slices[a.last].end {
			a.last = int32(i)
		}
	}
	for i := range t.regions {
		if r := &t.regions[i]; r.task != none && !some[r.task] {
			cover(r.task, interval{r.begin, max(r.begin, r.end)})
		}
	}
	for i := range t.tasks {
		if some[i] {
			continue
		}
		end := t.tasks[i].ended
		if end == never {
			end = t.now
		}
		t.spans[i] = interval{end, end}
	}
}

// taskLabel returns the name of a task.
func (t *Trace) taskLabel(i int32) string {
	if i == none {
		return ""
	}
	if of := &t.tasks[i]; of.label != "" {
		return of.label
	} else if of.id != 0 {
		return fmt.Sprintf("task %d", of.id)
	}
	return "task"
}

func (t *Trace) regionLabel(r *region) string {
	switch {
	case r.label != "":
		return r.label
	case r.task != none && t.tasks[r.task].label != "":
		return t.tasks[r.task].label
	}
	return constructNames[r.kind]
}

var constructNames = map[ompt.TargetKind]string{
	ompt.Target: "target", ompt.TargetNowait: "target",
	ompt.TargetEnterData: "target enter data", ompt.TargetEnterDataNowait: "target enter data",
	ompt.TargetExitData: "target exit data", ompt.TargetExitDataNowait: "target exit data",
	ompt.TargetUpdate: "target update", ompt.TargetUpdateNowait: "target update",
}

// implicit reports whether a task was not created by a construct.
func (t *Trace) implicit(i int32) bool {
	return t.tasks[i].flags&(ompt.TaskInitial|ompt.TaskImplicit) != 0
}

// ran reports whether a task was run and not dropped before.
func (t *Trace) ran(i int32) bool { return t.tasks[i].status != ompt.TaskCancel }

// deviceName returns the name of one of devices, or "host".
func (t *Trace) deviceName(p int) string {
	if p == host {
		return "host"
	}
	name := fmt.Sprintf("device %d", t.devices[p].num)
	if t.devices[p].name != "" {
		name += ": " + t.devices[p].name
	}
	return name
}

// measureMemory computes the memory in use on each device over time.
func (t *Trace) measureMemory() {
	changes := make([][]change, len(t.devices))
	for i := range t.ops {
		o := &t.ops[i]
		p := t.process(o.dest)
		if p == host {
			p = t.process(o.src)
		}
		if p == host {
			continue
		}
		switch o.dataOp {
		case ompt.TargetDataAlloc, ompt.TargetDataAllocAsync:
			changes[p] = append(changes[p], change{o.end, int64(o.bytes)})
		case ompt.TargetDataDelete, ompt.TargetDataDeleteAsync:
			changes[p] = append(changes[p], change{o.begin, -int64(o.bytes)})
		}
	}
	for _, c := range t.closings {
		if p := t.process(c.device); p != host {
			changes[p] = append(changes[p], change{c.at, math.MinInt64 / 2})
		}
	}
	t.memory = make([][]level, len(t.devices))
	for i := range changes {
		t.memory[i] = curve(changes[i])
	}
}
