package cost

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run costs.
type Report struct {
	// Profile is that of the device.
	Profile *Profile
	// Makespan is the time from the first call to the last end.
	Makespan time.Duration
	// Parts are what the time was spent on, sorted by their names.
	Parts []Part
	// Queues are those that something was submitted to, in the order of the log.
	Queues []QueueTime
	// Unknown counts commands that the log does not describe, and which cost nothing here.
	Unknown int
}

// Part is time that was spent in one way.
type Part struct {
	Name  string // what the time was spent on
	Count int    // how often
	Bytes uint64 // of copies, fills and accesses by the host
	// Total is the sum of all durations. Critical is how much of the makespan is due to it: the
	// length of the chain of things that each began when the one before ended, up to the last
	// end.
	Total, Critical time.Duration
}

// QueueTime is the time during which a queue executed submissions.
type QueueTime struct {
	Name        string        // of the queue
	Family      int           // of the profile
	Submissions int           // batches
	Busy        time.Duration // from the beginnings of the batches to their ends
}

// Part returns the sum of the parts whose names begin so.
func (r *Report) Part(prefix string) Part {
	sum := Part{Name: prefix}
	for _, p := range r.Parts {
		if strings.HasPrefix(p.Name, prefix) {
			sum.Count += p.Count
			sum.Bytes += p.Bytes
			sum.Total += p.Total
			sum.Critical += p.Critical
		}
	}
	return sum
}

// Print writes the report as tables.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "makespan %s on %s (%s)\n\n", micros(r.Makespan), r.Profile.Name, r.Profile.Source)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "COUNT\tMIB\tTOTAL\tCRITICAL\tSHARE\t  PART\n")
	parts := slices.Clone(r.Parts)
	slices.SortStableFunc(parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Critical, a.Critical), cmp.Compare(b.Total, a.Total))
	})
	for _, p := range parts {
		bytes := "-"
		if p.Bytes > 0 {
			bytes = fmt.Sprintf("%.2f", float64(p.Bytes)/(1<<20))
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%.1f %%\t  %s\n", p.Count, bytes, micros(p.Total), micros(p.Critical),
			100*float64(p.Critical)/float64(max(r.Makespan, 1)), p.Name)
	}
	table.Flush()
	if len(r.Queues) > 0 {
		fmt.Fprint(&b, "\n")
		fmt.Fprint(table, "SUBMISSIONS\tBUSY\tSHARE\t  QUEUE\n")
		for _, q := range r.Queues {
			fmt.Fprintf(table, "%d\t%s\t%.1f %%\t  %s\n", q.Submissions, micros(q.Busy), 100*float64(q.Busy)/float64(max(r.Makespan, 1)), q.Name)
		}
		table.Flush()
	}
	if r.Unknown > 0 {
		fmt.Fprintf(&b, "\n%d commands are of kinds that the log does not describe: they count as nothing\n", r.Unknown)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// micros returns a duration in microseconds.
func micros(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1e3) }
