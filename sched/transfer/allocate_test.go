//go:build !race && !invariants

package transfer

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp/sched/order"
)

// Rings and copies of the host need no memory of Go's once they were made.
func TestLargeCopiesDoNotAllocate(t *testing.T) {
	const chunk, size = 4096, 100 * 4096
	r := ringRig(t, chunk, 3)
	a := r.device(size)
	in := &Transfer{Kind: CopyToDevice, Host: section(random(size)), Dst: a, Size: size}
	out := &Transfer{Kind: CopyToHost, Host: section(make([]byte, size)), Src: a, Size: size}
	large, into := section(make([]byte, 4*partBytes)), make([]byte, 4*partBytes)
	transfers := make([]*Transfer, 1)
	allocations := testing.AllocsPerRun(200, func() {
		for _, x := range []*Transfer{in, out} {
			transfers[0] = r.through(x)
			if err := r.list.bring(&r.d, transfers, nothing{}); err != nil {
				t.Fatal(err)
			}
		}
		x := &Transfer{Kind: CopyToDevice, Host: large, Size: large.Size}
		_, err := x.put(&r.list, &r.d, section(into).Ptr, true)
		if err = errors.Join(err, r.list.copyGathered(&r.d)); err != nil {
			t.Fatal(err)
		}
		r.list.FreeStaging(&r.d, &order.SyncSet{})
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// nothing is a Lane of a device that does nothing, at once.
type nothing struct{}

func (nothing) Place(*Transfer, *Chunk, uint64, uint64) error { return nil }
func (nothing) Await(*Chunk) error                            { return nil }
