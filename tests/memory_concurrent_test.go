package tests

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// holder is a goroutine that maps a block which others map too.
type holder struct {
	rt   *vkomp.Runtime
	d    vkomp.Device
	k    affine
	all  []uint32
	own  []uint32
	want []byte
}

// enter, look and exit are the actions of a holder. While it maps the block, the block must be
// present with its initial contents.
func (h *holder) enter(ctx context.Context) error {
	return h.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(h.all)}})
}

func (h *holder) look(ctx context.Context) error {
	p := h.d.MappedPtr(vkomp.HostPtr(h.all))
	if p.IsNil() {
		return fmt.Errorf("the block is gone while it is held")
	}
	got := make([]byte, 4*len(h.all))
	if err := h.rt.Memcpy(ctx, vkomp.HostPtr(got), p, len(got)); err != nil {
		return err
	}
	if !bytes.Equal(got, h.want) {
		return fmt.Errorf("the block holds %v, want %v", got, h.want)
	}
	// A kernel reads the block too.
	if err := h.rt.Target(ctx, h.k.on(h.own, h.all, 0, 1, 1, vkomp.InOut(h.own))); err != nil {
		return err
	}
	if err := h.rt.Taskwait(ctx, vkomp.InOut(h.own)); err != nil {
		return err
	}
	for i, v := range h.own {
		if v != h.all[i]+1 {
			return fmt.Errorf("a kernel saw %d in element %d, want %d", v-1, i, h.all[i])
		}
	}
	return nil
}

func (h *holder) exit(ctx context.Context) error {
	return h.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(h.all)}})
}

const concurrentHolders = 8

// inBodies runs f in n tasks, each on another goroutine and with another task region.
func inBodies(rt *vkomp.Runtime, n int, f func(ctx context.Context, i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() {
			errs[i] = rt.Task(context.Background(), vkomp.Task{
				If: vkomp.If(false), Body: func(ctx context.Context) error { return f(ctx, i) },
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func TestBlockLivesAsLongAsOneOfManyHolders(t *testing.T) {
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		d, k := rt.DefaultDevice(t.Context()), newAffine(t, rt)
		shared := indices(32)
		want := copyOfBytes(shared)
		err := inBodies(rt, concurrentHolders, func(ctx context.Context, i int) error {
			h := &holder{rt: rt, d: d, k: k, all: shared, own: make([]uint32, len(shared)), want: want}
			for range concurrentRounds {
				for _, do := range []func(context.Context) error{h.enter, h.look, h.enter, h.exit, h.look, h.exit} {
					if err := do(ctx); err != nil {
						return fmt.Errorf("holder %d: %w", i, err)
					}
				}
			}
			return nil
		})
		succeed(t, err)
		if d.IsPresent(vkomp.HostPtr(shared)) {
			t.Error("the block is there after its last holder")
		}
		if !bytes.Equal(copyOfBytes(shared), want) {
			t.Error("the host's contents have changed")
		}
		if s := rt.Stats(); s.Storage.Allocations != 0 {
			t.Errorf("%d storage allocations left", s.Storage.Allocations)
		}
	})
}

// One goroutine may unmap what another one has mapped: counts do not belong to goroutines.
func TestHoldersHandBlocksOn(t *testing.T) {
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		d, k := rt.DefaultDevice(t.Context()), newAffine(t, rt)
		shared := indices(32)
		held := make(chan struct{}, concurrentHolders)
		err := inBodies(rt, concurrentHolders, func(ctx context.Context, i int) error {
			h := &holder{rt: rt, d: d, k: k, all: shared, own: make([]uint32, len(shared)), want: copyOfBytes(shared)}
			for range concurrentRounds {
				if i%2 == 0 {
					if err := h.enter(ctx); err != nil {
						return err
					}
					held <- struct{}{}
					continue
				}
				<-held
				if err := h.look(ctx); err != nil {
					return fmt.Errorf("holder %d: %w", i, err)
				}
				if err := h.exit(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		succeed(t, err)
		if d.IsPresent(vkomp.HostPtr(shared)) {
			t.Error("the block is there after its last holder")
		}
	})
}

// Goroutines with arrays of their own each get the result of their history while they map and
// unmap a common block. Nothing orders their kernels, whose sections are adjacent and without the
// alignment of bindings, so the order checker takes the place of validation's synchronization checks.
func TestConcurrentHistoriesMeanWhatTheModelSays(t *testing.T) {
	vktest.LongConcurrent(t)
	const goroutines = 4
	forModelPaths(t, func(t *testing.T, path vkomp.MemoryPath) {
		log := vktest.Recorded(t)
		t.Cleanup(func() { keptOrder(t, log) }) // after the runtime has been closed
		rt := vktest.Open(t, onPath(path), vktest.NoSynchronizationChecks)
		var environments []*modelEnvironment
		for range goroutines {
			environments = append(environments, newModelEnvironment(t, rt))
		}
		d, k := rt.DefaultDevice(t.Context()), newAffine(t, rt)
		shared := indices(32)
		before := rt.Stats().Storage.Allocations
		fewer(t, 2)
		rapid.Check(t, func(t *rapid.T) {
			var histories []*modelHistory
			for _, e := range environments {
				histories = append(histories, e.draw(t))
			}
			for range environments[0].attempts {
				failures := make([]string, goroutines)
				err := inBodies(rt, goroutines, func(ctx context.Context, i int) error {
					h := &holder{rt: rt, d: d, k: k, all: shared, own: make([]uint32, len(shared)), want: copyOfBytes(shared)}
					if err := h.enter(ctx); err != nil {
						return err
					}
					failures[i] = environments[i].execute(ctx, histories[i])
					if err := h.look(ctx); err != nil {
						return err
					}
					return h.exit(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				for i, failure := range failures {
					if failure != "" {
						environments[0].attempts = modelAttempts
						t.Fatalf("goroutine %d: %s", i, failure)
					}
				}
				if d.IsPresent(vkomp.HostPtr(shared)) {
					t.Fatal("the block is there after its last holder")
				}
			}
		})
		if after := rt.Stats().Storage.Allocations; after != before {
			t.Errorf("%d storage allocations before and %d after", before, after)
		}
	})
}

// fewer divides the number of random checks, for a test of which each takes that much longer
// than those of others.
func fewer(t *testing.T, by int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	n, err := strconv.Atoi(before)
	succeed(t, err)
	succeed(t, checks.Value.Set(strconv.Itoa(max(n/by, 1))))
	t.Cleanup(func() { succeed(t, checks.Value.Set(before)) })
}

// copyOfBytes returns a copy of the words' bytes.
func copyOfBytes(words []uint32) []byte { return slices.Clone(bytesOfWords(words)) }

// concurrentRounds is how many times each holder maps and unmaps the block.
const concurrentRounds = 40
