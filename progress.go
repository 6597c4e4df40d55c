package vkomp

import (
	"context"
	"fmt"
	"time"

	"github.com/vkomp/vkomp/sched/protect"
)

// Progress says how far a runtime is.
type Progress struct {
	// Tasks is how many tasks there have been since Open, Done how many of them are
	// complete. A data construct counts as two, its beginning and its end.
	Tasks, Done uint64
	// BytesToDevice and BytesFromDevice are the bytes of mapped slices that were copied.
	BytesToDevice, BytesFromDevice uint64
}

// progressKey is the key of a context's progressReports.
type progressKey struct{}

type progressReports struct {
	every  time.Duration
	report func(Progress)
}

// WithProgress returns a context with which Taskwait and Taskgroup, while they wait, call
// report each time that so much time has passed, on a goroutine of its own and not any
// more when they have returned. It is 100 ms if every is not positive. Waits at once with
// one context report at once. report may call what makes no construct.
//
// A panic in report is a *PanicError of the wait, when that is over, and there are no more
// reports; leaving by runtime.Goexit is an error likewise.
func WithProgress(ctx context.Context, every time.Duration, report func(Progress)) context.Context {
	if report == nil {
		return ctx
	}
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	return context.WithValue(ctx, progressKey{}, &progressReports{every, report})
}

// reports reports while a wait goes on, as its context says, until it is stopped, which
// returns what a report failed with.
func (rt *Runtime) reports(ctx context.Context) (stop func() error) {
	r, ok := ctx.Value(progressKey{}).(*progressReports)
	if !ok {
		return func() error { return nil }
	}
	over := make(chan struct{})
	end := protect.Start(func() error {
		ticker := time.NewTicker(r.every)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.report(rt.progress())
			case <-over:
				return nil
			}
		}
	})
	return func() error {
		close(over)
		if err := end(); err != nil {
			return fmt.Errorf("report of progress: %w", err)
		}
		return nil
	}
}

// progress counts what there is.
func (rt *Runtime) progress() Progress {
	counts, stats := rt.graph.Counts(), rt.Stats()
	return Progress{
		Tasks: counts.Tasks, Done: counts.Tasks - min(counts.Live, counts.Tasks),
		BytesToDevice: stats.BytesToDevice, BytesFromDevice: stats.BytesFromDevice,
	}
}
