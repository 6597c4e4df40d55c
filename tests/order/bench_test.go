package order

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// streamLog returns a log of seven queues whose tasks read what their neighbours wrote in the
// previous step, in submissions of four.
func streamLog(t testing.TB, dispatches int) string {
	const queues, points = 7, 56
	w := &writer{}
	w.line(header)
	w.line("thread 1")
	w.line("device 0 test")
	for q := range queues {
		w.line("queue %d 0 %d 0 7", q+1, q)
		w.line("semaphore %d 0 timeline 0", q+1)
	}
	w.line("buffer 1 0 %d concurrent", 2*points*64)
	w.line("memory 1 0 %d 7 0", 2*points*64)
	w.line("bind 1 1 0")
	w.line("module 1 0 %s", saxpy(t))
	w.line("pipeline 1 0 1 main")
	value := make([]uint64, queues)
	for step := 0; dispatches > 0; step++ {
		before := append([]uint64(nil), value...)
		for batch := range points / 4 {
			q := batch % queues
			buffer := step%8*(points/4) + batch + 1 // the host has seen the end of what it had eight steps ago
			w.line("commands %d 0", buffer)
			w.line(strings.TrimSuffix(everything, "\n"))
			w.line("p 1")
			for k := range 4 {
				point := batch*4 + k
				w.line("r 0 0:1:%d:64 1:1:%d:64", ((step+1)%2*points+(point+1)%points)*64, (step%2*points+point)*64)
				w.line("k 0 %x,%x,0", step, point)
				w.line("d 0 0 0 16 1 1")
				dispatches--
			}
			w.line("end")
			fmt.Fprintf(w, "submit %d w", q+1)
			for o, v := range before {
				if o != q && v > 0 {
					fmt.Fprintf(w, " %d:%d:10000", o+1, v)
				}
			}
			value[q]++
			w.line(" c %d s %d:%d:10000", buffer, q+1, value[q])
		}
		if step%4 == 3 {
			w.line("count %d %d", step%queues+1, before[step%queues])
		}
	}
	return w.String()
}

func BenchmarkCheck(b *testing.B) {
	const dispatches = 200_000
	log := streamLog(b, dispatches)
	b.ResetTimer()
	for b.Loop() {
		r, err := Check(strings.NewReader(log), Options{})
		if err != nil || r.Total > 0 {
			b.Fatalf("%v, %v", err, r.Violations)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/dispatches, "ns/dispatch")
	b.ReportMetric(float64(len(log))/dispatches, "bytes/dispatch")
}

// The memory of Check does not grow with the log.
func TestMemoryIsBoundedByWhatIsLive(t *testing.T) {
	held := func(dispatches int) uint64 {
		log := streamLog(t, dispatches)
		c := newChecker(Options{})
		if err := c.run(strings.NewReader(log)); err != nil || c.report.Total > 0 {
			t.Fatalf("%v, %v", err, c.report.Violations)
		}
		c.reader = nil // it refers to the log
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(c)
		return m.HeapAlloc
	}
	few, many := held(4_000), held(40_000)
	if many > few+1<<20 {
		t.Errorf("%d bytes after 4000 dispatches, %d after 40000", few, many)
	}
}
