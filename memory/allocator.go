package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/timeline"
)

// Defaults of AllocatorOptions, in bytes.
const (
	DefaultMinBlock  = 4 << 20   // of MinBlock
	DefaultMaxBlock  = 256 << 20 // of MaxBlock
	DefaultAlignment = 256       // of Alignment: the largest minStorageBufferOffsetAlignment that Vulkan allows
)

// growthShare keeps reserved memory in proportion to used memory: a new block is
// at most 1/growthShare of all shared blocks, unless it has the size MinBlock or
// just holds the request.
const growthShare = 32

// AllocatorOptions are the limits of an Allocator. A zero field takes its
// default.
type AllocatorOptions struct {
	// MinBlock and MaxBlock bound the blocks that allocations share, in bytes.
	// Blocks start at MinBlock and double as the total grows, up to MaxBlock.
	// A request above half of MaxBlock gets a block of its own.
	MinBlock, MaxBlock uint64

	// Alignment is the alignment of every allocation's offset, in bytes, a power of
	// two. Sizes are rounded up to it.
	Alignment uint64

	// MaxAllocation bounds the size of one block in bytes
	// (maxMemoryAllocationSize); 0: no limit.
	MaxAllocation uint64

	// MaxBlocks bounds the number of blocks (maxMemoryAllocationCount); 0: no
	// limit.
	MaxBlocks int

	// Keep is up to how many bytes of blocks, empty ones among them, stay with the
	// allocator until Trim. Free gives empty blocks beyond it back to the heap, except
	// for the one that became empty last.
	Keep uint64

	// Completed reports whether the device has passed a frontier. It must not call
	// the allocator back. Nil means that it always has.
	Completed func(timeline.Frontier) bool

	// Reclaim frees memory elsewhere that the heap can then hand out, and reports
	// whether there was any. It is called before a request fails for want of
	// memory. Nil means that there is none.
	Reclaim func() bool
}

// withDefaults returns o with its zero fields filled and its sizes aligned.
func (o AllocatorOptions) withDefaults() (AllocatorOptions, error) {
	if o.Alignment == 0 {
		o.Alignment = DefaultAlignment
	}
	if bits.OnesCount64(o.Alignment) != 1 {
		return o, fmt.Errorf("memory: alignment %d is not a power of two", o.Alignment)
	}
	mask := o.Alignment - 1
	limit := ^uint64(0) &^ mask
	if o.MaxAllocation != 0 {
		limit = o.MaxAllocation &^ mask
		if limit == 0 {
			return o, fmt.Errorf("memory: largest allocation %d is below the alignment %d", o.MaxAllocation, o.Alignment)
		}
	}
	if o.MaxBlock == 0 {
		o.MaxBlock = max(DefaultMaxBlock, o.MinBlock)
	}
	if o.MinBlock == 0 {
		o.MinBlock = min(DefaultMinBlock, o.MaxBlock)
	}
	if o.MinBlock > o.MaxBlock {
		return o, fmt.Errorf("memory: smallest block %d is above the largest, %d", o.MinBlock, o.MaxBlock)
	}
	if o.MaxBlocks < 0 {
		return o, fmt.Errorf("memory: block limit %d is negative", o.MaxBlocks)
	}
	o.MaxBlock = max(min(o.MaxBlock, limit)&^mask, o.Alignment)
	o.MinBlock = max(min(o.MinBlock, o.MaxBlock)&^mask, o.Alignment)
	return o, nil
}

// block is one block of the heap with the chunks that it is divided into.
type block struct {
	region
	heap      HeapBlock
	index     int  // in Allocator.blocks
	dedicated bool // its one chunk is not in the index
}

// Allocator hands out device memory from the blocks of a Heap. It is not safe for
// concurrent use: the scheduler serializes calls.
type Allocator struct {
	heap    Heap
	options AllocatorOptions
	shift   int // log2 of the alignment: bytes to granules

	closed bool
	index  tlsf
	blocks []*block
	empty  []*block // blocks without live chunks, the most recently emptied last

	pooledBytes                uint64 // of all blocks that are not dedicated
	blockBytes, peakBlockBytes uint64
	liveBytes, peakLiveBytes   uint64 // granules in use, in bytes
	allocations                int
	trimmedBlocks              uint64
	trimmedBytes               uint64
}

// NewAllocator returns an allocator over h. It takes no block until the first
// allocation.
func NewAllocator(h Heap, o AllocatorOptions) (*Allocator, error) {
	if h == nil {
		return nil, errors.New("memory: allocator without a heap")
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Allocator{
		heap:    h,
		options: o,
		shift:   bits.TrailingZeros64(o.Alignment),
	}, nil
}

// Allocate returns storage of size bytes with undefined contents. Its user has to
// be ordered after its LastUse.
//
// If the heap refuses, Allocate gives empty blocks back and tries again, then calls
// Reclaim and tries again. After that the error is an *OutOfMemoryError, which
// matches ErrOutOfMemory, and nothing else has changed. A heap's error that does
// not match ErrOutOfMemory is returned at once. Size zero is ErrInvalidSize.
func (a *Allocator) Allocate(size uint64) (s Storage, err error) {
	err = a.AllocateTo(&s, size)
	return s, err
}

// AllocateTo is Allocate for a caller that keeps the storage in s, which stays as it
// is if there is an error.
func (a *Allocator) AllocateTo(s *Storage, size uint64) error {
	if size == 0 {
		return fmt.Errorf("memory: allocate: %w", ErrInvalidSize)
	}
	err := a.allocate(size, s)
	if err != nil && a.options.Reclaim != nil && errors.Is(err, ErrOutOfMemory) && a.options.Reclaim() {
		err = a.allocate(size, s)
	}
	return err
}

// allocate is Allocate without Reclaim.
func (a *Allocator) allocate(size uint64, s *Storage) error {
	if invariants.Enabled {
		defer a.holds()
	}
	if a.closed {
		return fmt.Errorf("memory: allocate %d bytes: %w", size, ErrClosed)
	}
	granules := (size-1)>>a.shift + 1
	if limit := a.options.MaxAllocation; limit != 0 && granules > limit>>a.shift {
		return a.outOfMemory(size, fmt.Errorf("above the largest allocation, %d bytes", limit))
	}
	if granules > ^uint64(0)>>a.shift {
		return a.outOfMemory(size, errors.New("above what 64 bits can address"))
	}

	var b *block
	var c *chunk
	var err error
	if granules<<a.shift > a.options.MaxBlock/2 {
		b, err = a.takeDedicated(granules)
		if err == nil {
			c = b.first
		}
	} else {
		c = a.index.find(granules, false)
		if c == nil {
			c, err = a.grow(granules)
		}
		if err == nil {
			b = c.region.owner
			a.removeFromEmpty(b)
			a.index.take(c, granules)
		}
	}
	if err != nil {
		if errors.Is(err, ErrOutOfMemory) {
			return a.outOfMemory(size, err)
		}
		return fmt.Errorf("memory: allocate %d bytes: %w", size, err)
	}

	c.asked = size
	a.allocations++
	a.liveBytes += c.size << a.shift
	a.peakLiveBytes = max(a.peakLiveBytes, a.liveBytes)
	*s = Storage{
		Block:      b.heap,
		Offset:     c.offset << a.shift,
		Size:       size,
		owner:      a,
		chunk:      c,
		generation: c.generation,
	}
	return nil
}

// Free takes s back. The memory may be handed out again at once; its next user is
// told to be ordered after lastUse and after s.LastUse. Storage that a did not hand
// out, or that was freed before, is ErrUnknownStorage.
func (a *Allocator) Free(s *Storage, lastUse timeline.Frontier) error {
	if invariants.Enabled {
		defer a.holds()
	}
	if a.closed {
		return fmt.Errorf("memory: free %d bytes at %d: %w", s.Size, s.Offset, ErrClosed)
	}
	if s.owner != a || s.chunk == nil || s.chunk.generation != s.generation {
		return fmt.Errorf("memory: free %d bytes at %d: %w", s.Size, s.Offset, ErrUnknownStorage)
	}
	c := s.chunk
	b := c.region.owner
	a.allocations--
	a.liveBytes -= c.size << a.shift
	if b.dedicated {
		c.release(lastUse)
	} else {
		a.index.give(c, lastUse)
	}
	if b.live == 0 {
		if a.blockBytes > a.options.Keep {
			a.trim(a.options.Keep)
		}
		a.empty = append(a.empty, b)
	}
	return nil
}

// Trim gives every empty block that the device no longer uses back to the heap and
// returns their size in bytes. Free does so too, but keeps the block that became
// empty last, and others as AllocatorOptions.Keep says.
func (a *Allocator) Trim() uint64 {
	if invariants.Enabled {
		defer a.holds()
	}
	return a.trim(0)
}

// Close gives all blocks back to the heap, whatever their last use, so the device
// must be idle. Its error matches ErrLeaked and counts the allocations that were
// still live. Closing again does nothing.
func (a *Allocator) Close() error {
	if invariants.Enabled {
		defer a.holds()
	}
	if a.closed {
		return nil
	}
	a.closed = true
	err := a.leaks()
	for _, b := range a.blocks {
		a.heap.FreeBlock(b.heap)
	}
	a.blocks, a.empty, a.index = nil, nil, tlsf{}
	a.pooledBytes, a.blockBytes, a.liveBytes, a.allocations = 0, 0, 0, 0
	return err
}

// takeDedicated returns a block for a single allocation of granules, marked as in
// use. It reuses an empty dedicated block if at most an eighth of it is wasted.
func (a *Allocator) takeDedicated(granules uint64) (*block, error) {
	var best *block
	for _, b := range a.empty {
		if b.dedicated && b.size >= granules && b.size-granules <= granules/8 && (best == nil || b.size < best.size) {
			best = b
		}
	}
	if best == nil {
		var err error
		best, err = a.newBlock(granules<<a.shift, true)
		if errors.Is(err, ErrOutOfMemory) && a.trim(0) > 0 {
			best, err = a.newBlock(granules<<a.shift, true)
		}
		if err != nil {
			return nil, err
		}
	} else {
		a.removeFromEmpty(best)
	}
	best.first.free = false
	best.live++
	return best, nil
}

// grow returns an indexed chunk of at least granules. It makes a new block; if the
// heap refuses, it searches the existing blocks exhaustively.
func (a *Allocator) grow(granules uint64) (*chunk, error) {
	need := granules << a.shift
	size := a.options.MinBlock
	for size <= a.options.MaxBlock/2 && size*2 <= a.pooledBytes/growthShare {
		size *= 2
	}
	size = max(size, need)
	b, err := a.newBlock(size, false)
	if err == nil {
		return b.first, nil
	}
	if !errors.Is(err, ErrOutOfMemory) {
		return nil, err
	}
	if c := a.index.find(granules, true); c != nil {
		return c, nil
	}
	a.trim(0)
	for {
		b, err = a.newBlock(size, false)
		if err == nil {
			return b.first, nil
		}
		if size == need || !errors.Is(err, ErrOutOfMemory) {
			return nil, err
		}
		if size /= 2; size < max(need, a.options.MinBlock) {
			size = need
		}
		size &^= a.options.Alignment - 1
	}
}

// newBlock takes a block of size bytes, a multiple of the alignment, from the
// heap.
func (a *Allocator) newBlock(size uint64, dedicated bool) (*block, error) {
	if limit := a.options.MaxBlocks; limit != 0 && len(a.blocks) >= limit {
		return nil, fmt.Errorf("%w: all %d blocks that the device allows are taken", ErrOutOfMemory, limit)
	}
	h, err := a.heap.AllocateBlock(size)
	if err != nil {
		return nil, err
	}
	if h.Size < size {
		a.heap.FreeBlock(h)
		return nil, fmt.Errorf("heap block of %d bytes where %d were asked", h.Size, size)
	}
	b := &block{heap: h, index: len(a.blocks), dedicated: dedicated}
	b.owner = b
	a.index.initRegion(&b.region, h.Size>>a.shift)
	if !dedicated {
		a.index.link(b.first)
		a.pooledBytes += h.Size
	}
	a.blocks = append(a.blocks, b)
	a.blockBytes += h.Size
	a.peakBlockBytes = max(a.peakBlockBytes, a.blockBytes)
	return b, nil
}

// trim gives back the empty blocks that the device no longer uses, those first that
// have been empty longest, until all blocks have at most keep bytes.
func (a *Allocator) trim(keep uint64) uint64 {
	var bytes uint64
	a.empty = slices.DeleteFunc(a.empty, func(b *block) bool {
		if keep > 0 && a.blockBytes <= keep {
			return false
		}
		if done := a.options.Completed; done != nil && !done(b.first.lastUse) {
			return false
		}
		bytes += b.heap.Size
		a.trimmedBlocks++
		a.freeBlock(b)
		return true
	})
	a.trimmedBytes += bytes
	return bytes
}

func (a *Allocator) freeBlock(b *block) {
	a.index.retireRegion(&b.region, !b.dedicated)
	last := len(a.blocks) - 1
	a.blocks[b.index] = a.blocks[last]
	a.blocks[b.index].index = b.index
	a.blocks[last] = nil
	a.blocks = a.blocks[:last]
	a.blockBytes -= b.heap.Size
	if !b.dedicated {
		a.pooledBytes -= b.heap.Size
	}
	a.heap.FreeBlock(b.heap)
}

// removeFromEmpty takes b, which is about to be used, off the list of empty blocks.
func (a *Allocator) removeFromEmpty(b *block) {
	if b.live > 0 {
		return
	}
	if i := slices.Index(a.empty, b); i >= 0 {
		a.empty = slices.Delete(a.empty, i, i+1)
	}
}

func (a *Allocator) outOfMemory(asked uint64, cause error) error {
	return &OutOfMemoryError{
		Asked:      asked,
		LiveBytes:  a.liveBytes,
		BlockBytes: a.blockBytes,
		Blocks:     len(a.blocks),
		Cause:      cause,
	}
}
