package transfer

import (
	"cmp"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/protect"
)

const (
	// gatherBytes is the number of bytes from which on a copy of the host's is not made at once,
	// but together with others of its step.
	gatherBytes = 64 << 10
	// shareBytes is the number of bytes for which a copy gets one more goroutine. Starting one takes
	// some 10 µs, in which another copies 100 KB.
	shareBytes = 1 << 20
	// partBytes is the size of the parts in which goroutines share a copy. From this size on Go
	// copies past the caches on amd64, which makes copies of tens of megabytes half again as fast.
	// Larger parts would only keep the garbage collector waiting, which does not interrupt a copy.
	partBytes = 1 << 20
)

// hostCopy is a copy between two places of memory that the host sees: bytes or, if rows has some,
// rows.
type hostCopy struct {
	to, from unsafe.Pointer
	bytes    uint64
	rows     memory.Rows
	// end is the number of parts of this copy and of those before it.
	end uint64
}

// put writes the host's bytes of a transfer to memory that the host sees: packed one behind the
// other, or where they lie on the device's side. It returns how many bytes of host storage it
// copies. Some are copied only by copyGathered.
func (x *Transfer) put(l *List, d *Device, to unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.Image != nil:
		return x.Image.write(to, x.Size, !x.Fresh, x.Kind == CopyIn)
	case x.rows == nil:
		return x.copyRun(l, d, to, x.Host.Ptr)
	case packed:
		return x.copy(l, d, hostCopy{to: to, from: x.Host.Ptr, bytes: x.Size, rows: x.rows.Packed()})
	}
	return x.copy(l, d, hostCopy{to: to, from: x.Host.Ptr, bytes: x.Size, rows: *x.rows})
}

// get is the opposite of put: it reads the memory and writes the host's storage.
func (x *Transfer) get(l *List, d *Device, from unsafe.Pointer, packed bool) (copied uint64, err error) {
	switch {
	case x.Image != nil:
		return x.Size, x.Image.read(from, x.Size)
	case x.rows == nil:
		return x.copyRun(l, d, x.Host.Ptr, from)
	case packed:
		return x.copy(l, d, hostCopy{to: x.Host.Ptr, from: from, bytes: x.Size, rows: x.rows.Unpacked()})
	}
	return x.copy(l, d, hostCopy{to: x.Host.Ptr, from: from, bytes: x.Size, rows: *x.rows})
}

// copyRun is copy for bytes in one run. Most copies are small ones of this kind, which need no
// hostCopy.
func (x *Transfer) copyRun(l *List, d *Device, to, from unsafe.Pointer) (copied uint64, err error) {
	if to != from && x.Size < gatherBytes {
		return x.Size, copyBytes(to, from, x.Size)
	}
	return x.copy(l, d, hostCopy{to: to, from: from, bytes: x.Size})
}

// copy makes a copy of the transfer, or leaves it to copyGathered if it is large. If the device
// memory is the host's storage itself, there is nothing to copy.
func (x *Transfer) copy(l *List, d *Device, c hostCopy) (copied uint64, err error) {
	switch {
	case c.to == c.from && (x.rows == nil || x.Block != nil):
		return 0, nil
	case c.bytes < gatherBytes:
		return c.bytes, c.all()
	}
	if l.gathered == nil {
		l.gathered = d.crews.take()
	}
	l.gathered.copying.add(c)
	return c.bytes, nil
}

// copyGathered makes the copies that copy has left, with a crew.
func (l *List) copyGathered(d *Device) error {
	m := l.gathered
	if m == nil {
		return nil
	}
	l.gathered = nil
	c := &m.copying
	if c.apart() {
		m.hire(c.bytes/shareBytes, d.Threads)
	}
	err := m.run(c)
	c.reset()
	m.giveBack()
	return err
}

// copying is the work of making copies.
type copying struct {
	copies []hostCopy
	// bytes is the sum of all copies.
	bytes uint64
	// next is the next part, and failed says that no more are to be made.
	next   atomic.Uint64
	failed atomic.Bool
	// written is working memory of apart.
	written []addresses
}

// addresses are those from lo up to but without hi.
type addresses struct{ lo, hi uintptr }

func (c *copying) add(one hostCopy) {
	one.end = one.parts()
	if n := len(c.copies); n > 0 {
		one.end += c.copies[n-1].end
	}
	c.copies = append(c.copies, one)
	c.bytes += one.bytes
}

func (c *copying) reset() {
	empty(&c.copies)
	c.bytes = 0
	c.next.Store(0)
	c.failed.Store(false)
}

// apart reports whether no two copies write the same bytes. Otherwise they are made one after the
// other.
func (c *copying) apart() bool {
	c.written = c.written[:0]
	for i := range c.copies {
		c.written = append(c.written, c.copies[i].destination())
	}
	return disjoint(c.written)
}

// disjoint reports whether no two ranges of addresses overlap. It sorts them.
func disjoint(ranges []addresses) bool {
	slices.SortFunc(ranges, func(a, b addresses) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(ranges); i++ {
		if ranges[i].lo < ranges[i-1].hi {
			return false
		}
	}
	return true
}

// do implements work.
func (c *copying) do(int) error {
	i, first := 0, uint64(0)
	for !c.failed.Load() {
		part := c.next.Add(1) - 1
		for ; i < len(c.copies) && part >= c.copies[i].end; i++ {
			first = c.copies[i].end
		}
		if i == len(c.copies) {
			return nil
		}
		if err := c.copies[i].part(part - first); err != nil {
			c.failed.Store(true)
			return err
		}
	}
	return nil
}

// destination returns the addresses to which the copy writes.
func (c *hostCopy) destination() addresses {
	at, size := uint64(0), c.bytes
	if c.rows.RowBytes > 0 {
		at, size = c.rows.DstSpan()
	}
	lo := uintptr(c.to) + uintptr(at)
	return addresses{lo, lo + uintptr(size)}
}

// rowsInPart returns the number of rows in a part.
func (c *hostCopy) rowsInPart() uint64 { return max(1, partBytes/c.rows.RowBytes) }

// parts returns the number of parts.
func (c *hostCopy) parts() uint64 {
	if c.rows.RowBytes > 0 {
		return (c.rows.Count()-1)/c.rowsInPart() + 1
	}
	return (c.bytes-1)/partBytes + 1
}

// part makes a part of the copy.
func (c *hostCopy) part(i uint64) error {
	if c.rows.RowBytes > 0 {
		n := c.rowsInPart()
		return c.someRows(i*n, n)
	}
	at := i * partBytes
	return copyBytes(unsafe.Add(c.to, at), unsafe.Add(c.from, at), min(partBytes, c.bytes-at))
}

// all makes the copy.
func (c *hostCopy) all() error {
	if c.rows.RowBytes > 0 {
		return c.someRows(0, c.rows.Count())
	}
	return copyBytes(c.to, c.from, c.bytes)
}

// someRows copies n rows, or as many as there are, from the first-th on.
func (c *hostCopy) someRows(first, n uint64) error {
	return protect.Touch(func() {
		size := c.rows.RowBytes
		c.rows.From(first, func(d, s uint64) bool {
			copy(unsafe.Slice((*byte)(unsafe.Add(c.to, d)), size), unsafe.Slice((*byte)(unsafe.Add(c.from, s)), size))
			n--
			return n > 0
		})
	})
}

// between copies from one place of device memory to another, both of which the host sees.
func (x *Transfer) between(to, from unsafe.Pointer) error {
	c := hostCopy{to: to, from: from, bytes: x.Size}
	if x.rows != nil {
		c.rows = *x.rows
	}
	return c.all()
}

// copyBytes copies n bytes. The storage is the program's and may not be accessible, which is an
// error (see protect.Touch).
func copyBytes(to, from unsafe.Pointer, n uint64) error {
	return protect.Touch(func() { copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n)) })
}

// fillBytes sets n bytes to a value. They are the program's where device and host share storage, and may not be
// accessible then, which is an error.
func fillBytes(to unsafe.Pointer, value byte, n uint64) error {
	return protect.Touch(func() {
		bytes := unsafe.Slice((*byte)(to), n)
		for i := range bytes {
			bytes[i] = value
		}
	})
}
