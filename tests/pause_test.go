package tests

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	checker "github.com/vkomp/vkomp/tests/order"
	"github.com/vkomp/vkomp/tests/vktest"
)

var pauseRounds = flag.Int("pause.rounds", 0, "pause: how many rounds of work and pauses, in place of some")

// resident returns the resident set size of the process in bytes.
func resident(t *testing.T) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc/self/statm")
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	succeed(t, err)
	return pages * os.Getpagesize()
}

// Work, a soft pause, work, a hard pause, work: the results are right each time, and the process
// does not grow. Without validation, because the validation layer does grow with each VkDevice.
func TestRoundsOfWorkAndPauses(t *testing.T) {
	vktest.LongConcurrent(t)
	rounds, validated := 40, 15
	if *pauseRounds > 0 {
		rounds, validated = *pauseRounds, *pauseRounds
	}
	t.Run("under validation", func(t *testing.T) { pauses(t, vktest.Open(t), validated) })
	t.Run("without", func(t *testing.T) {
		rt := vktest.Open(t, quick)
		// By then the driver and Go have allocated what they keep.
		pauses(t, rt, rounds)
		early := resident(t)
		pauses(t, rt, rounds)
		late := resident(t)
		t.Logf("%d rounds: %d MiB, %d MiB after as many again", rounds, early>>20, late>>20)
		if grown := late - early; grown > 16<<20 {
			t.Errorf("the process has grown by %d bytes in %d rounds, to %d", grown, rounds, late)
		}
	})
}

// The order is kept on a device after a pause, over all its queues.
func TestPausesThroughTheLayers(t *testing.T) {
	vktest.Long(t)
	many := func(o *vkomp.Options) { o.InteropQueues = -1 }
	t.Run("manyqueue, shuffle", func(t *testing.T) {
		vktest.Layers(t, "manyqueue", "shuffle")
		pauses(t, vktest.Open(t, many, randomly(1)), 5)
	})
	t.Run("record, manyqueue", func(t *testing.T) {
		vktest.Layers(t, "record", "manyqueue")
		log := filepath.Join(t.TempDir(), "log")
		t.Setenv("VKOMP_RECORD", log)
		rt := vktest.Open(t, many, randomly(2), quick, vktest.Path(vkomp.MemoryNonCoherent))
		pauses(t, rt, 5)
		succeed(t, rt.Close())
		f, err := os.Open(log)
		succeed(t, err)
		defer f.Close()
		report, err := checker.Check(f, checker.Options{})
		succeed(t, err)
		if sum := report.Sum(); sum.Launches < 5*3*10 {
			t.Errorf("%d launches were checked", sum.Launches)
		}
		for _, v := range report.Violations[:min(3, len(report.Violations))] {
			t.Errorf("of %d violations: %v", len(report.Violations), v)
		}
	})
}

func pauses(t *testing.T, rt *vkomp.Runtime, rounds int) {
	t.Helper()
	ctx, d := t.Context(), rt.DefaultDevice(t.Context())
	k := newAffine(t, rt)
	x, y := repeated(1<<16, 1), repeated(1000, 2)
	work := func() {
		t.Helper()
		before, x0 := y[0], x[0]
		succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(y)}}))
		for range 5 {
			offload(t, rt, k.add(y, 1, vkomp.InOut(y)))
			offload(t, rt, k.add(x, 2, vkomp.InOut(x)))
		}
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(y)}, Depend: []vkomp.Depend{vkomp.In(y)}}))
		succeed(t, rt.Taskwait(ctx))
		if y[0] != before+5 || y[len(y)-1] != before+5 || x[len(x)-1] != x0+10 {
			t.Fatalf("y is %d ... %d and x ends with %d; want %d and %d", y[0], y[len(y)-1], x[len(x)-1], before+5, x0+10)
		}
	}
	pause := func(kind vkomp.PauseKind) {
		t.Helper()
		succeed(t, rt.PauseResource(ctx, kind, d))
	}
	for range rounds {
		work()
		pause(vkomp.PauseSoft)
		work()
		pause(vkomp.PauseHard)
		work()
	}
	runtime.GC()
}
