package trace

import (
	"time"
	"unsafe"

	"github.com/vkomp/vkomp/ompt"
)

// What a collector keeps of each task are some hundred bytes without pointers, so that the garbage
// collector does not look at them: labels are numbers, and entries refer to others by their indices.

// packedTask is a task.
type packedTask struct {
	id     ompt.ID
	ended  time.Duration
	parent int32
	// run is the current run of the body, none if there is none.
	run    int32
	label  label
	flags  ompt.TaskFlag
	status ompt.TaskStatus
}

// packedRegion is a region.
type packedRegion struct {
	id         ompt.ID
	begin, end time.Duration
	task       int32
	device     int32
	label      label
	kind       ompt.TargetKind
}

// packedOp is an op.
type packedOp struct {
	id           ompt.ID
	begin, end   time.Duration
	bytes, teams uint64
	task, region int32
	src, dest    int32
	label        label
	dataOp       ompt.TargetDataOp
}

// packedRecord is a record.
type packedRecord struct {
	region, op    ompt.ID
	begin, end    time.Duration
	bytes, teams  uint64
	device, queue int32
	src, dest     int32
	label         label
	dataOp        ompt.TargetDataOp
}

// label is the number of a label.
type label uint32

// labelTable has the labels of entries, by their numbers.
type labelTable struct {
	all    []string
	number map[string]label
	// recent has numbers by the addresses of the labels: the same label is mostly the same string.
	recent [64]struct {
		string
		number label
		known  bool
	}
}

// of returns the number of a label.
func (l *labelTable) of(s string) label {
	first := unsafe.StringData(s)
	at := &l.recent[uintptr(unsafe.Pointer(first))>>4%uintptr(len(l.recent))]
	if at.known && unsafe.StringData(at.string) == first && len(at.string) == len(s) {
		return at.number
	}
	n, known := l.number[s]
	if !known {
		if l.number == nil {
			l.number = make(map[string]label)
		}
		n = label(len(l.all))
		l.all = append(l.all, s)
		l.number[s] = n
	}
	at.string, at.number, at.known = s, n, true
	return n
}

// history returns all that was kept.
func (c *Collector) history(now time.Duration) history {
	name := c.labels.all
	return history{
		start: c.start, now: now, dropped: c.dropped,
		devices: append([]device(nil), c.devices...), problems: append([]string(nil), c.problems...),
		tasks: unpack(&c.tasks, func(t *packedTask) task {
			return task{parent: t.parent, id: t.id, label: name[t.label], flags: t.flags, ended: t.ended, status: t.status}
		}),
		regions: unpack(&c.regions, func(r *packedRegion) region {
			return region{task: r.task, id: r.id, kind: r.kind, device: int(r.device), label: name[r.label], begin: r.begin, end: r.end}
		}),
		ops: unpack(&c.ops, func(o *packedOp) op {
			return op{
				task: o.task, region: o.region, id: o.id, dataOp: o.dataOp, src: int(o.src), dest: int(o.dest),
				bytes: o.bytes, teams: o.teams, label: name[o.label], begin: o.begin, end: o.end,
			}
		}),
		records: unpack(&c.records, func(r *packedRecord) record {
			return record{
				device: int(r.device), queue: int(r.queue), region: r.region, op: r.op, dataOp: r.dataOp, src: int(r.src), dest: int(r.dest),
				bytes: r.bytes, teams: r.teams, label: name[r.label], begin: r.begin, end: r.end,
			}
		}),
		runs: c.runs.all(), waits: c.waits.all(), edges: c.edges.all(), loads: c.loads.all(), closings: c.closings.all(),
	}
}

// unpack returns the entries of a list of packed ones.
func unpack[P, T any](l *list[P], one func(*P) T) []T {
	whole := make([]T, 0, l.len)
	for _, c := range l.chunks {
		for k := range c {
			whole = append(whole, one(&c[k]))
		}
	}
	return whole
}
