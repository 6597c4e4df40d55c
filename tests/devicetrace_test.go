package tests

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Tracing does not change the order: neither the checker nor the layers that reorder find more
// violations than without it.
func TestTracedGraphsKeepTheirOrder(t *testing.T) {
	vktest.Long(t)
	vktest.Layers(t, "record", "manyqueue", "shuffle")
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("VKOMP_RECORD", log)
	var mu sync.Mutex
	var records []ompt.Record
	var device ompt.Device
	o := vkomp.Options{
		MemoryPath: vkomp.MemoryStaged,
		Tool: ompt.Callbacks{DeviceInitialize: func(e ompt.DeviceInitializeEvent) {
			device = e.Device
			device.SetTraceOMPT(true, 0)
			if err := device.StartTrace(func(int) []ompt.Record { return make([]ompt.Record, 64) }, func(_ int, done []ompt.Record, _ bool) {
				mu.Lock()
				defer mu.Unlock()
				records = append(records, done...)
			}); err != nil {
				t.Error(err)
			}
		}},
	}
	vktest.Debug("placement=random,seed=1")(&o)
	rt, err := vkomp.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	got, want := grid(t, rt, 8, 20, "")
	stats := rt.Stats()
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("element %d is %d, want %d", i, got[i], want[i])
		}
	}
	kernels, copies := uint64(0), uint64(0)
	queues := map[int]bool{}
	for _, r := range records {
		if queues[r.Queue] = true; r.Type == ompt.CallbackTargetSubmitEMI {
			kernels++
		} else {
			copies++
		}
	}
	// The first dispatch is the one for which the kernel is compiled.
	if kernels != stats.Dispatches || copies != stats.Copies || kernels != 1+2*8*20 || len(queues) < 4 {
		t.Errorf("records of %d of %d dispatches and %d of %d copies, on %d queues", kernels, stats.Dispatches, copies, stats.Copies, len(queues))
	}
	keptOrder(t, log)
}
