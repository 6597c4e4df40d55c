package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/vkomp/vkomp"
)

// report is what every sample prints about a run.
type report struct {
	// work describes the computation, such as "image" and "512×512 in 32 bands".
	work [2]string
	// device is the device that ran it, stats are the runtime's statistics at the end. time is
	// the duration of all target regions, including opening the device but not verifying.
	device vkomp.DeviceInfo
	stats  vkomp.Stats
	time   time.Duration
}

func (r *report) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "device\t%d: %s (%s)\n", r.device.Number, r.device.Name, r.device.Type)
	fmt.Fprintf(table, "%s\t%s\n", r.work[0], r.work[1])
	fmt.Fprintf(table, "tasks\t%d\n", r.stats.Tasks)
	fmt.Fprintf(table, "edges\t%d\n", r.stats.Edges)
	fmt.Fprintf(table, "submissions\t%d\n", r.stats.Submissions)
	fmt.Fprintf(table, "barriers\t%d\n", r.stats.Barriers)
	fmt.Fprintf(table, "copied\t%s to the device, %s from it\n", byteCount(r.stats.BytesToDevice), byteCount(r.stats.BytesFromDevice))
	fmt.Fprintf(table, "time\t%s\n", r.time.Round(10*time.Microsecond))
	return table.Flush()
}

// byteCount formats n in the largest binary unit that gives at least 1.
func byteCount(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[unit])
}
