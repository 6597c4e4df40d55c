package main

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp/tests/vktest"
)

// machine simulates tasks whose duration follows from their rounds.
func machine(overhead, round time.Duration, workers int) *metg {
	m := &metg{pattern: pattern{kind: noComm, width: 64}, workers: workers}
	m.run = func(steps, rounds int) (time.Duration, int, error) {
		tasks := steps * m.pattern.width
		return time.Duration(tasks) * (overhead + time.Duration(rounds)*round) / time.Duration(workers), tasks, nil
	}
	return m
}

// When a task takes twice its overhead, half of its time is overhead; the best rate is that of
// the longest tasks without overhead.
func TestMETGIsTwiceTheOverheadOfATask(t *testing.T) {
	for _, overhead := range []time.Duration{3 * time.Microsecond, 20 * time.Microsecond, 100 * time.Microsecond} {
		for _, workers := range []int{1, 2, 16} {
			r, err := machine(overhead, 10*time.Nanosecond, workers).sweep()
			if err != nil || r == nil {
				t.Fatalf("overhead %v, %d workers: %v, %v", overhead, workers, r, err)
			}
			want := 2 * overhead.Seconds()
			if math.Abs(r.granularity/want-1) > 0.08 || r.least != r.granularity || r.most != r.granularity {
				t.Errorf("overhead %v, %d workers: %v of %v to %v, want %v", overhead, workers, r.granularity, r.least, r.most, want)
			}
			if high, low := r.above.rate()/r.best, r.below.rate()/r.best; high < 0.5 || low >= 0.5 || r.above.rounds <= r.below.rounds {
				t.Errorf("overhead %v: between %v at %d rounds and %v at %d", overhead, high, r.above.rounds, low, r.below.rounds)
			}
		}
	}
}

func TestMETGIsNoneWithoutOverhead(t *testing.T) {
	if r, err := machine(0, 10*time.Nanosecond, 1).sweep(); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
	failure := errors.New("lost")
	m := machine(time.Microsecond, 10*time.Nanosecond, 1)
	runs, right := 0, m.run
	m.run = func(steps, rounds int) (time.Duration, int, error) {
		if runs++; runs > 5 {
			return 0, 0, failure
		}
		return right(steps, rounds)
	}
	if r, err := m.sweep(); r != nil || !errors.Is(err, failure) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestMETGIsMeasuredOnTheDevice(t *testing.T) {
	vktest.Long(t)
	printed := succeed(t, "stress", "-metg", "-pattern", "no_comm", "-width", "4", "-workers", "1")
	if !strings.HasPrefix(printed, "PATTERN  WIDTH  PROCESSORS  METG µs") || !regexp.MustCompile(`(?m)^no_comm  4      1           (\d|never)`).MatchString(printed) ||
		!regexp.MustCompile(`(?m)^[1-9]\d* passed, 0 failed\n\z`).MatchString(printed) {
		t.Errorf("printed\n%s", printed)
	}
}
