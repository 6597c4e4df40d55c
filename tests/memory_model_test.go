package tests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vkomp/vkomp"
)

// The model of the device data environment. It has, for every byte of the host's arrays, the
// block that contains it, and for every block a count and its corresponding storage. Two blocks
// may share storage; a block whose storage is the array's own shares it with the host. Constructs
// change the model as a whole, one after the other, as OpenMP 5.2 §5.8.3 says.

// modelArrayWords is the size of an array, in words of 4 bytes.
const modelArrayWords = 16

// modelUnknown is the value of a byte that has never been written: any value is accepted, also
// for results computed from it.
const modelUnknown = -1

// contents is memory, a value or modelUnknown for each byte.
type contents []int16

func unknownContents(n int) contents {
	c := make(contents, n)
	for i := range c {
		c[i] = modelUnknown
	}
	return c
}

// memoryPlace is a range of bytes in a memory.
type memoryPlace struct {
	of     *contents
	lo, hi int
}

func (p memoryPlace) bytes() contents { return (*p.of)[p.lo:p.hi] }
func (p memoryPlace) size() int       { return p.hi - p.lo }

// from returns size bytes of the place, starting at byte at.
func (p memoryPlace) from(at, size int) memoryPlace {
	return memoryPlace{p.of, p.lo + at, p.lo + at + size}
}

// overlaps reports whether the two have bytes in common.
func (p memoryPlace) overlaps(o memoryPlace) bool {
	return p.of == o.of && p.lo < o.hi && o.lo < p.hi
}

// copyFrom copies as memmove does.
func (p memoryPlace) copyFrom(o memoryPlace) { copy(p.bytes(), o.bytes()) }

// word returns the i-th word, and whether all of it is known.
func (p memoryPlace) word(i int) (v uint32, known bool) {
	for k := range 4 {
		b := p.bytes()[4*i+k]
		if b == modelUnknown {
			return 0, false
		}
		v |= uint32(b) << (8 * k)
	}
	return v, true
}

func (p memoryPlace) setWord(i int, v uint32, known bool) {
	for k := range 4 {
		p.bytes()[4*i+k] = modelUnknown
		if known {
			p.bytes()[4*i+k] = int16(v >> (8 * k) & 0xff)
		}
	}
}

// modelToken is what depend clauses name for an array or a chunk.
type modelToken struct {
	storage []byte
	// writerFailed and readerFailed say that tasks failed and that no wait has reported this.
	// The next writer depends on both, the next reader only on the writer.
	writerFailed, readerFailed bool
	// reading is the section that all readers since the last writer have mapped where it is
	// absent.
	reading [2]int
	read    bool
}

// modelArray is an array of the host.
type modelArray struct {
	name string
	host contents
	// owner is the block of each byte.
	owner []*modelBlock
	token modelToken

	// bytes and words are the storage itself.
	bytes []byte
	words []uint32
}

func (a *modelArray) place(lo, hi int) memoryPlace { return memoryPlace{&a.host, lo, hi} }

// blocks returns the array's blocks by address.
func (a *modelArray) blocks() []*modelBlock {
	var blocks []*modelBlock
	for _, b := range a.owner {
		if b != nil && (len(blocks) == 0 || blocks[len(blocks)-1] != b) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// modelBlock is host storage with corresponding storage.
type modelBlock struct {
	array    *modelArray
	lo, hi   int
	count    int
	infinite bool
	// shared says that the corresponding storage is the host's own.
	shared bool
	device memoryPlace
	// chunk is the chunk that the block is associated with, or nil.
	chunk *modelChunk
	gone  bool
	// pointer is the result of MappedPtr, if a step has called it.
	pointer vkomp.DevicePtr
	asked   bool
}

// corresponding returns the corresponding storage of bytes of the array.
func (b *modelBlock) corresponding(lo, hi int) memoryPlace {
	return b.device.from(lo-b.lo, hi-lo)
}

// wordsAt reports whether a kernel can bind the block's storage, starting at byte lo of the array.
func (b *modelBlock) wordsAt(lo int) bool {
	if b.shared {
		return lo%4 == 0
	}
	return (b.device.lo+lo-b.lo)%4 == 0
}

func (b *modelBlock) String() string {
	count := fmt.Sprint(b.count)
	if b.infinite {
		count = "infinite"
	}
	return fmt.Sprintf("%s[%d:%d] count %s", b.array.name, b.lo, b.hi, count)
}

// modelChunk is memory from Alloc.
type modelChunk struct {
	name         string
	memory       contents
	onHost       bool
	associations int
	freed        bool
	token        modelToken

	// pointer is set when the history runs.
	pointer vkomp.DevicePtr
}

func (c *modelChunk) place(lo, hi int) memoryPlace { return memoryPlace{&c.memory, lo, hi} }

// modelMapType is a map type.
type modelMapType int

const (
	modelTo modelMapType = iota
	modelToFrom
	modelFrom
	modelAlloc
	modelRelease
	modelDelete
)

func (t modelMapType) to() bool   { return t == modelTo || t == modelToFrom }
func (t modelMapType) from() bool { return t == modelFrom || t == modelToFrom }

func (t modelMapType) String() string {
	return [...]string{"to", "tofrom", "from", "alloc", "release", "delete"}[t]
}

// modelMap is an item of a map clause, in bytes of an array.
type modelMap struct {
	array                           *modelArray
	lo, hi                          int
	kind                            modelMapType
	always, present, self, deleting bool
	// ifPresent says that the item counts where it is present and maps nothing.
	ifPresent bool
	// asBytes, asSection and closeBy are variants of writing the item.
	asBytes, asSection, closeBy bool
}

func (m modelMap) size() int   { return m.hi - m.lo }
func (m modelMap) empty() bool { return m.lo == m.hi }

// counts reports whether the item raises the count of its block.
func (m modelMap) counts() bool { return !m.empty() || m.ifPresent }

func (m modelMap) String() string {
	var b strings.Builder
	for _, word := range []struct {
		set  bool
		text string
	}{
		{m.always, "always "}, {m.present, "present "}, {m.self, "self "}, {m.deleting, "delete, "}, {m.ifPresent, "if present "},
	} {
		if word.set {
			b.WriteString(word.text)
		}
	}
	fmt.Fprintf(&b, "%v:%s[%d:%d]", m.kind, m.array.name, m.lo, m.hi)
	return b.String()
}

// arg returns the item as an Arg.
func (m modelMap) arg() vkomp.Arg {
	a := m.array
	var arg vkomp.Arg
	if m.asBytes || m.lo%4 != 0 || m.hi%4 != 0 {
		arg = modelArg(m, a.bytes, 1)
	} else {
		arg = modelArg(m, a.words, 4)
	}
	if m.always {
		arg = arg.Always()
	}
	if m.present {
		arg = arg.Present()
	}
	if m.self {
		arg = arg.Self()
	}
	if m.deleting {
		arg = arg.Deleting()
	}
	if m.closeBy {
		arg = arg.Close()
	}
	return arg
}

func modelArg[T any](m modelMap, all []T, size int) vkomp.Arg {
	item := [...]func([]T) vkomp.Arg{vkomp.To[T], vkomp.ToFrom[T], vkomp.From[T], vkomp.Alloc[T], vkomp.Release[T], vkomp.Delete[T]}[m.kind]
	if m.asSection && !m.empty() {
		return item(all).Section(vkomp.Span{Start: m.lo / size, Count: (m.hi - m.lo) / size})
	}
	return item(all[m.lo/size : m.hi/size])
}

// presenceOf is the presence of an item.
type presenceOf int

const (
	isAbsent presenceOf = iota
	isInside
	isPartly
)

// find returns the block that contains all of an item.
func (m modelMap) find() (*modelBlock, presenceOf) {
	if m.empty() {
		if b := m.array.owner[m.lo]; b != nil {
			return b, isInside
		}
		return nil, isAbsent
	}
	first := m.array.owner[m.lo]
	for _, b := range m.array.owner[m.lo:m.hi] {
		if b != first {
			return nil, isPartly
		}
	}
	if first == nil {
		return nil, isAbsent
	}
	return first, isInside
}

func (m modelMap) overlaps(o modelMap) bool {
	return m.array == o.array && m.lo < o.hi && o.lo < m.hi
}

func (m modelMap) encloses(o modelMap) bool {
	return m.array == o.array && m.lo <= o.lo && o.hi <= m.hi
}

// createsBlocks returns the items for which storage has to be created.
func createsBlocks(items []modelMap) []modelMap {
	var absent []modelMap
	for _, m := range items {
		if _, is := m.find(); is == isAbsent && !m.empty() && !m.ifPresent {
			absent = append(absent, m)
		}
	}
	return absent
}

// outermost returns the items that no other item contains; of equal ones it returns one.
func outermost(items []modelMap) (outer []modelMap) {
	for i, m := range items {
		if !slices.ContainsFunc(items, func(o modelMap) bool { return o.encloses(m) && !m.encloses(o) }) &&
			!slices.ContainsFunc(items[:i], func(o modelMap) bool { return o.encloses(m) }) {
			outer = append(outer, m)
		}
	}
	return outer
}

// refusesEntry returns the errors of which a construct that enters the items must get one, none
// if it succeeds. canShare says that devices can use the host's storage.
func refusesEntry(items []modelMap, canShare bool) (errs []error) {
	for _, m := range items {
		b, is := m.find()
		switch {
		case m.ifPresent && is != isInside:
		case is == isPartly && m.present:
			errs = append(errs, vkomp.ErrPartialOverlap, vkomp.ErrNotPresent)
		case is == isPartly:
			errs = append(errs, vkomp.ErrPartialOverlap)
		case is == isAbsent && m.present:
			errs = append(errs, vkomp.ErrNotPresent)
		case is == isAbsent && m.self && !canShare && !m.empty():
			errs = append(errs, vkomp.ErrUnsupported)
		case is == isInside && m.self && !b.shared:
			errs = append(errs, vkomp.ErrNotShared)
		}
	}
	// Items inside an enclosing one share its block.
	absent := outermost(createsBlocks(items))
	for i, m := range absent {
		for _, o := range absent[:i] {
			if m.overlaps(o) {
				errs = append(errs, vkomp.ErrPartialOverlap)
			}
		}
	}
	return errs
}

// enterModel performs the entry sequence of a construct that succeeds. It returns the block of
// each item, nil if there is none.
func enterModel(items []modelMap) []*modelBlock {
	created := make(map[*modelBlock]bool)
	for _, m := range outermost(createsBlocks(items)) {
		b := &modelBlock{array: m.array, lo: m.lo, hi: m.hi}
		for _, o := range items {
			b.shared = b.shared || o.self && m.encloses(o) && !o.empty()
		}
		if b.shared {
			b.device = m.array.place(m.lo, m.hi)
		} else {
			fresh := unknownContents(m.size())
			b.device = memoryPlace{&fresh, 0, m.size()}
		}
		created[b] = true
		for i := m.lo; i < m.hi; i++ {
			m.array.owner[i] = b
		}
	}
	blocks := make([]*modelBlock, len(items))
	counted := make(map[*modelBlock]bool)
	for i, m := range items {
		b, is := m.find()
		if is != isInside {
			continue
		}
		blocks[i] = b
		if m.counts() && !counted[b] && !b.infinite {
			counted[b] = true
			b.count++
		}
		if m.kind.to() && (created[b] || m.always) && !m.ifPresent {
			b.corresponding(m.lo, m.hi).copyFrom(m.array.place(m.lo, m.hi))
		}
	}
	return blocks
}

// refusesExit returns the errors of which a construct that exits the items must get one.
func refusesExit(items []modelMap) (errs []error) {
	for _, m := range items {
		switch _, is := m.find(); {
		case m.ifPresent:
		case is == isPartly && m.present:
			errs = append(errs, vkomp.ErrPartialOverlap, vkomp.ErrNotPresent)
		case is == isPartly:
			errs = append(errs, vkomp.ErrPartialOverlap)
		case is == isAbsent && m.present:
			errs = append(errs, vkomp.ErrNotPresent)
		}
	}
	return errs
}

// exitModel performs the exit sequence.
func exitModel(items []modelMap) {
	var left []*modelBlock
	deleted := make(map[*modelBlock]bool)
	for _, m := range items {
		b, is := m.find()
		if is != isInside || !m.counts() {
			continue
		}
		last := !b.infinite && b.count == 1
		if m.kind.from() && (last || m.always || m.deleting) {
			m.array.place(m.lo, m.hi).copyFrom(b.corresponding(m.lo, m.hi))
		}
		if !slices.Contains(left, b) {
			left = append(left, b)
		}
		deleted[b] = deleted[b] || m.deleting || m.kind == modelDelete
	}
	for _, b := range left {
		switch {
		case b.infinite:
		case deleted[b]:
			b.count = 0
		default:
			b.count--
		}
		if b.count == 0 && !b.infinite {
			b.remove()
		}
	}
}

// remove removes the block from the presence table.
func (b *modelBlock) remove() {
	b.gone = true
	for i := b.lo; i < b.hi; i++ {
		b.array.owner[i] = nil
	}
}

// affineModel performs the kernel affine on n words.
func affineModel(src, dst memoryPlace, n int, mul, fac, add uint32) {
	// Invocations may run in any order.
	mixed := src.overlaps(dst) && src.lo != dst.lo && fac != 0
	copied := slices.Clone(src.bytes())
	from := memoryPlace{&copied, 0, len(copied)}
	for i := range n {
		s, knownSrc := from.word(i)
		d, knownDst := dst.word(i)
		known := (knownSrc || fac == 0) && (knownDst || mul == 0) && !mixed
		dst.setWord(i, mul*d+fac*s+add, known)
	}
}

// matches reports whether err matches one of the expected errors, or is nil if none is expected.
func matches(err error, want []error) bool {
	if len(want) == 0 {
		return err == nil
	}
	return slices.ContainsFunc(want, func(w error) bool { return errors.Is(err, w) })
}
