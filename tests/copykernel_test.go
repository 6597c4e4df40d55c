package tests

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// A device with memory of its own copies large amounts within it by a kernel. Fills, kernels and
// copies to the host that come before and after it keep their order, on whatever queues they are,
// and none within the device is on a queue that only transfers.
func TestLargeCopiesWithinADeviceKeepTheirOrder(t *testing.T) {
	vktest.Long(t)
	for _, placement := range []string{"placement=finish", "placement=random,seed=3"} {
		t.Run(placement, func(t *testing.T) {
			vktest.Layers(t, "record", "manyqueue", "discrete")
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("VKOMP_RECORD", log)
			// One kernel at a time is compiled ahead, and that of the copies is the first.
			loaded := make(chan string, 10)
			o := vkomp.Options{Tool: ompt.Callbacks{DeviceLoad: func(e ompt.DeviceLoadEvent) { loaded <- e.Filename }}}
			processors := runtime.GOMAXPROCS(1)
			defer runtime.GOMAXPROCS(processors)
			vktest.Debug(placement)(&o)
			rt, err := vkomp.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			const n = 5 << 18 // 5 MiB
			const rounds = 4
			ctx, k := t.Context(), newAffine(t, rt)
			d, err := rt.Device(0)
			succeed(t, err)
			a, err := d.Alloc(ctx, 4*(n+64))
			succeed(t, err)
			runtime.GOMAXPROCS(processors)
			if first, second := <-loaded, <-loaded; first != "vkomp copy" {
				t.Fatalf("the first kernel that is compiled is %q, the second %q", first, second)
			}
			b, err := d.Alloc(ctx, 4*(n+64))
			succeed(t, err)
			got := make([]uint32, n)
			for round := range rounds {
				token := vkomp.InOut(got[:1])
				// The first words of both places lie before what can be bound.
				succeed(t,
					d.MemsetAsync(ctx, a, byte(round+1), 4*(n+64), token),
					d.MemsetAsync(ctx, b, 0xEE, 4*(n+64), token),
					rt.MemcpyAsync(ctx, b.Add(4), a.Add(4), 4*n, token),
					rt.Target(ctx, k.doubleAt(b, n+1, token)),
					rt.MemcpyAsync(ctx, a.Add(4), b.Add(4), 4*n, token),
					rt.MemcpyAsync(ctx, vkomp.HostPtr(got), a.Add(4), 4*n, token),
					rt.Taskwait(ctx))
				want := 2 * 0x01010101 * uint32(round+1)
				for i, v := range got {
					if v != want {
						t.Fatalf("round %d: word %d is %#x, want %#x", round, i, v, want)
					}
				}
			}
			launched := rt.Stats().Dispatches
			succeed(t, d.Free(ctx, a), d.Free(ctx, b), rt.Close())
			report := keptOrder(t, log)
			if n := report.Sum().Launches - launched; n != 2*rounds {
				t.Errorf("%d copies by a kernel, want %d", n, 2*rounds)
			}
			for _, q := range report.Queues {
				if vk.QueueFlags(q.Flags)&vk.QueueCompute == 0 && q.Fills > 0 {
					t.Errorf("%v has %d fills, and only transfers", q, q.Fills)
				}
			}
		})
	}
}
