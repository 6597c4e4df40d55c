package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

type benchCommand struct {
	Rows    string `name:"rows" placeholder:"LIST" default:"*" help:"Rows to measure: names or patterns such as chain*, with commas between them; list lists them (default all)."`
	Count   *int   `name:"count" placeholder:"N" help:"Alternations between plain Vulkan and vkomp, 1 to 1000 (default 6)."`
	Quick   bool   `name:"quick" help:"Run each row at its smallest size: to see that it runs, its figures say nothing."`
	JSON    bool   `name:"json" help:"Print JSON."`
	Gobench string `name:"gobench" placeholder:"FILE" help:"Write the figures in the format of Go's benchmarks, for benchstat: .txt."`
	Device  string `name:"device" placeholder:"D" help:"Device to measure: its number, its UUID or part of its name. By default the best there is."`
}

// benchCount is the default number of alternations, the fewest from which benchstat computes a
// confidence interval.
const benchCount = 6

// benchSizes are the sizes of rows.
type benchSizes struct {
	// samples is the number of measurements of each side in an alternation; a first one before
	// them warms up.
	samples int
	// tasks is the number of tasks of a sample, of constructs that take microseconds a tenth of
	// it, and calls the number of routines called.
	tasks, calls int
	// entries and live are the numbers of slices that are present, and of allocations that are
	// live, among which one is found.
	entries, live []int
	// associated is the number of associations among which one is made.
	associated int
	// copied is the size of a large copy, in bytes.
	copied int
	// held is the number of tasks that are in flight at once.
	held int
}

// A sample of benchFull is short enough to be done undisturbed on a machine with other work.
var (
	benchFull = benchSizes{samples: 10, tasks: 1000, calls: 2000, entries: []int{1, 10000, 100000}, live: []int{0, 64, 10000},
		associated: 10000, copied: 64 << 20, held: 1000000}
	benchQuick = benchSizes{samples: 1, tasks: 20, calls: 10, entries: []int{1, 3}, live: []int{0, 2}, associated: 2, copied: 4096, held: 2000}
)

// benchRow is a row of the table: one or more figures about one thing.
type benchRow struct {
	name     string
	measures string
	run      func(*bench) error
}

// benchRows are the rows in the order of the table.
var benchRows = []benchRow{
	{"sync", "a target region that the host waits for: an empty kernel, an increment, one with a depend clause; and a deferred one with a taskwait behind it", benchSync},
	{"chain", "deferred target tasks on one slice, each after the one before", benchChain},
	{"chain2", "a chain with two arguments, saxpy: in on x, inout on y", benchChain2},
	{"independent", "deferred target tasks that nothing orders", benchIndependent},
	{"fan", "one task that writes, many that read what it wrote, one that writes it again", benchFan},
	{"stencil", "64 points in steps: three in and one out item each, on two rows in turn", benchStencil},
	{"replay", "the chain and the stencil as a taskgraph that is replayed, beside a command buffer that is submitted again", benchReplay},
	{"join", "empty tasks with a depend clause: what dependences cost without a launch", benchJoin},
	{"hosttask", "host tasks with an empty body, in a chain and independent", benchHostTask},
	{"edge", "a target task and a host task in turn, each after the other: edges between device and host", benchEdge},
	{"goroutines", "the creation of chains by one goroutine, and by two with a chain each", benchGoroutines},
	{"maphit", "enter and exit of a present slice, and the routine is_present, among many present ones; enter and exit of 4 KiB with both copies", benchMapHit},
	{"alloc", "an allocation of device memory and its free, among live ones", benchAlloc},
	{"associate", "an association and its end, alone and among many", benchAssociate},
	{"memcpysmall", "copies of 64 bytes, waited for, deferred, and in a chain", benchMemcpySmall},
	{"memcpy", "copies of 64 MiB, to the device, from it and on it", benchMemcpy},
	{"memset", "a fill of 64 MiB", benchMemset},
	{"interop", "interop constructs with a use clause: with nowait and depend, between target tasks, and waited for", benchInterop},
	{"trace", "the chain without a tool, and with the one that collects traces", benchTrace},
	{"inflight", "a million tasks held back at once: the Go heap of each, their creation and their end, and Go's collector", benchInFlight},
}

// benchReport is the document that -json prints.
type benchReport struct {
	// Device describes the device, Cores is the number of processors that the process may use.
	Device vkomp.DeviceInfo `json:"device"`
	Cores  int              `json:"cores"`
	// Alternations is the number of turns that each side had, Samples how often it was measured in
	// each. Quick says that sizes were the smallest.
	Alternations int           `json:"alternations"`
	Samples      int           `json:"samples"`
	Quick        bool          `json:"quick,omitempty"`
	Figures      []benchFigure `json:"figures"`
	// Skipped are rows that the device cannot run.
	Skipped []benchSkipped `json:"skipped,omitempty"`
}

type benchSkipped struct {
	Row string `json:"row"`
	Why string `json:"why"`
}

// bench is a run of the command.
type bench struct {
	*session
	sh  *shell
	raw *rawvulkan.Device
	// ctx is for constructs: it never ends, so that a synchronous construct waits for the device
	// itself until the end. The shell's context is looked at between samples.
	ctx context.Context
	benchSizes
	count   int
	kernels benchKernels
	figures []benchFigure
	skipped []benchSkipped
}

// Run measures rows.
func (c *benchCommand) Run(sh *shell) error {
	if c.Rows == "list" {
		return listBenchRows(sh.stdout)
	}
	rows, err := chooseBenchRows(c.Rows)
	if err != nil {
		return err
	}
	count := chosen(c.Count, benchCount)
	if err := limit("count", count, 1, 1000); err != nil {
		return err
	}
	if c.Gobench != "" {
		if err := checkOutput("gobench", c.Gobench, ".txt"); err != nil {
			return err
		}
	}
	if err := rawvulkan.Available(); err != nil {
		return err
	}
	b := &bench{sh: sh, count: count, benchSizes: benchFull, ctx: context.Background()}
	if c.Quick {
		b.benchSizes = benchQuick
	}
	flags := sampleFlags{Device: c.Device}
	var report benchReport
	err = flags.with(sh, func(s *session) error {
		b.session = s
		if err := b.measure(rows); err != nil {
			return err
		}
		report = benchReport{Device: s.device.Info(), Cores: runtime.NumCPU(), Alternations: count, Samples: b.samples, Quick: c.Quick, Figures: b.figures, Skipped: b.skipped}
		return nil
	})
	if err != nil {
		return err
	}
	if !c.Quick {
		judge(benchGoals(report.Cores), report.Figures)
	}
	if c.Gobench != "" {
		if err := writeFile(c.Gobench, report.writeGobench); err != nil {
			return err
		}
	}
	if c.JSON {
		encoder := json.NewEncoder(sh.stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	return report.print(sh.stdout)
}

// listBenchRows prints the rows and what they measure.
func listBenchRows(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range benchRows {
		fmt.Fprintf(table, "%s\t%s\n", row.name, row.measures)
	}
	return table.Flush()
}

// chooseBenchRows returns the rows that a list of names and patterns chooses, in the order of the
// table.
func chooseBenchRows(list string) ([]benchRow, error) {
	wanted := make([]bool, len(benchRows))
	var names []string
	for _, row := range benchRows {
		names = append(names, row.name)
	}
	for pattern := range strings.SplitSeq(list, ",") {
		found := false
		for i, name := range names {
			match, err := path.Match(pattern, name)
			if err != nil {
				return nil, fmt.Errorf("-rows %s: %w", pattern, err)
			}
			wanted[i] = wanted[i] || match
			found = found || match
		}
		if !found {
			return nil, fmt.Errorf("-rows %s: the rows are %s", pattern, strings.Join(names, ", "))
		}
	}
	var rows []benchRow
	for i, row := range benchRows {
		if wanted[i] {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// measure runs rows on the session's device, and beside them plain Vulkan on a device of its own.
func (b *bench) measure(rows []benchRow) (err error) {
	if b.device.IsInitial() {
		return errors.New("bench needs a Vulkan device: it measures vkomp beside plain Vulkan")
	}
	// Constructs need no device clause then, as in most programs.
	if err := b.rt.SetDefaultDevice(b.ctx, b.device); err != nil {
		return err
	}
	if b.raw, err = b.sh.openRaw(rawvulkan.Options{UUID: b.device.Info().UUID}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.raw.Close()) }()
	if err := b.makeKernels(); err != nil {
		return err
	}
	b.progress.begin("rows", len(rows))
	for _, row := range rows {
		// Garbage of the rows before would set the pace of the collector in this one.
		debug.FreeOSMemory()
		err := errors.Join(row.run(b), b.rt.Taskwait(b.ctx))
		switch {
		case errors.Is(err, vkomp.ErrOutOfMemory), errors.Is(err, vkomp.ErrUnsupported):
			b.skipped = append(b.skipped, benchSkipped{row.name, err.Error()})
		case err != nil:
			return fmt.Errorf("row %s: %w", row.name, err)
		}
		b.progress.advance(1)
	}
	return nil
}
