package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// METG(50%), the minimum effective task granularity, is the time that a task takes on a processor
// when half of the best rate of work is reached (Task Bench, SC 2020, §4). The rate of the
// longest tasks counts as the best.
const (
	// metgLongest is the duration of one of the longest tasks.
	metgLongest = 2 * time.Millisecond
	// metgQuick is the duration of a run of the search, metgExact that of a run that counts, of
	// which there are metgRuns.
	metgQuick, metgExact = 50 * time.Millisecond, 400 * time.Millisecond
	metgRuns             = 3
	// metgMost is the largest number of tasks in a run. metgRounds is the largest number of rounds
	// of work of a task, a multiple of metgUnit.
	metgMost   = 600000
	metgRounds = 1 << 21
	metgUnit   = 64
	// metgBracket is the largest ratio of the two durations between which the efficiency falls
	// below 50 %.
	metgBracket = 1.35
)

// metgPoint is a measurement of tasks of one duration.
type metgPoint struct {
	rounds int
	// granularity is the time in seconds that a task took on a processor in each run, ascending.
	granularity []float64
}

func (m *metgPoint) median() float64 { return m.granularity[len(m.granularity)/2] }

// rate returns the rounds per second of a processor.
func (m *metgPoint) rate() float64 { return float64(m.rounds) / m.median() }

// metg measures one pattern.
type metg struct {
	// run runs a graph of that many steps whose tasks have that many rounds, and returns its
	// duration and number of tasks.
	run     func(steps, rounds int) (took time.Duration, tasks int, err error)
	pattern pattern
	workers int
}

// metgResult is METG(50%) and the points it was computed from, in seconds and rounds per second.
type metgResult struct {
	granularity, least, most float64
	best                     float64
	above, below             metgPoint
}

// measure measures every pattern.
func (s *stress) measure() error {
	table := tabwriter.NewWriter(s.sh.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PATTERN\tWIDTH\tPROCESSORS\tMETG µs\tLEAST\tMOST\tBETWEEN ROUNDS\tBEST ROUNDS/µs")
	s.totals.seeds = 1
	s.progress.begin("metg", len(s.patterns))
	for _, p := range s.patterns {
		p.seed = s.flags.Seed
		if err := s.open(p.seed, smallElements); err != nil {
			return err
		}
		m := metg{pattern: p, workers: chosen(s.flags.Workers, s.processors())}
		m.run = func(steps, rounds int) (time.Duration, int, error) {
			p.steps = steps
			g := s.newGraph(p)
			g.kind, g.mixed, g.fixedRounds = stressEmpty, false, uint32(rounds)
			err := s.runGraph(g, func(int) {})
			if err == nil && s.totals.failed > 0 {
				err = fmt.Errorf("stress: a graph of %v failed, whose time says nothing", p.kind)
			}
			return g.took, max(g.created, 1), err
		}
		r, err := m.sweep()
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%v\t%d\t%d\t", p.kind, p.width, m.workers)
		if r == nil {
			fmt.Fprintf(table, "never below 50%% of the best rate\n")
		} else {
			fmt.Fprintf(table, "%.3f\t%.3f\t%.3f\t%d..%d\t%.1f\n", r.granularity*1e6, r.least*1e6, r.most*1e6, r.below.rounds, r.above.rounds, r.best*1e-6)
		}
		s.progress.advance(1)
	}
	s.progress.end()
	return table.Flush()
}

// processors returns the number of processors that do the device's work: those of a software
// driver, or 1.
func (s *stress) processors() int {
	switch s.device.Info().Type {
	case "software":
		// The variable is lavapipe's; with 0 the submitting thread does the work.
		if n, err := strconv.Atoi(os.Getenv("LP_NUM_THREADS")); err == nil {
			return max(n, 1)
		}
		return runtime.NumCPU()
	case "initial":
		return runtime.GOMAXPROCS(0)
	}
	return 1
}

// sweep shortens tasks until half of the best rate is no longer reached, and searches for the
// duration at which that happens. It returns nil if that never happens.
func (m *metg) sweep() (*metgResult, error) {
	rounds, guess := 1024, 20e-6
	for {
		p, err := m.measure(rounds, guess, metgQuick, 1)
		if err != nil {
			return nil, err
		}
		guess = p.median()
		if guess >= 0.7*metgLongest.Seconds() || rounds >= metgRounds {
			break
		}
		more := min(metgLongest.Seconds()/guess, 4)
		rounds, guess = min(wholeRounds(float64(rounds)*more), metgRounds), guess*more
	}
	above, err := m.measure(rounds, guess, metgExact, metgRuns)
	if err != nil {
		return nil, err
	}
	r := &metgResult{best: above.rate()}
	// Reduce the rounds in large steps first.
	below := metgPoint{rounds: rounds}
	for below.rounds = wholeRounds(float64(rounds) / 8); ; below.rounds = wholeRounds(float64(below.rounds) / 4) {
		p, err := m.measure(below.rounds, guess, metgQuick, 1)
		if err != nil {
			return nil, err
		}
		guess = p.median()
		if p.rate() < r.best/2 {
			break
		}
		if above = p; p.rounds == metgUnit {
			return nil, nil
		}
	}
	// Then narrow the bracket.
	for float64(above.rounds) > metgBracket*float64(below.rounds) && above.rounds > below.rounds+metgUnit {
		p, err := m.measure(wholeRounds(math.Sqrt(float64(above.rounds)*float64(below.rounds))), guess, metgExact, metgRuns)
		if err != nil {
			return nil, err
		}
		guess = p.median()
		if p.rate() >= r.best/2 {
			above = p
		} else {
			below = p
		}
	}
	// An end from the rough search may be on the wrong side.
	for len(above.granularity) < metgRuns || above.rate() < r.best/2 {
		if above, err = m.measure(above.rounds, guess, metgExact, metgRuns); err != nil {
			return nil, err
		}
		if above.rate() < r.best/2 {
			below, above.rounds, above.granularity = above, wholeRounds(float64(above.rounds)*metgBracket)+metgUnit, nil
		}
	}
	for len(below.granularity) < metgRuns || below.rate() >= r.best/2 {
		if below, err = m.measure(below.rounds, guess, metgExact, metgRuns); err != nil {
			return nil, err
		}
		if below.rate() >= r.best/2 {
			if above = below; below.rounds == metgUnit {
				return nil, nil
			}
			below.rounds, below.granularity = wholeRounds(float64(below.rounds)/metgBracket), nil
		}
	}
	r.above, r.below = above, below
	each := make([]float64, metgRuns)
	for i := range each {
		each[i] = r.atHalf(above.granularity[i], below.granularity[i])
	}
	slices.Sort(each)
	r.granularity, r.least, r.most = r.atHalf(above.median(), below.median()), each[0], each[metgRuns-1]
	return r, nil
}

// atHalf returns the granularity at 50 % efficiency, by linear interpolation of the logarithms.
func (r *metgResult) atHalf(above, below float64) float64 {
	high, low := float64(r.above.rounds)/above/r.best, float64(r.below.rounds)/below/r.best
	if high == low {
		return above
	}
	part := (math.Log(0.5) - math.Log(low)) / (math.Log(high) - math.Log(low))
	return math.Exp(math.Log(below) + part*(math.Log(above)-math.Log(below)))
}

// measure runs tasks with that number of rounds several times. guess is their expected
// granularity in seconds, from which the number of tasks for a run of the given duration follows.
func (m *metg) measure(rounds int, guess float64, long time.Duration, runs int) (metgPoint, error) {
	p := metgPoint{rounds: rounds}
	for len(p.granularity) < runs {
		tasks := long.Seconds() / guess * float64(m.workers)
		steps := int(min(max(tasks, 1), metgMost)) / m.pattern.width
		steps = max(steps, 10)
		took, n, err := m.run(steps, rounds)
		if err != nil {
			return metgPoint{}, err
		}
		granularity := took.Seconds() * float64(m.workers) / float64(n)
		if took < long/2 && granularity < guess/2 && steps*m.pattern.width < metgMost/2 {
			guess = granularity // too short to count
			continue
		}
		p.granularity = append(p.granularity, granularity)
	}
	slices.Sort(p.granularity)
	return p, nil
}

// wholeRounds returns the nearest multiple of metgUnit, at least one.
func wholeRounds(rounds float64) int {
	return max(int(rounds/metgUnit+0.5), 1) * metgUnit
}
