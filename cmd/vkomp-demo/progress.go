package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/vkomp/vkomp"
)

// progress shows the progress of a sample on a terminal once it has run for a second. A nil
// progress shows nothing.
type progress struct {
	w       io.Writer
	stopped chan struct{}
	shown   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	total int        // 0 between activities
	done  int
	what  string
	// waits is the text about a wait, "" between waits.
	waits string
	bar   *progressbar.ProgressBar // nil while nothing is shown
}

// patience is how long a sample runs before the bar appears; refresh is the interval between
// updates of the bar.
const (
	patience = time.Second
	refresh  = 100 * time.Millisecond
)

// newProgress returns nil if w is not a terminal.
func newProgress(w io.Writer) *progress {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	ticker := time.NewTicker(refresh)
	return startProgress(w, time.Now(), ticker.C, ticker.Stop)
}

// startProgress shows progress at each tick at least patience after start. stop ends that and calls
// release.
func startProgress(w io.Writer, start time.Time, ticks <-chan time.Time, release func()) *progress {
	p := &progress{w: w, stopped: make(chan struct{})}
	p.shown.Go(func() {
		defer release()
		p.show(start, ticks)
	})
	return p
}

func (p *progress) show(start time.Time, ticks <-chan time.Time) {
	for {
		select {
		case now := <-ticks:
			if now.Sub(start) >= patience {
				p.update()
			}
		case <-p.stopped:
			p.end()
			return
		}
	}
}

// update draws the current state of the bar.
func (p *progress) update() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(p.total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetWidth(40),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true))
	}
	p.bar.Describe(p.what + p.waits)
	// A closed terminal does not make the program fail.
	_ = p.bar.Set(min(p.done, p.total-1))
}

// end removes the bar until the next activity begins, so that results can be printed on the same
// terminal.
func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total = 0
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

// begin starts an activity of total steps, which ends with end.
func (p *progress) begin(what string, total int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.total, p.done, p.waits = what, total, 0, ""
}

// watch returns a context with which waits report their progress.
func (p *progress) watch(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return vkomp.WithProgress(ctx, refresh, p.waiting)
}

// waiting shows the report of a wait, until the activity advances.
func (p *progress) waiting(now vkomp.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = fmt.Sprintf(" (%d of %d tasks, %d MiB moved)", now.Done, now.Tasks, (now.BytesToDevice+now.BytesFromDevice)>>20)
}

// advance records that steps more steps are done.
func (p *progress) advance(steps int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += steps
	p.waits = ""
}

// stop removes the bar for good.
func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.stopped)
	p.shown.Wait()
}
