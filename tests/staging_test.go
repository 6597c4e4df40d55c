package tests

import (
	"path/filepath"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Several goroutines bring large slices to a device with memory of its own and back, in parts of
// which each is a submission, while kernels that use the slices come before and after them. What
// reaches the driver keeps their order.
func TestLargeCopiesByGoroutinesKeepTheirOrder(t *testing.T) {
	vktest.Long(t)
	for _, placement := range []string{"placement=finish", "placement=random,seed=3"} {
		t.Run(placement, func(t *testing.T) {
			vktest.Layers(t, "record", "manyqueue", "discrete")
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("VKOMP_RECORD", log)
			t.Setenv("OMP_NUM_THREADS", "5")
			var o vkomp.Options
			vktest.Debug(placement)(&o)
			rt, err := vkomp.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			const n = 5<<18 + 100 // 5 MiB
			const rounds = 3
			ctx, k := t.Context(), newCompiledAffine(t, rt)
			x, y, z := make([]uint32, n), make([]uint32, n), make([]uint32, n)
			all := []vkomp.Arg{vkomp.To(x), vkomp.To(y), vkomp.To(z)}
			for round := range uint32(rounds) {
				for i := range x {
					x[i], y[i], z[i] = uint32(i), uint32(i)+round, 7
				}
				token := vkomp.InOut(x[:1])
				update := func(noWait bool, motions ...vkomp.Arg) error {
					return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: motions, NoWait: noWait, Depend: []vkomp.Depend{token}})
				}
				succeed(t,
					rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: all, NoWait: round == 1, Depend: []vkomp.Depend{token}}),
					rt.Target(ctx, k.on(x, y, 2, 1, 5, token)),
					update(false, vkomp.From(x), vkomp.From(z)),
					update(false, vkomp.To(y), vkomp.To(z)),
					rt.Target(ctx, k.on(x, y, 1, 1, 0, token)),
					update(false, vkomp.To(y)), // the kernel may be reading it
					update(true, vkomp.To(z)),
					update(true, vkomp.From(y)),
					rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x), vkomp.From(y), vkomp.From(z)}, NoWait: round == 1, Depend: []vkomp.Depend{token}}),
					rt.Taskwait(ctx))
				for i := range x {
					v := uint32(i)
					if x[i] != 2*v+2*(v+round)+5 || y[i] != v+round || z[i] != 7 {
						t.Fatalf("round %d, element %d: %d, %d and %d", round, i, x[i], y[i], z[i])
					}
				}
			}
			copies := rt.Stats().Copies
			succeed(t, rt.Close())
			keptOrder(t, log)
			if copies < rounds*3*6 {
				t.Errorf("%d copies: the slices did not go in parts", copies)
			}
		})
	}
}
