package vkomp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/host"
	"github.com/vkomp/vkomp/sched/protect"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// Memcpy copies size bytes from src to dst (OpenMP 4.5 omp_target_memcpy; [DevicePtr.Add]
// gives its offsets): from or to host storage (a [HostPtr]), within a device, between
// devices, or on the host. It returns when the copy is complete.
//
// On the host the two may overlap; in the memory of a Vulkan device that is
// ErrInvalidArgument, as is a negative size. It is, too, if a device uses host storage itself
// (see [Arg.Self]) and one of the pointers is the device's, but bytes may be copied to where
// they are. A pointer that is nil or points into freed memory, and a copy past the end of a
// slice or an allocation, are ErrInvalidPointer; a pointer of another runtime is
// ErrInvalidDevice. A size of 0 does nothing, wherever the runtime's pointers lead. If ctx
// ends first, its cause is returned, and the runtime may use the storage until a Taskwait has
// returned.
func (rt *Runtime) Memcpy(ctx context.Context, dst, src DevicePtr, size int) error {
	return rt.memcpy(ctx, &dst, &src, size, false, nil)
}

// MemcpyAsync is Memcpy as a task that may be deferred, with depend items (OpenMP 5.1
// omp_target_memcpy_async, whose depend objects are [Depobj.Depend]). Errors in its
// arguments are returned at once, later failures by the Taskwait that waits for the task.
// Memory that is freed in the meantime stays until the task is complete, except in a copy
// between two Vulkan devices. Such a copy goes through the host in chunks, and if memory of
// either end is freed before the last of them, it fails with ErrInvalidPointer: a part may
// have been copied by then.
func (rt *Runtime) MemcpyAsync(ctx context.Context, dst, src DevicePtr, size int, depend ...Depend) error {
	return rt.memcpy(ctx, &dst, &src, size, true, depend)
}

func (rt *Runtime) memcpy(ctx context.Context, dst, src *DevicePtr, size int, async bool, depend []Depend) error {
	r := newRoutine(rt, "memcpy")
	err := rt.construct(ctx)
	if err == nil && size < 0 {
		err = fmt.Errorf("%w: %d bytes", ErrInvalidArgument, size)
	}
	r.rows = memory.Rows{RowBytes: uint64(max(size, 0))}
	if err == nil {
		err = r.between(dst, src)
	}
	return r.generate(ctx, async, dst, src, depend, err)
}

// routine is a call of a memory routine, which copies or fills.
type routine struct {
	rt    *Runtime
	label string
	// dst and src are the ends of the copy; a fill has no src.
	dst, src endpoint
	// rows are the rows to copy, as byte offsets from dst and src. A fill sets those of dst
	// to value.
	rows  memory.Rows
	value byte
	// fills is the device whose memory a fill sets, nil for a copy.
	fills *device
	// form is that of the construct: observe.Routine or observe.RectRoutine.
	form observe.Form
	// deferred says that the task returns the routine to the pool.
	deferred bool
	// observer observes the routine's task, nil without listeners.
	observer construct.Observer
	// place is the place in the host pool that the task's goroutine leaves while it waits.
	place     tasks.Place
	transfers [1]transfer.Request
	rect      rectNumbers
	depend    []tasks.Depend
	// body is the method value onHost, made once.
	body func(context.Context) error
}

var spareRoutines sync.Pool

func newRoutine(rt *Runtime, label string) *routine {
	r, _ := spareRoutines.Get().(*routine)
	if r == nil {
		r = new(routine)
		r.body = r.onHost
	}
	r.rt, r.label, r.form = rt, label, observe.Routine
	return r
}

func (r *routine) giveBack() {
	clear(r.depend)
	*r = routine{depend: r.depend[:0], body: r.body}
	spareRoutines.Put(r)
}

// between sets the ends of a copy, or of a fill, which has no source.
func (r *routine) between(dst, src *DevicePtr) error {
	var err error
	if d := r.fills; d != nil {
		if !dst.IsNil() && dst.elsewhere(d) {
			return Device{d}.wrongDevice(dst)
		}
		r.dst, err = r.end(dst, r.rows.DstSpan)
		return err
	}
	if r.dst, err = r.end(dst, r.rows.DstSpan); err != nil {
		return fmt.Errorf("the destination: %w", err)
	}
	if r.src, err = r.end(src, r.rows.SrcSpan); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if n := r.rows.Count(); r.dst.d != nil && r.src.d != nil && (n > 1 || n == 1 && r.across()) {
		// Before overlaps looks at every row: there can be more of them than anything has bytes.
		if err := r.bothLive(); err != nil {
			return err
		}
	}
	switch {
	case !r.overlaps():
	case r.form == observe.RectRoutine:
		return fmt.Errorf("%w: the parts from %v and to %v overlap", ErrInvalidArgument, *src, *dst)
	case r.dst.d != nil:
		return fmt.Errorf("%w: %d bytes from %v to %v overlap", ErrInvalidArgument, r.rows.RowBytes, *src, *dst)
	}
	return nil
}

// across reports whether the routine copies between two Vulkan devices.
func (r *routine) across() bool { return r.dst.d != nil && r.src.d != nil && r.dst.d != r.src.d }

// end returns p as an end of the copy of r.rows.
func (r *routine) end(p *DevicePtr, span func() (offset, size uint64)) (endpoint, error) {
	if r.rows.RowBytes > 0 {
		offset, size := span()
		return r.rt.endpoint(p, offset, size)
	}
	// The bounds do not matter for a copy of nothing.
	if err := r.rt.owns(p); err != nil || !p.onVulkan() {
		return endpoint{}, err
	}
	return endpoint{d: p.d}, nil
}

// overlaps reports whether any byte is both read and written. Of a copy between a device and the host only the scheduler
// knows.
func (r *routine) overlaps() bool {
	switch {
	case r.dst.d == r.src.d:
		return r.rows.Overlap(r.dst.address(), r.src.address())
	case r.across():
		dst, src := uint64(r.dst.shared), uint64(r.src.shared)
		return dst != 0 && src != 0 && r.rows.Overlap(dst, src) && !r.rows.InPlace(dst, src)
	}
	return false
}

// address returns the address of the endpoint on its device.
func (e *endpoint) address() uint64 {
	if e.d != nil {
		return e.p.Address
	}
	return uint64(e.host.Start())
}

// generate generates the routine's task, unless its arguments were refused, and returns the
// routine to the pool. dst and src are the pointers to its ends.
func (r *routine) generate(ctx context.Context, async bool, dst, src *DevicePtr, depend []Depend, refused error) error {
	rt := r.rt
	c := rt.current(ctx)
	recording := c.records(condAbsent)
	if refused == nil && recording != nil && !async {
		refused = recording.refuse("", "", undeferred)
	}
	var kept *recordedRoutine
	r.depend = appendItems(r.depend, depend)
	empty := r.rows.RowBytes == 0 && len(depend) == 0
	if refused == nil && recording != nil && !empty {
		kept, refused = recording.routine(r, dst, src)
	}
	if refused != nil {
		refused = rt.unrecorded(ctx, condAbsent, fmt.Errorf("%s: %w", r.label, refused))
	}
	if refused != nil || empty {
		r.giveBack()
		return refused
	}
	defer rt.using.leave(rt.using.enter())
	err := r.generateIn(ctx, &c, async, observe.Site{})
	if err == nil && kept != nil {
		recording.add(ctx, kept)
	}
	return err
}

// generateIn generates the task of a routine that c encounters at a place in the program, and
// returns the routine to the pool.
func (r *routine) generateIn(ctx context.Context, c *current, async bool, at observe.Site) error {
	rt := r.rt
	r.deferred = async && !c.final
	of := directive{flags: targetFlags(r.deferred), form: r.form, device: r.number(), at: at}
	common := construct.Construct{Label: r.label, Depend: r.depend}
	told := c.encounter(&common, &of)
	if told != nil {
		// The routine can be complete, and used for another call, before listeners are told
		// of its outcome.
		told.Data, told.Depend = r.data(), slices.Clone(r.depend)
	}
	given, err := r.run(ctx, c, common)
	if !given {
		r.giveBack()
	}
	if told.done(ctx, err) != nil {
		return rt.unrecorded(ctx, condAbsent, err)
	}
	return nil
}

// run generates the task on the device of its storage. It reports whether the task has
// taken over the routine.
func (r *routine) run(ctx context.Context, c *current, common construct.Construct) (given bool, err error) {
	r.observer = common.Observer
	d := r.device()
	if d == nil || r.across() {
		return r.runOnHost(ctx, c, common)
	}
	s, err := d.open()
	if err != nil {
		return false, err
	}
	region := sched.Region{Construct: common}
	if r.rows.RowBytes > 0 {
		r.transfers[0] = r.transfer()
		region.Transfers = r.transfers[:]
	}
	err = s.Run(ctx, &region)
	if errors.Is(err, sched.ErrOverlap) {
		err = fmt.Errorf("%w: %w", ErrInvalidArgument, err)
	}
	return false, err
}

// runOnHost is run for a task that runs on the host.
func (r *routine) runOnHost(ctx context.Context, c *current, common construct.Construct) (given bool, err error) {
	region := host.Region{Construct: common}
	if r.rows.RowBytes > 0 {
		region.Body = r.body
		if users := r.rt.pinned.use(r.rt.pinned.use(nil, r.dst.host), r.src.host); users != nil {
			region.Ender = users
		}
		r.place = c.place
		if r.deferred {
			r.place = r.rt.bodyPlace()
		}
		given = r.deferred
	}
	err = r.rt.host.Run(ctx, region)
	// The body of an included task has run by then, or never will.
	return given && err == nil, err
}

// device returns the Vulkan device of the routine's task, nil if there is none; if there
// are two, that of the destination.
func (r *routine) device() *device {
	if r.dst.d != nil {
		return r.dst.d
	}
	return r.src.d
}

// number returns the number of the device of the routine's task.
func (r *routine) number() int {
	if d := r.device(); d != nil {
		return d.number
	}
	return r.rt.NumDevices()
}

// operation returns the routine's data operation for the tool.
func (r *routine) operation() ompt.DataOp {
	dstAt, _ := r.rows.DstSpan()
	op := ompt.DataOp{Type: ompt.TargetDataMemset, SrcDeviceNum: ompt.NoDevice, Bytes: r.rows.Bytes(), Label: r.label}
	op.DestAddr, op.DestDeviceNum = r.dst.side(r.rt, dstAt)
	if r.fills == nil {
		srcAt, _ := r.rows.SrcSpan()
		op.Type = ompt.TargetDataTransfer
		op.SrcAddr, op.SrcDeviceNum = r.src.side(r.rt, srcAt)
	}
	return op
}

// transfer returns the copy or fill of a routine that uses one device.
func (r *routine) transfer() transfer.Request {
	dstAt, dstSize := r.rows.DstSpan()
	srcAt, srcSize := r.rows.SrcSpan()
	m := transfer.Request{Dst: r.dst.p, Src: r.src.p, Value: r.value, Label: r.label}
	switch {
	case r.fills != nil:
		m.Kind = transfer.Fill
	case r.src.d == nil:
		m.Kind, m.Host = transfer.CopyToDevice, r.src.host
	case r.dst.d == nil:
		m.Kind, m.Host = transfer.CopyToHost, r.dst.host
	default:
		m.Kind = transfer.CopyWithin
	}
	if r.rows.Count() > 1 {
		rows := r.rows
		m.Rows = &rows
		return m
	}
	m.Size = r.rows.RowBytes
	m.Dst, m.Src = m.Dst.Add(int64(dstAt)), m.Src.Add(int64(srcAt))
	switch m.Kind {
	case transfer.CopyToDevice:
		m.Host = memory.Section{Ptr: unsafe.Add(m.Host.Ptr, srcAt), Size: srcSize}
	case transfer.CopyToHost:
		m.Host = memory.Section{Ptr: unsafe.Add(m.Host.Ptr, dstAt), Size: dstSize}
	}
	return m
}

// onHost is the body of a routine that runs on the host.
func (r *routine) onHost(ctx context.Context) error {
	if r.deferred {
		defer r.giveBack()
	}
	if r.observer != nil {
		op := &construct.Op{DataOp: r.operation()}
		r.observer.Op(ompt.ScopeBegin, op)
		defer r.observer.Op(ompt.ScopeEnd, op)
	}
	if r.dst.d != nil {
		return r.acrossDevices(ctx)
	}
	return protect.Touch(func() {
		dst := unsafe.Slice((*byte)(r.dst.host.Ptr), r.dst.host.Size)
		if r.fills != nil {
			setBytes(dst[:r.rows.RowBytes], r.value)
			return
		}
		src := unsafe.Slice((*byte)(r.src.host.Ptr), r.src.host.Size)
		for to, from := range r.rows.All() {
			copy(dst[to:to+r.rows.RowBytes], src[from:])
		}
	})
}

// side returns the address and the device of one side of an operation, as a tool is told of
// operations that the runtime makes without a scheduler.
func (e *endpoint) side(rt *Runtime, offset uint64) (address uint64, device int) {
	if e.d != nil {
		return e.p.Address + offset, e.d.number
	}
	return uint64(uintptr(e.host.Ptr)) + offset, rt.NumDevices()
}
