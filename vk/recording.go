//go:build cgo

package vk

// #include "vko.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
)

// Record records the stream's operations once, for submissions of streams that execute the recording
// (see [Stream.Execute]): these take less time than to record the operations again. Any number of
// submissions in flight may execute it. The recording refers to the pipelines, buffers and query pools of
// the stream, which must exist as long as it is executed, and is freed after Forget, or with the device. A
// stream that Submit refuses is refused, and so is one that itself executes a recording.
func (q *Queue) Record(s *Stream) (Recording, error) {
	if err := q.enterPool(); err != nil {
		return 0, err
	}
	defer q.leavePool()
	var r C.uint64_t
	if C.vko_queue_record(q.c, (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(s.words))), C.uint64_t(len(s.words)), &r, &q.fault) != 0 {
		return 0, q.device.fault("Queue.Record", &q.fault)
	}
	return Recording(r), nil
}

// forgotten are the recordings of a queue for which Forget was called.
type forgotten struct {
	// some says that there are any, so that a queue that has none does not take the lock.
	some atomic.Bool
	mu   lockrank.Mutex[lockrank.Leaf]
	list []Recording
}

// Forget has a recording of the queue freed that no submission in flight executes, at the next submission
// or Trim. It takes no lock of the queue, and so can be called where a program that holds [Queue.Locker]
// may be waited for. It does nothing if the device is closed, or if there is no such recording.
func (q *Queue) Forget(r Recording) {
	if q.closed.Load() {
		return
	}
	f := &q.forgotten
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, r)
	f.some.Store(true)
}

// freeForgotten frees the recordings that are to be freed, with q.mu held.
func (q *Queue) freeForgotten() {
	f := &q.forgotten
	if !f.some.Load() {
		return
	}
	f.mu.Lock()
	list := f.list
	f.list = nil
	f.some.Store(false)
	f.mu.Unlock()
	for _, r := range list {
		C.vko_queue_forget(q.c, C.uint64_t(r))
	}
}
