package vkomp

import (
	"context"
	"fmt"

	"github.com/vkomp/vkomp/memory"
)

// Memset sets count bytes of the device's memory, starting at p, to value (OpenMP 6.0
// omp_target_memset). On the initial device p may be a [HostPtr]. It returns when the memory
// is set. The errors are those of [Runtime.Memcpy]; a pointer that does not belong to this
// device is ErrInvalidDevice. A count of 0 does nothing, wherever in the device's memory p leads.
func (d Device) Memset(ctx context.Context, p DevicePtr, value byte, count int) error {
	return d.memset(ctx, &p, value, count, false, nil)
}

// MemsetAsync is Memset as a task that may be deferred, with depend items (OpenMP 6.0
// omp_target_memset_async). Errors in its arguments are returned at once, later failures by
// the Taskwait that waits for the task.
func (d Device) MemsetAsync(ctx context.Context, p DevicePtr, value byte, count int, depend ...Depend) error {
	return d.memset(ctx, &p, value, count, true, depend)
}

func (d Device) memset(ctx context.Context, p *DevicePtr, value byte, count int, async bool, depend []Depend) error {
	rt, err := d.runtime()
	if err != nil {
		return fmt.Errorf("vkomp: memset: %w", err)
	}
	r := newRoutine(rt, "memset")
	err = rt.construct(ctx)
	if err == nil && count < 0 {
		err = fmt.Errorf("%w: %d bytes", ErrInvalidArgument, count)
	}
	if err == nil {
		r.fills, r.value = d.d, value
		r.rows = memory.Rows{RowBytes: uint64(count)}
		err = r.between(p, nil)
	}
	return r.generate(ctx, async, p, nil, depend, err)
}

// fillRun is the number of bytes that are set one by one. The rest is copied from these in
// runs of at most that size, which stay in the nearest cache.
const fillRun = 16 << 10

// setBytes sets all of b to v.
func setBytes(b []byte, v byte) {
	if v == 0 {
		clear(b)
		return
	}
	n := min(len(b), 64)
	for i := range n {
		b[i] = v
	}
	for n < len(b) {
		n += copy(b[n:], b[:min(n, fillRun)])
	}
}
