package transfer

import (
	"sync"
	"sync/atomic"
)

// One goroutine copies some 10 GB/s from host memory to host memory, where the bus to a device
// takes 50 and four goroutines copy 36 (measured on an NVIDIA H100, PCIe 5). So the goroutine that
// begins or ends a task has others help it with large copies: it forms a crew with them. Helpers
// exist only while there is something for them to do, so an idle device has none.

// MaxThreads is the largest number of goroutines that share a copy: four, which are enough for more
// than 20 GB/s through a ring both ways, and that of the task, which has other work as well.
const MaxThreads = 5

// work is what a crew does.
type work interface {
	// do does one part of the work after the other, until no part is left or one has failed. Each
	// goroutine of the crew calls it, with its number as hand: 0, 1, and so on.
	do(hand int) error
}

// crews is where crews come from. The zero crews is ready for use.
type crews struct {
	// hired is the number of helpers of all crews.
	hired atomic.Int32
	// spare keeps crews for reuse.
	spare sync.Pool
}

// crew is the goroutines that do one work together: the one that calls run, and helpers.
type crew struct {
	from *crews
	// size is the number of goroutines.
	size    int
	work    work
	helpers [MaxThreads - 1]helper
	// left is done when the helpers have ended.
	left sync.WaitGroup
	// copying and streaming are the works that transfers have for a crew.
	copying   copying
	streaming streaming
}

// helper is a goroutine of a crew, besides the one that calls run.
type helper struct {
	crew *crew
	hand int
	err  error
	// loop is the method value of help: a go statement with a func() variable does not allocate.
	loop func()
}

// take returns a crew without helpers, which belongs to the caller until giveBack.
func (c *crews) take() *crew {
	m, _ := c.spare.Get().(*crew)
	if m == nil {
		m = &crew{from: c}
		for i := range m.helpers {
			h := &m.helpers[i]
			h.crew, h.hand, h.loop = m, i+1, h.help
		}
	}
	m.size = 1
	return m
}

// hire adds helpers, so that the crew has at most that many goroutines, and all crews at most
// threads-1 helpers.
func (m *crew) hire(most uint64, threads int) {
	for {
		hired := m.from.hired.Load()
		left := max(int64(min(threads, MaxThreads))-1-int64(hired), 0)
		some := int32(min(left, int64(min(max(most, 1), MaxThreads))-1))
		if some == 0 || m.from.hired.CompareAndSwap(hired, hired+some) {
			m.size = 1 + int(some)
			return
		}
	}
}

// run has all goroutines of the crew do a work, and dismisses the helpers when it is done. The
// error is one of a goroutine that failed.
func (m *crew) run(w work) error {
	m.work = w
	some := m.helpers[:m.size-1]
	m.left.Add(len(some))
	for i := range some {
		go some[i].loop()
	}
	err := w.do(0)
	m.left.Wait()
	for i := range some {
		err = first(err, some[i].err)
		some[i].err = nil
	}
	m.work = nil
	m.dismiss()
	return err
}

// dismiss gives up the helpers.
func (m *crew) dismiss() {
	m.from.hired.Add(-int32(m.size - 1))
	m.size = 1
}

func (h *helper) help() {
	defer h.crew.left.Done()
	h.err = h.crew.work.do(h.hand)
}

// giveBack keeps the crew for another caller of take.
func (m *crew) giveBack() { m.from.spare.Put(m) }
