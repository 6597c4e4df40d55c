package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
)

func TestProgressShowsAfterASecondAndGoesAway(t *testing.T) {
	var screen bytes.Buffer
	start := time.Now()
	ticks := make(chan time.Time)
	released := false
	p := startProgress(&screen, start, ticks, func() { released = true })
	// tick returns when the previous tick has been drawn.
	tick := func(after time.Duration) {
		ticks <- start.Add(after)
		ticks <- start
	}

	p.begin("image", 40)
	p.advance(10)
	tick(900 * time.Millisecond)
	if screen.Len() != 0 {
		t.Errorf("shown before a second has passed: %q", screen.String())
	}
	tick(time.Second)
	if got := screen.String(); !strings.Contains(got, "image") || !strings.Contains(got, "25%") {
		t.Errorf("after a second: %q, want image at 25%%", got)
	}
	p.advance(20)
	tick(2 * time.Second)
	if got := screen.String(); !strings.Contains(got, "75%") {
		t.Errorf("then: %q, want 75%%", got)
	}
	p.waiting(vkomp.Progress{Tasks: 9, Done: 4, BytesToDevice: 3 << 20, BytesFromDevice: 1 << 20})
	tick(2 * time.Second)
	if got := screen.String(); !strings.Contains(got, "image (4 of 9 tasks, 4 MiB moved)") {
		t.Errorf("during a wait: %q", got)
	}
	p.end()
	// Results may be printed here: the line is cleared, and ticks leave it cleared.
	if got := screen.String(); !strings.HasSuffix(got, "\r") {
		t.Errorf("between activities: %q, want a wiped line", got)
	}
	shown := screen.Len()
	tick(3 * time.Second)
	if got := screen.String()[shown:]; got != "" {
		t.Errorf("shown between activities: %q", got)
	}
	p.begin("verify", 4)
	p.advance(2)
	tick(4 * time.Second)
	if got := screen.String()[shown:]; !strings.Contains(got, "verify") || !strings.Contains(got, "50%") {
		t.Errorf("the next activity: %q, want verify at 50%%", got)
	}
	p.stop()
	if !released {
		t.Error("the ticker was not released")
	}
	// The line is cleared and the cursor is at its beginning.
	if got := screen.String(); !strings.HasSuffix(got, "\r") {
		t.Errorf("at the end: %q, want a wiped line", got)
	}
}

func TestNoProgressWhereThereIsNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if p := newProgress(file); p != nil {
		p.stop()
		t.Error("a file got a progress bar")
	}
	if p := newProgress(&bytes.Buffer{}); p != nil {
		p.stop()
		t.Error("a buffer got a progress bar")
	}
	var none *progress
	none.begin("nothing", 1)
	none.advance(1)
	none.end()
	none.stop()
}
