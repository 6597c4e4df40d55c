package transfer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/internal/softdevice"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lateLane is a Lane whose device copies as late as it may: when somebody waits for the chunk.
type lateLane struct {
	r  *rig
	mu sync.Mutex
	// late are the copies that were placed and not made, by chunk.
	late map[*Chunk]func() error
	// placed counts all copies, and most is the largest number of late ones.
	placed, most int
	// fail, if not nil, is called with the number of each Place, and awaitFails with that of each
	// Await of a chunk with a late copy. The goroutines that call Place after the one that failed
	// wait until that one, and the others, can do nothing more (see testing/synctest).
	fail, awaitFails func(call int) error
	awaited          int
	failed           bool
	// sequence are the transfers of the copies, in the order of their calls.
	sequence []*Transfer
}

func newLateLane(r *rig) *lateLane {
	return &lateLane{r: r, late: make(map[*Chunk]func() error)}
}

func (l *lateLane) Place(x *Transfer, c *Chunk, at, n uint64) error {
	after, err := l.place(x, c, at, n)
	if after {
		time.Sleep(time.Nanosecond)
	}
	return err
}

// place is Place, and reports whether another call has failed before.
func (l *lateLane) place(x *Transfer, c *Chunk, at, n uint64) (after bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	after = l.failed
	if l.late[c] != nil {
		l.r.t.Error("a chunk is used again while the device has not copied it")
	}
	l.placed++
	if l.fail != nil {
		if err := l.fail(l.placed); err != nil {
			l.failed = true
			return after, err
		}
	}
	c.Busy = order.SyncPoint{Value: uint64(l.placed)}
	l.sequence = append(l.sequence, x)
	placed := *c
	l.late[c] = func() error { return l.r.Place(x, &placed, at, n) }
	l.most = max(l.most, len(l.late))
	return after, nil
}

func (l *lateLane) Await(c *Chunk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := l.late[c]
	if late == nil {
		return nil
	}
	l.awaited++
	if l.awaitFails != nil {
		if err := l.awaitFails(l.awaited); err != nil {
			return err
		}
	}
	delete(l.late, c)
	c.Busy = order.SyncPoint{}
	return late()
}

// end has the device make the copies that are left.
func (l *lateLane) end() {
	for c, late := range l.late {
		if err := late(); err != nil {
			l.r.t.Error(err)
		}
		delete(l.late, c)
	}
}

// ringRig returns a rig whose rings have chunks of that size.
func ringRig(t *testing.T, chunk uint64, threads int) *rig {
	return newRig(t, mode{"ring", softdevice.Discrete, false, chunk, threads})
}

// through takes memory for a transfer through a ring.
func (r *rig) through(x *Transfer) *Transfer {
	r.t.Helper()
	x.path = &ringOut
	if x.Dst != nil {
		x.path = &ringIn
	}
	if err := x.path.take(&r.d, &r.list, x); err != nil {
		r.t.Fatal(err)
	}
	return x
}

// give gives back the list's staging memory, as at the end of a task.
func (r *rig) give() {
	r.list.FreeStaging(&r.d, &order.SyncSet{})
	if r.d.staged != 0 || r.d.crews.hired.Load() != 0 {
		r.t.Errorf("%d bytes of staging and %d helpers are left", r.d.staged, r.d.crews.hired.Load())
	}
}

// random returns n bytes that say where they are.
func random(n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	s := make([]byte, n)
	for i := range s {
		s[i] = byte(rng.Uint32())
	}
	return s
}

// While the device has one chunk, others are filled or emptied; each byte arrives, however late
// the device is, and however the size lies to those of chunks, parts and rings.
func TestPartsGoThroughARingWhileOthersAreOnTheirWay(t *testing.T) {
	const chunk = 16 << 10
	for _, threads := range []int{1, 2, 3, MaxThreads} {
		ring := threadChunks * threads * chunk
		for _, size := range []int{1, chunk/2 - 1, chunk / 2, chunk + 1, 3*chunk - 1, ring, ring + 1, 5*ring + 77} {
			t.Run(fmt.Sprintf("%d bytes by %d", size, threads), func(t *testing.T) {
				r := ringRig(t, chunk, threads)
				from, to := random(size), make([]byte, size)
				a := r.device(uint64(size))
				for _, x := range []*Transfer{
					{Kind: CopyToDevice, Host: section(from), Dst: a, Size: uint64(size)},
					{Kind: CopyToHost, Host: section(to), Src: a, Size: uint64(size)},
				} {
					lane := newLateLane(r)
					if err := r.list.bring(&r.d, []*Transfer{r.through(x)}, lane); err != nil {
						t.Fatal(err)
					}
					lane.end()
					if lane.placed >= 2*threads && lane.most < 2 {
						t.Errorf("%v: the device never had more than %d of %d parts", x.Kind, lane.most, lane.placed)
					}
					if parts := (size + chunk/2 - 1) / (chunk / 2); lane.placed > parts {
						t.Errorf("%v: %d parts of %d bytes", x.Kind, lane.placed, size)
					}
					if n := len(r.list.ring); n > threadChunks*threads {
						t.Errorf("%v: %d chunks", x.Kind, n)
					}
					r.give()
				}
				if !slices.Equal(from, to) {
					t.Error("other bytes came back")
				}
			})
		}
	}
}

// The second of two transfers of a step begins while the first one is on its way, unless both
// write the same bytes.
func TestTransfersThroughARingFollowOneAnotherAtOnce(t *testing.T) {
	const chunk, size = 4096, 3 * 4096
	for _, same := range []bool{false, true} {
		r := ringRig(t, chunk, 1)
		a := r.device(2 * size)
		from, to := random(2*size), make([]byte, 2*size)
		second := uint64(size)
		if same {
			second = 0
		}
		var xs []*Transfer
		for i, at := range []uint64{0, second} {
			r.list.Add(CopyToDevice)
			x := &r.list.All[i]
			x.Host, x.Dst, x.DstAt, x.Size = section(from[i*size:][:size]), a, at, size
		}
		for i := range r.list.All {
			xs = append(xs, r.through(&r.list.All[i]))
		}
		lane := newLateLane(r)
		by := &laneTask{task{rig: r}, lane}
		r.list.streamed = append(r.list.streamed, xs...)
		if err := r.list.bringStreamed(&r.d, by, nil, nil); err != nil {
			t.Fatal(err)
		}
		if overlap := lane.most > 3; overlap == same {
			t.Errorf("same bytes %v: the device had %d parts at once, of transfers of 3", same, lane.most)
		}
		lane.end()
		r.give()
		xs = append(xs[:0], r.through(&Transfer{Kind: CopyToHost, Host: section(to), Src: a, Size: 2 * size}))
		if err := r.list.bring(&r.d, xs, r); err != nil {
			t.Fatal(err)
		}
		r.give()
		if want := from[size:]; same && !slices.Equal(to[:size], want) || !same && !slices.Equal(to, from) {
			t.Errorf("same bytes %v: other bytes came back", same)
		}
	}
}

// laneTask is a task with another lane.
type laneTask struct {
	task
	lane Lane
}

func (t *laneTask) Lane(*tasks.Work) Lane { return t.lane }

// A submission or a wait fails, whichever it is: the bytes stop, the error is that one, and no
// goroutine is left.
func TestRingEndsWithTheFirstFailure(t *testing.T) {
	for _, threads := range []int{1, MaxThreads} {
		for _, kind := range []Kind{CopyToDevice, CopyToHost} {
			for _, wait := range []bool{false, true} {
				for at := 1; at < 20; at += 3 {
					synctest.Test(t, func(t *testing.T) { testRingFails(t, threads, kind, wait, at) })
				}
			}
		}
	}
}

func testRingFails(t *testing.T, threads int, kind Kind, wait bool, at int) {
	failed := errors.New("failed")
	const chunk, size = 4096, 40 * 4096
	r := ringRig(t, chunk, threads)
	lane := newLateLane(r)
	fail := func(call int) error {
		if call == at {
			return failed
		}
		return nil
	}
	if wait {
		lane.awaitFails = fail
	} else {
		lane.fail = fail
	}
	x := &Transfer{Kind: kind, Host: section(random(size)), Size: size}
	if kind == CopyToHost {
		x.Src = r.device(size)
	} else {
		x.Dst = r.device(size)
	}
	if err := r.list.bring(&r.d, []*Transfer{r.through(x)}, lane); err != failed {
		t.Errorf("%d goroutines, %v, wait %v, call %d: got %v", threads, kind, wait, at, err)
	}
	// Each of the other goroutines has one part more at most.
	if !wait && lane.placed > at+threads-1 {
		t.Errorf("%d goroutines, %v: %d parts after the failure of one", threads, kind, lane.placed-at)
	}
	busy := 0
	for _, c := range r.list.Chunks() {
		if c.Busy.Value > 0 {
			busy++
		}
	}
	if busy != len(lane.late) {
		t.Errorf("%d chunks are busy, and the device has %d", busy, len(lane.late))
	}
	lane.end()
	r.give()
}

// Every chunk of a ring belongs to one goroutine.
func TestGoroutinesHaveChunksOfTheirOwn(t *testing.T) {
	for threads := 1; threads <= MaxThreads; threads++ {
		for n := threads; n < 5*threads; n++ {
			s := streaming{threads: threads, chunks: make([]Chunk, n)}
			owners := make(map[*Chunk]int)
			for hand := range threads {
				for turn := range 3 * n {
					c := s.own(hand, turn)
					if owner, ok := owners[c]; ok && owner != hand {
						t.Fatalf("%d chunks, %d goroutines: %d and %d have the same one", n, threads, owner, hand)
					}
					owners[c] = hand
				}
			}
			if len(owners) != n {
				t.Errorf("%d goroutines use %d chunks of %d", threads, len(owners), n)
			}
		}
	}
}

// All crews of a device together have as many helpers as the device allows.
func TestCrewsShareTheirHelpers(t *testing.T) {
	var c crews
	a, b := c.take(), c.take()
	a.hire(3, MaxThreads)
	b.hire(100, MaxThreads)
	if a.size != 3 || b.size != MaxThreads-2 {
		t.Errorf("%d and %d goroutines", a.size, b.size)
	}
	none := c.take()
	none.hire(100, MaxThreads)
	a.dismiss()
	again := c.take()
	again.hire(100, MaxThreads)
	if none.size != 1 || again.size != 3 {
		t.Errorf("%d and %d goroutines", none.size, again.size)
	}
	b.dismiss()
	again.dismiss()
	for _, threads := range []int{0, 1} {
		if none.hire(100, threads); none.size != 1 {
			t.Errorf("%d goroutines of %d", none.size, threads)
		}
	}
	if n := c.hired.Load(); n != 0 {
		t.Errorf("%d helpers", n)
	}
}

// A ring takes fewer chunks where other tasks have staging, so that there is some for the next one.
// A task that finds nothing has to wait, but not one that is alone, nor one that ends.
func TestRingLeavesStagingToOthers(t *testing.T) {
	const chunk = 4096
	r := ringRig(t, chunk, 4)
	r.d.Staging = 16 * chunk
	var got []int
	lists := make([]List, 7)
	for i := range lists {
		x := lists[i].Add(CopyToDevice)
		x.Size, x.Dst = 1<<20, new(allocation.Allocation)
		if err := takeRing(&r.d, &lists[i], x); err != nil && !errors.Is(err, memory.ErrOutOfMemory) {
			t.Error(err)
		}
		got = append(got, len(lists[i].ring))
	}
	if want := []int{8, 4, 2, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%v chunks, want %v", got, want)
	}
	late := lists[6].Add(CopyOut)
	late.Size, late.Phase = 10*chunk, Late
	if err := stagingOut.take(&r.d, &lists[6], late); err != nil {
		t.Errorf("a task that ends: %v", err)
	}
	for i := range lists {
		lists[i].FreeStaging(&r.d, &order.SyncSet{})
	}
	alone := lists[0].Add(CopyToHost)
	alone.Size = 20 * chunk
	if err := stagingOut.take(&r.d, &lists[0], alone); err != nil {
		t.Errorf("a task alone: %v", err)
	}
	lists[0].FreeStaging(&r.d, &order.SyncSet{})
	r.give()
}
