//go:build cgo

package vk

// #include "vko.h"
import "C"

import "unsafe"

// Record records the stream's operations once, for submissions of streams that execute the recording
// (see [Stream.Execute]): these take less time than to record the operations again. Any number of
// submissions in flight may execute it. The recording refers to the pipelines, buffers and query pools of
// the stream, which must exist as long as it is executed, and is freed by Forget, or with the device. A
// stream that Submit refuses is refused, and so is one that itself executes a recording.
func (q *Queue) Record(s *Stream) (Recording, error) {
	var f C.vko_fault
	if err := q.enter(); err != nil {
		return 0, err
	}
	var r C.uint64_t
	failed := C.vko_queue_record(q.c, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(s.words))), C.uint64_t(len(s.words)), &r, &f)
	q.leave()
	if failed != 0 {
		return 0, q.device.fault("Queue.Record", &f)
	}
	return Recording(r), nil
}

// Forget frees a recording of the queue that no submission in flight executes. It does nothing if the
// device is closed.
func (q *Queue) Forget(r Recording) {
	if q.enter() != nil {
		return
	}
	defer q.leave()
	C.vko_queue_forget(q.c, C.uint64_t(r))
}
