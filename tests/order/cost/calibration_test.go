package cost

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// measurement is a row of what was measured on an NVIDIA H100 by plain Vulkan, between low and
// high, and its program.
type measurement struct {
	name      string
	low, high float64
	unit      string
	// of returns what the model says.
	of func(t *testing.T) float64
}

const (
	many = 2000 // commands of a chain
	mib  = 1 << 20
	gib  = 1 << 30
	work = 3556 * microseconds // a kernel that computes for 3.6 ms
)

// chain is a chain of dispatches in one batch, with a barrier behind each. It returns nanoseconds a
// dispatch, from the submission on.
func chain(family int, barrier string) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		q := l.queue(family, 0)
		var commands []string
		for i := range many {
			if barrier == "" {
				commands = append(commands, l.kernel(i))
			} else {
				commands = append(commands, l.kernel(0), barrier)
			}
		}
		l.submit(q, l.record(commands...))
		l.wait("wait b", q)
		r := l.of(Options{})
		return float64(r.Makespan-r.Part("record").Total) / many
	}
}

// whole is a batch of independent dispatches or of levels of some, recording included.
func whole(levels, wide int) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		q := l.queue(2, 0)
		var commands []string
		for level := range levels {
			if level > 0 {
				commands = append(commands, byCompute)
			}
			for i := range wide {
				commands = append(commands, l.kernel(i))
			}
		}
		l.submit(q, l.record(commands...))
		l.wait("wait b", q)
		return float64(l.of(Options{}).Makespan) / float64(levels*wide)
	}
}

// known is a submission of one kernel, and the host's learning of its end, in microseconds.
func known(family int, how string) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		q := l.queue(family, 0)
		l.submit(q, l.record(l.kernel(0)))
		l.wait(how, q)
		r := l.of(Options{})
		return float64(r.Makespan-r.Part("record").Total) / 1e3
	}
}

// sideBySide are 16 kernels of 3.6 ms, in submissions of some each, over some queues. It returns
// milliseconds.
func sideBySide(family, queues, each int) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		const kernels = 16
		l := newLog(t)
		for k := 0; k < kernels; k += each {
			var commands []string
			for i := range each {
				commands = append(commands, l.kernel(k+i))
			}
			l.submit(l.queue(family, k/each%queues), l.record(commands...))
		}
		for q := range queues {
			l.wait("wait b", l.queue(family, q))
		}
		return float64(l.of(Options{Workgroup: work}).Makespan) / 1e6
	}
}

// links is a chain of submissions that wait for each other, on two queues in turn, in microseconds
// a link.
func links(family, index, otherFamily, otherIndex int) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		queues := [2]int{l.queue(family, index), l.queue(otherFamily, otherIndex)}
		fill := fmt.Sprintf("f %d 0 4", l.buffer("a", 64, onDevice))
		var waits []string
		for i := range many {
			q := queues[i%2]
			waits = []string{l.submit(q, l.record(fill), waits...)}
		}
		l.wait("wait b", queues[1])
		return float64(l.of(Options{}).Makespan) / many / 1e3
	}
}

// bytes is one command that moves bytes, from the submission until its end is known, in GB/s.
func bytes(family, size int, command func(l *log) string) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		q := l.queue(family, 0)
		l.submit(q, l.record(command(l)))
		l.wait("wait b", q)
		r := l.of(Options{})
		return float64(size) / float64(r.Makespan-r.Part("record").Total)
	}
}

func fillOf(size int) func(*log) string {
	return func(l *log) string { return fmt.Sprintf("f %d 0 %d", l.buffer("a", size, onDevice), size) }
}

func copyOf(size, from, to int) func(*log) string {
	return func(l *log) string {
		return fmt.Sprintf("c %d %d 0:0:%d", l.buffer("a", size, from), l.buffer("b", size, to), size)
	}
}

// copyBy is a copy by a kernel.
func copyBy(size, from, to int) func(*log) string {
	return func(l *log) string {
		return fmt.Sprintf("p 2\nr 0 0:%d:0:%d 1:%d:0:%d\nd 0 0 0 1056 1 1", l.buffer("a", size, from), size, l.buffer("b", size, to), size)
	}
}

// measurements has every row that a log can express. What it leaves out: copies by threads of the
// host, imports and allocations, which are no commands.
func measurements() []measurement {
	all := []measurement{
		{"10,000 kernels, independent, all in", 1105, 1105, "ns", whole(1, 10000)},
		{"1-D stencil 64 × 200, all in", 775, 919, "ns", whole(200, 64)},
		{"chain with its recording", 3970, 3970, "ns", func(t *testing.T) float64 { return whole(10000, 1)(t) }},
	}
	for _, m := range []struct {
		name, barrier string
		measured      [2]float64 // families 0 and 2
	}{
		{"none", "", [2]float64{287, 289}},
		{"execution only", byExecution, [2]float64{2431, 2470}},
		{"COMPUTE write to COMPUTE", byCompute, [2]float64{2545, 2609}},
		{"COMPUTE, TRANSFER", byBoth, [2]float64{2546, 2608}},
		{"COMPUTE to COMPUTE, HOST", byHost, [2]float64{3979, 3982}},
		{"ALL_COMMANDS, MEMORY", byAll, [2]float64{5773, 5734}},
	} {
		for i, family := range []int{0, 2} {
			all = append(all, measurement{fmt.Sprintf("barrier %s, family %d", m.name, family), m.measured[i], m.measured[i], "ns", chain(family, m.barrier)})
		}
	}
	for _, m := range []struct {
		name, how string
		measured  [2][2]float64
	}{
		{"vkWaitSemaphores", "wait b", [2][2]float64{{52.8, 58.7}, {18.2, 41.8}}},
		{"polling the counter", "count", [2][2]float64{{16.3, 60}, {13.4, 14.1}}},
		{"vkWaitForFences", "fences b", [2][2]float64{{53.1, 58.7}, {30.4, 37.6}}},
		{"polling the fence", "fences n", [2][2]float64{{15.3, 44}, {13.4, 14.4}}},
	} {
		for i, family := range []int{0, 2} {
			all = append(all, measurement{fmt.Sprintf("%s, family %d", m.name, family), m.measured[i][0], m.measured[i][1], "µs", known(family, m.how)})
		}
	}
	all = append(all,
		measurement{"vkQueueSubmit2 alone, family 0", 3.1, 4.9, "µs", submitCall(0)},
		measurement{"vkQueueSubmit2 alone, family 2", 3.6, 4.2, "µs", submitCall(2)},
		measurement{"16 kernels in one batch, family 0", 3.6, 3.6, "ms", sideBySide(0, 1, 16)},
		measurement{"16 kernels in one batch, family 2", 3.6, 3.6, "ms", sideBySide(2, 1, 16)},
		measurement{"16 submissions to one queue, family 0", 56.9, 56.9, "ms", sideBySide(0, 1, 1)},
		measurement{"16 submissions to one queue, family 2", 56.8, 56.8, "ms", sideBySide(2, 1, 1)},
		measurement{"16 submissions over 16 queues, family 0", 60.6, 60.6, "ms", sideBySide(0, 16, 1)},
		measurement{"16 submissions over 8 queues, family 2", 7.2, 7.2, "ms", sideBySide(2, 8, 1)},
		measurement{"link on one queue, family 0", 16.1, 16.1, "µs", links(0, 0, 0, 0)},
		measurement{"link on one queue, family 2", 10.5, 10.5, "µs", links(2, 0, 2, 0)},
		measurement{"link between queues of family 0", 181, 181, "µs", links(0, 0, 0, 1)},
		measurement{"link between queues of family 2", 14, 14, "µs", links(2, 0, 2, 1)},
		measurement{"link, families 0 and 1", 7.5, 8.1, "µs", links(0, 0, 1, 0)},
		measurement{"link, families 0 and 2", 7.5, 8.1, "µs", links(0, 0, 2, 0)},
		measurement{"link, families 0 and 3", 7.5, 8.1, "µs", links(0, 0, 3, 0)},
		measurement{"link, families 0 and 4", 174, 174, "µs", links(0, 0, 4, 0)},
		measurement{"link, families 2 and 1", 3.7, 8.6, "µs", links(2, 0, 1, 0)},
		measurement{"link, families 2 and 3", 3.7, 8.6, "µs", links(2, 0, 3, 0)},
		measurement{"link, families 2 and 4", 169, 169, "µs", links(2, 0, 4, 0)},
	)
	for _, family := range []int{0, 2} {
		all = append(all,
			measurement{fmt.Sprintf("kernel that copies, 1 GiB, family %d", family), 1300, 1300, "GB/s", bytes(family, gib, copyBy(gib, onDevice, onDevice))},
			measurement{fmt.Sprintf("kernel that copies to the device, 1 GiB, family %d", family), 48, 52, "GB/s", bytes(family, gib, copyBy(gib, onHost, onDevice))},
			measurement{fmt.Sprintf("kernel that copies to the host, 1 GiB, family %d", family), 48, 52, "GB/s", bytes(family, gib, copyBy(gib, onDevice, onHost))},
			measurement{fmt.Sprintf("vkCmdCopyBuffer, 1 GiB, family %d", family), 410, 410, "GB/s", bytes(family, gib, copyOf(gib, onDevice, onDevice))},
			measurement{fmt.Sprintf("vkCmdFillBuffer, 64 MiB, family %d", family), 1160, 1200, "GB/s", bytes(family, 64*mib, fillOf(64*mib))},
			measurement{fmt.Sprintf("vkCmdFillBuffer, 1 GiB, family %d", family), 2650, 2650, "GB/s", bytes(family, gib, fillOf(gib))})
	}
	all = append(all,
		measurement{"vkCmdCopyBuffer, 1 GiB, family 1", 89, 89, "GB/s", bytes(1, gib, copyOf(gib, onDevice, onDevice))},
		measurement{"vkCmdFillBuffer, 1 GiB, family 1", 95, 100, "GB/s", bytes(1, gib, fillOf(gib))},
		measurement{"vkCmdFillBuffer, 1 GiB, family 3", 472, 579, "GB/s", bytes(3, gib, fillOf(gib))})
	for _, family := range []int{0, 1, 2} {
		all = append(all,
			measurement{fmt.Sprintf("DMA to the device, 64 MiB, family %d", family), 47, 52, "GB/s", bytes(family, 64*mib, copyOf(64*mib, onHost, onDevice))},
			measurement{fmt.Sprintf("DMA to the host, 1 GiB, family %d", family), 48, 52, "GB/s", bytes(family, gib, copyOf(gib, onDevice, onHost))})
	}
	return append(all,
		measurement{"host writes memory of the device", 8, 10, "GB/s", hostAccess("flush", bar)},
		measurement{"host reads memory of the device", 0.028, 0.028, "GB/s", hostAccess("invalidate", bar)},
		measurement{"host writes memory that it does not cache", 8, 10, "GB/s", hostAccess("flush", 6)},
		measurement{"host reads memory that it does not cache", 11, 11, "GB/s", hostAccess("invalidate", 6)},
		measurement{"host writes memory that it caches", 5, 10, "GB/s", hostAccess("flush", onHost)},
		measurement{"host reads memory that it caches", 5, 11, "GB/s", hostAccess("invalidate", onHost)})
}

func submitCall(family int) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		l.submit(l.queue(family, 0), l.record())
		return float64(l.of(Options{}).Part("submit").Total) / 1e3
	}
}

func hostAccess(how string, properties int) func(*testing.T) float64 {
	return func(t *testing.T) float64 {
		l := newLog(t)
		l.line("%s %d 0 %d", how, l.buffer("a", 64*mib, properties), 64*mib)
		return 64 * mib / float64(l.of(Options{}).Makespan)
	}
}

// Each row that was measured comes out within 25 percent, of a range of the nearer end. The table
// is printed with -v.
func TestMeasurementsComeOut(t *testing.T) {
	const most = 0.25
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ROW\tMEASURED\tMODEL\tUNIT\tOFF BY")
	for _, m := range measurements() {
		t.Run(m.name, func(t *testing.T) {
			got := m.of(t)
			off := max(0, m.low-got)/m.low + max(0, got-m.high)/m.high
			if got < m.low {
				off = -off
			}
			measured := fmt.Sprintf("%.4g", m.low)
			if m.high != m.low {
				measured += fmt.Sprintf(" to %.4g", m.high)
			}
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%+.1f %%\n", m.name, measured, got, m.unit, 100*off)
			if max(off, -off) > most {
				t.Errorf("%.4g %s, measured %s", got, m.unit, measured)
			}
		})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, workgroups of %v where they compute:\n%s", H100.Source, time.Duration(work), table.String())
}
