package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/timeline"
)

func TestLeakReportNamesTheLargestFirstAndTenAtMost(t *testing.T) {
	var leaks Leaks
	if got := leaks.Report(); got != "" {
		t.Errorf("without leaks: %q", got)
	}
	site := CallSite()
	leaks.Add("blocks", "x", nil, 10)
	leaks.Add("blocks", "x", nil, 30)
	leaks.Add("allocations", "x", nil, 20)
	leaks.Add("blocks", "", site, 50)
	leaks.Add("blocks", "", nil, 1000) // has neither label nor site
	want := []string{"1 blocks of 50 bytes at", "2 blocks of 40 bytes (x)", "1 allocations of 20 bytes (x)"}
	lines := strings.Split(strings.TrimPrefix(leaks.Report(), "\n"), "\n")
	if len(lines) != len(want) {
		t.Fatalf("got %q", lines)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
	if !strings.Contains(lines[0], "leak_test.go:17 (github.com/vkomp/vkomp/memory.TestLeakReport") {
		t.Errorf("the site is %q", lines[0])
	}
	for i := range 20 {
		leaks.Add("blocks", fmt.Sprint("of ", i), nil, 2)
	}
	lines = strings.Split(strings.TrimPrefix(leaks.Report(), "\n"), "\n")
	if last := lines[len(lines)-1]; len(lines) != 11 || last != "and 13 of 26 bytes at 13 more sites" {
		t.Errorf("%d lines, the last %q", len(lines), last)
	}
}

// Requests through different frames of this module from one line of the program
// share a line of the report.
func TestSitesThatReadTheSameAreOneLine(t *testing.T) {
	var leaks Leaks
	one, other := CallSite(), CallSite()
	leaks.Add("blocks", "", one, 1)
	leaks.Add("blocks", "", other, 2)
	if got := leaks.Report(); got != "\n2 blocks of 3 bytes at"+one.Caller() || *one == *other {
		t.Errorf("got %q", got)
	}
}

func TestLabelInALeakReportIsOnOneLine(t *testing.T) {
	for label, want := range map[string]string{"a ü": "a ü", "two\nlines": `"two\nlines"`, "\x1b[2J": `"\x1b[2J"`} {
		var leaks Leaks
		leaks.Add("blocks", label, nil, 8)
		if got := leaks.Report(); got != "\n1 blocks of 8 bytes ("+want+")" {
			t.Errorf("got %q", got)
		}
	}
}

func TestReclaimIsAskedBeforeARequestFails(t *testing.T) {
	const budget = 1 << 20
	h := &fakeHeap{}
	other := uint64(budget)
	h.fail = func(_ int, size uint64) error {
		if h.bytes()+other+size > budget {
			return errDriver
		}
		return nil
	}
	asked := 0
	a := newAllocator(t, h, AllocatorOptions{MinBlock: 1 << 16, MaxBlock: 1 << 16, Reclaim: func() bool {
		asked++
		freed := asked == 2
		if freed {
			other = 0
		}
		return freed
	}})
	if _, err := a.Allocate(100); !errors.Is(err, ErrOutOfMemory) || asked != 1 {
		t.Fatalf("with nothing to reclaim: %v, asked %d times", err, asked)
	}
	s, err := a.Allocate(100)
	if err != nil || asked != 2 {
		t.Fatalf("with memory to reclaim: %v, asked %d times", err, asked)
	}
	allocate(t, a, 100)
	if asked != 2 {
		t.Error("reclaimed where there was memory")
	}
	if err := a.Free(&s, timeline.Frontier{}); err != nil {
		t.Error(err)
	}
	h.fail = func(int, uint64) error { return errors.New("something else") }
	if _, err := a.Allocate(1 << 20); err == nil || errors.Is(err, ErrOutOfMemory) || asked != 2 {
		t.Errorf("for another failure: %v, asked %d times", err, asked)
	}
}

func TestFiguresOfTwoAllocatorsAddUp(t *testing.T) {
	a := AllocatorStats{Blocks: 1, BlockBytes: 100, LiveBytes: 60, PeakLiveBytes: 70, PeakBlockBytes: 110, Allocations: 2,
		FreeBytes: 40, LargestFree: 40, TrimmedBlocks: 1, TrimmedBytes: 10}
	b := AllocatorStats{Blocks: 2, BlockBytes: 200, LiveBytes: 80, PeakLiveBytes: 90, PeakBlockBytes: 200, Allocations: 3,
		FreeBytes: 120, LargestFree: 60, Fragmentation: 0.5, TrimmedBlocks: 2, TrimmedBytes: 20}
	want := AllocatorStats{Blocks: 3, BlockBytes: 300, LiveBytes: 140, PeakLiveBytes: 160, PeakBlockBytes: 310, Allocations: 5,
		FreeBytes: 160, LargestFree: 60, Fragmentation: 0.625, TrimmedBlocks: 3, TrimmedBytes: 30}
	if got := a.Plus(b); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := a.Plus(AllocatorStats{}); got != a {
		t.Errorf("nothing added made %+v of %+v", got, a)
	}
}
