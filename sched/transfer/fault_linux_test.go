package transfer

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/order"
)

// Storage of the program has a hole: wherever it is, and whichever goroutine meets it, the copy
// fails and says so, and the next one is made.
func TestHoleInHostStorageIsAnError(t *testing.T) {
	const chunk, size = 64 << 10, 4 * partBytes
	host, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Munmap(host); err != nil {
			t.Error(err)
		}
	}()
	rect := memory.Rect{
		Elem: 4096, Volume: []uint64{size / 4096 / 2, 1}, DstOffsets: []uint64{0, 0}, SrcOffsets: []uint64{0, 0},
		DstDims: []uint64{size / 4096 / 2, 2}, SrcDims: []uint64{size / 4096 / 2, 2},
	}
	rows, err := rect.Rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, MaxThreads} {
		r := ringRig(t, chunk, threads)
		a, staging, pinned := r.device(size), make([]byte, size), r.pinned(host)
		ways := map[string]func() error{
			"ring in": func() error {
				x := r.through(&Transfer{Kind: CopyToDevice, Host: section(host), Dst: a, Size: size})
				return r.list.bring(&r.d, []*Transfer{x}, r)
			},
			"ring out": func() error {
				x := r.through(&Transfer{Kind: CopyToHost, Host: section(host), Src: a, Size: size})
				return r.list.bring(&r.d, []*Transfer{x}, r)
			},
			"fill of shared storage": func() error {
				_, err := directFill.begin(&r.d, &r.list, &Transfer{Kind: Fill, Dst: pinned, Size: size})
				return err
			},
		}
		for _, some := range []*memory.Rows{nil, &rows} {
			x := &Transfer{Host: section(host), Size: size, rows: some}
			if some != nil {
				x.Size = some.Bytes()
			}
			ways[fmt.Sprint("into staging, rows ", some != nil)] = func() error {
				if _, err := x.put(&r.list, &r.d, section(staging).Ptr, true); err != nil {
					return err
				}
				return r.list.copyGathered(&r.d)
			}
			ways[fmt.Sprint("from staging, rows ", some != nil)] = func() error {
				if _, err := x.get(&r.list, &r.d, section(staging).Ptr, true); err != nil {
					return err
				}
				return r.list.copyGathered(&r.d)
			}
		}
		for name, way := range ways {
			for _, hole := range []int{0, 2*partBytes - 8192, 3*partBytes + 8192, size - 8192} {
				if err := syscall.Mprotect(host[hole:][:4096], syscall.PROT_NONE); err != nil {
					t.Fatal(err)
				}
				err := way()
				if want := fmt.Sprintf("access to host storage at %#x", uintptr(section(host[hole:]).Ptr)); err == nil || !strings.Contains(err.Error(), want[:len(want)-3]) {
					t.Errorf("%s by %d, hole at %d: got %v, want %s", name, threads, hole, err, want)
				}
				if err := syscall.Mprotect(host[hole:][:4096], syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
					t.Fatal(err)
				}
				r.list.FreeStaging(&r.d, &order.SyncSet{})
				if err := way(); err != nil {
					t.Errorf("%s by %d, whole again: %v", name, threads, err)
				}
				r.give()
			}
		}
	}
}
