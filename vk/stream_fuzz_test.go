package vk

import (
	"encoding/binary"
	"slices"
	"testing"
)

// streamOf returns a stream of arbitrary words.
func streamOf(data []byte) *Stream {
	s := new(Stream)
	for ; len(data) >= 8; data = data[8:] {
		s.words = append(s.words, binary.LittleEndian.Uint64(data))
	}
	return s
}

// seedStreams returns well-formed streams as seeds for fuzzing.
func seedStreams() [][]byte {
	var plain, none, full Stream
	plain.Barrier(Barrier{StageCompute, StageHost, AccessShaderWrite, AccessHostRead})
	plain.Fill(1, 4, 8, 9)
	plain.Copy(1, 2, 0, 0, 16)
	plain.CopyRegions(1, 2, []CopyRegion{{0, 3, 5}, {7, 11, 13}})
	plain.CopyRegions(3, 3, []CopyRegion{{0, 4, 2}, {8, 12, 4}})              // interleaved, ascending
	plain.CopyRegions(3, 3, []CopyRegion{{8, 12, 4}, {0, 4, 2}, {20, 24, 4}}) // in no order
	plain.Timestamp(QueryPool{7, 2}, 1, StageTransfer)
	plain.Timestamp(QueryPool{7, 2}, 0, StageTopOfPipe)
	plain.Execute(3)
	none.CopyRegions(1, 2, nil)
	full.Dispatch(Pipeline{1, 2, 3, 2, 3, 8, 0, false}, []BufferRange{{1, 0, 64}, {2, 256, 64}}, make([]byte, 8),
		[3]uint32{1, 2, 3}, [3]uint32{4, 5, 6})
	full.Timestamp(QueryPool{7, 2}, 1, StageCompute)
	full.Dispatch(Pipeline{Handle: 1, Layout: 2}, nil, nil, [3]uint32{}, [3]uint32{1, 1, 1})
	var seeds [][]byte
	for _, s := range []*Stream{new(Stream), &plain, &none, &full} {
		var data []byte
		for _, w := range s.words {
			data = binary.LittleEndian.AppendUint64(data, w)
		}
		seeds = append(seeds, data)
		if len(data) > 8 {
			seeds = append(seeds, data[:len(data)-8])
		}
	}
	return seeds
}

// FuzzOps decodes arbitrary words. Encoding the decoded operations must give the same
// words, except for the padding of push constants.
func FuzzOps(f *testing.F) {
	for _, seed := range seedStreams() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := streamOf(data)
		var again Stream
		for op := range s.Ops() {
			again.add(op)
		}
		if len(again.words) > len(s.words) {
			t.Fatalf("%d words decode to %d", len(s.words), len(again.words))
		}
		var third Stream
		for op := range again.Ops() {
			third.add(op)
		}
		if !slices.Equal(third.words, again.words) {
			t.Fatalf("written anew: %x, then %x", again.words, third.words)
		}
	})
}
