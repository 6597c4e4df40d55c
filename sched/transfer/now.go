package transfer

import (
	"unsafe"

	"github.com/vkomp/vkomp/sched/allocation"
)

// NowBytes is the number of bytes up to which a construct copies at once: it does so under the
// scheduler's lock.
const NowBytes = 4 << 10

// Copy is a copy between two places of memory that the host sees.
type Copy struct {
	// To and From are where the first byte goes to and where it comes from.
	To, From unsafe.Pointer
	// Bytes is how many there are.
	Bytes uint64
}

// Make makes the copy. It fails if the host's storage cannot be accessed.
func (c Copy) Make() error { return copyBytes(c.To, c.From, c.Bytes) }

// Now returns a requested copy between host storage and device memory that can be made at once: one of a
// few bytes in a row, where the host itself can read or write the device memory, and nothing in flight uses
// that. Otherwise, also if the request is wrong, ok is false, and a task has to make the copy, or fail.
// Storage needs no flush, and no task may be in flight that uses the host's storage. The caller holds the
// scheduler's lock, also while it makes the copy.
func (r *Request) Now(pointers *allocation.Pointers) (c Copy, ok bool) {
	if r.Size == 0 || r.Size > NowBytes || r.Rows != nil || r.Image != nil {
		return c, false
	}
	switch r.Kind {
	case CopyToDevice:
		a, at, err := pointers.Find(r.Dst, r.Size)
		if err != nil || !a.HostWrites(r.Size) || !a.Idle() || r.overlaps(a, at) {
			return c, false
		}
		return Copy{unsafe.Add(a.Host(), at), r.Host.Ptr, r.Size}, true
	case CopyToHost:
		a, at, err := pointers.Find(r.Src, r.Size)
		if err != nil || !a.HostReads() || !a.Idle() || r.overlaps(a, at) {
			return c, false
		}
		return Copy{r.Host.Ptr, unsafe.Add(a.Host(), at), r.Size}, true
	}
	return c, false
}

// overlaps reports whether a copy between host storage and device memory at an offset reads bytes that it writes.
func (r *Request) overlaps(a *allocation.Allocation, at uint64) bool {
	if a.Own == nil {
		return false
	}
	x := Transfer{Kind: r.Kind, Host: r.Host, Dst: a, DstAt: at, Src: a, SrcAt: at, Size: r.Size}
	return x.checkOverlap() != nil
}
