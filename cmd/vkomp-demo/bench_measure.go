package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

// benchFigure is something that a row measures.
type benchFigure struct {
	// Name is the row's, with parts after dots, Unit that of Vkomp and Raw.
	Name  string       `json:"name"`
	Unit  string       `json:"unit"`
	Vkomp benchSeries  `json:"vkomp"`
	Raw   *benchSeries `json:"raw,omitempty"` // of plain Vulkan, where it has the same
	// Ratio is the time of vkomp over that of plain Vulkan, the least of each, whatever the unit.
	Ratio float64        `json:"ratio,omitempty"`
	Goals []benchVerdict `json:"goals,omitempty"`
}

// benchSeries are the measurements of one side: the best and the median of all samples, and the best
// of each alternation.
type benchSeries struct {
	Best         float64   `json:"best"`
	Median       float64   `json:"median"`
	Alternations []float64 `json:"alternations"`
}

// benchTimes are the times of a sample: until tasks are created, or commands recorded; and until all
// is done.
type benchTimes struct{ create, total time.Duration }

func benchCreate(t benchTimes) time.Duration { return t.create }
func benchTotal(t benchTimes) time.Duration  { return t.total }

// benchSide does a sample's work on one side.
type benchSide func() (benchTimes, error)

// timed is a side whose work has one part.
func timed(work func() error) benchSide {
	return func() (t benchTimes, err error) {
		start := time.Now()
		err = work()
		t.total = time.Since(start)
		return t, err
	}
}

// deferred is a side that creates tasks and waits for them.
func (b *bench) deferred(create func() error) benchSide {
	return func() (t benchTimes, err error) {
		start := time.Now()
		err = create()
		t.create = time.Since(start)
		err = cmp.Or(err, b.rt.Taskwait(b.ctx))
		t.total = time.Since(start)
		return t, err
	}
}

// batched is plain Vulkan's side of deferred. The recording is measured by itself, so that all of it
// is a single call.
func batched(batch *rawvulkan.Batch) benchSide {
	record, run := timed(batch.Record), timed(batch.Run)
	return func() (benchTimes, error) {
		recorded, err := record()
		if err != nil {
			return benchTimes{}, err
		}
		t, err := run()
		t.create = recorded.total
		return t, err
	}
}

// benchSamples are the samples of a side, by alternation.
type benchSamples [][]benchTimes

// alternate measures the sides in turn, and in each turn so many samples of each after one that
// warms up.
func (b *bench) alternate(sides ...benchSide) ([]benchSamples, error) {
	all := make([]benchSamples, len(sides))
	for range b.count {
		for k, side := range sides {
			samples := make([]benchTimes, 0, b.samples)
			for i := range b.samples + 1 {
				if err := context.Cause(b.sh.ctx); err != nil {
					return nil, err
				}
				t, err := side()
				if err != nil {
					return nil, err
				}
				if i > 0 {
					samples = append(samples, t)
				}
			}
			all[k] = append(all[k], samples)
		}
	}
	return all, nil
}

// runs returns how often alternate does the work of each side.
func (b *bench) runs() int { return b.count * (b.samples + 1) }

// series converts one of the times of the samples, which must not be empty.
func (s benchSamples) series(of func(benchTimes) time.Duration, convert func(time.Duration) float64) benchSeries {
	var series benchSeries
	var all []time.Duration
	for _, alternation := range s {
		var times []time.Duration
		for _, t := range alternation {
			times = append(times, of(t))
		}
		series.Alternations = append(series.Alternations, convert(slices.Min(times)))
		all = append(all, times...)
	}
	slices.Sort(all)
	series.Best, series.Median = convert(all[0]), convert(all[len(all)/2])
	return series
}

// least returns the least of one of the times.
func (s benchSamples) least(of func(benchTimes) time.Duration) time.Duration {
	return of(slices.MinFunc(slices.Concat(s...), func(a, b benchTimes) int { return cmp.Compare(of(a), of(b)) }))
}

// figure adds a figure in nanoseconds for one of so many. what says of what, such as task. raw is nil
// without plain Vulkan.
func (b *bench) figure(name, what string, per int, of func(benchTimes) time.Duration, vkomp, raw benchSamples) {
	b.convert(name, "ns/"+what, func(d time.Duration) float64 { return float64(d) / float64(per) }, of, vkomp, raw)
}

// benchPercent is the unit of shares of the processors that the program may use.
const benchPercent = "% of CPU"

// benchRate is the unit of figures of which more is better.
const benchRate = "GB/s"

// rate adds a figure in gigabytes a second, for so many bytes.
func (b *bench) rate(name string, bytes int, vkomp, raw benchSamples) {
	b.convert(name, benchRate, func(d time.Duration) float64 { return float64(bytes) / float64(max(d, 1)) }, benchTotal, vkomp, raw)
}

func (b *bench) convert(name, unit string, convert func(time.Duration) float64, of func(benchTimes) time.Duration, vkomp, raw benchSamples) {
	f := benchFigure{Name: name, Unit: unit, Vkomp: vkomp.series(of, convert)}
	if raw != nil {
		series := raw.series(of, convert)
		f.Raw = &series
		f.Ratio = float64(vkomp.least(of)) / float64(max(raw.least(of), 1))
	}
	b.figures = append(b.figures, f)
}

// value adds a figure that is measured once.
func (b *bench) value(name, unit string, v float64) {
	b.figures = append(b.figures, benchFigure{Name: name, Unit: unit, Vkomp: benchSeries{Best: v, Median: v, Alternations: []float64{v}}})
}

// call measures a routine or a pair of them, called so many times in a sample.
func (b *bench) call(name, what string, times int, work func(i int) error) error {
	samples, err := b.alternate(timed(func() error {
		for i := range times {
			if err := work(i); err != nil {
				return err
			}
		}
		return nil
	}))
	if err == nil {
		b.figure(name, what, times, benchTotal, samples[0], nil)
	}
	return err
}

// taskFigures measures the creation of tasks, and all until they are complete.
func (b *bench) taskFigures(name string, tasks int, create func() error) error {
	samples, err := b.alternate(b.deferred(create))
	if err == nil {
		b.figure(name+".create", "task", tasks, benchCreate, samples[0], nil)
		b.figure(name+".total", "task", tasks, benchTotal, samples[0], nil)
	}
	return err
}

// present runs body while slices are on the device: enter and exit are the maps with which they come
// there and leave.
func (b *bench) present(enter, exit []vkomp.Arg, body func() error) error {
	if err := b.rt.TargetEnterData(b.ctx, vkomp.TargetEnterData{Maps: enter}); err != nil {
		return err
	}
	err := errors.Join(body(), b.rt.Taskwait(b.ctx))
	return errors.Join(err, b.rt.TargetExitData(b.ctx, vkomp.TargetExitData{Maps: exit}))
}

// benchRandom returns the numbers by which a row chooses, the same in every run.
func benchRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// benchCheck returns an error if a result is not what the row's tasks compute.
func benchCheck[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s is %v, want %v", what, got, want)
	}
	return nil
}

// benchCheckAll is benchCheck for each element.
func benchCheckAll(what string, got, want []uint32) error {
	for i := range want {
		if err := benchCheck(fmt.Sprintf("%s[%d]", what, i), got[i], want[i]); err != nil {
			return err
		}
	}
	return nil
}
