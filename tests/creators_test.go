package tests

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Many goroutines create chains of kernels at the same time, on storage of their own and on common storage
// that they read. The scheduler has one goroutine of its own place what they create: each chain keeps its
// order, on one queue and on many.
func TestTasksThatManyGoroutinesCreateKeepTheirOrder(t *testing.T) {
	vktest.Once(t)
	const goroutines, links, elements = 4, 400, 64
	for _, layers := range []string{"record", "record manyqueue"} {
		t.Run(layers, func(t *testing.T) {
			vktest.Layers(t, strings.Fields(layers)...)
			t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("VKOMP_RECORD", log)
			rt, err := vkomp.Open(vkomp.Options{MemoryPath: vkomp.MemoryNonCoherent})
			succeed(t, err)
			k, ctx := newAffine(t, rt), t.Context()
			common := indices(elements)
			maps := []vkomp.Arg{vkomp.To(common)}
			var chains [goroutines][]uint32
			for i := range chains {
				chains[i] = make([]uint32, elements)
				maps = append(maps, vkomp.ToFrom(chains[i]))
			}
			succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: maps}))
			succeed(t, inBodies(rt, goroutines, func(ctx context.Context, i int) error {
				for link := range links {
					// The chain's elements are multiplied by 3, and those of common added to them.
					own := chains[i]
					if err := rt.Target(ctx, k.on(own, common, 3, 1, uint32(link), vkomp.InOut(own), vkomp.In(common))); err != nil {
						return err
					}
				}
				return rt.Taskwait(ctx)
			}))
			succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: maps}))
			succeed(t, rt.Close())
			for i := range chains {
				for e, got := range chains[i] {
					want := uint32(0)
					for link := range links {
						want = 3*want + uint32(e) + uint32(link)
					}
					if got != want {
						t.Fatalf("element %d of chain %d is %d, want %d", e, i, got, want)
					}
				}
			}
			if n := keptOrder(t, log).Sum().Launches; n != goroutines*links {
				t.Errorf("%d launches, want %d", n, goroutines*links)
			}
		})
	}
}
