package order

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// saxpy returns a kernel that reads binding 0, and reads and writes binding 1.
func saxpy(t testing.TB) string {
	t.Helper()
	code, err := os.ReadFile("../../vk/spirv/testdata/saxpy.spv")
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(code)
}

// writer writes lines of a log.
type writer struct {
	strings.Builder
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.Builder, format+"\n", args...) }

// setting returns the beginning of a log: a device with queues, two memories with a buffer of 64
// bytes each, a kernel, a timeline for each queue and one for the host, and a binary semaphore.
func setting(t testing.TB, queues int) *writer {
	w := &writer{}
	w.line(header)
	w.line("thread 1")
	w.line("device 0 test")
	for q := range queues {
		w.line("queue %d 0 %d 0 7", q+1, q%2)
	}
	for b := 1; b <= 2; b++ {
		w.line("buffer %d 0 64 concurrent", b)
		w.line("memory %d 0 64 7 0", b)
		w.line("bind %d %d 0", b, b)
	}
	w.line("module 1 0 %s", saxpy(t))
	w.line("pipeline 1 0 1 main")
	for q := range queues + 1 {
		w.line("semaphore %d 0 timeline 0", q+1)
	}
	w.line("semaphore %d 0 binary 0", queues+2)
	w.line("fence 1 0 0")
	return w
}

var randomMasks = [...][4]uint64{
	{0x1800, 0x1800, 0x1040, 0x1860}, {0x1800, 0x1800, 0x1040, 0x1860}, {0x1800, 0x1800, 0x1040, 0x1860},
	{0x1800, 0x4000, 0x1040, 0x6000}, {0x1800, 0x4000, 0x1040, 0x2000},
	{0x800, 0x1000, 0x40, 0x1800}, {0x1000, 0x800, 0x1000, 0x60}, {0x10000, 0x10000, 0x10000, 0x18000},
	{0x1800, 0x1800, 0, 0}, {0x800, 0x800, 0x40, 0x20}, {0x1_0000_0000, 0x8_0000_0000, 0x1000, 0x1000},
	{0x2000, 0x1, 0, 0}, {0x4000, 0x1800, 0x4000, 0x1860}, {0x1, 0x2000, 0, 0}, {0x2, 0x2, 0, 1},
	{0x800, 0x5800, 0x40, 0x2860},
}

// randomLog draws a log that often has no violation. With foreign it often has batches that wait for what is
// submitted later.
func randomLog(t *rapid.T, begin string, foreign bool) string {
	w := &writer{}
	w.WriteString(begin)
	const queues = 3
	signalled := make([]uint64, queues+2)
	awaited := uint64(0) // the largest value of the shared timeline that a batch waits for
	buffers := 0         // command buffers
	barrier := func() {
		fmt.Fprintf(w, "b")
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "dependencies") {
			m := rapid.SampledFrom(randomMasks[:]).Draw(t, "masks")
			fmt.Fprintf(w, " %x:%x:%x:%x", m[0], m[1], m[2], m[3])
			if rapid.IntRange(0, 4).Draw(t, "part") == 0 {
				lo := rapid.IntRange(0, 3).Draw(t, "lo")
				fmt.Fprintf(w, ":1:1:%d:%d", lo*16, rapid.IntRange(1, 4-lo).Draw(t, "parts")*16)
			} else {
				fmt.Fprintf(w, ":0")
			}
		}
		w.line("")
	}
	slot := func(name string) (buffer, offset, size int) {
		buffer = rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, name+" buffer")
		lo := rapid.IntRange(0, 3).Draw(t, name+" lo")
		return buffer, lo * 16, 16 * rapid.IntRange(1, min(2, 4-lo)).Draw(t, name+" size")
	}
	steps := []string{"submit", "submit", "submit", "submit", "wait", "wait", "count", "flush", "invalidate", "signal", "idle", "fence", "free"}
	waits := []int{0, 1, 2}
	if foreign {
		waits = []int{1, 1, 0, 2}
	}
	for range rapid.IntRange(1, 9).Draw(t, "steps") {
		step := rapid.SampledFrom(steps).Draw(t, "step")
		if awaited > signalled[queues] && rapid.Bool().Draw(t, "release") {
			step = "signal"
		}
		switch step {
		case "submit":
			q := rapid.IntRange(0, queues-1).Draw(t, "queue")
			buffers++
			buffer := buffers
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				buffer = rapid.IntRange(1, buffers).Draw(t, "buffer")
			}
			w.line("commands %d 0", buffer)
			if rapid.Bool().Draw(t, "begins with a barrier") {
				barrier()
			}
			for range rapid.IntRange(0, 3).Draw(t, "commands") {
				b, lo, size := slot("dst")
				switch rapid.IntRange(0, 4).Draw(t, "command") {
				case 0:
					w.line("f %d %d %d", b, lo, size)
				case 1:
					w.line("p 1")
					w.line("r 0 0:%d:%d:%d 1:%d:%d:%d", 3-b, lo, size, b, lo, size)
					w.line("d 0 0 0 1 1 1")
				case 2:
					w.line("c %d %d %d:%d:%d", 3-b, b, lo, lo, size)
				case 3:
					w.line("p 1")
					w.line("r 0 0:2:0:16 1:%d:%d:%d", 1, lo, size)
					w.line("i 2 0")
				case 4:
				}
				if rapid.IntRange(0, 2).Draw(t, "barrier") > 0 {
					barrier()
				}
			}
			w.line("end")
			fmt.Fprintf(w, "submit %d w", q+1)
			for range rapid.SampledFrom(waits).Draw(t, "waits") {
				s := rapid.IntRange(0, queues).Draw(t, "semaphore")
				if foreign && rapid.Bool().Draw(t, "later") {
					s = rapid.SampledFrom([]int{s, queues, queues}).Draw(t, "later semaphore")
					fmt.Fprintf(w, " %d:%d:%x", s+1, signalled[s]+1, rapid.SampledFrom([]uint64{0x10000, 0x800}).Draw(t, "stages"))
					if s == queues {
						awaited = signalled[s] + 1
					}
					continue
				}
				if signalled[s] == 0 && rapid.IntRange(0, 9).Draw(t, "early") > 0 {
					continue
				}
				v := max(1, rapid.Uint64Range(max(signalled[s], 2)-1, max(signalled[s], 1)).Draw(t, "value"))
				fmt.Fprintf(w, " %d:%d:%x", s+1, v, rapid.SampledFrom([]uint64{0x10000, 0x10000, 0x800, 0x1000, 1, 0x2}).Draw(t, "stages"))
			}
			bin := uint64(0)
			if signalled[queues+1] == 1 && rapid.Bool().Draw(t, "binary wait") {
				fmt.Fprintf(w, " %d:0:10000", queues+2)
				signalled[queues+1] = 0
			} else if signalled[queues+1] == 0 {
				bin = rapid.Uint64Range(0, 1).Draw(t, "binary signal")
			}
			signalled[q] += rapid.Uint64Range(1, 2).Draw(t, "by")
			fmt.Fprintf(w, " c %d s %d:%d:%x", buffer, q+1, signalled[q], rapid.SampledFrom([]uint64{0x10000, 0x10000, 0x10000, 0x800, 0x1000}).Draw(t, "signal stages"))
			if rapid.IntRange(0, 4).Draw(t, "shared") == 0 {
				signalled[queues]++
				fmt.Fprintf(w, " %d:%d:%x", queues+1, signalled[queues], rapid.SampledFrom([]uint64{0x10000, 0x10000, 0x800}).Draw(t, "shared stages"))
			}
			if bin == 1 {
				fmt.Fprintf(w, " %d:0:10000", queues+2)
				signalled[queues+1] = 1
			}
			if rapid.IntRange(0, 3).Draw(t, "fence") == 0 {
				fmt.Fprintf(w, " f 1")
			}
			w.line("")
		case "wait", "count":
			s := rapid.IntRange(0, queues).Draw(t, "semaphore")
			if v := signalled[s]; v > 0 {
				w.line("count %d %d", s+1, max(1, rapid.Uint64Range(max(v, 2)-1, v).Draw(t, "value")))
			}
		case "flush":
			b, lo, size := slot("host")
			w.line("flush %d %d %d", b, lo, size)
		case "invalidate":
			b, lo, size := slot("host")
			w.line("invalidate %d %d %d", b, lo, size)
		case "signal":
			signalled[queues]++
			w.line("signal %d %d", queues+1, signalled[queues])
		case "idle":
			w.line("idle b %d", rapid.IntRange(1, queues).Draw(t, "queue"))
		case "fence":
			if strings.Contains(w.String(), " f 1\n") {
				w.line("fences b 1")
			}
		case "free":
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				w.line("destroy %s", rapid.SampledFrom([]string{"memory 2", "memory 2", "semaphore 1", "semaphore 2", "semaphore 4", "semaphore 5", "fence 1"}).Draw(t, "object"))
				return w.String()
			}
		}
	}
	if awaited > signalled[queues] {
		w.line("signal %d %d", queues+1, awaited)
	}
	return w.String()
}

// traceOf reads a log and returns the event at which the checker finds the first violation, -1 if
// none.
func traceOf(t interface{ Fatalf(string, ...any) }, log string, o Options) (*trace, int) {
	first := -1
	tr := &trace{}
	c := newChecker(o)
	c.trace = func(ev *event) { tr.events = append(tr.events, *ev) }
	c.engine.found = func(p problem, _ *event, _ *need) {
		if first < 0 && p != hang {
			first = len(tr.events) - 1
		}
	}
	if err := c.run(strings.NewReader(log)); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return tr, first
}

func pointers(events []event) []*event {
	out := make([]*event, len(events))
	for i := range events {
		out[i] = &events[i]
	}
	return out
}

func TestCheckerAgreesWithTheOracle(t *testing.T) {
	begin := setting(t, 3).String()
	for name, foreign := range map[string]bool{"runtime alone": false, "foreign work": true} {
		t.Run(name, func(t *testing.T) {
			wrong, right, held := 0, 0, 0
			rapid.Check(t, func(t *rapid.T) {
				log := randomLog(t, begin, foreign)
				tr, first := traceOf(t, log, Options{Foreign: foreign})
				want := firstLoss(pointers(tr.events), hearsAll)
				if first != want {
					t.Fatalf("the checker finds event %d wrong, the oracle %d:\n%s%s", first, want, log, describe(tr, first, want))
				}
				switch {
				case want >= 0:
					wrong++
				case tr.holds():
					held++
				default:
					right++
				}
			})
			if wrong == 0 || right == 0 || foreign != (held > 0) {
				t.Errorf("%d logs were wrong, %d right, and %d right with a batch that was held back: the random logs are of no use", wrong, right, held)
			}
			t.Logf("%d wrong, %d right, %d with a batch that was held back", wrong, right, held)
		})
	}
}

// holds reports whether a batch began after what follows its submission.
func (t *trace) holds() bool {
	for i := range t.events {
		if t.events[i].kind == evBegin && (t.events[i-1].kind != evSubmit || t.events[i-1].command != t.events[i].command) {
			return true
		}
	}
	return false
}

func describe(tr *trace, at ...int) string {
	var b strings.Builder
	for _, i := range at {
		if i >= 0 {
			fmt.Fprintf(&b, "event %d, line %d: %v\n", i, tr.events[i].line, tr.events[i].command)
		}
	}
	return b.String()
}
