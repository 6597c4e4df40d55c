package cost

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp/tests/order"
)

// groups is a dispatch of so many workgroups.
func (l *log) groups(i, n int) string {
	return strings.TrimSuffix(l.kernel(i), "1 1 1") + fmt.Sprintf("%d 1 1", n)
}

// toDevice and toHost are copies of a MiB between buffers of their own.
func (l *log) toDevice(i int) string {
	return fmt.Sprintf("c %d %d 0:0:%d", l.buffer(fmt.Sprint("h", i), mib, onHost), l.buffer(fmt.Sprint("d", i), mib, onDevice), mib)
}

func (l *log) toHost(i int) string {
	return fmt.Sprintf("c %d %d 0:0:%d", l.buffer(fmt.Sprint("d", i), mib, onDevice), l.buffer(fmt.Sprint("h", i), mib, onHost), mib)
}

// slot is what a workgroup takes, and bus a MiB on the bus.
const slot = 1000 * microseconds

var bus = time.Duration(H100.Bus.nanoseconds(mib))

// What is independent overlaps as far as the device has room for it.
func TestWhatOverlaps(t *testing.T) {
	room := H100.Workgroups
	for _, c := range []struct {
		name string
		run  func(l *log)
		want time.Duration // of what is executed; submissions come on top
	}{
		{"a kernel", func(l *log) { l.submit(l.queue(2, 0), l.record(l.kernel(0))) }, slot},
		{"a kernel that fills the device", func(l *log) { l.submit(l.queue(2, 0), l.record(l.groups(0, room))) }, slot},
		{"a kernel of twice as many workgroups", func(l *log) { l.submit(l.queue(2, 0), l.record(l.groups(0, 2*room))) }, 2 * slot},
		{"a kernel without workgroups", func(l *log) { l.submit(l.queue(2, 0), l.record(l.groups(0, 0))) }, 0},
		{"two kernels in a batch", func(l *log) { l.submit(l.queue(2, 0), l.record(l.kernel(0), l.kernel(1))) }, slot},
		{"two kernels with a barrier", func(l *log) { l.submit(l.queue(2, 0), l.record(l.kernel(0), byCompute, l.kernel(0))) }, 2 * slot},
		{"two kernels that fill the device", func(l *log) { l.submit(l.queue(2, 0), l.record(l.groups(0, room), l.groups(1, room))) }, 2 * slot},
		{"two submissions to a queue", func(l *log) {
			l.submit(l.queue(2, 0), l.record(l.kernel(0)))
			l.submit(l.queue(2, 0), l.record(l.kernel(1)))
		}, 2 * slot},
		{"two queues of family 2", func(l *log) {
			l.submit(l.queue(2, 0), l.record(l.kernel(0)))
			l.submit(l.queue(2, 1), l.record(l.kernel(1)))
		}, slot},
		{"two queues of family 2 with kernels that fill the device", func(l *log) {
			l.submit(l.queue(2, 0), l.record(l.groups(0, room)))
			l.submit(l.queue(2, 1), l.record(l.groups(1, room)))
		}, 2 * slot},
		{"two queues of family 0 take turns", func(l *log) {
			l.submit(l.queue(0, 0), l.record(l.kernel(0)))
			l.submit(l.queue(0, 1), l.record(l.kernel(1)))
		}, 2*slot + 181*microseconds},
		{"queues of families 0 and 2", func(l *log) {
			l.submit(l.queue(0, 0), l.record(l.kernel(0)))
			l.submit(l.queue(2, 0), l.record(l.kernel(1)))
		}, slot},
		{"a copy beside a kernel", func(l *log) {
			l.submit(l.queue(2, 0), l.record(l.kernel(0)))
			l.submit(l.queue(1, 0), l.record(l.toDevice(0)))
		}, slot},
		{"two copies to the device share the bus", func(l *log) {
			l.submit(l.queue(1, 0), l.record(l.toDevice(0)))
			l.submit(l.queue(1, 1), l.record(l.toDevice(1)))
		}, 2 * bus},
		{"copies both ways do not", func(l *log) {
			l.submit(l.queue(1, 0), l.record(l.toDevice(0)))
			l.submit(l.queue(1, 1), l.record(l.toHost(1)))
		}, bus},
		{"copies of one batch come one after the other", func(l *log) {
			l.submit(l.queue(1, 0), l.record(l.toDevice(0), l.toHost(1)))
		}, 2 * bus},
		{"two fills share the memory", func(l *log) {
			for q := range 2 {
				b := l.buffer(fmt.Sprint(q), 256*mib, onDevice)
				l.submit(l.queue(2, q), l.record(fmt.Sprintf("f %d 0 %d", b, 256*mib)))
			}
		}, time.Duration(H100.Memory.nanoseconds(512 * mib))},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog(t)
			c.run(l)
			got := l.of(Options{Workgroup: slot}).Makespan
			// Submissions, recording and the beginning.
			if got < c.want || got > c.want+25*microseconds {
				t.Errorf("%v, want %v and what submissions cost", got, c.want)
			}
		})
	}
}

// What the host does comes after what it has seen before, by whichever thread.
func TestHostGoesOnWhenItKnows(t *testing.T) {
	const submissions = 10
	round := func(l *log, between string) {
		q := l.queue(2, 0)
		for range submissions {
			l.submit(q, l.record(l.kernel(0), byCompute))
			switch between {
			case "":
			case "another thread":
				l.line("thread 2")
				l.wait("wait b", q)
				l.line("thread 1")
			default:
				l.wait(between, q)
			}
		}
	}
	makespan := func(between string) float64 {
		l := newLog(t)
		round(l, between)
		return float64(l.of(Options{}).Makespan) / submissions / 1e3
	}
	recorded := float64(H100.RecordCommand+H100.RecordBarrier+H100.Barriers.Memory) / 1e3
	for between, want := range map[string]float64{
		"wait b":         33.69 + recorded,
		"another thread": 33.69 + recorded,
		"count":          13.39 + recorded,
		"fences n":       13.39 + recorded,
		"":               3.6 + recorded, // the host submits without a wait
	} {
		if got := makespan(between); math.Abs(got-want) > 2 {
			t.Errorf("%s: %.1f µs a submission, want %.1f", between, got, want)
		}
	}
	// A thread that knows passes it on before another one that is told later.
	l := newLog(t)
	q := l.queue(2, 0)
	for range submissions {
		l.submit(q, l.record(l.kernel(0), byCompute))
		l.line("thread 2")
		l.wait("wait b", q)
		l.line("thread 1")
		l.wait("count", q)
	}
	if got := float64(l.of(Options{}).Makespan) / submissions / 1e3; math.Abs(got-13.39-recorded) > 3 {
		t.Errorf("with a thread that polls and one that waits: %.1f µs a submission", got)
	}
}

// A goroutine may go on on another thread: calls begin in the order of the log.
func TestCallsBeginInTheirOrder(t *testing.T) {
	l := newLog(t)
	b := l.buffer("a", 64*mib, bar)
	l.line("flush %d 0 %d", b, 64*mib)
	l.line("thread 2\nflush %d 0 4\nflush %d 0 4", b, b)
	l.line("thread 3\nflush %d 0 %d", b, 64*mib)
	r := l.of(Options{})
	once := 64 * mib / 9.5
	if got := float64(r.Makespan); got < once || got > 1.01*once {
		t.Errorf("threads side by side: %v, want %.0f ns", r.Makespan, once)
	}
	if p := r.Part("host writes memory of the device"); p.Count != 4 || p.Bytes != 128*mib+8 || p.Total < 2*time.Duration(once) {
		t.Errorf("%+v", p)
	}
}

func TestSemaphoresOfAllKinds(t *testing.T) {
	l := newLog(t)
	q, other := l.queue(2, 0), l.queue(2, 1)
	l.line("semaphore 7 0 binary 0\nsemaphore 8 0 timeline 5")
	c := l.record(l.kernel(0))
	for range 2 {
		l.line("submit %d w c %d s 7:0:10000", q, c)
		l.line("submit %d w 7:0:10000 8:5:10000 c %d s", other, l.record(l.kernel(1)))
	}
	l.line("submit %d w 8:6:10000 c s\nsignal 8 6", q)
	l.line("submit %d w %d:0:10000 c s\nidle b %d\nidle n %d", q, q, q, other)
	r := l.of(Options{})
	if p := r.Part("wait, family 2 to 2"); p.Count != 2 {
		t.Errorf("waits: %+v", p)
	}
	if len(r.Queues) != 2 || r.Queues[0].Submissions != 4 {
		t.Errorf("queues: %+v", r.Queues)
	}
}

func TestRunsThatCannotBeSimulated(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"wait without a signal":        {"submit 1 w 1:9:10000 c s", "submission 1 waits for what is not signalled"},
		"host's wait without a signal": {"wait b 1:9", "thread 1 waits for what does not happen"},
		"fence of no submission":       {"fences b 1", "thread 1 waits for what does not happen"},
		"family of no profile":         {"queue 9 0 5 0 2\nsubmit 9 w c s", "no queue family like device 0 queue 5.0's, with flags 2"},
	} {
		l := newLog(t)
		l.queue(2, 0)
		l.line("%s", c.lines)
		run, err := order.Read(strings.NewReader(l.String()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Of(run, Options{}); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimesThatNoDurationCanHoldAreRefused(t *testing.T) {
	// In the second run the kernels are side by side, so that only what they take together is too long.
	for name, groups := range map[string][]int{"the makespan": {math.MaxInt}, "a part": {1, 1, 1, 1}} {
		l := newLog(t)
		var kernels []string
		for i, n := range groups {
			kernels = append(kernels, l.groups(i, n))
		}
		l.submit(l.queue(2, 0), l.record(kernels...))
		run, err := order.Read(strings.NewReader(l.String()))
		if err != nil {
			t.Fatal(err)
		}
		const want = "s, of at most 9.22e+09"
		if _, err := Of(run, Options{Workgroup: math.MaxInt64 / 3}); !errors.Is(err, ErrRun) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
}

func TestFamiliesOfALogAreThoseThatCanDoTheSame(t *testing.T) {
	for _, c := range []struct {
		index int
		flags uint64
		want  int
	}{{0, 7, 0}, {1, 4, 1}, {2, 6, 2}, {3, 4, 3}, {1, 6, 2}, {2, 4, 1}, {9, 15, 0}, {0, 0x1e, 2}} {
		if got, ok := H100.family(c.index, c.flags); !ok || got != c.want {
			t.Errorf("family %d with flags %x: %d, want %d", c.index, c.flags, got, c.want)
		}
	}
}

func TestBarriersCostWhatTheirMasksCost(t *testing.T) {
	mask := func(src, dst, srcAccess, dstAccess uint64) order.Dependency {
		return order.Dependency{SrcStages: src, DstStages: dst, SrcAccess: srcAccess, DstAccess: dstAccess}
	}
	toHost := mask(0x800, 0x4000, 0x40, 0x2000)
	for _, c := range []struct {
		name string
		of   []order.Dependency
		want time.Duration
	}{
		{"none", nil, H100.Barriers.Execution},
		{"execution", []order.Dependency{mask(0x800, 0x1000, 0, 0)}, H100.Barriers.Execution},
		{"accesses", []order.Dependency{mask(0x1800, 0x1800, 0x1040, 0x1860)}, H100.Barriers.Memory},
		{"the host", []order.Dependency{toHost}, H100.Barriers.Host},
		{"the host and accesses", []order.Dependency{toHost, mask(0x800, 0x800, 0x40, 0x20)}, H100.Barriers.Host},
		{"all commands", []order.Dependency{toHost, mask(0x10000, 0x800, 0x40, 0x20)}, H100.Barriers.All},
		{"all accesses", []order.Dependency{mask(0x800, 0x800, 0x40, 0x8000)}, H100.Barriers.All},
	} {
		if _, got := H100.Barriers.of(c.of); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUnknownProfileIsNamed(t *testing.T) {
	if p, err := Named("H100"); p != H100 || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := Named("x"); err == nil || err.Error() != `there is no profile "x": the profiles are h100` {
		t.Error(err)
	}
}

// Each run is simulated to its end, or refused.
func FuzzOf(f *testing.F) {
	l := newLog(f)
	for family := range H100.Families {
		l.queue(family, 0)
	}
	a, h := l.buffer("a", 4096, onDevice), l.buffer("h", 4096, onHost)
	l.kernel(0)
	begin := l.String()
	f.Add(fmt.Sprintf("commands 1 0\nf %d 0 16\n%s\nc %d %d 0:0:64\nend\nsubmit 1 w c 1 s 1:1:10000 f 1\nsubmit 2 w 1:1:10000 c 1 s 2:1:1\nwait b 1:1\ncount 2 1\nfences n 1\nidle b 1\n", a, byBoth, a, h))
	f.Add("submit 1 w 1:1:10000 c s 1:2:10000 | w c s 2:1:1\nthread 2\nwait b 1:2\nsignal 1 1\nflush 1 0 16\ninvalidate 2 0 64\n")
	f.Fuzz(func(t *testing.T, lines string) {
		run, err := order.Read(strings.NewReader(begin + lines))
		if err != nil {
			return
		}
		r, err := Of(run, Options{Workgroup: time.Millisecond})
		if err != nil {
			if !errors.Is(err, ErrRun) {
				t.Error(err)
			}
			return
		}
		sum := time.Duration(0)
		for _, p := range r.Parts {
			sum += p.Critical
		}
		if diff := sum - r.Makespan; diff < -1000 || diff > 1000 {
			t.Errorf("the critical path is %v long, the makespan %v", sum, r.Makespan)
		}
	})
}
