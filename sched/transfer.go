package sched

import (
	"iter"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
)

// TransferKind says what a Transfer does.
type TransferKind uint8

const (
	// CopyToDevice copies Host to device memory at Dst.
	CopyToDevice TransferKind = iota
	// CopyToHost copies device memory at Src to Host.
	CopyToHost
	// CopyWithin copies device memory at Src to Dst, which must not overlap.
	CopyWithin
	// Fill sets device memory at Dst to Value.
	Fill
	// UpdateTo copies Host to its corresponding storage when the task runs (target update to). It
	// does nothing if Host is not present then.
	UpdateTo
	// UpdateFrom copies Host from its corresponding storage in the same way (target update from).
	UpdateFrom

	// The scheduler itself adds the following kinds. copyIn copies an item of Region.Enter to its
	// corresponding storage, and copyOut one of Region.Exit back. attach writes a pointer into the
	// device's copy of a struct.
	copyIn
	copyOut
	attach
)

// fromHost and toHost report whether a copy of the kind reads or writes the host's storage.
func (k TransferKind) fromHost() bool {
	return k == CopyToDevice || k == UpdateTo || k == copyIn || k == attach
}
func (k TransferKind) toHost() bool { return k == CopyToHost || k == UpdateFrom || k == copyOut }

// updates reports whether the transfer is an update, which finds its device memory in the
// presence table.
func (k TransferKind) updates() bool { return k == UpdateTo || k == UpdateFrom }

// Transfer is a copy or a fill.
type Transfer struct {
	// Kind says what is copied or filled.
	Kind TransferKind
	// Host is the host's side of a copy. Of an update it is the section that has
	// to be present as a whole.
	Host memory.Section
	// Dst and Src are the device's sides.
	Dst, Src Pointer
	// Size is the number of bytes; Rows has it where it is not nil.
	Size uint64
	// Rows are those of a transfer that is not contiguous, nil for one that is. Their
	// offsets count from Host.Ptr, Dst and Src.
	Rows *memory.Rows
	// Value is what Fill writes.
	Value byte
	// Image, if not nil, is that of an update's value; Size is the image's then.
	Image *Image
	// Present makes an update of storage that is absent an error.
	Present bool
	// Label names the item in errors.
	Label string
}

// transferPhase says when in the course of its task a transfer is made. The commands of one
// phase come after those of the phase before.
type transferPhase uint8

const (
	// phaseEnter: copies of the maps at the beginning of the construct.
	phaseEnter transferPhase = iota
	// phaseRequested: Region.Transfers that change device memory, and attachments of
	// pointers. The kernel comes after them.
	phaseRequested
	// phaseHome: Region.Transfers to the host.
	phaseHome
	// phaseExit: copies of the maps at the end of the construct, as they were foreseen when
	// it entered.
	phaseExit
	// phaseLate: copies of the maps at the end of the construct that were not foreseen.
	phaseLate
)

// phases is a set of phases, as bits.
type phases uint8

func (s phases) has(p transferPhase) bool { return s&(1<<p) != 0 }
func (s *phases) add(p transferPhase)     { *s |= 1 << p }

// phase returns when transfers of the kind are made.
func (k TransferKind) phase() transferPhase {
	switch {
	case k == copyIn:
		return phaseEnter
	case k == copyOut:
		return phaseExit
	case k.toHost():
		return phaseHome
	}
	return phaseRequested
}

// transfer is one transfer of a task under way: bytes that go from one storage to another.
// Its path says how they go.
type transfer struct {
	kind  TransferKind
	phase transferPhase
	// value is what a fill writes.
	value byte
	// present: an update of storage that is absent is an error.
	present bool
	// fresh: the task itself has made the block that a copy-in goes to.
	fresh bool
	// path is how the bytes go, nil until that is planned.
	path *path
	// host is the host's side: what is copied, or of an update, and where there are rows, the
	// section from whose beginning they count.
	host memory.Section
	// dst and src are the device's sides, nil for the host's. dstAt and srcAt are where they
	// begin, in bytes from the beginning of the memory.
	dst, src     *allocation.Allocation
	dstAt, srcAt uint64
	// size is how many bytes are transferred.
	size uint64
	// rows are where the bytes lie on both sides, counted from where these begin, nil if they
	// are contiguous. The task keeps a copy of what the program passed.
	rows *memory.Rows
	// image converts the bytes, if it is not nil: the device's are an image of the host's.
	image *Image
	// block is the present block that dst or src is the storage of, nil for memory that a
	// pointer names and for an update of absent storage.
	block *memory.Present
	// uses is the block's count of constructs when a copy-out was placed: a later construct
	// may have changed the contents since.
	uses uint64
	// staging holds the bytes, packed, on their way; nil for paths without it.
	staging *memory.Storage
	// ring is what a path through a ring has.
	ring *ring
	// op is the transfer as the task's observer knows it, or nil.
	op    *construct.Op
	label string
}

// spans returns the bytes that the transfer touches on either side, from where that begins.
func (x *transfer) spans() (dst, src order.Span) {
	if x.rows == nil {
		return order.Span{Size: x.size}, order.Span{Size: x.size}
	}
	dst.Start, dst.Size = x.rows.DstSpan()
	src.Start, src.Size = x.rows.SrcSpan()
	return dst, src
}

// places returns the bytes that the transfer touches of device memory on either side.
func (x *transfer) places() (dst, src order.Span) {
	dst, src = x.spans()
	dst.Start += x.dstAt
	src.Start += x.srcAt
	return dst, src
}

// hostSpan returns the host's storage that the transfer touches.
func (x *transfer) hostSpan() memory.Section {
	if x.image != nil {
		return x.host
	}
	dst, src := x.spans()
	if x.kind.toHost() {
		src = dst
	}
	return memory.Section{Ptr: unsafe.Add(x.host.Ptr, src.Start), Size: src.Size}
}

// overlaps reports whether a copy inside of one allocation reads bytes that it writes.
func (x *transfer) overlaps() bool {
	dst, src := x.places()
	if dst.Start >= src.Start+src.Size || src.Start >= dst.Start+dst.Size {
		return false
	}
	if x.rows == nil {
		return true
	}
	// Both sides' rows are in ascending order.
	nextDst, stop := iter.Pull2(x.rows.All())
	defer stop()
	d, _, more := nextDst()
	for _, s := range x.rows.All() {
		for more && x.dstAt+d+x.rows.RowBytes <= x.srcAt+s {
			d, _, more = nextDst()
		}
		if more && x.dstAt+d < x.srcAt+s+x.rows.RowBytes {
			return true
		}
	}
	return false
}

// absent reports whether the transfer is an update of storage that is not present, which
// moves nothing.
func (x *transfer) absent() bool { return x.kind.updates() && x.block == nil }

// outsideBatch reports whether no command of the task's batch brings the bytes: the
// host itself writes or reads the memory, or has them brought chunk by chunk.
func (x *transfer) outsideBatch() bool { return !x.absent() && x.path.record == nil }
