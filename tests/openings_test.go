package tests

import (
	"flag"
	"os"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

var openings = flag.Int("openings", 0, "openings: how many runtimes are opened in turn, in place of some")

// A process may open, use and close any number of runtimes.
func TestOpeningsLeaveNothing(t *testing.T) {
	vktest.Long(t)
	rounds := 50
	if *openings > 0 {
		rounds = *openings
	}
	open := func() {
		rt, err := vkomp.Open(vkomp.Options{})
		succeed(t, err)
		k := newAffine(t, rt)
		x := repeated(1000, 2)
		offload(t, rt, k.add(x, 3, vkomp.InOut(x)))
		succeed(t, rt.Taskwait(t.Context()))
		if stats := rt.Stats(); x[0] != 5 || stats.HostRegions != 0 {
			t.Fatalf("x is %d; %d regions ran on the host", x[0], stats.HostRegions)
		}
		succeed(t, rt.Close())
	}
	some := func() (bytes int, held map[string]int) {
		for range rounds {
			open()
		}
		runtime.GC()
		return resident(t), heldBy(t)
	}
	// By then the driver and Go have allocated what they keep.
	early, earlyHeld := some()
	late, lateHeld := some()
	t.Logf("%d openings: %d MiB, %d MiB after as many again; they hold %v", rounds, early>>20, late>>20, lateHeld)
	if grown := late - early; grown > 16<<20 {
		t.Errorf("the process has grown by %d bytes in %d openings, to %d", grown, rounds, late)
	}
	// A few resources may come and go at any time.
	for what, n := range lateHeld {
		if grown := n - earlyHeld[what]; grown > rounds/2 {
			t.Errorf("the process has %d %s more than %d openings before", grown, what, rounds)
		}
	}
}

// heldBy counts the system and Go resources of the process other than memory.
func heldBy(t *testing.T) map[string]int {
	t.Helper()
	held := map[string]int{"goroutines": runtime.NumGoroutine()}
	for what, folder := range map[string]string{"threads": "/proc/self/task", "open files": "/proc/self/fd"} {
		entries, err := os.ReadDir(folder)
		succeed(t, err)
		held[what] = len(entries)
	}
	return held
}
