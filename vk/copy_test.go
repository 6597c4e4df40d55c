//go:build cgo

package vk

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// bytesOf returns a block's words as bytes and fills them with consecutive numbers.
func bytesOf(words []uint32) []byte {
	data := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words))
	for k := range data {
		data[k] = byte(k*31 + k>>8)
	}
	return data
}

func TestRegionsOfEveryOffsetAndLengthAreCopied(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	src, from := newBlock(t, d, 1<<12)
	dst, to := newBlock(t, d, 1<<14)
	source := bytesOf(from)
	want := make([]byte, 4*len(to))
	var regions []CopyRegion
	// Destinations have gaps of a few bytes, so that a byte too many is detected.
	at := uint64(1)
	for srcOffset := range uint64(9) {
		for length := uint64(1); length <= 33; length++ {
			for gap := uint64(1); gap <= 4; gap++ {
				regions = append(regions, CopyRegion{srcOffset + 3*length, at, length})
				copy(want[at:][:length], source[srcOffset+3*length:])
				at += length + gap
			}
		}
	}
	if at > dst.Size {
		t.Fatalf("the regions take %d bytes", at)
	}
	var s Stream
	s.CopyRegions(src.Buffer, dst.Buffer, regions)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	got := unsafe.Slice((*byte)(unsafe.Pointer(&to[0])), len(want))
	if k := slices.IndexFunc(regions, func(r CopyRegion) bool {
		return !bytes.Equal(got[r.DstOffset-1:][:r.Size+2], want[r.DstOffset-1:][:r.Size+2])
	}); k >= 0 {
		t.Errorf("region %d: %+v went wrong", k, regions[k])
	}
	if !bytes.Equal(got, want) {
		t.Error("bytes outside the regions were written")
	}
}

// The left half of every row of a matrix is copied to the right half of the row, so that
// sources and destinations interleave.
func TestInterleavedRegionsOfOneBufferAreCopied(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	const rows, half = 300, 13 // bytes
	b, words := newBlock(t, d, rows*2*half/4+1)
	data := bytesOf(words)
	want := bytes.Clone(data)
	var regions []CopyRegion
	for row := range uint64(rows) {
		from := row * 2 * half
		regions = append(regions, CopyRegion{from, from + half, half})
		copy(want[from+half:][:half], data[from:])
	}
	var s Stream
	s.CopyRegions(b.Buffer, b.Buffer, regions)
	s.Barrier(toHost)
	run(t, d, &s, 1)
	if !bytes.Equal(data, want) {
		t.Error("the rows differ")
	}
}

// overlaps reports, byte by byte, whether a copy inside one buffer reads bytes that it
// writes.
func overlaps(regions []CopyRegion) bool {
	read, written := map[uint64]bool{}, map[uint64]bool{}
	for _, r := range regions {
		for k := range r.Size {
			read[r.SrcOffset+k], written[r.DstOffset+k] = true, true
		}
	}
	for k := range read {
		if written[k] {
			return true
		}
	}
	return false
}

func TestCopyInsideOneBufferIsRefusedExactlyWhereItOverlaps(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	refused, passed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		offset, size := rapid.Uint64Range(0, 400), rapid.Uint64Range(1, 6)
		var regions []CopyRegion
		ascending := rapid.Bool().Draw(t, "ascending")
		var src, dst uint64
		for range rapid.IntRange(1, 20).Draw(t, "regions") {
			r := CopyRegion{offset.Draw(t, "src"), offset.Draw(t, "dst"), size.Draw(t, "size")}
			if ascending {
				// Small steps, one of which may be zero.
				src, dst = src+r.SrcOffset%16, dst+r.DstOffset%16
				r.SrcOffset, r.DstOffset = src, 7+dst
			}
			regions = append(regions, r)
		}
		var s, other Stream
		s.CopyRegions(5, 5, regions)
		other.CopyRegions(5, 6, regions)
		if _, _, err := q.scan(&other); err != nil {
			t.Fatalf("from one buffer to another: %v", err)
		}
		_, _, err := q.scan(&s)
		if overlaps(regions) {
			refused++
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("overlapping regions pass: %+v, %v", regions, err)
			}
			return
		}
		passed++
		if err != nil {
			t.Fatalf("%+v: %v", regions, err)
		}
	})
	if refused == 0 || passed == 0 {
		t.Errorf("%d refused, %d passed: both must occur", refused, passed)
	}
}

func TestManyRegionsOfOneBufferPassWhereTheirOrderTells(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	q := d.Queues()[0]
	between := func(count int) []CopyRegion { // sources and destinations alternate
		regions := make([]CopyRegion, count)
		for k := range regions {
			regions[k] = CopyRegion{uint64(k) * 8, uint64(k)*8 + 4, 4}
		}
		return regions
	}
	descending := func(r []CopyRegion) []CopyRegion { slices.Reverse(r); return r }
	apart := between(maxUnorderedRegions + 1)
	for k := range apart {
		apart[k].DstOffset += 1 << 20
	}
	const most = maxUnorderedRegions
	for name, c := range map[string]struct {
		to      Buffer
		regions []CopyRegion
		ok      bool
	}{
		"ascending":                             {7, between(10000), true},
		"few in no order":                       {7, descending(between(most)), true},
		"many in no order":                      {7, descending(between(most + 1)), false},
		"many in no order, sides apart":         {7, descending(apart), true},
		"many in no order, other buffers":       {8, descending(between(most + 1)), true},
		"sides that touch":                      {7, []CopyRegion{{0, 8, 4}, {4, 12, 4}, {0, 16, 4}}, true},
		"destinations in no order":              {7, []CopyRegion{{0, 50, 4}, {40, 20, 4}}, true},
		"sources in no order":                   {7, []CopyRegion{{50, 0, 4}, {20, 40, 4}}, true},
		"inside the longer of two sources":      {7, []CopyRegion{{0, 50, 100}, {10, 200, 1}}, false},
		"inside the longer of two destinations": {7, []CopyRegion{{50, 0, 100}, {200, 10, 1}}, false},
		"destination inside a source":           {7, append(between(100), CopyRegion{1000, 1002, 1}, CopyRegion{1001, 1003, 8}), false},
		"source inside a destination":           {7, append(between(100), CopyRegion{1100, 1000, 200}), false},
	} {
		var s Stream
		s.CopyRegions(7, c.to, c.regions)
		if _, _, err := q.scan(&s); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
