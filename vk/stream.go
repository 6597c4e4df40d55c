package vk

import (
	"iter"
	"unsafe"
)

// Stage is VkPipelineStageFlags.
type Stage uint32

// Pipeline stages, with Vulkan's values.
const (
	StageTopOfPipe   Stage = 0x00000001 // VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT
	StageCompute     Stage = 0x00000800 // VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
	StageTransfer    Stage = 0x00001000 // VK_PIPELINE_STAGE_TRANSFER_BIT
	StageHost        Stage = 0x00004000 // VK_PIPELINE_STAGE_HOST_BIT
	StageAllCommands Stage = 0x00010000 // VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
)

// Access is VkAccessFlags.
type Access uint32

// Kinds of access, with Vulkan's values.
const (
	AccessShaderRead    Access = 0x00000020 // VK_ACCESS_SHADER_READ_BIT
	AccessShaderWrite   Access = 0x00000040 // VK_ACCESS_SHADER_WRITE_BIT
	AccessTransferRead  Access = 0x00000800 // VK_ACCESS_TRANSFER_READ_BIT
	AccessTransferWrite Access = 0x00001000 // VK_ACCESS_TRANSFER_WRITE_BIT
	AccessHostRead      Access = 0x00002000 // VK_ACCESS_HOST_READ_BIT
	AccessHostWrite     Access = 0x00004000 // VK_ACCESS_HOST_WRITE_BIT
	AccessMemoryRead    Access = 0x00008000 // VK_ACCESS_MEMORY_READ_BIT
	AccessMemoryWrite   Access = 0x00010000 // VK_ACCESS_MEMORY_WRITE_BIT
)

// Barrier is a global memory barrier (VkMemoryBarrier).
type Barrier struct {
	SrcStage, DstStage   Stage  // must not be 0
	SrcAccess, DstAccess Access // what is made available, and to what it is made visible
}

// BufferRange is a range of a buffer in bytes.
type BufferRange struct {
	Buffer       Buffer // the VkBuffer
	Offset, Size uint64 // bytes
}

// CopyRegion is a range of bytes that a copy command copies from one buffer to another.
// It has the memory layout of VkBufferCopy.
type CopyRegion struct{ SrcOffset, DstOffset, Size uint64 }

// maxUnorderedRegions is the largest number of regions of a copy inside one buffer that
// Submit compares pairwise if their order does not show that they are disjoint; see
// CopyRegions.
const maxUnorderedRegions = 64

// OpCode is the kind of an operation of a Stream.
type OpCode uint8

// The operations. There is no operation 0, so that a stream of zeros is malformed.
const (
	OpBarrier   OpCode = iota + 1 // a global memory barrier
	OpDispatch                    // a dispatch of a compute pipeline
	OpCopy                        // a copy between buffers, or inside one
	OpFill                        // a fill of a buffer range with a 4-byte value
	OpTimestamp                   // the writing of a timestamp to a query
	OpExecute                     // the execution of a recording
)

// String returns the name of the operation, such as "dispatch".
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
	case OpExecute:
		return "execute"
	}
	return "unknown"
}

// Op is a decoded operation; Code determines which fields are set. Bindings, Push and
// Regions alias the stream: they are valid until it changes and must not be written.
type Op struct {
	Code        OpCode        // the kind of operation; the other fields name the kind that uses them
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
	Recording   Recording     // OpExecute
}

// Recording names operations that Queue.Record has recorded. 0 names none.
type Recording uint64

// Stream is a sequence of device operations, encoded as words that the C code reads
// without translation:
//
//	header    code | bindings<<8 | words<<32   (words: the operation's, header included)
//	barrier   source stage | destination stage<<32, source access | destination access<<32
//	dispatch  pipeline, layout, set layout, bindings | merging<<8 | mask<<32,
//	          base x | base y<<32, base z | count x<<32, count y | count z<<32,
//	          push bytes | push constants of the pipeline<<32,
//	          {buffer, offset, size} a binding, the push bytes padded to whole words
//	copy      source, destination, {source offset, destination offset, size} a region
//	fill      destination, offset, size, value
//	timestamp pool, query | queries of the pool<<32, stage
//	execute   recording
//
// The operations are ordered only by the barriers among them. The zero Stream is empty
// and ready for use. Submitting a stream does not change it; Reset keeps its memory.
type Stream struct {
	words []uint64
	ops   int
	kinds kinds
}

const (
	barrierWords  = 3
	dispatchWords = 9 // without bindings and push constants
	copyWords     = 3 // without regions
	fillWords     = 5
	stampWords    = 4
	executeWords  = 2
	rangeWords    = 3
	regionWords   = 3

	mergingShift = 8 // in a dispatch, above the number of bindings

	// A header has 24 bits for the number of bindings and 32 for the length, which
	// suffices for everything within a device's limits.
	headerBindingsShift = 8
	headerWordsShift    = 32
)

func header(code OpCode, bindings, words int) uint64 {
	return uint64(code) | uint64(bindings)<<headerBindingsShift | uint64(words)<<headerWordsShift
}

func pair(low, high uint32) uint64 { return uint64(low) | uint64(high)<<32 }

func split(w uint64) (low, high uint32) { return uint32(w), uint32(w >> 32) }

// Reset empties the stream and keeps its memory.
func (s *Stream) Reset() { s.words, s.ops, s.kinds = s.words[:0], 0, kinds{} }

// Memory returns the size in bytes of the memory that the stream has for operations.
func (s *Stream) Memory() int { return 8 * cap(s.words) }

// Len returns the number of operations.
func (s *Stream) Len() int { return s.ops }

// Barrier appends a memory barrier.
func (s *Stream) Barrier(b Barrier) {
	s.kinds.other()
	s.words = append(s.words,
		header(OpBarrier, 0, barrierWords),
		pair(uint32(b.SrcStage), uint32(b.DstStage)),
		pair(uint32(b.SrcAccess), uint32(b.DstAccess)))
	s.ops++
}

// Dispatch appends a dispatch of count workgroups whose identifiers begin at base. There
// is one element of bindings for each of PipelineOptions.Bindings, in that order. push
// holds the push constants from offset 0, a multiple of 4 bytes. Both are copied.
func (s *Stream) Dispatch(p Pipeline, bindings []BufferRange, push []byte, base, count [3]uint32) {
	pushWords := (len(push) + 7) / 8
	at := len(s.words)
	s.words = append(s.words,
		header(OpDispatch, len(bindings), dispatchWords+rangeWords*len(bindings)+pushWords),
		p.Handle, p.Layout, p.SetLayout,
		pair(p.Bindings|p.Merging<<mergingShift, p.BindingMask),
		pair(base[0], base[1]),
		pair(base[2], count[0]),
		pair(count[1], count[2]),
		pair(uint32(len(push)), p.PushConstants))
	for _, b := range bindings {
		s.words = append(s.words, uint64(b.Buffer), b.Offset, b.Size)
	}
	for len(push) > 0 {
		// Copied as bytes, because C passes them on in memory order.
		var w uint64
		push = push[copy((*[8]byte)(unsafe.Pointer(&w))[:], push):]
		s.words = append(s.words, w)
	}
	s.ops++
	s.kinds.dispatch(s.words, at, base == [3]uint32{} && count[2] == 1 && uint64(count[0])*uint64(count[1]) <= MaxMergedGroups)
}

// Copy appends a copy of size bytes from one buffer to another. The ranges must
// not overlap.
func (s *Stream) Copy(src, dst Buffer, srcOffset, dstOffset, size uint64) {
	s.kinds.other()
	s.words = append(s.words, header(OpCopy, 0, copyWords+regionWords),
		uint64(src), uint64(dst), srcOffset, dstOffset, size)
	s.ops++
}

// CopyRegions appends one copy command for all regions, which are not ordered among each
// other. Submit refuses a copy without regions and empty regions.
//
// Inside one buffer no source may overlap a destination. Submit checks this in one pass
// if all sources are before or behind all destinations, or if the regions are in
// ascending order both by source and by destination. Otherwise a copy of more than 64
// regions is refused.
func (s *Stream) CopyRegions(src, dst Buffer, regions []CopyRegion) {
	s.kinds.other()
	words := regionWords * len(regions)
	s.words = append(s.words, header(OpCopy, 0, copyWords+words), uint64(src), uint64(dst))
	s.words = append(s.words, unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(regions))), words)...)
	s.ops++
}

// Fill appends a fill of size bytes with a repeated 4-byte value; offset and size are
// multiples of 4.
func (s *Stream) Fill(dst Buffer, offset, size uint64, value uint32) {
	s.kinds.other()
	s.words = append(s.words, header(OpFill, 0, fillWords),
		uint64(dst), offset, size, uint64(value))
	s.ops++
}

// Timestamp appends a write of the device's clock to a query of a pool, once the
// operations before it have completed a stage (vkCmdWriteTimestamp): [StageTopOfPipe]
// means that they have begun, [StageCompute] or [StageTransfer] that operations of that
// kind have ended, [StageAllCommands] that all have ended. It orders nothing. The query
// must have been reset since it was last written.
func (s *Stream) Timestamp(p QueryPool, query uint32, stage Stage) {
	s.kinds.other()
	s.words = append(s.words, header(OpTimestamp, 0, stampWords),
		p.Handle, pair(query, p.Count), uint64(stage))
	s.ops++
}

// Execute appends the execution of a recording, as if its operations were appended. The stream can
// only be submitted to the recording's queue.
func (s *Stream) Execute(r Recording) {
	s.kinds.other()
	s.words = append(s.words, header(OpExecute, 0, executeWords), uint64(r))
	s.ops++
}

// Append appends the operations of t, which is unchanged.
func (s *Stream) Append(t *Stream) {
	s.kinds.other()
	s.words = append(s.words, t.words...)
	s.ops += t.ops
}

// Ops iterates over the operations. The stream must not change during the iteration.
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

// decode decodes the first operation in words and returns its number of words, 0 if it is
// malformed. It applies the same rules as the C encoder, except those that depend on the
// device.
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
	case OpExecute:
		if n != executeWords {
			return Op{}, 0
		}
		op.Recording = Recording(words[1])
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
	op.Pipeline.Merging = op.Pipeline.Bindings >> mergingShift
	op.Pipeline.Bindings &= 1<<mergingShift - 1
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
