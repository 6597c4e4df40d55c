package order

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readRun reads lines that follow the setting of three queues, and returns the calls in them.
func readRun(t *testing.T, lines string) []Call {
	t.Helper()
	begin := setting(t, 3).String()
	run, err := Read(strings.NewReader(begin + lines))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range run.Calls {
		if c.Line > strings.Count(begin, "\n") {
			return run.Calls[i:]
		}
	}
	return nil
}

func TestRunHasWhatTakesTime(t *testing.T) {
	calls := readRun(t, on("1", "", fill+everything+"p 1\nr 0 0:1:0:16 1:2:0:18446744073709551615\nd 0 0 0 3 5 2\n? x\n", "1")+
		"thread 2\n"+on("2", " 1:1:10000 5:0:10000", "c 1 2 0:0:16 16:16:8\n", "1")+
		"wait b 1:1\ncount 2 1\nfences m 1\nidle n 2\nsignal 4 3\nflush 1 8 16\ninvalidate 2 0 18446744073709551615\n")
	var kinds []CallKind
	for _, c := range calls {
		kinds = append(kinds, c.Kind)
	}
	want := []CallKind{CallRecord, CallSubmit, CallRecord, CallSubmit, CallSee, CallSee, CallSee, CallSee, CallSignal, CallFlush, CallInvalidate}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Fatalf("calls (-want +got):\n%s", diff)
	}
	if c := calls[0]; c.Commands != (CommandCount{Barriers: 1, Others: 2}) || c.Thread != 1 {
		t.Errorf("recorded: %+v", c)
	}
	b := calls[1].Batches[0]
	wantCommands := []Operation{
		{Kind: OperationFill, Groups: 1, Regions: []Region{{Bytes: 16, Properties: 7, Write: true}}},
		{Kind: OperationBarrier, Groups: 1, Dependencies: []Dependency{{0x1800, 0x1800, 0x1040, 0x1860}}},
		{Kind: OperationDispatch, Groups: 30, Regions: []Region{{Bytes: 16, Properties: 7, Read: true}, {Bytes: 64, Properties: 7, Read: true, Write: true}}},
	}
	if diff := cmp.Diff(wantCommands, b.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if b.Queue.Family != 0 || b.Queue.Flags != 7 || len(b.Signals) != 1 || b.Signals[0] != (SemaphorePoint{1, 1, false}) {
		t.Errorf("batch: %+v", b)
	}
	second := calls[3]
	if w := second.Batches[0].Waits; len(w) != 2 || w[0] != (SemaphorePoint{1, 1, false}) || w[1] != (SemaphorePoint{5, 0, true}) || second.Thread != 2 {
		t.Errorf("waits of thread %d: %+v", second.Thread, w)
	}
	if n := len(second.Batches[0].Commands[0].Regions); n != 4 {
		t.Errorf("a copy of two regions has %d", n)
	}
	for i, polled := range []bool{false, true, false, true} {
		if calls[4+i].Polled != polled {
			t.Errorf("call %d polled: %v", 4+i, calls[4+i])
		}
	}
	if len(calls[6].Fences) != 1 || len(calls[7].Idle) != 1 || calls[7].Idle[0].Index != 0 {
		t.Errorf("fences and queues: %+v", calls[6:8])
	}
	if calls[9].Bytes != 16 || calls[10].Bytes != 64 || calls[10].Properties != 7 {
		t.Errorf("accesses of the host: %+v", calls[9:])
	}
}

func TestSubmissionsThatFailAreNotInTheRun(t *testing.T) {
	calls := readRun(t, "commands 1 0\n"+fill+"end\nsubmit 1 w c 1 s 1:1:10000\nfailed\n")
	if len(calls) != 1 || calls[0].Kind != CallRecord {
		t.Errorf("%+v", calls)
	}
}

func TestSubmissionMayHaveAFenceAlone(t *testing.T) {
	calls := readRun(t, "submit 1 f 1\nfences b 1\n")
	if len(calls) != 2 || len(calls[0].Batches) != 1 || calls[0].Batches[0].Fence != 1 || calls[0].Batches[0].Queue == nil {
		t.Errorf("%+v", calls)
	}
}

// A run that ends in the middle is none to judge costs by.
func TestReadRefusesALogThatIsCutOff(t *testing.T) {
	begin := setting(t, 1).String()
	for name, lines := range map[string]string{
		"in a line":           on("1", "", fill, "1") + "wait b 1",
		"in a command buffer": "commands 1 0\n" + fill,
		"no log":              "\x00",
	} {
		run, err := Read(strings.NewReader(begin + lines))
		if !errors.Is(err, ErrLog) || run == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(strings.NewReader("")); !errors.Is(err, ErrLog) {
		t.Errorf("empty: %v", err)
	}
}

func TestKernelsThatOnlyCopyAreKnown(t *testing.T) {
	for name, want := range map[string]bool{
		"../../sched/transfer/copy.spv":      true,
		"../../vk/spirv/testdata/saxpy.spv":  false,
		"../../vk/testdata/add.spv":          false,
		"../../tests/testdata/affine.spv":    false,
		"../../tests/testdata/addresses.spv": false,
		"../../shaders/blur_rows.spv":        false,
	} {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := onlyCopies(code); got != want {
			t.Errorf("%s only copies: %v", name, got)
		}
	}
}
