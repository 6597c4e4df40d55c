package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vkomp/vkomp"
)

type stressCommand struct {
	Pattern   string         `name:"pattern" placeholder:"P" default:"all" help:"Task Bench's patterns to run, with commas between them: trivial, no_comm, stencil_1d, stencil_1d_periodic, dom, tree, fft, all_to_all, nearest, spread, random_nearest, and random; or all (default all)."`
	Width     *int           `name:"width" placeholder:"W" help:"Points, 1 to 1024 (default 64)."`
	Steps     *int           `name:"steps" placeholder:"S" help:"Steps in time, 1 to 1000000 (default 100)."`
	Radix     *int           `name:"radix" placeholder:"R" help:"Inputs of a task of nearest, spread, random_nearest and random, 1 to 8 (default 5)."`
	Seed      uint64         `name:"seed" placeholder:"N" default:"1" help:"Seed of all choices (default 1)."`
	Seeds     *int           `name:"seeds" placeholder:"N" help:"How many seeds to run, from -seed on (default 1, with -duration or -tasks until their end)."`
	Tasks     *int           `name:"tasks" placeholder:"N" help:"Begin no graph any more when so many tasks have run."`
	Duration  *time.Duration `name:"duration" placeholder:"T" help:"Begin no graph any more when that time has passed, such as 90s or 10m."`
	Placement string         `name:"placement" placeholder:"P" default:"finish" help:"How tasks come to queues: finish, where they finish first, or random (default finish)."`
	Queues    *int           `name:"queues" placeholder:"N" help:"Queues that run kernels at most (default 8)."`
	Kernel    string         `name:"kernel" placeholder:"K" default:"empty" help:"What tasks do beside checking and writing: empty, nothing; compute, seeded arithmetic; memory, more bytes, and copies beside the kernels (default empty)."`
	Mix       string         `name:"mix" placeholder:"M" help:"host: a share of the tasks are host tasks."`
	Path      string         `name:"path" placeholder:"P" default:"auto" help:"Way between host and device: auto, unified, staged, noncoherent or imported (default auto)."`
	Pinned    bool           `name:"pinned" help:"Pin the host's storage, which the device then copies itself."`
	Device    string         `name:"device" placeholder:"D" help:"Device to run on: its number, its UUID or part of its name; -1, host or initial for the initial device. By default the best there is."`
	Clauses   string         `name:"clauses" placeholder:"FILE" help:"Write the depend clauses of the tasks, for the order checker."`
	METG      bool           `name:"metg" help:"Measure the minimum effective task granularity (50%) of each pattern."`
	Workers   *int           `name:"workers" placeholder:"N" help:"Processors that the device's work counts as, for -metg (default 1, of a software driver those it uses)."`
}

const (
	stressWidth, stressWidthMost = 64, 1024
	stressSteps, stressStepsMost = 100, 1000000
	stressRadix                  = 5
)

var (
	stressKinds = []string{"empty", "compute", "memory"}
	stressPaths = []vkomp.MemoryPath{vkomp.MemoryAuto, vkomp.MemoryUnified, vkomp.MemoryStaged, vkomp.MemoryNonCoherent, vkomp.MemoryImported}
)

// stress is one run of the command: graphs of tasks for each pattern and seed.
type stress struct {
	sh    *shell
	flags *stressCommand
	// patterns are without a seed.
	patterns []pattern
	kind     stressKind
	options  vkomp.Options
	fault    *stressFault
	clauses  *clauseWriter
	progress *progress
	start    time.Time

	// rt is the runtime for the current seed, else nil.
	rt      *vkomp.Runtime
	device  vkomp.Device
	kernels stressKernels

	graphs uint32
	totals stressTotals
}

// Run runs graphs of tasks, each of which checks what it reads.
func (c *stressCommand) Run(sh *shell) error { return c.run(sh, nil) }

func (c *stressCommand) run(sh *shell, fault *stressFault) error {
	s := &stress{sh: sh, flags: c, fault: fault, start: time.Now()}
	if err := s.read(); err != nil {
		return err
	}
	s.progress = newProgress(sh.stderr)
	defer s.progress.stop()
	work := s.work
	if c.Clauses != "" {
		work = s.workWithClauses
	}
	if err := work(); err != nil {
		return err
	}
	if err := s.totals.print(sh.stdout, time.Since(s.start)); err != nil {
		return err
	}
	if n := s.totals.failed; n > 0 {
		return fmt.Errorf("stress: %d of %d graphs failed", n, n+s.totals.passed)
	}
	return nil
}

// work runs the graphs.
func (s *stress) work() error {
	run := s.seeds
	if s.flags.METG {
		run = s.measure
	}
	err := run()
	s.progress.end()
	return errors.Join(err, s.close())
}

// workWithClauses runs the graphs and writes the clauses of their tasks. An earlier file stays if the command
// ends with an error other than that of wrong graphs.
func (s *stress) workWithClauses() error {
	var failure error
	err := writeFile(s.flags.Clauses, func(w io.Writer) error {
		s.clauses = newClauseWriter(w)
		failure = s.work()
		return errors.Join(failure, s.clauses.flush())
	})
	if failure != nil || err == nil {
		return failure
	}
	return fmt.Errorf("-clauses: %w", err)
}

// read parses the flags.
func (s *stress) read() error {
	c := s.flags
	kinds, err := parsePatterns(c.Pattern)
	if err != nil {
		return err
	}
	p := pattern{width: chosen(c.Width, stressWidth), steps: chosen(c.Steps, stressSteps), radix: chosen(c.Radix, stressRadix)}
	for _, p.kind = range kinds {
		s.patterns = append(s.patterns, p)
	}
	if c.Duration != nil && *c.Duration <= 0 {
		return fmt.Errorf("-duration %v is out of range: it must be positive", *c.Duration)
	}
	kind := slices.Index(stressKinds, c.Kernel)
	path := slices.IndexFunc(stressPaths, func(p vkomp.MemoryPath) bool { return p.String() == c.Path })
	switch {
	case kind < 0:
		return fmt.Errorf("-kernel %s: it must be %s", c.Kernel, strings.Join(stressKinds, " or "))
	case path < 0:
		return fmt.Errorf("-path %s: it must be auto or unified or staged or noncoherent or imported", c.Path)
	case c.Placement != "finish" && c.Placement != "random":
		return fmt.Errorf("-placement %s: it must be finish or random", c.Placement)
	case c.Mix != "" && c.Mix != "host":
		return fmt.Errorf("-mix %s: it must be host", c.Mix)
	case c.METG && (c.Seeds != nil || c.Tasks != nil || c.Duration != nil):
		return errors.New("-metg measures each pattern once: it takes no -seeds, -tasks or -duration")
	case c.METG && (c.Steps != nil || c.Kernel != stressKinds[stressEmpty] || c.Mix != ""):
		return errors.New("-metg chooses the steps and the work of its tasks: it takes no -steps, -kernel or -mix")
	case !c.METG && c.Workers != nil:
		return errors.New("-workers is for -metg: without it, it changes nothing")
	}
	s.kind = stressKind(kind)
	s.options = vkomp.Options{Device: c.Device, MemoryPath: stressPaths[path], ComputeQueues: chosen(c.Queues, 0)}
	return errors.Join(limit("width", p.width, 1, stressWidthMost), limit("steps", p.steps, 1, stressStepsMost), limit("radix", p.radix, 1, radixMost),
		limit("seeds", chosen(c.Seeds, 1), 1, 1<<30), limit("tasks", chosen(c.Tasks, 1), 1, 1<<40),
		limit("queues", chosen(c.Queues, 1), 1, 64), limit("workers", chosen(c.Workers, 1), 1, 1<<10))
}

// seeds runs all patterns with one seed after the other.
func (s *stress) seeds() error {
	c := s.flags
	seeds := chosen(c.Seeds, 1)
	perSeed := 0
	for k := range s.patterns {
		perSeed += s.patterns[k].tasks()
	}
	switch {
	case c.Duration != nil:
		s.progress.begin("stress", int(c.Duration.Milliseconds()))
	case c.Tasks != nil && (c.Seeds == nil || *c.Tasks < perSeed*seeds):
		s.progress.begin("stress", *c.Tasks)
	default:
		s.progress.begin("stress", perSeed*seeds)
	}
	if c.Seeds == nil && (c.Duration != nil || c.Tasks != nil) {
		seeds = 1<<63 - 1
	}
	for k := range uint64(seeds) {
		if err := s.seed(c.Seed + k); err != nil {
			return err
		}
		if s.atEnd() {
			break
		}
	}
	return nil
}

// atEnd reports whether -tasks or -duration has been reached.
func (s *stress) atEnd() bool {
	c := s.flags
	return c.Tasks != nil && s.totals.tasks >= *c.Tasks || c.Duration != nil && time.Since(s.start) >= *c.Duration
}

// seed runs all patterns with a seed, on a runtime of its own.
func (s *stress) seed(seed uint64) error {
	s.totals.seeds++
	shown := time.Since(s.start)
	for _, p := range s.patterns {
		p.seed = seed
		g := s.newGraph(p)
		err := s.runGraph(g, func(tasks int) {
			if s.flags.Duration != nil {
				now := time.Since(s.start)
				tasks = int(now.Milliseconds() - shown.Milliseconds())
				shown = now
			}
			s.progress.advance(tasks)
		})
		if err != nil {
			return err
		}
		if s.atEnd() {
			break
		}
	}
	return s.close()
}

// newGraph returns the next graph.
func (s *stress) newGraph(p pattern) *stressGraph {
	s.graphs++
	return &stressGraph{pattern: p, number: s.graphs, kind: s.kind, mixed: s.flags.Mix != "", pinned: s.flags.Pinned, clauses: s.clauses, fault: s.fault}
}

// runGraph runs a graph on the seed's runtime and counts it. Violations of the graph are printed;
// the error is one of the command.
func (s *stress) runGraph(g *stressGraph, progress func(tasks int)) error {
	if err := s.open(g.seed, g.elements()); err != nil {
		return err
	}
	g.rt, g.device, g.kernels = s.rt, s.device, &s.kernels
	g.draw()
	failure := errors.Join(g.run(s.sh.ctx, progress), g.unpin())
	s.totals.tasks += g.created
	s.totals.others += g.others
	if failure != nil && s.sh.ctx.Err() != nil {
		return failure
	}
	if failure == nil && g.found.count == 0 {
		s.totals.passed++
		return nil
	}
	s.totals.failed++
	s.progress.end()
	var text bytes.Buffer
	for _, message := range g.found.first {
		fmt.Fprintf(&text, "violation: %v, seed %d: %s\n", g.pattern.kind, g.seed, message)
	}
	if n := g.found.count - len(g.found.first); n > 0 {
		fmt.Fprintf(&text, "violation: %v, seed %d: and %d more\n", g.pattern.kind, g.seed, n)
	}
	if failure != nil {
		fmt.Fprintf(&text, "failed: %v, seed %d: %v\n", g.pattern.kind, g.seed, failure)
	}
	fmt.Fprintf(&text, "reproduce: %s\n", s.flags.reproduction(g, os.Environ()))
	if _, err := text.WriteTo(s.sh.stdout); err != nil {
		return err
	}
	if failure != nil {
		// The next graph gets a new runtime.
		if err := s.close(); err != nil {
			fmt.Fprintf(s.sh.stderr, "vkomp-demo: %v\n", err)
		}
	}
	return nil
}

// open opens the runtime of a seed, if it is not open.
func (s *stress) open(seed uint64, elements int) (err error) {
	if s.rt != nil {
		return nil
	}
	o := s.options
	o.LookupEnv = func(name string) (string, bool) {
		value, ok := os.LookupEnv(name)
		if name == "VKOMP_DEBUG" {
			settings := fmt.Sprintf("%s,placement=%s,seed=%d", value, s.flags.Placement, seed)
			if s.flags.Pinned {
				settings += ",late=1" // all copies to pinned storage are the device's
			}
			return strings.TrimPrefix(settings, ","), true
		}
		return value, ok
	}
	o.InteropQueues = -1 // all queues are for tasks
	open := s.sh.runtimeOrReasons
	if s.totals.seeds > 1 {
		open = s.sh.runtime
	}
	if s.rt, err = open(o); err != nil {
		return err
	}
	s.device = s.rt.DefaultDevice(context.Background())
	if s.device == (vkomp.Device{}) {
		return errors.New("there is no default device: see OMP_DEFAULT_DEVICE and OMP_TARGET_OFFLOAD")
	}
	s.totals.device = s.device.Info()
	s.kernels, err = newStressKernels(s.rt, elements)
	return err
}

// close adds the runtime's statistics to the totals and closes it.
func (s *stress) close() error {
	if s.rt == nil {
		return nil
	}
	s.totals.add(s.rt.Stats())
	err := s.rt.Close()
	s.rt = nil
	return err
}
