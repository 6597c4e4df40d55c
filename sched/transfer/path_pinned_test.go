package transfer

import (
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/order"
)

// pinned pins a slice until the end of the test.
func (r *rig) pinned(s []byte) *allocation.Allocation {
	r.t.Helper()
	a, err := r.d.Memory.ImportPinned(section(s))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(a.Unpin)
	return a
}

// Rows of pinned storage are copied from and to where they lie there.
func TestPinnedPathsCopyRows(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			r := newRig(t, mode)
			a, host := r.device(50), make([]byte, 10_000)
			pinned := r.pinned(host)
			for i := range host {
				host[i] = byte(i % 251)
			}
			in := memory.Rect{Elem: 1, Volume: []uint64{3, 4}, DstOffsets: []uint64{1, 2}, DstDims: []uint64{5, 10}, SrcOffsets: []uint64{1, 1}, SrcDims: []uint64{4, 8}}
			out := memory.Rect{Elem: 1, Volume: in.Volume, DstOffsets: in.SrcOffsets, DstDims: in.SrcDims, SrcOffsets: in.DstOffsets, SrcDims: in.DstDims}
			to, err := in.Rows()
			if err != nil {
				t.Fatal(err)
			}
			from, err := out.Rows()
			if err != nil {
				t.Fatal(err)
			}
			r.along(&deviceFill, &Transfer{Kind: Fill, Dst: a, Size: 50})
			r.along(&pinnedIn, &Transfer{Kind: CopyToDevice, Host: section(host[5000:]), Dst: a, Size: to.Bytes(), rows: &to, pinned: pinned})
			r.along(&pinnedOut, &Transfer{Kind: CopyToHost, Host: section(host[7000:]), Src: a, Size: from.Bytes(), rows: &from, pinned: pinned})
			for i, got := range host {
				want := byte(i % 251)
				if row, column := (i-7000)/8, (i-7000)%8; i >= 7000 && row >= 1 && row < 4 && column >= 1 && column < 5 {
					want = byte((i - 2000) % 251)
				}
				if got != want {
					t.Fatalf("byte %d is %d, want %d", i, got, want)
				}
			}
		})
	}
}

// Plan makes a path a pinned one only for bytes that the device can copy as they are, between pinned
// storage and memory that is not host storage as well.
func TestPlanUsesPinnedStorage(t *testing.T) {
	r := newRig(t, modes[1])
	host := make([]byte, 8192)
	pinned := r.pinned(host)
	image := &Image{Write: func(unsafe.Pointer) error { return nil }}
	for name, c := range map[string]struct {
		x         Transfer
		situation Situation
		want      *path
	}{
		"pinned":          {Transfer{Kind: CopyToDevice, Dst: r.device(100)}, Situation{Pinned: pinned}, &pinnedIn},
		"not pinned":      {Transfer{Kind: CopyToDevice, Dst: r.device(100)}, Situation{}, &stagingIn},
		"an image":        {Transfer{Kind: UpdateTo, Dst: r.device(100), Image: image, Block: new(memory.Present)}, Situation{Pinned: pinned}, &stagingIn},
		"to an image":     {Transfer{Kind: Attach, Dst: r.device(100)}, Situation{Pinned: pinned, Image: true}, &stagingIn},
		"to itself":       {Transfer{Kind: CopyToDevice, Dst: pinned}, Situation{Pinned: pinned}, &stagingIn},
		"from itself":     {Transfer{Kind: CopyToHost, Src: pinned}, Situation{Pinned: pinned}, &directOut},
		"foreseen":        {Transfer{Kind: CopyOut, Phase: AtExit, Src: r.device(100)}, Situation{Pinned: pinned}, &stagingOut},
		"due":             {Transfer{Kind: CopyOut, Phase: Late, Src: r.device(100)}, Situation{Pinned: pinned}, &pinnedOut},
		"of another path": {Transfer{Kind: Fill, Dst: r.device(100)}, Situation{}, &deviceFill},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "to itself" {
				pinned.Read(order.SyncPoint{Value: 1}) // so the host may not write it
			}
			c.x.Host, c.x.Size = section(host[:100]), 100
			if err := r.list.Plan(&r.d, &c.x, c.situation); err != nil {
				t.Fatal(err)
			}
			if c.x.path != c.want || (c.x.pinned != nil) != c.want.pinned {
				t.Errorf("%s, want %s; pinned is %v", c.x.path.name, c.want.name, c.x.pinned)
			}
		})
	}
}
