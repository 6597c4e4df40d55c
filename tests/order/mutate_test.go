package order

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tight returns a pipeline over two queues that is read back; it needs all its synchronization.
func tight() string {
	return flush +
		on("1", "", kernel, "1") + // reads what the host wrote
		on("2", " 1:1:10000", "c 2 1 0:32:16\nb 1000:4000:1000:2000:0\n", "1") +
		"wait b 2:1\ninvalidate 1 32 16\n" +
		on("1", " 2:1:10000", "f 2 0 16\nb 1000:800:1000:60:0\n"+kernel+"b 800:1000:40:800:0\nc 2 1 0:48:16\n", "2")
}

func mutate(t *testing.T, lines string, o MutateOptions) *Mutations {
	t.Helper()
	m, report, err := Mutate(strings.NewReader(setting(t, 3).String()+lines), o)
	if err != nil {
		for _, v := range report.Violations {
			t.Log(v)
		}
		t.Fatal(err)
	}
	return m
}

func (m *Mutations) count(what string) MutationCount {
	for _, c := range m.Counts {
		if c.What == what {
			return *c
		}
	}
	return MutationCount{}
}

func TestEveryMutationOfATightLogIsCaught(t *testing.T) {
	m := mutate(t, tight(), MutateOptions{Oracle: 1 << 20})
	for _, c := range m.Counts {
		if c.Examined != c.Total || c.Missed+c.Spurious > 0 {
			t.Errorf("%+v", c)
		}
	}
	for what, want := range map[string]MutationCount{
		"barrier removed":             {Total: 3, Caught: 3},
		"wait removed":                {Total: 2, Caught: 1}, // the host had waited for the second
		"signal removed":              {Total: 3, Caught: 2}, // nothing waits for the last
		"host wait removed":           {Total: 1, Caught: 1},
		"source stage narrowed":       {Total: 3, Caught: 3},
		"destination access narrowed": {Total: 4, Caught: 4},
	} {
		if c := m.count(what); c.Total != want.Total || c.Caught != want.Caught {
			t.Errorf("%s: %d of %d are caught, want %d of %d", what, c.Caught, c.Total, want.Caught, want.Total)
		}
	}
	if m.Synchronizations != 8 || m.Wasted != 1 || m.Overtaken != 1 {
		t.Errorf("%d of %d are wasted: %v", m.Wasted, m.Synchronizations, m.Unneeded)
	}
}

func TestWasteIsWhatLosesNoOrder(t *testing.T) {
	m := mutate(t, on("1", "", fill+everything+fillNext+everything+kernel, "1")+on("2", " 1:1:10000", "f 1 48 4\n", "1"), MutateOptions{Oracle: 1 << 20})
	// Each barrier is redundant to the other, the wait orders nothing, and nothing waits for
	// queue 2.
	if c := m.count("barrier removed"); c.Total != 2 || c.Kept != 2 {
		t.Errorf("%+v", c)
	}
	if c := m.count("wait removed"); c.Kept != 1 {
		t.Errorf("%+v", c)
	}
	if m.Synchronizations != 5 || m.Wasted != 4 || m.Waste() != 80 {
		t.Errorf("%d of %d: %v", m.Wasted, m.Synchronizations, m.Unneeded)
	}
}

func TestMutateWantsALogThatIsRight(t *testing.T) {
	_, report, err := Mutate(strings.NewReader(setting(t, 3).String()+on("1", "", fill+fill, "1")), MutateOptions{})
	if !errors.Is(err, ErrViolations) || report.Total != 1 {
		t.Errorf("%v", err)
	}
}

func TestClauseEdgesCountAsOrder(t *testing.T) {
	lines := on("1", "", dispatched(0, 0, 0)+everything+dispatched(1, 0, 0), "1")
	with := mutate(t, lines, MutateOptions{Oracle: 1 << 20, Options: Options{Clauses: strings.NewReader("task 0 0 out=1\ntask 1 0 in=1\n")}})
	if c := with.count("barrier removed"); c.Caught != 1 || c.Missed+c.Spurious > 0 {
		t.Errorf("%+v", c)
	}
	without := mutate(t, lines, MutateOptions{Oracle: 1 << 20})
	if c := without.count("barrier removed"); c.Caught != 0 || c.Missed+c.Spurious > 0 {
		t.Errorf("%+v", c)
	}
}

// What the host has seen is available to a submission, so a barrier from the stage HOST makes it visible,
// also where the submission itself does not.
func TestBarrierFromTheHostShowsWhatTheHostHasSeen(t *testing.T) {
	signalled := on("1", "", fill, "1") + "count 1 1\nsignal 4 1\n" + on("2", " 4:1:800", "b 4000:1000:4000:1000:0\n"+fill, "1")
	for _, c := range []struct {
		name, lines string
		shown       bool
	}{
		{"no barrier", on("1", "", fill, "1") + "count 1 1\n" + on("1", "", fill, "2"), false},
		{"a barrier from the host", on("1", "", fill, "1") + "count 1 1\n" + on("1", "", "b 4000:1000:4000:1000:0\n"+fill, "2"), true},
		{"a barrier to other accesses", on("1", "", fill, "1") + "count 1 1\n" + on("1", "", "b 4000:1000:4000:800:0\n"+fill, "2"), false},
		{"a barrier behind the host's signal", signalled, true},
	} {
		log := setting(t, 3).String() + c.lines
		tr, first := traceOf(t, log, Options{})
		if first >= 0 {
			t.Fatalf("%s: violations:\n%s", c.name, log)
		}
		tr.interval = 4
		tr.checkpointEvery()
		if shown := len(tr.replays[hearsEnd].missing) == 0; shown != c.shown {
			t.Errorf("%s: visible: %v", c.name, shown)
		}
		if shown := firstLoss(pointers(tr.events), hearsEnd) < 0; shown != c.shown {
			t.Errorf("%s: visible by the oracle: %v", c.name, shown)
		}
		// The host's signal passes it on where a submission passes on nothing.
		if shown := len(tr.replays[deaf].missing) == 0; shown != (c.lines == signalled) {
			t.Errorf("%s: visible where submissions pass on nothing: %v", c.name, shown)
		}
	}
}

// In random correct logs, the oracle and the engine agree on every mutation, even though the
// engine starts at checkpoints and may stop early.
func TestMutationsOfRandomLogsAreJudgedAsByTheOracle(t *testing.T) {
	begin := setting(t, 3).String()
	caught, kept, strict := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		foreign := rapid.Bool().Draw(t, "foreign")
		log := randomLog(t, begin, foreign)
		tr, first := traceOf(t, log, Options{Foreign: foreign})
		if first >= 0 {
			return
		}
		tr.interval = 4
		tr.checkpointEvery()
		reveals := firstLoss(pointers(tr.events), hearsEnd) < 0
		if found := len(tr.replays[hearsEnd].missing) == 0; found != reveals {
			t.Fatalf("where a submission makes nothing visible the engine finds all right: %v, the oracle: %v:\n%s", found, reveals, log)
		}
		for _, m := range tr.mutations() {
			events := tr.changed(m.change)
			want := loses(events)
			if got := tr.replay(hearsAll, m.change); got != want {
				t.Fatalf("%s, line %d, %s: caught %v, loses %v:\n%s", m.What, m.Line, m.Text, got, want, log)
			}
			if want {
				caught++
			} else {
				kept++
			}
			if reveals {
				want := firstLoss(events, hearsEnd) >= 0
				if got := tr.replay(hearsEnd, m.change); got != want {
					t.Fatalf("%s, line %d, %s: where a submission makes nothing visible, caught %v, loses %v:\n%s", m.What, m.Line, m.Text, got, want, log)
				}
				if want {
					strict++
				}
			}
		}
	})
	if caught == 0 || kept == 0 || strict == 0 {
		t.Errorf("%d caught, %d kept; %d of both kinds caught where a submission makes nothing visible", caught, kept, strict)
	}
	t.Logf("%d caught, %d kept, %d", caught, kept, strict)
}

// The host may already have seen the end of what a wait is for when it submits the wait. A
// scheduler cannot rely on that.
func TestWaitThatTheHostHasOvertakenIsNoWaste(t *testing.T) {
	end := on("2", " 1:1:10000", fill, "1") + "wait b 2:1\n"
	for _, c := range []struct {
		lines             string
		wasted, overtaken int
	}{
		{on("1", "", fill, "1") + end, 0, 0},
		{on("1", "", fill, "1") + "wait b 1:1\n" + end, 0, 1},
		{on("1", "", fillNext, "1") + "wait b 1:1\n" + end, 1, 0},
		{on("1", "", fill, "1") + "wait b 1:1\n" + on("2", " 1:1:10000", fill, "1") + on("2", " 1:1:10000", everything+fill, "2") + "wait b 2:2\n", 1, 1},
	} {
		m := mutate(t, c.lines, MutateOptions{Oracle: 1 << 20})
		if m.Wasted != c.wasted || m.Overtaken != c.overtaken {
			t.Errorf("%d wasted and %d overtaken, want %d and %d:\n%s%v", m.Wasted, m.Overtaken, c.wasted, c.overtaken, c.lines, m.Unneeded)
		}
	}
}

// A barrier to the host lets it access memory as soon as it sees the batch's signal. That it did
// so only after other signals is specific to this run.
func TestBarrierBehindWhichTheHostCouldHaveLookedSoonerIsNoWaste(t *testing.T) {
	behind := func(first, second string) string {
		return on("1", "", fill+first, "1") + on("2", " 1:1:10000", fillNext+second, "1") + "wait b 2:1\nwait m 1:1\n"
	}
	const readNext = "invalidate 1 16 16\n"
	for _, c := range []struct {
		name, lines       string
		wasted, overtaken int // of the barriers
	}{
		{"read behind a later one", behind(toHost, toHost) + read + readNext, 0, 1},
		{"written behind a later one", behind(toHost, toHost) + flush + readNext, 0, 1},
		{"nobody reads what the first is for", behind(toHost, toHost) + readNext, 1, 0},
		{"nobody reads what the second is for", behind(toHost, toHost) + read, 1, 1},
		{"nobody reads", behind(toHost, toHost) + "invalidate 1 48 16\n", 2, 0},
		{"twice", behind(toHost+toHost, toHost) + read + readNext, 2, 0},
		{"only the later one", behind("", toHost) + read + readNext, 0, 0},
		{"only the later one, and twice", behind("", toHost+toHost) + read + readNext, 2, 0},
		{"read before the later one", on("1", "", fill+toHost, "1") + "wait b 1:1\n" + read + on("2", " 1:1:10000", fillNext+toHost, "1") + "wait b 2:1\n" + readNext, 0, 0},
		{"a later one on the queue", on("1", "", fill+toHost, "1") + on("1", "", fillNext+toHost, "2") + "wait b 1:2\n" + read + readNext, 0, 1},
		{"a later one in the batch", on("1", "", fill+toHost+fillNext+toHost, "1") + "wait b 1:1\n" + read + readNext, 1, 0},
		{"of a part", behind("b 1800:4000:1040:2000:1:1:0:16\n", toHost) + read + readNext, 0, 1},
		{"of another part", behind("b 1800:4000:1040:2000:1:1:32:16\n", toHost) + read + readNext, 1, 0},
		{"lets it write alone", behind("b 1800:4000:1040:4000:0\n", toHost) + flush + readNext, 0, 1},
		{"lets it read alone, and it writes", behind("b 1800:4000:1040:2000:0\n", toHost) + flush + readNext, 1, 0},
		{"before it writes over what was read", on("1", "", kernel+toHost, "1") + "wait b 1:1\n" + flush, 1, 0},
		{"seen by a fence", "commands 1 0\n" + fill + toHost + "end\nsubmit 1 w c 1 s f 1\n" +
			"idle b 1\n" + read, 0, 0},
		{"seen by a fence after others", "commands 1 0\n" + fill + toHost + "end\nsubmit 1 w c 1 s f 1\n" +
			on("1", "", fillNext+toHost, "1") + "wait b 1:1\n" + read + readNext, 0, 1},
	} {
		m := mutate(t, c.lines, MutateOptions{Oracle: 1 << 20})
		wasted := 0
		for _, u := range m.Unneeded {
			if u.What == "barrier removed" {
				wasted++
			}
		}
		if b := m.count("barrier removed"); wasted != c.wasted || b.ByHost != c.overtaken || m.Revealing != 0 {
			t.Errorf("%s: %d barriers wasted and %d overtaken, want %d and %d", c.name, wasted, b.ByHost, c.wasted, c.overtaken)
		}
	}
}

// The host has seen the end, so there is no wait. A barrier makes the writes visible by the
// narrower reading of what a submission does.
func TestBarrierThatMakesVisibleWhatTheHostSawIsNoWaste(t *testing.T) {
	const copyApart = "c 1 2 0:32:16\n"
	first := on("1", "", fill, "1")
	for _, c := range []struct {
		name, lines       string
		wasted, revealing int
	}{
		{"same bytes", first + "wait b 1:1\n" + on("2", "", everything+fill, "1") + "wait b 2:1\n", 0, 1},
		{"other bytes", first + "wait b 1:1\n" + on("2", "", everything+fillNext, "1") + "wait b 2:1\n", 1, 0},
		{"twice", first + "wait b 1:1\n" + on("2", "", everything+everything+fill, "1") + "wait b 2:1\n", 2, 0},
		{"on two queues", first + "wait b 1:1\n" + on("2", "", everything+copyOut, "1") + on("3", "", everything+copyApart, "1") + "wait b 2:1 3:1\n", 0, 2},
		{"what the host wrote", flush + on("2", "", everything+kernel, "1") + "wait b 2:1\n", 1, 0},
		{"read only", on("1", "", kernel, "1") + "wait b 1:1\n" + on("2", "", everything+fill, "1") + "wait b 2:1\n", 1, 0},
	} {
		m := mutate(t, c.lines, MutateOptions{Oracle: 1 << 20})
		if m.Wasted != c.wasted || m.Revealing != c.revealing || m.Overtaken != 0 {
			t.Errorf("%s: %d wasted, %d revealing, %d overtaken, want %d, %d and none: %v", c.name, m.Wasted, m.Revealing, m.Overtaken, c.wasted, c.revealing, m.Unneeded)
		}
	}
	// The wait makes them visible as well.
	m := mutate(t, first+"wait b 1:1\n"+on("2", " 1:1:10000", everything+fill, "1")+"wait b 2:1\n", MutateOptions{})
	if m.Wasted != 1 || m.Overtaken != 1 || m.Revealing != 0 {
		t.Errorf("%d wasted, %d overtaken, %d revealing: %v", m.Wasted, m.Overtaken, m.Revealing, m.Unneeded)
	}
}

func TestOracleExaminesWhatIsAskedFor(t *testing.T) {
	long := ""
	for i := range 500 {
		long += on("1", "", everything+fill, fmt.Sprint(i+1))
	}
	for _, c := range []struct {
		name, lines string
		oracle      int
		want        func(examined, all int) bool
	}{
		{"none", tight(), 0, func(examined, _ int) bool { return examined == 0 }},
		{"some", tight(), 10, func(examined, _ int) bool { return 5 <= examined && examined <= 10 }},
		{"all", tight(), math.MaxInt, func(examined, all int) bool { return examined == all }},
		{"bounded, of a short log", tight(), OracleBounded, func(examined, all int) bool { return examined == all }},
		{"bounded, of a long log", long, OracleBounded, func(examined, _ int) bool { return examined == 0 }},
	} {
		m := mutate(t, c.lines, MutateOptions{Oracle: c.oracle})
		examined, all := 0, 0
		for _, n := range m.Counts {
			examined += n.Examined
			all += n.Total
		}
		if !c.want(examined, all) {
			t.Errorf("%s: %d of %d", c.name, examined, all)
		}
	}
}

// Accesses to coherent memory are not in the log, so the purpose of a barrier to the host is
// unknown.
func TestBarriersToTheHostAreNotJudgedWhereItsAccessesAreUntold(t *testing.T) {
	lines := on("1", "", fill+"b 1800:5800:1040:7860:0\n"+fillNext+toHost, "1") + "wait b 1:1\n"
	for _, c := range []struct {
		lines               string
		untold, all, wasted int
	}{
		{lines, 1, 2, 1},
		{flush + on("2", "", "", "1") + lines, 0, 4, 3}, // and a signal that nothing waits for
		{lines + read, 0, 3, 2},
		{lines + "invalidate 1 16 16\n", 0, 3, 1},
	} {
		m := mutate(t, c.lines, MutateOptions{})
		if m.Untold != c.untold || m.Synchronizations != c.all || m.Wasted != c.wasted {
			t.Errorf("%d untold, %d of %d wasted, want %d, %d of %d: %v", m.Untold, m.Wasted, m.Synchronizations, c.untold, c.wasted, c.all, m.Unneeded)
		}
	}
}
