package sched

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// MoveKind says what a Move does.
type MoveKind uint8

const (
	// CopyToDevice copies Host to device memory at Dst.
	CopyToDevice MoveKind = iota
	// CopyToHost copies device memory at Src to Host.
	CopyToHost
	// CopyWithin copies device memory at Src to Dst, which must not overlap.
	CopyWithin
	// Fill sets device memory at Dst to Value.
	Fill
	// UpdateTo copies Host to its corresponding storage, UpdateFrom the other way
	// (OpenMP target update): when the task runs, and not at all if Host is not
	// present then.
	UpdateTo
	UpdateFrom
)

// Move is a copy or a fill that a target task makes.
type Move struct {
	Kind MoveKind
	// Host is the host's side of a copy. Of an update it is the section that has
	// to be present as a whole.
	Host memory.Section
	// Dst and Src are the device's sides.
	Dst, Src Pointer
	// Size is the number of bytes; Rows has it where it is not nil.
	Size uint64
	// Rows are those of a move that is not contiguous, nil for one that is. Their
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

// Buffer is what a kernel's binding is bound to.
type Buffer struct {
	// Map is the index of an item of Region.Enter; -1: the memory at Pointer.
	Map     int
	Pointer Pointer
	// Size is the number of bytes at Pointer.
	Size uint64
	// ToEnd binds everything from the item's or the pointer's first byte to the end
	// of the storage, as far as the device can bind.
	ToEnd bool
}

// Address is a value argument that is filled with a device address when the task
// runs: that of the item's corresponding storage. Where there is none the value
// stays as it is.
type Address struct {
	// Value is the index among Region.Values of a value of 8 bytes.
	Value int
	// Map is the index of an item of Region.Enter.
	Map int
}

// updates reports whether the kind goes through the presence table.
func (k MoveKind) updates() bool { return k == UpdateTo || k == UpdateFrom }

// fromHost and toHost say on which side of the kind the host is, if on any.
func (k MoveKind) fromHost() bool { return k == CopyToDevice || k == UpdateTo }
func (k MoveKind) toHost() bool   { return k == CopyToHost || k == UpdateFrom }

// directBytes is up to how many bytes the host makes a move between places of the
// device itself, if nothing is in flight there: a submission costs more.
const directBytes = 64 << 10

// move is a Move under way.
type move struct {
	Move
	// rows are a copy of Move.Rows, if strided says that there are any.
	rows    memory.Rows
	strided bool
	// dst and src are the device's sides, nil for the host's, dstAt and srcAt where
	// they begin in them, in bytes.
	dst, src     *store
	dstAt, srcAt uint64
	// block is what an update found, nil for nothing.
	block *memory.Present
	// staging holds the bytes of the move, packed, on their way; without any, direct
	// says that the host makes the move itself.
	staging memory.Storage
	direct  bool
	// ring brings the bytes of a large move, if it is not nil.
	ring *stream
	// attaches: the move was made by planAttachments.
	attaches bool
	// image is a copy of Move.Image.
	image Image
	// op is the move as the task's observer knows it, or nil.
	op *construct.Op
}

// bytes is how many the move moves.
func (m *move) bytes() uint64 {
	if m.strided {
		return m.rows.Bytes()
	}
	return m.Size
}

// spans are those of the bytes that the move touches on its sides.
func (m *move) spans() (dst, src order.Span) {
	if !m.strided {
		return order.Span{Size: m.Size}, order.Span{Size: m.Size}
	}
	dst.Start, dst.Size = m.rows.DstSpan()
	src.Start, src.Size = m.rows.SrcSpan()
	return dst, src
}

// places are the bytes of its stores that the move touches.
func (m *move) places() (dst, src order.Span) {
	dst, src = m.spans()
	dst.Start += m.dstAt
	src.Start += m.srcAt
	return dst, src
}

// hostSpan is the host's storage that the move touches.
func (m *move) hostSpan() memory.Section {
	if m.Image != nil {
		return m.Host
	}
	dst, src := m.spans()
	if m.Kind.toHost() {
		src = dst
	}
	return memory.Section{Ptr: unsafe.Add(m.Host.Ptr, src.Start), Size: src.Size}
}

// resolve finds what the region's pointers point to, and keeps it for the task. It
// copies what the task keeps of the region's moves.
func (s *Scheduler) resolve(t *target, r *Region) error {
	if len(r.Moves) == 0 && len(r.Buffers) == 0 && len(r.Pointers) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range t.Buffers {
		b := &t.Buffers[i]
		if b.Map >= 0 {
			t.dispatch.targets = append(t.dispatch.targets, argument{})
			continue
		}
		if b.Pointer.IsNil() && b.Size == 0 && !b.ToEnd {
			t.dispatch.targets = append(t.dispatch.targets, argument{}) // no elements of nothing
			continue
		}
		m, at, err := s.find(b.Pointer, b.Size)
		if err != nil {
			return fmt.Errorf("binding %d: %w", i, err)
		}
		if b.ToEnd {
			b.Size = m.Size - at
		}
		t.pin(m)
		t.dispatch.targets = append(t.dispatch.targets, argument{store: m, at: at, size: b.Size})
	}
	for _, p := range r.Pointers {
		m, _, err := s.find(p, 0)
		if err != nil {
			return err
		}
		t.pin(m)
		t.dispatch.pointed = append(t.dispatch.pointed, m)
	}
	for i := range r.Moves {
		m := move{Move: r.Moves[i]}
		if m.Rows != nil {
			m.strided, m.rows, m.Rows = true, *m.Rows, nil
		}
		if m.bytes() == 0 {
			continue
		}
		dst, src := m.spans()
		var err error
		switch m.Kind {
		case CopyToDevice, Fill, CopyWithin:
			m.dst, m.dstAt, err = s.findSpan(m.Dst, dst)
		}
		if err == nil && (m.Kind == CopyToHost || m.Kind == CopyWithin) {
			m.src, m.srcAt, err = s.findSpan(m.Src, src)
		}
		if err == nil && m.Kind == CopyWithin && m.dst == m.src && m.overlaps(dst, src) {
			err = fmt.Errorf("%w: bytes %d to %d and %d to %d of %s", ErrOverlap, m.srcAt+src.Start, m.srcAt+src.Start+src.Size,
				m.dstAt+dst.Start, m.dstAt+dst.Start+dst.Size, m.dst.describe())
		}
		if err != nil {
			return err
		}
		for _, side := range [...]*store{m.dst, m.src} {
			if side != nil {
				t.pin(side)
			}
		}
		t.copies.moves = append(t.copies.moves, m)
	}
	return nil
}

// overlaps reports whether a copy inside of one store reads bytes that it writes.
func (m *move) overlaps(dst, src order.Span) bool {
	dst.Start, src.Start = dst.Start+m.dstAt, src.Start+m.srcAt
	if dst.Start >= src.Start+src.Size || src.Start >= dst.Start+dst.Size {
		return false
	}
	if !m.strided {
		return true
	}
	// Both sides' rows are in ascending order.
	nextDst, stop := iter.Pull2(m.rows.All())
	defer stop()
	d, _, more := nextDst()
	for _, s := range m.rows.All() {
		for more && m.dstAt+d+m.rows.RowBytes <= m.srcAt+s {
			d, _, more = nextDst()
		}
		if more && m.dstAt+d < m.srcAt+s+m.rows.RowBytes {
			return true
		}
	}
	return false
}

// findSpan is find for the bytes of a move that begins at p.
func (s *Scheduler) findSpan(p Pointer, bytes order.Span) (*store, uint64, error) {
	m, at, err := s.find(p.Add(int64(bytes.Start)), bytes.Size)
	return m, at - bytes.Start, err
}

// moveMustWait is mustWaitFor for one of the task's moves. What it writes to the
// host comes after copies to the same storage that are under way: these can be late,
// and would then overwrite it.
// Storage that the device shares comes after what the device does there.
func (s *Scheduler) moveMustWait(t *target, m *move) *parkedTasks {
	if !m.Kind.fromHost() && !m.Kind.toHost() {
		return nil
	}
	host := m.hostSpan()
	if m.Kind.updates() {
		host = m.Host
	}
	if block := s.presence.table.Exiting(host); block != nil {
		return &stateOf(block).parked
	}
	for rest := host; rest.Size > 0; {
		block := s.touched(rest)
		if block == nil {
			break
		}
		if parked := s.mustWaitForHolders(t, block, &memory.Map{}); parked != nil {
			return parked
		}
		if stateOf(block).shared {
			for _, p := range t.node.Predecessors() {
				if pt := placed(p); pt != nil && !pt.over {
					return &pt.parked
				}
			}
		}
		if block.Section.End() >= rest.End() {
			break
		}
		past := uint64(block.Section.End() - rest.Start())
		rest = memory.Section{Ptr: unsafe.Add(rest.Ptr, past), Size: rest.Size - past}
	}
	if m.Kind.fromHost() {
		if writer := s.presence.hostWrites.touching(host); writer != nil {
			return writer
		}
	}
	return nil
}

// planMoves finds the storage of updates, and decides how each move is made. On an
// error the caller undoes it.
func (s *Scheduler) planMoves(t *target) error {
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if m.Kind.updates() {
			if err := s.findUpdate(t, m); err != nil {
				return err
			}
			if m.block == nil {
				continue
			}
		}
		bytes := m.bytes()
		switch {
		case m.Kind.fromHost():
			m.direct = m.Kind == UpdateTo && m.dst.shared ||
				m.dst.quiet() && m.wholeUnits() && (m.block == nil || stateOf(m.block).filling == 0)
		case m.Kind.toHost():
			// The host reads the memory when the task finishes: who is ordered after
			// the task waits for that. A deferred task leaves a copy instead.
			m.direct = m.src.Host() != nil && (!t.NoWait || m.src.shared)
		case m.Kind == Fill:
			m.direct = bytes <= directBytes && m.dst.quiet() && m.wholeUnits()
			if !m.direct {
				// For the bytes before and after the whole words.
				bytes = 4
			}
		case m.Kind == CopyWithin:
			m.direct = bytes <= directBytes && m.dst.quiet() && m.src.quiet() && m.wholeUnits()
		}
		if m.direct || m.Kind == CopyWithin {
			continue
		}
		if m.Kind != Fill && s.streams(bytes) && !m.strided && m.Image == nil {
			if err := s.planStream(t, m); err != nil {
				return err
			}
			continue
		}
		st, err := s.memory.staging.Allocate(bytes)
		if err != nil {
			return fmt.Errorf("staging for %d bytes: %w", bytes, err)
		}
		m.staging = st
		t.copies.staging = append(t.copies.staging, st)
	}
	return nil
}

// wholeUnits reports whether the host can write what the move does without touching
// what lies beside it: memory that is not coherent is flushed in whole units, which
// somebody else may be writing to.
func (m *move) wholeUnits() bool {
	s := m.dst.s
	if s.memory.storageHeap.coherent || m.dst.shared {
		return true
	}
	dst, _ := m.spans()
	unit := max(s.props.Limits.NonCoherentAtomSize, 1)
	from := m.dst.Offset + m.dstAt + dst.Start
	return !m.strided && from%unit == 0 && dst.Size%unit == 0
}

// planStream has the move go through a ring.
func (s *Scheduler) planStream(t *target, m *move) error {
	side, at := m.dst, m.dstAt
	if m.Kind.toHost() {
		side, at = m.src, m.srcAt
	}
	var block *blockState
	if m.block != nil {
		block = stateOf(m.block)
	}
	var err error
	m.ring, err = s.newStream(t, side, block, at, m.Size, m.Host.Ptr)
	if err == nil && m.Kind.fromHost() {
		t.copies.streams = append(t.copies.streams, m.ring)
	}
	return err
}

// findUpdate finds the storage that an update is about.
func (s *Scheduler) findUpdate(t *target, m *move) error {
	block, offset, err := s.presence.table.Lookup(m.Host)
	switch {
	case err != nil && m.Present:
		return fmt.Errorf("%s: %w: %w", m.Label, memory.ErrNotPresent, err)
	case err != nil:
		return fmt.Errorf("%s: %w", m.Label, err)
	case block == nil && m.Present:
		return fmt.Errorf("%s %s: %w", m.Label, m.Host, memory.ErrNotPresent)
	case block == nil:
		return nil
	}
	state := stateOf(block)
	if state.image != (m.Image != nil) || state.image && (m.Host != block.Section || m.Size != block.Storage.Size) {
		return fmt.Errorf("%s: %w: %s is mapped with another image, or none", m.Label, memory.ErrPartialOverlap, block.Section)
	}
	m.block = block
	if m.Image != nil {
		m.image = *m.Image
		m.image.pointers = append([]attached(nil), state.pointers...)
	}
	at := block.Storage.Offset - state.Offset + offset
	if m.Kind == UpdateTo {
		m.dst, m.dstAt = state.store, at
	} else {
		m.src, m.srcAt = state.store, at
	}
	t.pin(state.store)
	return nil
}

// undoMoves is the opposite of planMoves, but for the staging and the pins.
func (s *Scheduler) undoMoves(t *target) {
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if m.attaches {
			clear(t.copies.moves[i:])
			t.copies.moves = t.copies.moves[:i]
			break
		}
		m.staging, m.direct, m.ring = memory.Storage{}, false, nil
		if m.Kind.updates() {
			m.block, m.dst, m.src = nil, nil, nil
		}
	}
}

// beginMoves makes known what the moves are about to do.
func (s *Scheduler) beginMoves(t *target) {
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		switch {
		case m.Kind.updates() && m.block == nil:
		case m.Kind.fromHost():
			if (m.direct || m.ring != nil) && m.block != nil {
				t.fill(stateOf(m.block))
			}
		case m.Kind.toHost():
			section := m.hostSpan()
			s.presence.hostWrites.add(&t.parked, section)
			t.copies.writing = append(t.copies.writing, section)
			if m.direct || m.ring != nil {
				m.src.readers = append(m.src.readers, &t.parked)
				t.copies.reading = append(t.copies.reading, m.src)
				s.presence.reading++
			}
		}
		if m.Kind.updates() && m.block != nil {
			stateOf(m.block).dirty = true
		}
	}
}

// endMoves is the opposite of beginMoves.
func (s *Scheduler) endMoves(t *target) {
	for i, section := range t.copies.writing {
		s.presence.hostWrites.remove(&t.parked, section)
		t.copies.writing[i] = memory.Section{}
	}
	t.copies.writing = t.copies.writing[:0]
	for i, m := range t.copies.reading {
		for k, r := range m.readers {
			if r == &t.parked {
				last := len(m.readers) - 1
				m.readers[k], m.readers[last] = m.readers[last], nil
				m.readers = m.readers[:last]
				break
			}
		}
		s.presence.reading--
		t.copies.reading[i] = nil
	}
	t.copies.reading = t.copies.reading[:0]
}

// beginsOnHost reports whether begin does all of the host's part of the move, before
// the device's if that has any.
func (m *move) beginsOnHost() bool {
	return !m.Kind.toHost() && m.ring == nil && (m.direct || m.Kind.fromHost())
}

// touchBegin notes the device memory that begin reads, or keeps in part. What it writes
// else are whole units (see wholeUnits), of which nothing has to be kept.
func (m *move) touchBegin(t *target) {
	switch {
	case m.direct && m.Kind == CopyWithin:
		_, src := m.spans()
		t.touches(t.s.memory.storageHeap, &m.src.Storage, m.srcAt+src.Start, src.Size)
	case m.direct && m.Kind == UpdateTo && m.Image != nil:
		// The bytes between those that it writes stay.
		t.touches(t.s.memory.storageHeap, &m.dst.Storage, m.dstAt, m.Size)
	}
}

// begin does the host's part of a move before it is placed, without the lock, and
// returns how many bytes of host storage it copied.
func (m *move) begin(t *target) (uint64, error) {
	switch {
	case m.dst == nil:
	case m.direct:
		dst, _ := m.spans()
		t.touches(t.s.memory.storageHeap, &m.dst.Storage, m.dstAt+dst.Start, dst.Size)
	case m.staging.Size > 0:
		t.touches(t.s.memory.stagingHeap, &m.staging, 0, m.staging.Size)
	}
	switch {
	case m.Kind.fromHost() && m.Image != nil && m.direct:
		return m.image.write(unsafe.Add(m.dst.Host(), m.dstAt), m.Size, true, false)
	case m.Kind.fromHost() && m.Image != nil && m.staging.Size > 0:
		return m.image.write(m.staging.Host(), m.Size, true, false)
	case m.Kind.fromHost() && m.direct:
		return m.copyRows(unsafe.Add(m.dst.Host(), m.dstAt), m.Host.Ptr, m.rows)
	case m.Kind.fromHost() && m.staging.Size > 0:
		return m.copyRows(m.staging.Host(), m.Host.Ptr, m.rows.Packed())
	case m.Kind == Fill && m.direct:
		fillBytes(unsafe.Add(m.dst.Host(), m.dstAt), m.Value, m.Size)
	case m.Kind == Fill:
		fillBytes(m.staging.Host(), m.Value, m.staging.Size)
	case m.Kind == CopyWithin && m.direct:
		_, err := m.copyRows(unsafe.Add(m.dst.Host(), m.dstAt), unsafe.Add(m.src.Host(), m.srcAt), m.rows)
		return 0, err
	}
	return 0, nil
}

// touchEnd notes what end reads.
func (m *move) touchEnd(t *target) {
	switch {
	case !m.Kind.toHost() || m.src == nil || m.ring != nil:
	case m.direct:
		_, src := m.spans()
		t.touches(t.s.memory.storageHeap, &m.src.Storage, m.srcAt+src.Start, src.Size)
	default:
		t.touches(t.s.memory.stagingHeap, &m.staging, 0, m.staging.Size)
	}
}

// end does the host's part of a move after the device's, and returns how many
// bytes of host storage it copied.
func (m *move) end() (uint64, error) {
	switch {
	case m.Kind.toHost() && m.Image != nil && m.direct:
		return m.Size, m.image.read(unsafe.Add(m.src.Host(), m.srcAt), m.Size)
	case m.Kind.toHost() && m.Image != nil && m.staging.Size > 0:
		return m.Size, m.image.read(m.staging.Host(), m.Size)
	case m.Kind.toHost() && m.direct:
		return m.copyRows(m.Host.Ptr, unsafe.Add(m.src.Host(), m.srcAt), m.rows)
	case m.Kind.toHost() && m.staging.Size > 0:
		return m.copyRows(m.Host.Ptr, m.staging.Host(), m.rows.Unpacked())
	}
	return 0, nil
}

// copyRows makes a copy between memory that the host sees.
func (m *move) copyRows(dst, src unsafe.Pointer, rows memory.Rows) (uint64, error) {
	if !m.strided {
		return copyBytes(dst, src, m.Size)
	}
	if m.block != nil && dst == src {
		return 0, nil
	}
	err := protect.Touch(func() {
		n := rows.RowBytes
		for d, s := range rows.All() {
			copy(unsafe.Slice((*byte)(unsafe.Add(dst, d)), n), unsafe.Slice((*byte)(unsafe.Add(src, s)), n))
		}
	})
	return rows.Bytes(), err
}

func fillBytes(to unsafe.Pointer, value byte, n uint64) {
	bytes := unsafe.Slice((*byte)(to), n)
	for i := range bytes {
		bytes[i] = value
	}
}

// onDevice reports whether the device makes the move, before the task's kernel.
func (m *move) onDevice() bool { return !m.direct && m.ring == nil && m.dst != nil }

// placeMoves places the commands of the moves that the device makes, but for those
// to the host.
func (s *Scheduler) placeMoves(t *target, w *tasks.Work) (order.SyncPoint, error) {
	any, bytes := false, uint64(0)
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if !m.onDevice() {
			continue
		}
		if !any {
			s.order.placing.SetAll(&t.order.After)
			any = true
		}
		bytes += m.bytes()
		dst, src := m.places()
		s.followUses(m.dst, dst)
		if m.src != nil {
			s.followUses(m.src, src)
		}
	}
	if !any {
		return order.SyncPoint{}, nil
	}
	q := s.order.CopyQueue(&s.order.placing, bytes)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	apart, first := t.movesApart(), true
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if !m.onDevice() {
			continue
		}
		if !first && !apart {
			at.Level++
		}
		first = false
		stream := b.Level(at.Level)
		dst := vk.Buffer(m.dst.Block.ID)
		timed := s.time(q, stream, t, m.op, m.bytes())
		switch {
		case m.Kind == Fill:
			s.placeFill(q, stream, m)
		case m.Kind == CopyWithin:
			s.placeCopy(q, stream, dst, vk.Buffer(m.src.Block.ID), m.dst.Offset+m.dstAt, m.src.Offset+m.srcAt, m, m.rows)
			m.src.uses.Read(at)
		default:
			s.placeCopy(q, stream, dst, vk.Buffer(m.staging.Block.ID), m.dst.Offset+m.dstAt, m.staging.Offset, m, m.rows.Unpacked())
		}
		timed.end(stream, vk.StageTransfer)
		to, _ := m.places()
		m.dst.wrote(to, at)
		if m.block != nil {
			m.dst.moved(to, at)
		}
	}
	return at, nil
}

// movesApart reports whether no two of the task's moves write to the same bytes of
// the device: else they are made one after the other.
func (t *target) movesApart() bool {
	written := t.dispatch.written[:0]
	for i := range t.copies.moves {
		if m := &t.copies.moves[i]; m.dst != nil {
			dst, _ := m.spans()
			from := m.dst.Offset + m.dstAt + dst.Start
			written = append(written, vk.BufferRange{Buffer: vk.Buffer(m.dst.Block.ID), Offset: from, Size: dst.Size})
		}
	}
	t.dispatch.written = written
	slices.SortFunc(written, func(a, b vk.BufferRange) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(written); i++ {
		if before := written[i-1]; before.Buffer == written[i].Buffer && before.Offset+before.Size > written[i].Offset {
			return false
		}
	}
	return true
}

// placeMovesToHost places the commands of the moves to the host.
func (s *Scheduler) placeMovesToHost(t *target, w *tasks.Work) (order.SyncPoint, error) {
	any, bytes := false, uint64(0)
	placed := func(m *move) bool { return m.Kind.toHost() && !m.direct && m.ring == nil && m.src != nil }
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if !placed(m) {
			continue
		}
		if !any {
			s.order.placing.SetAll(&t.order.After)
			any = true
		}
		bytes += m.bytes()
		_, from := m.places()
		s.followUses(m.src, from)
	}
	if !any {
		return order.SyncPoint{}, nil
	}
	q := s.order.CopyQueue(&s.order.placing, bytes)
	b, at, err := s.begin(q, w)
	if err != nil {
		return order.SyncPoint{}, err
	}
	stream := b.Level(at.Level)
	for i := range t.copies.moves {
		m := &t.copies.moves[i]
		if !placed(m) {
			continue
		}
		timed := s.time(q, stream, t, m.op, m.bytes())
		s.placeCopy(q, stream, vk.Buffer(m.staging.Block.ID), vk.Buffer(m.src.Block.ID), m.staging.Offset, m.src.Offset+m.srcAt, m, m.rows.Packed())
		timed.end(stream, vk.StageTransfer)
		m.src.uses.Read(at)
	}
	b.ReadByHost()
	return at, nil
}

// placeCopy places the command of one copy.
func (s *Scheduler) placeCopy(q *order.Queue, stream *vk.Stream, dst, src vk.Buffer, dstAt, srcAt uint64, m *move, rows memory.Rows) {
	q.CountCopies(1, m.bytes())
	if m.Kind == UpdateTo && m.Image != nil {
		s.placeParts(stream, src, dst, srcAt, dstAt, m.image.parts)
		return
	}
	if !m.strided {
		stream.Copy(src, dst, srcAt, dstAt, m.Size)
		return
	}
	regions := s.order.regions[:0]
	for d, r := range rows.All() {
		regions = append(regions, vk.CopyRegion{SrcOffset: srcAt + r, DstOffset: dstAt + d, Size: rows.RowBytes})
	}
	s.order.regions = regions
	stream.CopyRegions(src, dst, regions)
}

// placeParts places the command that copies parts of an image, if there are any.
func (s *Scheduler) placeParts(stream *vk.Stream, src, dst vk.Buffer, srcAt, dstAt uint64, parts []order.Span) {
	regions := s.order.regions[:0]
	for _, p := range parts {
		regions = append(regions, vk.CopyRegion{SrcOffset: srcAt + p.Start, DstOffset: dstAt + p.Start, Size: p.Size})
	}
	s.order.regions = regions
	if len(regions) > 0 {
		stream.CopyRegions(src, dst, regions)
	}
}

// placeFill places the commands of a fill: vkCmdFillBuffer for whole words, copies
// for the bytes before and after them.
func (s *Scheduler) placeFill(q *order.Queue, stream *vk.Stream, m *move) {
	buffer, staging := vk.Buffer(m.dst.Block.ID), vk.Buffer(m.staging.Block.ID)
	from := m.dst.Offset + m.dstAt
	to := from + m.Size
	edge := func(lo, hi uint64) {
		if lo < hi {
			stream.Copy(staging, buffer, m.staging.Offset, lo, hi-lo)
			q.CountCopies(1, hi-lo)
		}
	}
	first, last := (from+3)&^3, to&^3
	if first >= last {
		edge(from, min(first, to))
		edge(min(first, to), to)
		return
	}
	edge(from, first)
	edge(last, to)
	stream.Fill(buffer, first, last-first, uint32(m.Value)*0x01010101)
	q.CountFill(m.Size)
}
