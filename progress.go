package vkomp

import (
	"context"
	"fmt"
	"time"

	"github.com/vkomp/vkomp/sched/protect"
)

// Progress is how far the tasks of a runtime have come.
type Progress struct {
	// Tasks is the number of tasks since Open, Done how many of them are complete. A
	// TargetData counts as in Stats.
	Tasks, Done uint64
	// BytesToDevice and BytesFromDevice count the bytes that were copied from the host to devices and
	// back: those of mapped slices and those of memory routines. A copy between devices counts in both.
	BytesToDevice, BytesFromDevice uint64
}

// progressKey is the key of progressReports in a context.
type progressKey struct{}

type progressReports struct {
	every  time.Duration
	report func(Progress)
}

// WithProgress returns a context with which Taskwait and Taskgroup call report at regular
// intervals while they wait, on a separate goroutine, but not after they have returned. An
// interval that is not positive means 100 ms. Concurrent waits with the same context report
// concurrently. report must not call constructs.
//
// If report panics, there are no more reports, and the wait returns a *PanicError when it is
// over; runtime.Goexit is treated likewise.
func WithProgress(ctx context.Context, every time.Duration, report func(Progress)) context.Context {
	if report == nil {
		return ctx
	}
	if every <= 0 {
		every = 100 * time.Millisecond
	}
	return context.WithValue(ctx, progressKey{}, &progressReports{every, report})
}

// reportWhile calls wait, which waits for tasks, and returns its error. It reports progress meanwhile if the wait's
// context asks for that; reporting is the error of a failed report.
func (rt *Runtime) reportWhile(ctx context.Context, wait func() error) (err, reporting error) {
	stop := rt.reports(ctx)
	// Deferred, because a tool may end the goroutine.
	defer func() { reporting = stop() }()
	return wait(), nil
}

// reports starts the reports that the wait's context asks for. stop ends them and returns the
// error of a failed report.
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

// progress returns the current progress.
func (rt *Runtime) progress() Progress {
	counts, stats := rt.graph.Counts(), rt.Stats()
	return Progress{
		Tasks: counts.Tasks, Done: counts.Done,
		BytesToDevice: stats.BytesToDevice, BytesFromDevice: stats.BytesFromDevice,
	}
}
