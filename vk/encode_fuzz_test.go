//go:build cgo

package vk

import (
	"errors"
	"testing"
)

// FuzzScan passes arbitrary words to the C encoder's check. It must not read past them,
// must not accept what the decoder rejects, and must not accept compute operations for a
// queue that supports only transfers.
func FuzzScan(f *testing.F) {
	for _, seed := range seedStreams() {
		f.Add(seed)
	}
	i, err := Open(InstanceOptions{})
	if err != nil {
		f.Fatal(err)
	}
	defer i.Close()
	devices := i.PhysicalDevices()
	if len(devices) == 0 {
		f.Fatal("no device")
	}
	d, err := devices[0].Open(DeviceOptions{})
	if err != nil {
		f.Fatal(err)
	}
	defer d.Close()
	f.Fuzz(func(t *testing.T, data []byte) {
		s := streamOf(data)
		s.words = append(make([]uint64, 0, len(s.words)), s.words...) // no memory after the last word
		_, _, err := d.Queues()[0].scan(s)
		_, _, transferErr := (&Queue{device: d, bits: d.Queues()[0].bits}).scan(s)
		if transferErr != nil && !errors.Is(transferErr, ErrInvalid) || err != nil && transferErr == nil {
			t.Fatalf("%v; on a queue that only transfers: %v", err, transferErr)
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		read, computing := 0, false
		for op := range s.Ops() {
			computing = computing || op.Code == OpDispatch ||
				op.Code == OpBarrier && (op.Barrier.SrcStage|op.Barrier.DstStage)&StageCompute != 0 ||
				op.Code == OpTimestamp && op.Stage&StageCompute != 0
			read += len(reencode(op))
			for _, b := range op.Bindings {
				if b.Buffer == 0 || b.Size == 0 {
					t.Fatalf("passed an empty binding: %+v", op)
				}
			}
			if op.Code == OpTimestamp && op.Query >= op.Pool.Count {
				t.Fatalf("passed a query that is not there: %+v", op)
			}
		}
		if computing != (transferErr != nil) {
			t.Fatalf("on a queue that only transfers: %v", transferErr)
		}
		if read != len(s.words) {
			t.Fatalf("passed %d words of which %d decode", len(s.words), read)
		}
	})
}

// reencode encodes a single operation.
func reencode(op Op) []uint64 {
	var s Stream
	s.add(op)
	return s.words
}
