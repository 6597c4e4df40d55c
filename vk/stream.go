package vk

import (
	"iter"
	"unsafe"
)

// Stage is VkPipelineStageFlags.
type Stage uint32

// The stages that a compute runtime meets, with Vulkan's values.
const (
	StageTopOfPipe   Stage = 0x00000001 // TOP_OF_PIPE
	StageCompute     Stage = 0x00000800 // COMPUTE_SHADER
	StageTransfer    Stage = 0x00001000 // TRANSFER
	StageHost        Stage = 0x00004000 // HOST
	StageAllCommands Stage = 0x00010000 // ALL_COMMANDS
)

// Access is VkAccessFlags.
type Access uint32

// The accesses that a compute runtime meets, with Vulkan's values.
const (
	AccessShaderRead    Access = 0x00000020
	AccessShaderWrite   Access = 0x00000040
	AccessTransferRead  Access = 0x00000800
	AccessTransferWrite Access = 0x00001000
	AccessHostRead      Access = 0x00002000
	AccessHostWrite     Access = 0x00004000
	AccessMemoryRead    Access = 0x00008000
	AccessMemoryWrite   Access = 0x00010000
)

// Barrier is one global memory barrier. A stage mask must not be zero.
type Barrier struct {
	SrcStage, DstStage   Stage
	SrcAccess, DstAccess Access
}

// BufferRange is Size bytes of a buffer from byte Offset on.
type BufferRange struct {
	Buffer       Buffer
	Offset, Size uint64
}

// CopyRegion is one range of bytes that a copy moves from one buffer to another.
// It lies in memory as VkBufferCopy does.
type CopyRegion struct{ SrcOffset, DstOffset, Size uint64 }

// maxUnorderedRegions bounds what a submission compares of a copy inside one
// buffer, region by region, where their order does not tell; see CopyRegions.
const maxUnorderedRegions = 64

// OpCode tells the operations of a Stream apart.
type OpCode uint8

// The operations. Zero is none, so that a stream of zeros is malformed.
const (
	OpBarrier OpCode = iota + 1
	OpDispatch
	OpCopy
	OpFill
	OpTimestamp
)

// String names the operation, such as "dispatch".
func (c OpCode) String() string {
	switch c {
	case OpBarrier:
		return "barrier"
	case OpDispatch:
		return "dispatch"
	case OpCopy:
		return "copy"
	case OpFill:
		return "fill"
	case OpTimestamp:
		return "timestamp"
	}
	return "unknown"
}

// Op is one decoded operation; Code says which fields are set. Bindings, Push and
// Regions alias the stream: they are valid until it is changed, and must not be
// written.
type Op struct {
	Code        OpCode
	Barrier     Barrier       // OpBarrier
	Pipeline    Pipeline      // OpDispatch
	Bindings    []BufferRange // OpDispatch
	Push        []byte        // OpDispatch
	Base, Count [3]uint32     // OpDispatch
	From, To    Buffer        // OpCopy
	Regions     []CopyRegion  // OpCopy
	Dst         BufferRange   // OpFill
	Value       uint32        // OpFill
	Pool        QueryPool     // OpTimestamp
	Query       uint32        // OpTimestamp
	Stage       Stage         // OpTimestamp
}

// Stream is a sequence of device operations, kept as words that C reads without
// translation:
//
//	header    code | bindings<<8 | words<<32   (words: the operation's, header included)
//	barrier   source stage | destination stage<<32, source access | destination access<<32
//	dispatch  pipeline, layout, set layout, bindings | mask<<32,
//	          base x | base y<<32, base z | count x<<32, count y | count z<<32,
//	          push bytes | push constants of the pipeline<<32,
//	          {buffer, offset, size} a binding, the push bytes padded to whole words
//	copy      source, destination, {source offset, destination offset, size} a region
//	fill      destination, offset, size, value
//	timestamp pool, query | queries of the pool<<32, stage
//
// Nothing orders the operations but the barriers among them. The zero Stream is
// empty and ready. Submitting a stream reads it and does not change it; a reset
// one keeps its memory.
type Stream struct {
	words []uint64
	ops   int
}

const (
	barrierWords  = 3
	dispatchWords = 9 // without bindings and push constants
	copyWords     = 3 // without regions
	fillWords     = 5
	stampWords    = 4
	rangeWords    = 3
	regionWords   = 3

	// A header has 24 bits for the number of bindings and 32 for the length; the
	// methods of Stream truncate neither for anything that fits a device.
	headerBindingsShift = 8
	headerWordsShift    = 32
)

func header(code OpCode, bindings, words int) uint64 {
	return uint64(code) | uint64(bindings)<<headerBindingsShift | uint64(words)<<headerWordsShift
}

func pair(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

func split(w uint64) (low, high uint32) { return uint32(w), uint32(w >> 32) }

// Reset empties the stream and keeps its memory.
func (s *Stream) Reset() { s.words, s.ops = s.words[:0], 0 }

// Len is the number of operations.
func (s *Stream) Len() int { return s.ops }

// Barrier appends a memory barrier.
func (s *Stream) Barrier(b Barrier) {
	s.words = append(s.words,
		header(OpBarrier, 0, barrierWords),
		pair(uint32(b.SrcStage), uint32(b.DstStage)),
		pair(uint32(b.SrcAccess), uint32(b.DstAccess)))
	s.ops++
}

// Dispatch appends a dispatch of count workgroups whose identifiers begin at
// base. bindings stand in the order of PipelineOptions.Bindings, one for each;
// push holds the push constants from offset 0 on, a multiple of 4 bytes. Both
// are copied.
func (s *Stream) Dispatch(p Pipeline, bindings []BufferRange, push []byte, base, count [3]uint32) {
	pushWords := (len(push) + 7) / 8
	s.words = append(s.words,
		header(OpDispatch, len(bindings), dispatchWords+rangeWords*len(bindings)+pushWords),
		p.Handle, p.Layout, p.SetLayout,
		pair(p.Bindings, p.BindingMask),
		pair(base[0], base[1]),
		pair(base[2], count[0]),
		pair(count[1], count[2]),
		pair(uint32(len(push)), p.PushConstants))
	for _, b := range bindings {
		s.words = append(s.words, uint64(b.Buffer), b.Offset, b.Size)
	}
	for len(push) > 0 {
		// Through memory, not arithmetic: C hands these bytes on as they lie.
		var w uint64
		push = push[copy((*[8]byte)(unsafe.Pointer(&w))[:], push):]
		s.words = append(s.words, w)
	}
	s.ops++
}

// Copy appends a copy of size bytes from one buffer to another. The ranges must
// not overlap.
func (s *Stream) Copy(src, dst Buffer, srcOffset, dstOffset, size uint64) {
	s.words = append(s.words, header(OpCopy, 0, copyWords+regionWords),
		uint64(src), uint64(dst), srcOffset, dstOffset, size)
	s.ops++
}

// CopyRegions appends one copy of all the regions, which are copied, in no order
// among each other. A submission refuses a copy without regions and regions
// without bytes.
//
// Inside one buffer no region may be copied from where any of them is copied to.
// That is checked in one pass where all sources lie before or behind all
// destinations, or where the regions ascend both by source and by destination
// offset; otherwise a copy of more than 64 regions is refused.
func (s *Stream) CopyRegions(src, dst Buffer, regions []CopyRegion) {
	words := regionWords * len(regions)
	s.words = append(s.words, header(OpCopy, 0, copyWords+words), uint64(src), uint64(dst))
	s.words = append(s.words, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(regions))), words)...)
	s.ops++
}

// Fill appends the repetition of a 4-byte value over size bytes; offset and size
// are multiples of 4.
func (s *Stream) Fill(dst Buffer, offset, size uint64, value uint32) {
	s.words = append(s.words, header(OpFill, 0, fillWords),
		uint64(dst), offset, size, uint64(value))
	s.ops++
}

// Timestamp appends the writing of the device's clock to a query of a pool, as soon as
// the operations before it are through with a stage (vkCmdWriteTimestamp):
// [StageTopOfPipe] when they have begun, [StageCompute] or [StageTransfer] when those of
// that kind have ended, [StageAllCommands] when all have. It orders nothing. The query
// must have been reset since it was last written.
func (s *Stream) Timestamp(p QueryPool, query uint32, stage Stage) {
	s.words = append(s.words, header(OpTimestamp, 0, stampWords),
		p.Handle, pair(query, p.Count), uint64(stage))
	s.ops++
}

// Append appends the operations of t, which is unchanged.
func (s *Stream) Append(t *Stream) {
	s.words = append(s.words, t.words...)
	s.ops += t.ops
}

// Ops yields the operations in order. The stream must not change meanwhile.
func (s *Stream) Ops() iter.Seq[Op] {
	return func(yield func(Op) bool) {
		for words := s.words; len(words) > 0; {
			op, n := decode(words)
			if n == 0 || !yield(op) {
				return
			}
			words = words[n:]
		}
	}
}

// decode reads the operation that words begins with and the number of words it
// takes, or 0 when it is malformed. Its rules are those of the C encoder as far
// as they concern the words alone and not what a device accepts.
func decode(words []uint64) (op Op, n int) {
	head := words[0]
	code := OpCode(head)
	bindings := head >> headerBindingsShift & (1<<24 - 1)
	length := head >> headerWordsShift
	if length > uint64(len(words)) {
		return Op{}, 0
	}
	if code != OpDispatch && bindings != 0 {
		return Op{}, 0
	}
	op.Code = code
	n = int(length)
	switch code {
	case OpBarrier:
		if n != barrierWords {
			return Op{}, 0
		}
		srcStage, dstStage := split(words[1])
		srcAccess, dstAccess := split(words[2])
		op.Barrier = Barrier{Stage(srcStage), Stage(dstStage), Access(srcAccess), Access(dstAccess)}
	case OpDispatch:
		if !decodeDispatch(words[:n], int(bindings), &op) {
			return Op{}, 0
		}
	case OpCopy:
		if n < copyWords || (n-copyWords)%regionWords != 0 {
			return Op{}, 0
		}
		op.From, op.To = Buffer(words[1]), Buffer(words[2])
		if n > copyWords {
			op.Regions = unsafe.Slice((*CopyRegion)(unsafe.Pointer(&words[copyWords])), (n-copyWords)/regionWords)
		}
	case OpFill:
		if n != fillWords || words[4]>>32 != 0 {
			return Op{}, 0
		}
		op.Dst = BufferRange{Buffer(words[1]), words[2], words[3]}
		op.Value = uint32(words[4])
	case OpTimestamp:
		if n != stampWords || words[3]>>32 != 0 {
			return Op{}, 0
		}
		op.Pool.Handle = words[1]
		op.Query, op.Pool.Count = split(words[2])
		op.Stage = Stage(words[3])
	default:
		return Op{}, 0
	}
	return op, n
}

func decodeDispatch(words []uint64, bindings int, op *Op) bool {
	rest := len(words) - dispatchWords - rangeWords*bindings
	if rest < 0 {
		return false
	}
	push, pushMax := split(words[8])
	if (uint64(push)+7)/8 != uint64(rest) {
		return false
	}
	op.Pipeline.Handle, op.Pipeline.Layout, op.Pipeline.SetLayout = words[1], words[2], words[3]
	op.Pipeline.Bindings, op.Pipeline.BindingMask = split(words[4])
	op.Pipeline.PushConstants = pushMax
	op.Base[0], op.Base[1] = split(words[5])
	op.Base[2], op.Count[0] = split(words[6])
	op.Count[1], op.Count[2] = split(words[7])
	if bindings > 0 {
		op.Bindings = unsafe.Slice((*BufferRange)(unsafe.Pointer(&words[dispatchWords])), bindings)
	}
	if push > 0 {
		op.Push = unsafe.Slice((*byte)(unsafe.Pointer(&words[dispatchWords+rangeWords*bindings])), push)
	}
	return true
}
