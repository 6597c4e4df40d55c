package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
)

// print writes the table: of each figure the best and the median of vkomp and of plain Vulkan, the
// ratio of the best ones, and whether it meets its goals.
func (r *benchReport) print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "device %d: %s (%s); cores: %d; %d alternations of %d samples\n",
		r.Device.Number, r.Device.Name, r.Device.Type, r.Cores, r.Alternations, r.Samples)
	fmt.Fprintln(table, "FIGURE\tUNIT\tVKOMP\tMEDIAN\tRAW\tMEDIAN\tRATIO\tGOALS")
	met, goals := 0, 0
	for _, f := range r.Figures {
		raw, rawMedian, ratio := "-", "-", "-"
		if f.Raw != nil {
			raw, rawMedian, ratio = round(f.Raw.Best), round(f.Raw.Median), fmt.Sprintf("%.2f", f.Ratio)
		}
		var verdicts []string
		for _, v := range f.Goals {
			verdict := "miss"
			if v.Met {
				verdict = "pass"
				met++
			}
			goals++
			// The figure itself and its ratio to plain Vulkan stand in the line.
			if !strings.HasSuffix(v.Goal, ofRaw) && v.Value != f.Vkomp.Best {
				verdict += fmt.Sprintf(" (%.2f)", v.Value)
			}
			verdicts = append(verdicts, v.Goal+" "+verdict)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.Unit, round(f.Vkomp.Best), round(f.Vkomp.Median), raw, rawMedian, ratio, strings.Join(verdicts, ", "))
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(table, "%s\tskipped: %s\n", s.Row, s.Why)
	}
	if r.Quick {
		fmt.Fprintln(table, "quick: the sizes are the smallest, the figures say nothing")
	} else {
		fmt.Fprintf(table, "%d of %d goals met\n", met, goals)
	}
	return table.Flush()
}

// round formats a figure with three digits, or all before the point.
func round(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// writeGobench writes a line of Go's benchmark format for each alternation, figure and side: the best
// of the alternation and, of vkomp's, its ratio to that of plain Vulkan.
func (r *benchReport) writeGobench(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/vkomp/vkomp/cmd/vkomp-demo\ndevice: %s\ndriver: %s\n", runtime.GOOS, runtime.GOARCH, r.Device.Name, r.Device.Driver)
	if r.Quick {
		b.WriteString("quick: true\n")
	}
	b.WriteString("Unit raw-ratio better=lower\nUnit %CPU better=lower\n")
	for _, f := range r.Figures {
		name := gobenchName(f.Name)
		line := func(side string, value float64, more string) {
			fmt.Fprintf(&b, "%s/by=%s", name, side)
			if r.Cores > 1 {
				fmt.Fprintf(&b, "-%d", r.Cores)
			}
			value, unit := gobenchUnit(value, f.Unit)
			fmt.Fprintf(&b, " %d %.6g %s%s\n", r.Samples, value, unit, more)
		}
		for k, value := range f.Vkomp.Alternations {
			if f.Raw == nil {
				line("vkomp", value, "")
				continue
			}
			raw := f.Raw.Alternations[k]
			line("raw", raw, "")
			ratio := value / raw
			if f.Unit == benchRate {
				ratio = raw / value
			}
			line("vkomp", value, fmt.Sprintf(" %.4g raw-ratio", ratio))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gobenchName is the name of a figure as a benchmark of Go's.
func gobenchName(figure string) string {
	return "Benchmark" + strings.ToUpper(figure[:1]) + strings.ReplaceAll(figure[1:], ".", "/")
}

// gobenchUnit converts a figure to one of the units that Go's tools know.
func gobenchUnit(value float64, unit string) (float64, string) {
	switch {
	case unit == benchRate:
		return value * 1000, "MB/s"
	case strings.HasPrefix(unit, "bytes/"):
		return value, "B/op"
	case unit == benchPercent:
		return value, "%CPU"
	}
	return value, "ns/op"
}
