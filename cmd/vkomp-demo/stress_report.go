package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/vkomp/vkomp"
)

// stressTotals are the totals of a run.
type stressTotals struct {
	device vkomp.DeviceInfo
	// passed and failed count graphs, tasks the tasks of the patterns, and others additional ones:
	// copies, updates, and tasks that check these.
	passed, failed, seeds, tasks, others int
	// stats are the sums of the statistics of all runtimes.
	stats vkomp.Stats
}

// add adds the statistics of a runtime.
func (t *stressTotals) add(s vkomp.Stats) {
	t.stats.Tasks += s.Tasks
	t.stats.Edges += s.Edges
	t.stats.Submissions += s.Submissions
	t.stats.Barriers += s.Barriers
	t.stats.Dispatches += s.Dispatches
	t.stats.Copies += s.Copies
	t.stats.SemaphoreWaits += s.SemaphoreWaits
	t.stats.HostWaits += s.HostWaits
	for _, q := range s.Queues {
		at := slices.IndexFunc(t.stats.Queues, func(have vkomp.QueueStats) bool { return have.Device == q.Device && have.Index == q.Index })
		if at < 0 {
			t.stats.Queues = append(t.stats.Queues, q)
			continue
		}
		have := &t.stats.Queues[at]
		have.Submissions += q.Submissions
		have.Dispatches += q.Dispatches
		have.Copies += q.Copies
		have.Barriers += q.Barriers
		have.SemaphoreWaits += q.SemaphoreWaits
	}
}

// print writes the totals, and at the end how many graphs were right.
func (t *stressTotals) print(w io.Writer, took time.Duration) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "device\t%d: %s (%s)\n", t.device.Number, t.device.Name, t.device.Type)
	fmt.Fprintf(table, "seeds\t%d\n", t.seeds)
	fmt.Fprintf(table, "tasks\t%d\n", t.tasks)
	fmt.Fprintf(table, "beside\t%d copies, updates and their checks\n", t.others)
	fmt.Fprintf(table, "edges\t%d\n", t.stats.Edges)
	fmt.Fprintf(table, "submissions\t%d\n", t.stats.Submissions)
	fmt.Fprintf(table, "barriers\t%d\n", t.stats.Barriers)
	fmt.Fprintf(table, "waits\t%d of queues for each other, %d of the host\n", t.stats.SemaphoreWaits, t.stats.HostWaits)
	fmt.Fprintf(table, "time\t%s\n", took.Round(10*time.Millisecond))
	if err := table.Flush(); err != nil {
		return err
	}
	if err := printQueues(w, t.stats.Queues); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d passed, %d failed\n", t.passed, t.failed)
	return err
}

// printQueues writes a table of queues, with each queue's share of all kernels and copies.
func printQueues(w io.Writer, queues []vkomp.QueueStats) error {
	if len(queues) == 0 {
		return nil
	}
	var kernels, copies uint64
	for _, q := range queues {
		kernels += q.Dispatches
		copies += q.Copies
	}
	part := func(n, of uint64) string {
		if of == 0 {
			return "0"
		}
		return fmt.Sprintf("%d (%.1f%%)", n, 100*float64(n)/float64(of))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "QUEUE\tFAMILY\tKIND\tKERNELS\tCOPIES\tSUBMISSIONS\tBARRIERS\tWAITS")
	for _, q := range queues {
		kind := "compute"
		if q.Transfer {
			kind = "transfer"
		}
		fmt.Fprintf(table, "%d.%d\t%d\t%s\t%s\t%s\t%d\t%d\t%d\n", q.Device, q.Index, q.Family, kind,
			part(q.Dispatches, kernels), part(q.Copies, copies), q.Submissions, q.Barriers, q.SemaphoreWaits)
	}
	return table.Flush()
}

// reproduction returns the command line that runs a graph again, with the environment variables for
// drivers, layers and devices.
func (c *stressCommand) reproduction(g *stressGraph, environment []string) string {
	var words []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		for _, prefix := range []string{"VK_", "VKOMP_", "LP_", "OMP_"} {
			if strings.HasPrefix(name, prefix) {
				words = append(words, name+"="+quoted(value))
			}
		}
	}
	slices.Sort(words)
	words = append(words, "vkomp-demo stress", "-pattern", g.pattern.kind.String(), "-width", strconv.Itoa(g.width))
	if !c.METG {
		words = append(words, "-steps", strconv.Itoa(g.steps))
	}
	words = append(words, "-radix", strconv.Itoa(g.radix), "-seed", strconv.FormatUint(g.seed, 10), "-placement", c.Placement, "-kernel", c.Kernel)
	for _, flag := range []struct{ name, value, otherwise string }{{"-mix", c.Mix, ""}, {"-path", c.Path, "auto"}, {"-device", c.Device, ""}} {
		if flag.value != flag.otherwise {
			words = append(words, flag.name, quoted(flag.value))
		}
	}
	if c.Queues != nil {
		words = append(words, "-queues", strconv.Itoa(*c.Queues))
	}
	if c.Pinned {
		words = append(words, "-pinned")
	}
	if c.METG {
		words = append(words, "-metg")
	}
	if c.Workers != nil {
		words = append(words, "-workers", strconv.Itoa(*c.Workers))
	}
	return strings.Join(words, " ")
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
