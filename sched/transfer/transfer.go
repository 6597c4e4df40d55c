package transfer

import (
	"fmt"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/allocation"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
)

// Request is a transfer that a construct requests.
type Request struct {
	// Kind says what is copied or filled.
	Kind Kind
	// Host is the host's side of a copy. For an update it is the section that has to be present
	// as a whole.
	Host memory.Section
	// Dst and Src are the device's sides.
	Dst, Src allocation.Pointer
	// Size is the number of bytes, unless Rows is not nil.
	Size uint64
	// Rows are the rows of a transfer that is not contiguous, otherwise nil. Their offsets count
	// from Host.Ptr, Dst and Src.
	Rows *memory.Rows
	// Value is what Fill writes.
	Value byte
	// Image, if not nil, is the image of an update's value. Size is the image's size then.
	Image *Image
	// Present makes an update of storage that is absent an error.
	Present bool
	// Label names the item in errors.
	Label string
}

// Transfer is a transfer of a task under way: bytes that go from one storage to another.
type Transfer struct {
	// Kind says what the transfer does, and Phase when.
	Kind  Kind
	Phase Phase
	// value is what a fill writes.
	value byte
	// Present makes an update of storage that is absent an error.
	Present bool
	// Fresh says that the task itself has made the block to which a copy-in goes.
	Fresh bool
	// path is the way of the bytes, nil until it is planned.
	path *path
	// Host is the host's side. For an update, and if there are rows, it is the section from whose
	// beginning they count.
	Host memory.Section
	// Dst and Src are the device's sides, nil for the host's. DstAt and SrcAt are the offsets at
	// which these begin, in bytes from the beginning of the memory.
	Dst, Src     *allocation.Allocation
	DstAt, SrcAt uint64
	// Size is the number of bytes.
	Size uint64
	// rows say where the bytes lie on both sides, counted from where these begin. It is nil if
	// they are contiguous.
	rows *memory.Rows
	// Image, if not nil, converts the bytes: the device's are an image of the host's.
	Image *Image
	// Block is the present block of which Dst or Src is the storage. It is nil for memory that a
	// pointer names, and for an update of storage that is absent.
	Block *memory.Present
	// uses is the number of constructs that had used the block when a copy-out was planned. A
	// later one may have changed the contents.
	uses uint64
	// staging has the bytes, packed, on paths through staging, otherwise nil.
	staging *memory.Storage
	// Ring is what the Lane knows of a transfer through a ring, otherwise nil.
	Ring *Ring
	// pinned has the host's side on pinned paths, otherwise nil.
	pinned *allocation.Allocation
	// Op is the transfer as the task's observer knows it, or nil. Label names the item in errors.
	Op    *construct.Op
	Label string
}

// resolve finds the memory to which the pointers of a request point.
func (x *Transfer) resolve(pointers *allocation.Pointers, to, from allocation.Pointer) (err error) {
	dst, src := x.spans()
	switch x.Kind {
	case CopyToDevice, Fill, CopyWithin:
		x.Dst, x.DstAt, err = find(pointers, to, dst)
	}
	if err == nil && (x.Kind == CopyToHost || x.Kind == CopyWithin) {
		x.Src, x.SrcAt, err = find(pointers, from, src)
	}
	if err != nil {
		return err
	}
	return x.checkOverlap()
}

// find returns the allocation that has the bytes of a transfer which begins at p, and the offset
// of p in it.
func find(pointers *allocation.Pointers, p allocation.Pointer, bytes order.Span) (*allocation.Allocation, uint64, error) {
	a, at, err := pointers.Find(p.Add(int64(bytes.Start)), bytes.Size)
	return a, at - bytes.Start, err
}

// CopiesOut makes x the copy of an item, at an offset from the beginning of its block's
// allocation, to the host.
func (x *Transfer) CopiesOut(item *memory.Map, block *memory.Present, from *allocation.Allocation, at uint64) {
	x.Block, x.uses, x.Host, x.Label = block, block.Uses(), item.Section, item.Label
	x.Src, x.SrcAt, x.Size = from, at, item.StorageSize()
}

// spans returns the bytes that the transfer touches on either side, counted from the beginning of
// the side.
func (x *Transfer) spans() (dst, src order.Span) {
	if x.rows == nil {
		return order.Span{Size: x.Size}, order.Span{Size: x.Size}
	}
	dst.Start, dst.Size = x.rows.DstSpan()
	src.Start, src.Size = x.rows.SrcSpan()
	return dst, src
}

// Places returns the bytes that the transfer touches of the device memory on either side.
func (x *Transfer) Places() (dst, src order.Span) {
	dst, src = x.spans()
	dst.Start += x.DstAt
	src.Start += x.SrcAt
	return dst, src
}

// HostSpan returns the host storage that the transfer touches.
func (x *Transfer) HostSpan() memory.Section {
	if x.Image != nil {
		return x.Host
	}
	dst, src := x.spans()
	if x.Kind.ToHost() {
		src = dst
	}
	return memory.Section{Ptr: unsafe.Add(x.Host.Ptr, src.Start), Size: src.Size}
}

// checkOverlap returns an error for a copy that reads bytes which it writes. Where the device's memory is host storage
// itself, a copy between the two of bytes to where they are is none.
func (x *Transfer) checkOverlap() error {
	device, dst, src := x.Dst, x.DstAt, x.SrcAt
	switch x.Kind {
	case CopyWithin:
		if x.Dst != x.Src {
			return nil
		}
	case CopyToDevice:
		dst, src = uint64(device.HostAddress(x.DstAt)), uint64(x.Host.Start())
	case CopyToHost:
		device = x.Src
		dst, src = uint64(x.Host.Start()), uint64(device.HostAddress(x.SrcAt))
	default:
		return nil
	}
	between := x.Kind != CopyWithin
	if between && device.Own == nil {
		return nil
	}
	rows := memory.Rows{RowBytes: x.Size}
	if x.rows != nil {
		rows = *x.rows
	}
	if !rows.Overlap(dst, src) || between && rows.InPlace(dst, src) {
		return nil
	}
	at, _ := rows.SrcSpan()
	to, _ := rows.DstSpan()
	return fmt.Errorf("%w: %d bytes from %#x on and from %#x on, of %s", ErrOverlap, rows.Bytes(), src+at, dst+to, device.Describe())
}

// Absent reports whether the transfer is an update of storage that is not present, which
// transfers nothing.
func (x *Transfer) Absent() bool { return x.Kind.Updates() && x.Block == nil }

// ByCommand reports whether commands in the task's batch transfer the bytes. x must be planned.
func (x *Transfer) ByCommand() bool { return x.path.record != nil }

// ByDevice reports whether the commands read or write the host's bytes, which are pinned. x must be planned.
func (x *Transfer) ByDevice() bool { return x.path.pinned }

// MayBePinned reports whether commands can copy the bytes as they are between pinned storage and m. The host's own storage, in which
// a block may lie as well, is not copied to itself.
func (x *Transfer) MayBePinned(m *allocation.Allocation) bool { return x.Image == nil && !m.Shared }

// InPlace reports whether the host itself reads or writes the device memory. x must be planned.
func (x *Transfer) InPlace() bool { return x.path.inPlace }

// OutsideBatch reports whether bytes are transferred without commands in the task's batch: by the
// host, or chunk by chunk. x must be planned.
func (x *Transfer) OutsideBatch() bool { return !x.Absent() && !x.ByCommand() }
