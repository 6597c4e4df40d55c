package sched

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/vk"
)

// Staging memory is asked of the device once, whatever goes through it, and stays until a pause.
func TestStagingIsKeptUntilAPause(t *testing.T) {
	for _, threads := range []int{1, 4} {
		r := newRig(t, memoryMode{memory: discreteMemory, share: ShareNothing, chunk: 64 << 10, threads: threads}, 1)
		const words = 300 << 10 // 1,200 KiB: more than a ring
		x := array32(words)
		r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
		there := func() {
			for i := range x {
				x[i] = uint32(i)
			}
			r.transfer(launch{label: "to", included: true}, update(transfer.UpdateTo, x))
			r.transfer(launch{label: "some", included: true}, update(transfer.UpdateTo, x[:1000]))
			clear(x)
			r.transfer(launch{label: "from", included: true}, update(transfer.UpdateFrom, x))
			for i := range x {
				if x[i] != uint32(i) {
					t.Fatalf("x[%d] is %d", i, x[i])
				}
			}
		}
		there()
		blocks, had := r.d.creates, r.s.Stats().Staging
		if most := uint64(threads * 4 * 64 << 10); had.BlockBytes == 0 || had.PeakLiveBytes > most {
			t.Errorf("staging is %+v, want some and at most %d", had, most)
		}
		there()
		if got := r.s.Stats().Staging; r.d.creates != blocks || got.Blocks != had.Blocks || got.TrimmedBlocks > 0 {
			t.Errorf("%d blocks were asked for again; staging was %+v and is %+v", r.d.creates-blocks, had, got)
		}
		if err := r.s.Relinquish(); err != nil {
			t.Error(err)
		}
		if n := r.s.Stats().Staging.BlockBytes; n != 0 {
			t.Errorf("%d bytes of staging are left", n)
		}
		there()
		r.run(launch{label: "exit", exit: []arg{{s: x, kind: memory.MapRelease}}, included: true})
		r.close()
	}
}

// Deferred tasks have as much staging together as there is. Those that find none wait, without
// the program, and one that needs more than there is gets it alone.
func TestTasksWaitForStaging(t *testing.T) {
	const words = 1 << 14 // 64 KiB each
	r := newRig(t, memoryMode{memory: discreteMemory, share: ShareNothing, staging: 150 << 10}, 1)
	defer r.close()
	xs := make([][]uint32, 8)
	for i := range xs {
		xs[i] = filled(words, uint32(i))
		r.run(launch{label: "enter", enter: []arg{alloc(xs[i])}, included: true})
	}
	r.d.hold()
	for i, x := range xs {
		r.transfer(launch{label: fmt.Sprint("to ", i), out: [][]uint32{x}}, update(transfer.UpdateTo, x))
	}
	r.s.mu.Lock()
	starved := len(r.s.life.starved)
	if r.s.life.first == nil || starved != 5 {
		t.Errorf("%d tasks wait behind the first", starved)
	}
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	if n := r.s.Stats().Staging.PeakLiveBytes; n > 150<<10 {
		t.Errorf("%d bytes of staging were in use", n)
	}

	large := array32(4 * words)
	r.run(launch{label: "enter", enter: []arg{to(large)}, included: true})
	if n := r.s.Stats().Staging.PeakLiveBytes; n < 256<<10 {
		t.Errorf("%d bytes of staging were in use", n)
	}
	r.run(launch{label: "exit", exit: []arg{{s: large, kind: memory.MapRelease}}, included: true})
	for i, x := range xs {
		clear(x)
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect(fmt.Sprint(i), x, filled(words, uint32(i))...)
	}
}

// A task that waits for more staging than is left is not passed by later ones that need less.
func TestStagingIsReservedForWhoWaits(t *testing.T) {
	const words = 1 << 14 // 64 KiB
	r := newRig(t, memoryMode{memory: discreteMemory, share: ShareNothing, staging: 150 << 10}, 1)
	defer r.close()
	small, large, later := filled(words/4, 1), filled(3*words, 2), filled(words/4, 3)
	for _, x := range [][]uint32{small, large, later} {
		r.run(launch{label: "enter", enter: []arg{alloc(x)}, included: true})
	}
	r.d.hold()
	for i, x := range [][]uint32{small, large, later} {
		r.transfer(launch{label: fmt.Sprint("to ", i), out: [][]uint32{x}}, update(transfer.UpdateTo, x))
	}
	r.s.mu.Lock()
	if r.s.life.live != 1 || r.s.life.first == nil || len(r.s.life.starved) != 1 {
		t.Errorf("%d tasks have entered, and %d wait behind the first", r.s.life.live, len(r.s.life.starved))
	}
	r.s.mu.Unlock()
	r.d.release()
	r.taskwait()
	r.s.mu.Lock()
	if r.s.life.first != nil {
		t.Error("staging stays reserved")
	}
	r.s.mu.Unlock()
	for i, x := range [][]uint32{small, large, later} {
		clear(x)
		r.run(launch{label: "exit", exit: []arg{from(x)}, included: true})
		r.expect(fmt.Sprint(i), x, filled(len(x), uint32(i+1))...)
	}
}

// The device is lost while several goroutines bring bytes through a ring, in a submission or in a
// wait: the construct fails with the loss, and all staging is given back.
func TestLossInTheMiddleOfARing(t *testing.T) {
	for _, threads := range []int{1, 5} {
		for _, kind := range []transfer.Kind{transfer.UpdateTo, transfer.UpdateFrom} {
			for _, wait := range []bool{false, true} {
				for _, deferred := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d goroutines, %v, wait %v, deferred %v", threads, kind, wait, deferred), func(t *testing.T) {
						for seed := range uint64(4) {
							r := newRig(t, memoryMode{memory: discreteMemory, share: ShareNothing, chunk: 64, threads: threads}, seed)
							x := filled(2048, 1) // 128 parts
							r.run(launch{label: "enter", enter: []arg{to(x)}, included: true})
							left := 5 + int(seed)
							lose := func() error {
								if left--; left < 0 {
									return errLost
								}
								return nil
							}
							r.d.set(func() {
								if wait {
									r.d.wait, r.d.look = lose, lose
								} else {
									r.d.submit = func(int) error { return lose() }
								}
							})
							err := r.tryTransfer(launch{label: "lost", included: !deferred}, update(kind, x))
							if deferred && err == nil {
								err = r.scope.Wait(t.Context(), nil)
							}
							if !errors.Is(err, vk.ErrDeviceLost) {
								t.Errorf("got %v", err)
							}
							if err := r.s.Close(); err != nil && !errors.Is(err, memory.ErrLeaked) {
								t.Error(err)
							}
							r.closed = true
							if n := r.s.Stats().Staging.Allocations; n != 0 {
								t.Errorf("%d allocations of staging are left", n)
							}
						}
					})
				}
			}
		}
	}
}
