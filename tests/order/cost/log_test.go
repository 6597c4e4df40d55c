package cost

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vkomp/vkomp/tests/order"
)

// saxpy is a kernel that reads binding 0, and reads and writes binding 1. copies copies binding 0 to
// binding 1.
var saxpy, copies = module("vk/spirv/testdata/saxpy.spv"), module("sched/transfer/copy.spv")

func module(name string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		code, err := os.ReadFile("../../../" + name)
		return hex.EncodeToString(code), err
	})
}

// log writes a log of a device with the families of an H100.
type log struct {
	strings.Builder
	t        testing.TB
	buffers  map[string]int
	queues   map[[2]int]int
	commands int
	values   map[int]uint64 // by queue: each signals a timeline of its number
}

// Kinds of memory, as VkMemoryPropertyFlags.
const (
	onDevice = 1
	onHost   = 14
	bar      = 7
)

// Barriers, as lines of a log.
const (
	byExecution = "b 800:800:0:0:0"
	byCompute   = "b 800:800:40:60:0"
	byBoth      = "b 1800:1800:1040:1860:0"
	byHost      = "b 800:4800:40:2060:0"
	byAll       = "b 10000:10000:10000:18000:0"
)

func newLog(t testing.TB) *log {
	t.Helper()
	code, err := saxpy()
	if err != nil {
		t.Fatal(err)
	}
	copying, err := copies()
	if err != nil {
		t.Fatal(err)
	}
	l := &log{t: t, buffers: map[string]int{}, queues: map[[2]int]int{}, values: map[int]uint64{}}
	l.line("vkomp-order 1\nthread 1\ndevice 0 test\nmodule 1 0 %s\npipeline 1 0 1 main\nmodule 2 0 %s\npipeline 2 0 2 main", code, copying)
	return l
}

func (l *log) line(format string, args ...any) { fmt.Fprintf(&l.Builder, format+"\n", args...) }

// buffer returns a buffer of a size in memory of a kind.
func (l *log) buffer(name string, bytes, properties int) int {
	b, ok := l.buffers[name]
	if !ok {
		b = len(l.buffers) + 1
		l.buffers[name] = b
		l.line("buffer %d 0 %d concurrent\nmemory %d 0 %d %x 0\nbind %d %d 0", b, bytes, b, bytes, properties, b, b)
	}
	return b
}

// queue returns a queue, with a timeline of its number.
func (l *log) queue(family, index int) int {
	q, ok := l.queues[[2]int{family, index}]
	if !ok {
		q = len(l.queues) + 1
		l.queues[[2]int{family, index}] = q
		l.line("queue %d 0 %d %d %x\nsemaphore %d 0 timeline 0\nfence %d 0 0", q, family, index, H100.Families[family].Flags, q, q)
	}
	return q
}

// kernel is a dispatch of one workgroup that uses 64 bytes of its own.
func (l *log) kernel(i int) string {
	const most = 1 << 20
	b := l.buffer("kernels", most*128, onDevice)
	at := i % most * 128
	return fmt.Sprintf("p 1\nr 0 0:%d:%d:64 1:%d:%d:64\nd 0 0 0 1 1 1", b, at+64, b, at)
}

// record writes a command buffer and returns its number.
func (l *log) record(commands ...string) int {
	l.commands++
	l.line("commands %d 0", l.commands)
	for _, c := range commands {
		l.line("%s", c)
	}
	l.line("end")
	return l.commands
}

// submit submits a command buffer, which waits for points ("queue:value:10000") and signals the
// next value of its queue. It returns that point.
func (l *log) submit(q, commands int, waits ...string) string {
	l.values[q]++
	all := ""
	for _, w := range waits {
		all += " " + w
	}
	point := fmt.Sprintf("%d:%d:10000", q, l.values[q])
	l.line("submit %d w%s c %d s %s f %d", q, all, commands, point, q)
	return point
}

// wait waits for the last submission of a queue: "wait b", "count", "fences b" or "fences n".
func (l *log) wait(how string, q int) {
	switch how {
	case "wait b":
		l.line("wait b %d:%d", q, l.values[q])
	case "count":
		l.line("count %d %d", q, l.values[q])
	default:
		l.line("%s %d", how, q)
	}
}

// of returns the cost of the log.
func (l *log) of(o Options) *Report {
	l.t.Helper()
	run, err := order.Read(strings.NewReader(l.String()))
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := Of(run, o)
	if err != nil {
		l.t.Fatal(err)
	}
	sum := time.Duration(0)
	for _, p := range r.Parts {
		sum += p.Critical
	}
	if diff := sum - r.Makespan; diff < -1000 || diff > 1000 {
		l.t.Errorf("the critical path is %v long, the makespan %v", sum, r.Makespan)
	}
	return r
}
