package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

// stressed runs small graphs that must all be right, and returns the output.
func stressed(t *testing.T, args ...string) string {
	t.Helper()
	printed := succeed(t, append([]string{"stress", "-width", "7", "-steps", "12"}, args...)...)
	if !regexp.MustCompile(`(?m)^\d+ passed, 0 failed\n\z`).MatchString(printed) {
		t.Errorf("the last line is not of passes alone:\n%s", printed)
	}
	return printed
}

func TestEveryPatternPasses(t *testing.T) {
	vktest.LongConcurrent(t)
	for kind := range patternKinds {
		t.Run(kind.String(), func(t *testing.T) {
			p := pattern{kind: kind, width: 7, steps: 12}
			printed := stressed(t, "-pattern", kind.String(), "-seeds", "2")
			if n := figure(t, printed, "tasks"); n != 2*p.tasks() {
				t.Errorf("%d tasks, want %d", n, 2*p.tasks())
			}
			if !strings.HasSuffix(printed, "\n2 passed, 0 failed\n") {
				t.Errorf("want 2 passes:\n%s", printed)
			}
		})
	}
}

func TestTasksPassWhateverTheyDo(t *testing.T) {
	vktest.Long(t)
	for _, flags := range []string{
		"-kernel compute", "-kernel memory", "-kernel empty -mix host", "-kernel memory -mix host -seeds 2",
		"-kernel memory -path staged", "-kernel memory -path noncoherent -mix host", "-kernel memory -path imported", "-kernel memory -path unified -queues 1",
		"-placement random -kernel compute", "-width 1 -steps 1", "-width 1 -steps 40", "-width 40 -steps 3 -radix 8", "-width 130 -steps 40 -pattern stencil_1d,trivial",
		"-device host -kernel memory -mix host", "-device host -kernel compute",
	} {
		t.Run(flags, func(t *testing.T) {
			// What a task does is the same in every pattern: TestEveryPatternPasses has all of them.
			args := []string{"-pattern", "stencil_1d,random_nearest,fft"}
			stressed(t, append(args, strings.Fields(flags)...)...)
		})
	}
}

// broken runs a graph with a fault that must be found.
func broken(t *testing.T, c stressCommand, fault *stressFault) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: vkomp.Open}
	leaks := goleak.IgnoreCurrent()
	err := c.run(&sh, fault)
	goleak.VerifyNone(t, leaks)
	printed := stdout.String()
	if err == nil || !strings.Contains(err.Error(), "graphs failed") {
		t.Errorf("error %v, want that graphs failed", err)
	}
	if !strings.Contains(printed, "violation: ") || !strings.HasSuffix(printed, " failed\n") || strings.HasSuffix(printed, " 0 failed\n") {
		t.Errorf("printed\n%s", printed)
	}
	return printed
}

// small returns a command with 6 points and 40 steps.
func small(names string) stressCommand {
	width, steps := 6, 40
	return stressCommand{Pattern: names, Width: &width, Steps: &steps, Seed: 1, Placement: "finish", Kernel: "empty", Path: "auto"}
}

// one selects the task of step 20 and point 3 for a fault.
func one(step, point int) bool { return step == 20 && point == 3 }

func TestWrongResultIsFoundByTheKernelsThatReadIt(t *testing.T) {
	for _, device := range []string{"", "host"} {
		for _, names := range []string{"stencil_1d", "all_to_all", "fft", "no_comm", "stencil_1d_periodic", "nearest"} {
			t.Run(names+" "+device, func(t *testing.T) {
				c := small(names)
				c.Device = device
				printed := broken(t, c, &stressFault{lies: one})
				want := regexp.MustCompile(`(?m)^violation: ` + names + `, seed 1: step 21 point \d read the result of point 3, element \d+: want step 20 point 3 graph 1, found step 27 point 3 graph 1 value 0x`)
				if !want.MatchString(printed) {
					t.Errorf("no violation as %v\n%s", want, printed)
				}
				if want := "vkomp-demo stress -pattern " + names + " -width 6 -steps 40 -radix 5 -seed 1 -placement finish -kernel empty"; !strings.Contains(printed, "\nreproduce: ") || !strings.Contains(printed, want) {
					t.Errorf("no command that reproduces it, %s:\n%s", want, printed)
				}
			})
		}
	}
}

func TestWrongResultIsFoundByHostTasksAndCarriers(t *testing.T) {
	c := small("stencil_1d")
	c.Mix = "host"
	every := func(step, _ int) bool { return step%5 == 2 }
	if printed := broken(t, c, &stressFault{lies: every}); !strings.Contains(printed, "a host task read a result, element") {
		t.Errorf("no host task found it:\n%s", printed)
	}
	c = small("trivial")
	c.Kernel = "memory"
	if printed := broken(t, c, &stressFault{lies: every}); !regexp.MustCompile(`step (2|7|12|17|22|27|32|37) point \d+ read the result of point`).MatchString(printed) {
		t.Errorf("no carrier found it:\n%s", printed)
	}
}

func TestWrongLastResultIsFoundByTheOracle(t *testing.T) {
	printed := broken(t, small("trivial"), &stressFault{lies: func(step, point int) bool { return step == 39 && point == 5 }})
	if !strings.Contains(printed, "the result of step 39 point 5") || strings.Contains(printed, "read the result") {
		t.Errorf("printed\n%s", printed)
	}
}

// A task that does not name its inputs runs as soon as its own slot is free: the batch is sorted
// by level, and its inputs have not been written then. The gate makes the whole graph one batch.
func TestForgottenDependClauseIsFound(t *testing.T) {
	for _, names := range []string{"stencil_1d", "all_to_all", "nearest"} {
		t.Run(names, func(t *testing.T) {
			c := small(names)
			c.Seed = gatedSeed(t, names, *c.Width, *c.Steps)
			printed := broken(t, c, &stressFault{forgets: func(step, _ int) bool { return step == 20 }})
			if !strings.Contains(printed, "step 20 point ") || !strings.Contains(printed, "want step 19 point ") {
				t.Errorf("printed\n%s", printed)
			}
		})
	}
}

// gatedSeed returns a seed that chooses a gate and the longest ring of rows, with which a task
// without inputs runs several steps too early.
func gatedSeed(t *testing.T, names string, width, steps int) uint64 {
	kinds, err := parsePatterns(names)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(1000) {
		g := stressGraph{pattern: pattern{kind: kinds[0], width: width, steps: steps, radix: stressRadix, seed: seed}}
		if g.draw(); g.gated && g.rows == 4 {
			return seed
		}
	}
	t.Fatal("no seed draws a gate")
	return 0
}

func TestEverySeededChoiceIsDrawn(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(64) {
		g := stressGraph{pattern: pattern{kind: fft, width: 6, steps: 10, radix: stressRadix, seed: seed}}
		g.draw()
		for _, what := range []string{fmt.Sprint("rows ", g.rows), fmt.Sprint("apart ", g.apart), fmt.Sprint("per span ", g.perSpan),
			fmt.Sprint("shuffled ", g.shuffled), fmt.Sprint("gated ", g.gated), fmt.Sprint("async ", g.async)} {
			seen[what]++
		}
	}
	if len(seen) != 13 {
		t.Errorf("drawn: %v, want 13 different", seen)
	}
	g := stressGraph{pattern: pattern{kind: allToAll, width: 9, steps: 10, seed: 1}}
	for g.seed = range uint64(64) {
		if g.draw(); g.apart {
			t.Fatal("9 inputs, each bound by itself")
		}
	}
}

func TestShuffledStepsAreStillWhole(t *testing.T) {
	for n := 1; n < 40; n++ {
		for draw := range uint64(50) {
			stride := coprime(n, draw)
			seen := map[int]bool{}
			for i := range n {
				seen[i*stride%n] = true
			}
			if len(seen) != n {
				t.Fatalf("stride %d visits %d of %d", stride, len(seen), n)
			}
		}
	}
}

func TestManyRoundsAreOneOnTheHost(t *testing.T) {
	for _, rounds := range []uint32{0, 1, 2, 3, 63, 64, 65, 1000} {
		who := [4]uint32{5, 6, 7, rounds}
		v, want := beginning(who), beginning(who)
		v.work(who)
		for range rounds {
			for l := range want {
				want[l] = want[l]*(1664525+8*7) + 1013904223
			}
		}
		if v != want {
			t.Errorf("%d rounds: %v, want %v", rounds, v, want)
		}
	}
}

// A barrier of a workgroup orders accesses to shared variables only. Software drivers run the lanes of a workgroup
// together, and would not show that one records a violation before another one empties the record.
func TestCarrierEmptiesItsRecordBeforeItRecords(t *testing.T) {
	const (
		opConstant       = 43
		opControlBarrier = 224
		opMemoryBarrier  = 225
		// What orders storage buffers: acquire and release of UniformMemory.
		wanted      = 0x8 | 0x40
		headerWords = 5
	)
	code, err := stressModules.ReadFile("kernels/carry.spv")
	if err != nil {
		t.Fatal(err)
	}
	module, err := spirv.Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[uint32]uint32{}
	barriers, semantics := 0, uint32(0)
	// Each instruction is its length and opcode in one word, then operands.
	for words := module.Words[headerWords:]; len(words) > 0; words = words[words[0]>>16:] {
		switch words[0] & 0xffff {
		case opConstant:
			constants[words[2]] = words[3]
		case opMemoryBarrier:
			semantics |= constants[words[2]]
		case opControlBarrier:
			barriers++
			if semantics |= constants[words[3]]; semantics&wanted != wanted {
				t.Errorf("a barrier has semantics %#x, want %#x among them", semantics, wanted)
			}
		}
	}
	if barriers != 1 {
		t.Errorf("%d barriers, want the one behind the record's first word", barriers)
	}
}

func TestStressEndsWithTasksOrTime(t *testing.T) {
	printed := stressed(t, "-pattern", "no_comm", "-tasks", "200")
	if n, seeds := figure(t, printed, "tasks"), figure(t, printed, "seeds"); n != 3*7*12 || seeds != 3 {
		t.Errorf("%d tasks of %d seeds, want the first that are 200:\n%s", n, seeds, printed)
	}
	printed = stressed(t, "-pattern", "no_comm,tree", "-duration", "1ns")
	if n := figure(t, printed, "tasks"); n != 7*12 {
		t.Errorf("%d tasks, want those of one graph:\n%s", n, printed)
	}
	printed = stressed(t, "-pattern", "no_comm", "-duration", "1h", "-seeds", "2")
	if n := figure(t, printed, "seeds"); n != 2 {
		t.Errorf("%d seeds, want 2:\n%s", n, printed)
	}
}

func TestFlagsThatWouldChangeNothingAreRefused(t *testing.T) {
	for flags, want := range map[string]string{
		"-metg -seeds 2":        "it takes no -seeds, -tasks or -duration",
		"-metg -tasks 10":       "it takes no -seeds, -tasks or -duration",
		"-metg -duration 1s":    "it takes no -seeds, -tasks or -duration",
		"-metg -steps 100":      "it takes no -steps, -kernel or -mix",
		"-metg -kernel compute": "it takes no -steps, -kernel or -mix",
		"-metg -mix host":       "it takes no -steps, -kernel or -mix",
		"-workers 2":            "-workers is for -metg",
	} {
		t.Run(flags, func(t *testing.T) {
			// What is not refused ends at once.
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var stdout, stderr bytes.Buffer
			sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}
			status := run(sh, append(strings.Fields("stress -pattern no_comm -width 1"), strings.Fields(flags)...))
			if status != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), want) {
				t.Errorf("status %d, stdout %q, stderr %q, want %q", status, stdout.String(), stderr.String(), want)
			}
		})
	}
}

func TestInterruptedStressEndsWithAnErrorAndLeaksNothing(t *testing.T) {
	for _, kernel := range []string{"empty", "memory"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
			cancel(errors.New("interrupted"))
			return vkomp.Open(o)
		}}
		leaks := goleak.IgnoreCurrent()
		status := run(sh, []string{"stress", "-kernel", kernel})
		goleak.VerifyNone(t, leaks)
		if status != 1 || stderr.String() != "vkomp-demo: interrupted\n" || stdout.Len() > 0 {
			t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
		}
	}
}

// What comes before the first look at the context must not grow with the number of steps.
func TestInterruptEndsTheLargestGraphsAtOnce(t *testing.T) {
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	for _, kind := range []patternKind{noComm, nearest, allToAll} {
		t.Run(kind.String(), func(t *testing.T) {
			// A seed that maps slots separately where there are enough bindings, and shuffles.
			g := stressGraph{pattern: pattern{kind: kind, width: 4, steps: 4, radix: stressRadix}}
			for g.draw(); !g.apart || !g.shuffled; g.draw() {
				g.seed++
			}
			width, steps := stressWidthMost, stressStepsMost
			s := &stress{sh: &shell{ctx: ctx, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, open: vkomp.Open}, progress: newProgress(&bytes.Buffer{}),
				flags: &stressCommand{Pattern: kind.String(), Width: &width, Steps: &steps, Seed: g.seed, Placement: "finish", Kernel: "empty", Path: "auto"}}
			if err := s.read(); err != nil {
				t.Fatal(err)
			}
			err := errors.Join(s.seeds(), s.close())
			if !errors.Is(err, interrupted) || s.totals.tasks > width {
				t.Errorf("seed %d: %d tasks, error %v", g.seed, s.totals.tasks, err)
			}
		})
	}
}

func TestStressFailsWhereItCannotWrite(t *testing.T) {
	var stderr bytes.Buffer
	sh := shell{ctx: t.Context(), stdout: full{}, stderr: &stderr, open: vkomp.Open}
	if status := run(sh, []string{"stress", "-width", "2", "-steps", "2", "-pattern", "tree"}); status != 1 || !strings.Contains(stderr.String(), errFull.Error()) {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
	if result := demo(t, "stress", "-clauses", filepath.Join(t.TempDir(), "absent", "file")); result.status != 1 || !strings.Contains(result.stderr, "-clauses") || !strings.Contains(result.stderr, "no such file") {
		t.Errorf("%+v", result)
	}
}

func TestKernelThatCannotBeMadeIsAnErrorOfTheCommand(t *testing.T) {
	var stdout, stderr bytes.Buffer
	sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
		rt, err := vkomp.Open(o)
		return rt, errors.Join(err, rt.Close()) // later constructs are refused
	}}
	if status := run(sh, []string{"stress", "-pattern", "tree", "-width", "2"}); status != 1 || !strings.Contains(stderr.String(), vkomp.ErrClosed.Error()) {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
	}
}

// losesItsFirstDevice returns a shell whose first runtime loses its device when it is first used.
func losesItsFirstDevice(t *testing.T, stdout, stderr *bytes.Buffer) shell {
	faults, opened := vktest.InjectFaults(t), 0
	return shell{ctx: t.Context(), stdout: stdout, stderr: stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
		rt, err := vkomp.Open(o)
		if opened++; opened == 1 && err == nil {
			faults.Fail("vkQueueSubmit", 1, 1, vk.ErrorDeviceLost)
		}
		return rt, err
	}}
}

func TestGraphThatCannotRunIsAFailureAndTheNextOneRuns(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(losesItsFirstDevice(t, &stdout, &stderr), []string{"stress", "-pattern", "no_comm,tree", "-width", "2", "-steps", "3"})
	printed := stdout.String()
	if status != 1 || !strings.HasSuffix(stderr.String(), "vkomp-demo: stress: 1 of 2 graphs failed\n") || !strings.HasPrefix(printed, "failed: no_comm, seed 1: ") ||
		!strings.Contains(printed, "\nreproduce: ") || !strings.HasSuffix(printed, "\n1 passed, 1 failed\n") {
		t.Errorf("status %d, stdout %q, stderr %q", status, printed, stderr.String())
	}
}

// Whichever allocation is the first that fails, what the graph has mapped and pinned is given back.
func TestGraphWithoutMemoryLeaksNothing(t *testing.T) {
	faults := vktest.InjectFaults(t)
	for n := 1; ; n++ {
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
			rt, err := vkomp.Open(o)
			if err == nil {
				faults.Fail("vkAllocateMemory", n, -1, vk.ErrorOutOfDeviceMemory)
			}
			return rt, err
		}}
		failed := faults.Failed("vkAllocateMemory")
		status := run(sh, strings.Fields("stress -pattern no_comm -width 3 -steps 4 -kernel memory -pinned"))
		if printed := stdout.String() + stderr.String(); strings.Contains(printed, vkomp.ErrLeaked.Error()) || strings.Contains(printed, vkomp.ErrBusy.Error()) {
			t.Errorf("allocation %d and later ones fail:\n%s", n, printed)
		}
		if faults.Failed("vkAllocateMemory") == failed {
			if status != 0 || n == 1 {
				t.Errorf("allocation %d does not fail: status %d, stderr %q", n, status, stderr.String())
			}
			return
		}
		faults.Mend()
	}
}

// A graph of which mapping and unmapping are tasks unmaps its storage although the tasks on which that depends have failed.
func TestGraphThatFailsLeaksNothing(t *testing.T) {
	faults := vktest.InjectFaults(t)
	drawn := map[bool]bool{}
	for seed := uint64(1); len(drawn) < 2; seed++ {
		g := stressGraph{pattern: pattern{kind: fft, width: 4, steps: 4, radix: stressRadix, seed: seed}}
		g.draw()
		drawn[g.async] = true
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
			rt, err := vkomp.Open(o)
			if err == nil {
				faults.Fail("vkQueueSubmit", 1, 1, vk.ErrorOutOfHostMemory)
			}
			return rt, err
		}}
		run(sh, []string{"stress", "-pattern", "fft", "-width", "4", "-steps", "4", "-seed", fmt.Sprint(seed), "-pinned"})
		if !strings.HasPrefix(stdout.String(), "failed: fft") || stderr.String() != "vkomp-demo: stress: 1 of 1 graphs failed\n" ||
			strings.Contains(stdout.String(), vkomp.ErrBusy.Error()) {
			t.Errorf("seed %d, async %v: stdout %q, stderr %q", seed, g.async, stdout.String(), stderr.String())
		}
	}
}

func TestTimeOfAGraphThatCannotRunIsNotMeasured(t *testing.T) {
	var stdout, stderr bytes.Buffer
	status := run(losesItsFirstDevice(t, &stdout, &stderr), []string{"stress", "-metg", "-pattern", "no_comm", "-width", "2"})
	if status != 1 || !strings.HasSuffix(stderr.String(), "vkomp-demo: stress: a graph of no_comm failed, whose time says nothing\n") ||
		!strings.HasPrefix(stdout.String(), "failed: no_comm, seed 1: ") || strings.Contains(stdout.String(), "METG") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout.String(), stderr.String())
	}
}

func TestClausesAreThoseOfThePattern(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clauses")
	stressed(t, "-pattern", "tree,fft", "-width", "3", "-steps", "3", "-seed", "5", "-clauses", path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	number := 0
	for _, kind := range []patternKind{tree, fft} {
		number++
		g := stressGraph{pattern: pattern{kind: kind, width: 3, steps: 3, radix: stressRadix, seed: 5}}
		g.draw()
		want = append(want, fmt.Sprintf("graph %d", number))
		for step := range 3 {
			for _, point := range naiveRow(&g.pattern, step) {
				line := fmt.Sprintf("task %d %d", step, point)
				separator := " in="
				for _, from := range expand(g.inputs(step, point, nil)) {
					line += fmt.Sprintf("%s%d", separator, (step-1)%g.rows*3+from)
					separator = ","
				}
				want = append(want, fmt.Sprintf("%s out=%d", line, step%g.rows*3+point))
			}
		}
	}
	got := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	// The order within a step is random.
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clauses (-want +got):\n%s", diff)
	}
}

func TestClausesOfARunThatFailsLeaveTheEarlierFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "clauses")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		ctx  context.Context
		args []string
	}{
		{t.Context(), []string{"-device", "no-such-device"}},
		{interrupted, nil},
	} {
		if err := os.WriteFile(path, []byte("earlier"), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: c.ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}
		status := run(sh, append([]string{"stress", "-pattern", "no_comm", "-width", "2", "-steps", "2", "-clauses", path}, c.args...))
		if status != 1 || strings.Contains(stderr.String(), "cannot write") {
			t.Errorf("%v: status %d, stderr %q", c.args, status, stderr.String())
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "earlier" {
			t.Errorf("%v: the file holds %q (%v), want what was there", c.args, got, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
			t.Errorf("%v: files %v (%v), want the earlier one alone", c.args, left, err)
		}
	}
}

// Every dispatch has a line with its step and point.
func TestClausesNameHostTasksAndCarriers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clauses")
	stressed(t, "-pattern", "nearest", "-width", "9", "-steps", "30", "-kernel", "memory", "-mix", "host", "-clauses", path)
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	for _, line := range lines[1:] {
		var step, point int
		if n, err := fmt.Sscanf(line, "task %d %d", &step, &point); n != 2 || err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kind := fmt.Sprintf("range %d, host %v, out %v", point/9, strings.Contains(line, " host"), strings.Contains(line, "out="))
		seen[kind]++
		seen[fmt.Sprintf("task %d %d", step, point)]++
	}
	for _, kind := range []string{"range 0, host false, out true", "range 0, host true, out true", "range 1, host false, out false", "range 2, host true, out true"} {
		if seen[kind] == 0 {
			t.Errorf("no line of %s", kind)
		}
	}
	if want := len(lines) - 1 + 4; len(seen) != want {
		t.Errorf("%d kinds and tasks, want %d: every task once", len(seen), want)
	}
}

func TestReproductionIsACommandForAShell(t *testing.T) {
	queues := 3
	c := stressCommand{Placement: "random", Kernel: "memory", Mix: "host", Path: "staged", Device: "it's", Queues: &queues}
	g := stressGraph{pattern: pattern{kind: spread, width: 3, steps: 4, radix: 5, seed: 6}}
	got := c.reproduction(&g, []string{"HOME=/root", "VK_LAYER_PATH=/a b", "LP_NUM_THREADS=0", "VKOMP_MANYQUEUE_FAMILIES=GCT3,CT2", "VK_X="})
	want := `LP_NUM_THREADS=0 VKOMP_MANYQUEUE_FAMILIES=GCT3,CT2 VK_LAYER_PATH='/a b' VK_X='' vkomp-demo stress -pattern spread -width 3 -steps 4 -radix 5 -seed 6` +
		` -placement random -kernel memory -mix host -path staged -device 'it'\''s' -queues 3`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	workers := 2
	c = stressCommand{Placement: "finish", Kernel: "empty", Path: "auto", METG: true, Workers: &workers}
	got = c.reproduction(&g, nil)
	want = "vkomp-demo stress -pattern spread -width 3 -radix 5 -seed 6 -placement finish -kernel empty -metg -workers 2"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestStressReportNamesEveryFigure(t *testing.T) {
	queue := func(index int, transfer bool, dispatches, copies uint64) vkomp.QueueStats {
		return vkomp.QueueStats{Index: index, Family: index / 2, Transfer: transfer, Submissions: 10, Dispatches: dispatches, Copies: copies, Barriers: 7, SemaphoreWaits: 5}
	}
	totals := stressTotals{device: vkomp.DeviceInfo{Name: "llvmpipe", Type: "software"}, passed: 23, failed: 1, seeds: 2, tasks: 153600, others: 12}
	totals.add(vkomp.Stats{Edges: 400, Submissions: 30, Barriers: 21, SemaphoreWaits: 15, HostWaits: 4,
		Queues: []vkomp.QueueStats{queue(0, false, 100000, 1), queue(1, false, 53600, 0), queue(2, true, 0, 3)}})
	totals.add(vkomp.Stats{Edges: 100, Submissions: 10, Barriers: 7, SemaphoreWaits: 5, HostWaits: 1, Queues: []vkomp.QueueStats{queue(1, false, 1000, 0)}})
	var printed bytes.Buffer
	if err := totals.print(&printed, 12345*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	golden(t, "stress.golden", printed.Bytes())
	// The duration varies.
	for room := range printed.Len() - 10 {
		if err := totals.print(&little{room}, time.Second); !errors.Is(err, errFull) {
			t.Fatalf("a disk with room for %d bytes: error %v, want %v", room, err, errFull)
		}
	}
}

// little is a file on a disk with room for that many bytes.
type little struct{ room int }

func (l *little) Write(b []byte) (int, error) {
	n := min(len(b), l.room)
	if l.room -= n; n < len(b) {
		return n, errFull
	}
	return n, nil
}
