package tasks

import "math/bits"

// index is the set of locations that depend items name. A location is found by its exact section,
// or by any byte of it.
//
// A location of size bytes has class ⌈log₂ size⌉, and its class has granules of an eighth of its
// longest size, or 8 bytes. A location belongs to the granule it starts in, so whatever overlaps
// a section starts in one run of granules of each class: from a longest size before the section
// to the section's end. What starts in the run's first half but ends before the section is looked
// at too.
//
//	location              ├────────────────────────────────────────────┤
//	granules  │     │     │     │     │     │     │     │     │     │
//	                      64 of them are a group, with a bit for each,
//	                      64 groups one of height 2, up to the roots
//
// A hash table leads from a granule to the chain of its locations. Which granules of a run are
// occupied is read off 64-way bitmaps, hashed like the granules; a bitmap of height h has a bit
// for each occupied bitmap of height h−1. Each class has only the heights it needs: its occupied
// groups of the topmost height, the roots, are a list of at most maxRoots, and a class of few
// granules has no bitmaps but a list of granules.
//
// Two locations of one chain always overlap, save those of at most 8 bytes, of which a chain
// holds at most 64; so a chain is no longer than what an overlap query for one of them has to
// find anyway.
//
// Costs, by hash probes: find is one; insert and remove are one, and one for each height up to
// the first group that stays occupied; a query is one or two for each occupied class, and one for
// each occupied granule or group found. Nothing depends on the number of bytes. Tables double and
// halve, so that an operation may copy a table, but not again before a proportional number of
// operations has passed; otherwise nothing allocates.
//
// The zero value is an empty index. Callers serialise.
type index struct {
	// granules leads from an occupied granule to its locations, linked by
	// location.next.
	granules hashTable[*location]
	// groups holds the bitmaps of all classes and heights.
	groups hashTable[uint64]
	// occupied has bit c−minClass set while class c has locations.
	occupied uint64
	classes  [maxClass - minClass + 1]*sizeClass
	count    int
}

// sizeClass is the state of one class in an index. It is kept when the class becomes empty, since
// it is small and holds no location.
type sizeClass struct {
	// height is the height of the roots: 0 if they are granules, otherwise that of their
	// bitmaps.
	height uint
	// roots[:rooted] are the numbers of the occupied groups at height, in no order. There is
	// room for one more than maxRoots until the class is raised.
	roots  [maxRoots + 1]uint64
	rooted int
	// children counts the occupied groups at height−1; it is 0 if height is 0.
	children int
}

const (
	// minClass holds every size up to 8 bytes.
	minClass = 3
	maxClass = 64
	// granulesPerSize is log₂ of the granules in the longest size of a class.
	granulesPerSize = 3

	// A class is raised above maxRoots and lowered at minChildren. The distance between the
	// two pays for the next change.
	maxRoots    = 16
	minChildren = 4
)

// classOf returns the class of a size, which is at least 1.
func classOf(size uintptr) uint {
	return max(uint(bits.Len64(uint64(size)-1)), minClass)
}

// granuleShift returns log₂ of the bytes in a granule of class c. The shortest classes have
// granules of 8 bytes, since starts are rarely closer. Here and below, & 63 changes no value: it
// saves the check for shifts of 64 and more.
func granuleShift(c uint) uint {
	return max(c-granulesPerSize, minClass) & 63
}

// ancestor returns the number of the group of height h that contains n, a granule, or, if n is a
// group of height g, that of height g+h.
func ancestor(n uint64, h uint) uint64 {
	return n >> (6 * h & 63)
}

// granuleKey numbers the granules of all classes apart, and none of them 0.
// Granules of 2^s bytes are 2^(64−s): those of classes 7 to 64, of ever greater
// bytes, are tagged by the bit above their number and stay below bit 62; the
// four classes of 8 bytes have the upper half and the next two bits to
// themselves.
func granuleKey(c uint, n uint64) uint64 {
	if c <= 2*granulesPerSize {
		return 1<<63 | uint64(c-minClass)<<61 | n
	}
	return 1<<((64+granulesPerSize-c)&63) | n
}

// groupKey numbers the groups of all classes and heights from 1 on apart, and
// none of them 0: the class above bit 58, below it the group's number under a
// bit that tells the height.
func groupKey(c, height uint, n uint64) uint64 {
	return uint64(c-minClass)<<58 | 1<<((61-6*height)&63) | n
}

// len returns the number of locations.
func (x *index) len() int { return x.count }

// find returns the location of exactly s, or nil.
func (x *index) find(s section) *location {
	c := classOf(s.size)
	i := x.granules.find(granuleKey(c, uint64(s.start)>>granuleShift(c)))
	if i < 0 {
		return nil
	}
	l := x.granules.slots[i].value
	for l != nil && l.section != s {
		l = l.next
	}
	return l
}

// insert adds l, whose section must not be in the index, and from then on uses l.next.
func (x *index) insert(l *location) {
	c := classOf(l.size)
	n := uint64(l.start) >> granuleShift(c)
	i, fresh := x.granules.put(granuleKey(c, n))
	head := &x.granules.slots[i].value
	l.next, *head = *head, l
	x.count++
	if fresh {
		x.occupy(c, n)
	}
}

// remove removes l, which must be in the index, and clears l.next.
func (x *index) remove(l *location) {
	c := classOf(l.size)
	n := uint64(l.start) >> granuleShift(c)
	i := x.granules.find(granuleKey(c, n))
	if i < 0 {
		return
	}
	link := &x.granules.slots[i].value
	if *link == l && l.next == nil {
		x.granules.delete(i)
		x.count--
		x.vacate(c, n)
		return
	}
	for *link != nil && *link != l {
		link = &(*link).next
	}
	if *link == nil {
		return
	}
	*link, l.next = l.next, nil
	x.count--
}

// occupy adds granule n of class c, which was empty, to the class's bitmaps.
func (x *index) occupy(c uint, n uint64) {
	k := x.classes[c-minClass]
	if k == nil {
		k = new(sizeClass)
		x.classes[c-minClass] = k
	}
	for h := uint(1); h <= k.height; h++ {
		if h == k.height {
			k.children++
		}
		if !x.setBit(c, h, n) {
			return
		}
		n >>= 6
	}
	x.occupied |= 1 << (c - minClass)
	k.roots[k.rooted] = n
	k.rooted++
	for k.rooted > maxRoots {
		x.raise(c, k)
	}
}

// vacate undoes occupy: granule n of class c has no more locations.
func (x *index) vacate(c uint, n uint64) {
	k := x.classes[c-minClass]
	emptied := true
	for h := uint(1); h <= k.height && emptied; h++ {
		if h == k.height {
			k.children--
		}
		i := x.groups.find(groupKey(c, h, n>>6))
		mask := &x.groups.slots[i].value
		*mask &^= 1 << (n & 63)
		n >>= 6
		if emptied = *mask == 0; emptied {
			x.groups.delete(i)
		}
	}
	if emptied {
		i := 0
		for k.roots[i] != n {
			i++
		}
		k.rooted--
		k.roots[i] = k.roots[k.rooted]
		if k.rooted == 0 {
			x.occupied &^= 1 << (c - minClass)
		}
	}
	for k.height > 0 && k.children <= minChildren {
		x.lower(c, k)
	}
}

// setBit marks group n of height h−1 in its parent, and reports whether the parent is new.
func (x *index) setBit(c, h uint, n uint64) bool {
	i, fresh := x.groups.put(groupKey(c, h, n>>6))
	x.groups.slots[i].value |= 1 << (n & 63)
	return fresh
}

// raise adds a level above the roots. Height 10 has at most two groups, so there are never more
// levels.
func (x *index) raise(c uint, k *sizeClass) {
	k.height++
	k.children = k.rooted
	roots := k.roots[:k.rooted]
	k.rooted = 0
	for _, n := range roots {
		if x.setBit(c, k.height, n) {
			k.roots[k.rooted] = n >> 6
			k.rooted++
		}
	}
}

// lower removes the topmost level, whose groups have at most minChildren.
func (x *index) lower(c uint, k *sizeClass) {
	parents := k.roots
	rooted := k.rooted
	k.rooted = 0
	for _, n := range parents[:rooted] {
		i := x.groups.find(groupKey(c, k.height, n))
		for mask := x.groups.slots[i].value; mask != 0; mask &= mask - 1 {
			k.roots[k.rooted] = n<<6 | uint64(bits.TrailingZeros64(mask))
			k.rooted++
		}
		x.groups.delete(i)
	}
	k.height--
	k.children = 0
	if k.height == 0 {
		return
	}
	for _, n := range k.roots[:k.rooted] {
		i := x.groups.find(groupKey(c, k.height, n))
		k.children += bits.OnesCount64(x.groups.slots[i].value)
	}
}

// startRange is the range of granules of one class in which the locations that overlap
// first..last can start.
type startRange struct {
	first, last uint64
	class       uint
	from, to    uint64
}

// appendOverlapping appends every location that shares a byte with s, including one with exactly
// s, each once and in no order.
func (x *index) appendOverlapping(dst []*location, s section) []*location {
	first := uint64(s.start)
	last := first + uint64(s.size) - 1
	for m := x.occupied; m != 0; m &= m - 1 {
		c := uint(bits.TrailingZeros64(m)) + minClass
		longest := uint64(1)<<c - 1
		from := (first - min(first, longest)) >> granuleShift(c)
		to := last >> granuleShift(c)
		k := x.classes[c-minClass]
		if k.height == 0 {
			for _, n := range k.roots[:k.rooted] {
				if n-from <= to-from {
					dst = x.appendGranule(dst, first, last, granuleKey(c, n))
				}
			}
			continue
		}
		if n := from >> 6; n == to>>6 {
			if i := x.groups.find(groupKey(c, 1, n)); i >= 0 {
				mask := x.groups.slots[i].value & (^uint64(0) << (from & 63)) & (^uint64(0) >> (63 - to&63))
				for ; mask != 0; mask &= mask - 1 {
					dst = x.appendGranule(dst, first, last, granuleKey(c, n<<6|uint64(bits.TrailingZeros64(mask))))
				}
			}
			continue
		}
		dst = x.appendRange(dst, k, startRange{first, last, c, from, to})
	}
	return dst
}

// appendRange appends the overlapping locations in the granules of r, whose class k has bitmaps.
// It starts at the lowest height at which r is within two neighbouring groups, or at the roots.
func (x *index) appendRange(dst []*location, k *sizeClass, r startRange) []*location {
	h := uint(1)
	for h <= k.height && ancestor(r.to, h)-ancestor(r.from, h) > 1 {
		h++
	}
	if h <= k.height {
		from, to := ancestor(r.from, h), ancestor(r.to, h)
		dst = x.appendGroup(dst, &r, h, from)
		if to != from {
			dst = x.appendGroup(dst, &r, h, to)
		}
		return dst
	}
	from, to := ancestor(r.from, k.height), ancestor(r.to, k.height)
	for _, n := range k.roots[:k.rooted] {
		if n-from <= to-from {
			dst = x.appendGroup(dst, &r, k.height, n)
		}
	}
	return dst
}

// appendGroup appends the overlapping locations in the granules of r within group n of height h ≥
// 1.
func (x *index) appendGroup(dst []*location, r *startRange, h uint, n uint64) []*location {
	i := x.groups.find(groupKey(r.class, h, n))
	if i < 0 {
		return dst
	}
	mask := x.groups.slots[i].value
	if child := ancestor(r.from, h-1); child>>6 == n {
		mask &= ^uint64(0) << (child & 63)
	}
	if child := ancestor(r.to, h-1); child>>6 == n {
		mask &= ^uint64(0) >> (63 - child&63)
	}
	for ; mask != 0; mask &= mask - 1 {
		child := n<<6 | uint64(bits.TrailingZeros64(mask))
		if h == 1 {
			dst = x.appendGranule(dst, r.first, r.last, granuleKey(r.class, child))
		} else {
			dst = x.appendGroup(dst, r, h-1, child)
		}
	}
	return dst
}

// appendGranule appends the locations in the granule of key that overlap first..last.
func (x *index) appendGranule(dst []*location, first, last, key uint64) []*location {
	i := x.granules.find(key)
	if i < 0 {
		return dst
	}
	for l := x.granules.slots[i].value; l != nil; l = l.next {
		if uint64(l.start) <= last && first <= uint64(l.start)+uint64(l.size)-1 {
			dst = append(dst, l)
		}
	}
	return dst
}
