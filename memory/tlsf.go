package memory

import (
	"fmt"
	"math/bits"

	"github.com/vkomp/vkomp/timeline"
)

// The size classes of the two-level segregated fit ("TLSF: a New Dynamic
// Memory Allocator for Real-Time Systems", Masmano et al., 2004). Sizes below
// secondLevels have a class each; above that, every power of two is divided into
// secondLevels classes of equal width, so that a class wastes at most 1/32.
const (
	secondLevelBits = 5
	secondLevels    = 1 << secondLevelBits
	firstLevels     = 64 - secondLevelBits + 1

	// classProbes is how many chunks of the request's own class are looked at
	// before a chunk of a larger class is split. The first are the most recent
	// frees of the same size.
	classProbes = 4
)

// chunk is a run of granules of one region, free or in use.
type chunk struct {
	region       *region
	offset, size uint64 // granules
	free         bool

	previous, next         *chunk // by offset, nil at the region's ends
	previousFree, nextFree *chunk // in the list of the class, while free

	// lastUse is the join of the last uses of everything ever freed into the
	// chunk's granules. It does not change while the chunk is in use.
	lastUse timeline.Frontier

	// generation counts the frees of this chunk value, which is recycled. A Storage
	// with another generation is stale.
	generation uint64

	asked uint64 // bytes, as asked, while in use
}

// region is a run of granules [0, size) that chunks divide without gaps; no
// two neighbours are both free. An indexed region's free chunks are in a tlsf.
type region struct {
	size  uint64 // granules
	first *chunk
	live  int    // chunks in use
	owner *block // for the allocator; nothing here reads it
}

// tlsf indexes the free chunks of any number of regions by size. take and give
// take constant time in the number of chunks and regions.
type tlsf struct {
	firstLevel  uint64              // bit i: secondLevel[i] is not zero
	secondLevel [firstLevels]uint32 // bit j: lists[i][j] is not empty
	lists       [firstLevels][secondLevels]*chunk
	spare       *chunk // recycled chunk values, linked by next
}

// classOf returns the class that holds chunks of size granules.
func classOf(size uint64) (first, second int) {
	if size < secondLevels {
		return 0, int(size)
	}
	log := bits.Len64(size) - 1
	return log - secondLevelBits + 1, int(size>>(log-secondLevelBits)) & (secondLevels - 1)
}

// classAbove returns the lowest class in which every chunk holds size granules;
// ok is false if there is no such class.
func classAbove(size uint64) (first, second int, ok bool) {
	if size >= secondLevels {
		width := uint64(1) << (bits.Len64(size) - 1 - secondLevelBits)
		rounded := size + width - 1
		if rounded < size {
			return 0, 0, false
		}
		size = rounded
	}
	first, second = classOf(size)
	return first, second, true
}

// initRegion makes r a region of size granules, at least 1, that is one chunk,
// free and not indexed.
func (t *tlsf) initRegion(r *region, size uint64) {
	c := t.newChunk()
	c.region, c.offset, c.size, c.free = r, 0, size, true
	r.size, r.first, r.live = size, c, 0
}

// retireRegion recycles the chunk of a region without live chunks; indexed
// says whether that chunk is in t.
func (t *tlsf) retireRegion(r *region, indexed bool) {
	if indexed {
		t.unlink(r.first)
	}
	t.retire(r.first)
	r.first = nil
}

// find returns a free chunk of at least size granules, nil if there is none.
// Unless exhaustive, it takes constant time and may miss a chunk of the request's
// own class that is large enough.
func (t *tlsf) find(size uint64, exhaustive bool) *chunk {
	first, second := classOf(size)
	own := t.lists[first][second]
	c := own
	for range classProbes {
		if c == nil {
			break
		}
		if c.size >= size {
			return c
		}
		c = c.nextFree
	}
	if i, j, ok := classAbove(size); ok {
		if found := t.firstFrom(i, j); found != nil {
			return found
		}
	}
	if exhaustive {
		for ; c != nil; c = c.nextFree {
			if c.size >= size {
				return c
			}
		}
	}
	return nil
}

// firstFrom returns a chunk of the lowest class that is not empty, starting at
// class (first, second).
func (t *tlsf) firstFrom(first, second int) *chunk {
	if m := t.secondLevel[first] >> second << second; m != 0 {
		return t.lists[first][bits.TrailingZeros32(m)]
	}
	m := t.firstLevel >> (first + 1) << (first + 1)
	if m == 0 {
		return nil
	}
	first = bits.TrailingZeros64(m)
	return t.lists[first][bits.TrailingZeros32(t.secondLevel[first])]
}

// largest returns the size in granules of the largest free chunk.
func (t *tlsf) largest() uint64 {
	if t.firstLevel == 0 {
		return 0
	}
	first := bits.Len64(t.firstLevel) - 1
	second := bits.Len32(t.secondLevel[first]) - 1
	size := uint64(0)
	for c := t.lists[first][second]; c != nil; c = c.nextFree {
		size = max(size, c.size)
	}
	return size
}

// take puts the first size granules of a free, indexed chunk in use. The rest
// becomes a free chunk with the same frontier.
func (t *tlsf) take(c *chunk, size uint64) {
	t.unlink(c)
	if c.size > size {
		rest := t.newChunk()
		rest.region, rest.offset, rest.size, rest.free = c.region, c.offset+size, c.size-size, true
		rest.lastUse.Join(c.lastUse)
		rest.previous, rest.next = c, c.next
		if c.next != nil {
			c.next.previous = rest
		}
		c.next, c.size = rest, size
		t.link(rest)
	}
	c.free = false
	c.region.live++
}

// give frees a chunk of an indexed region and merges it with its free neighbours,
// joining their frontiers. lastUse is the last use of the chunk; c must not be
// used afterwards.
func (t *tlsf) give(c *chunk, lastUse timeline.Frontier) {
	c.release(lastUse)
	if p := c.previous; p != nil && p.free {
		t.unlink(p)
		t.absorbNext(p)
		c = p
	}
	if n := c.next; n != nil && n.free {
		t.unlink(n)
		t.absorbNext(c)
	}
	t.link(c)
}

// release marks c free without indexing or merging it.
func (c *chunk) release(lastUse timeline.Frontier) {
	c.lastUse.Join(lastUse)
	c.generation++
	c.free, c.asked = true, 0
	c.region.live--
}

// absorbNext merges the chunk after c into c. Neither is in a list.
func (t *tlsf) absorbNext(c *chunk) {
	n := c.next
	c.size += n.size
	c.lastUse.Join(n.lastUse)
	c.next = n.next
	if n.next != nil {
		n.next.previous = c
	}
	t.retire(n)
}

func (t *tlsf) link(c *chunk) {
	i, j := classOf(c.size)
	head := t.lists[i][j]
	c.previousFree, c.nextFree = nil, head
	if head != nil {
		head.previousFree = c
	}
	t.lists[i][j] = c
	t.firstLevel |= 1 << i
	t.secondLevel[i] |= 1 << j
}

func (t *tlsf) unlink(c *chunk) {
	if c.nextFree != nil {
		c.nextFree.previousFree = c.previousFree
	}
	if c.previousFree != nil {
		c.previousFree.nextFree = c.nextFree
	} else {
		i, j := classOf(c.size)
		t.lists[i][j] = c.nextFree
		if c.nextFree == nil {
			t.secondLevel[i] &^= 1 << j
			if t.secondLevel[i] == 0 {
				t.firstLevel &^= 1 << i
			}
		}
	}
	c.previousFree, c.nextFree = nil, nil
}

func (t *tlsf) newChunk() *chunk {
	c := t.spare
	if c == nil {
		return &chunk{}
	}
	t.spare = c.next
	c.next = nil
	return c
}

// retire recycles a chunk value that is in no list. It keeps the generation and
// the memory of the frontier.
func (t *tlsf) retire(c *chunk) {
	c.lastUse.Reset()
	c.generation++
	c.region, c.previous = nil, nil
	c.next = t.spare
	t.spare = c
}

// validate recomputes the lists and bitmaps from the chunks of the indexed
// regions.
func (t *tlsf) validate(indexed []*region) error {
	free := map[*chunk]bool{}
	for _, r := range indexed {
		if err := r.validate(); err != nil {
			return err
		}
		for c := r.first; c != nil; c = c.next {
			if c.free {
				free[c] = true
			}
		}
	}
	for i := range t.lists {
		if got, want := t.firstLevel>>i&1 != 0, t.secondLevel[i] != 0; got != want {
			return fmt.Errorf("memory: first-level bit %d is %t, want %t", i, got, want)
		}
		for j, c := range t.lists[i] {
			if got, want := t.secondLevel[i]>>j&1 != 0, c != nil; got != want {
				return fmt.Errorf("memory: second-level bit %d,%d is %t, want %t", i, j, got, want)
			}
			for previous := (*chunk)(nil); c != nil; previous, c = c, c.nextFree {
				if !free[c] {
					return fmt.Errorf("memory: list %d,%d holds a chunk that is not free, or twice", i, j)
				}
				delete(free, c)
				if c.previousFree != previous {
					return fmt.Errorf("memory: list %d,%d is not linked backwards at offset %d", i, j, c.offset)
				}
				if ci, cj := classOf(c.size); ci != i || cj != j {
					return fmt.Errorf("memory: list %d,%d holds a chunk of %d granules", i, j, c.size)
				}
			}
		}
	}
	if len(free) > 0 {
		return fmt.Errorf("memory: %d free chunks are in no list", len(free))
	}
	return nil
}

// validate walks the chunks of r by offset.
func (r *region) validate() error {
	var end uint64
	live := 0
	for previous, c := (*chunk)(nil), r.first; c != nil; previous, c = c, c.next {
		switch {
		case c.region != r:
			return fmt.Errorf("memory: chunk at %d belongs to another region", c.offset)
		case c.offset != end || c.size == 0:
			return fmt.Errorf("memory: chunk at %d of %d granules follows one that ends at %d", c.offset, c.size, end)
		case c.previous != previous:
			return fmt.Errorf("memory: chunk at %d is not linked backwards", c.offset)
		case c.free && previous != nil && previous.free:
			return fmt.Errorf("memory: chunks at %d and %d are free and not merged", previous.offset, c.offset)
		}
		if !c.free {
			live++
		}
		end += c.size
	}
	if end != r.size || live != r.live {
		return fmt.Errorf("memory: region of %d granules, %d live, has chunks of %d granules, %d live", r.size, r.live, end, live)
	}
	return nil
}
