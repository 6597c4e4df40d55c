package vkomp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
)

// SavedDifference says where bytes differ from those that the saved run has left.
type SavedDifference struct {
	// Where names the storage as the file does, such as "storage/0" or "present/2 on device 1", and
	// says after which of the two executions.
	Where string
	// Offset is the first byte that differs, and Count the number of all that do. Count is 0 for storage
	// that is present on a device and should not be, or the other way round.
	Offset, Count uint64
	// Want is the byte at Offset in the file, Got that of the run.
	Want, Got byte
}

// String describes the difference in a line.
func (d SavedDifference) String() string {
	if d.Count == 0 {
		return d.Where + ": it is present and should not be, or the other way round"
	}
	return fmt.Sprintf("%s: %d bytes differ, the first is byte %d: got %#02x, want %#02x", d.Where, d.Count, d.Offset, d.Got, d.Want)
}

// SavedInfo says what a saved taskgraph has.
type SavedInfo struct {
	// Label is that of the taskgraph.
	Label string
	// Failure is the text of the failure of the run that was saved, empty if it succeeded.
	Failure string
	// Devices are the names of the devices and their drivers.
	Devices []string
	// Constructs and Kernels are the numbers of these, and Bytes is the size of all storage.
	Constructs, Kernels int
	Bytes               uint64
}

// Info returns what the file has.
func (s *SavedTaskgraph) Info() SavedInfo {
	g := &s.graph
	info := SavedInfo{Label: g.Label, Failure: g.Failure, Constructs: len(g.Constructs), Kernels: len(g.Kernels)}
	for _, d := range g.Devices {
		info.Devices = append(info.Devices, fmt.Sprintf("%s (%s)", d.Name, d.Driver))
	}
	for i := range g.Storage {
		info.Bytes += g.Storage[i].Size
	}
	for i := range g.Present {
		info.Bytes += g.Present[i].Size
	}
	for i := range g.Memory {
		info.Bytes += g.Memory[i].Size
	}
	return info
}

// Run waits for the children of the current task, as [Runtime.Taskwait] does. Then it repeats what was
// saved, with storage of its own that has the saved contents, and returns where the outcome differs from
// the saved one, nil if it has the same bytes. It does so twice, each time from the saved contents: the
// first time the constructs are executed and recorded as a taskgraph, the second time the record is
// replayed. An undeferred task does all that, and waits for the tasks that it generates.
//
// The k-th device of the file is the k-th of devices, of which more are not used. Without that argument it is
// the default device, and after it the other Vulkan devices of the runtime. If there are fewer, the error is
// an [ErrInvalidDevice]. The errors are those of the constructs; that of a saved run which failed is
// expected to be similar to its Failure. When Run returns, nothing that it has mapped or allocated is
// left on the devices: after the end of ctx it generates no more tasks, and waits for those under way.
func (s *SavedTaskgraph) Run(ctx context.Context, rt *Runtime, devices ...Device) ([]SavedDifference, error) {
	if err := rt.construct(ctx); err != nil {
		return nil, fmt.Errorf("vkomp: run saved taskgraph: %w", err)
	}
	if err := rt.Taskwait(ctx); err != nil {
		return nil, err
	}
	r := &savedRun{rt: rt, graph: &s.graph}
	var failure error
	// A task can generate others as long as its body runs, although the runtime is being closed.
	err := rt.Task(ctx, Task{Label: "run saved taskgraph", If: If(false), Body: func(ctx context.Context) error {
		failure = r.run(ctx, devices)
		return nil
	}})
	if err = errors.Join(err, failure); err != nil {
		return r.differences, fmt.Errorf("vkomp: run saved taskgraph: %w", err)
	}
	return r.differences, nil
}

// savedRun is a run of a saved taskgraph, with what it has made for it.
type savedRun struct {
	rt          *Runtime
	graph       *savedGraph
	devices     []Device
	kernels     []Kernel
	storage     [][]byte
	sections    []memory.Section // storage, in ascending order
	memory      []DevicePtr
	associated  map[int]DevicePtr // by index of the present block
	differences []SavedDifference
}

// run is the body of the task that Run generates.
func (r *savedRun) run(ctx context.Context, devices []Device) error {
	err := r.choose(ctx, devices)
	if err == nil {
		err = r.prepare(ctx)
	}
	var records TaskgraphRecords
	for _, when := range [...]string{"", ", replayed"} {
		if err == nil {
			err = r.once(ctx, &records, when)
		}
	}
	return errors.Join(err, r.release(context.WithoutCancel(ctx)))
}

// choose chooses the devices.
func (r *savedRun) choose(ctx context.Context, given []Device) error {
	if len(given) == 0 {
		first := r.rt.DefaultDevice(ctx)
		if first.d == nil {
			return fmt.Errorf("%w: there is no default device: %s", ErrInvalidDevice, r.rt.noDefault)
		}
		given = append(given, first)
		for _, d := range r.rt.devices {
			if d := (Device{d}); d != first && !d.IsInitial() {
				given = append(given, d)
			}
		}
	}
	n := len(r.graph.Devices)
	if len(given) < n {
		return fmt.Errorf("%w: the taskgraph has %d devices, and there are %d", ErrInvalidDevice, n, len(given))
	}
	given = given[:n]
	for i, d := range given {
		switch {
		case d.d == nil:
			return fmt.Errorf("%w: device %d of the taskgraph cannot be the zero Device", ErrInvalidDevice, i)
		case d.IsInitial():
			return fmt.Errorf("%w: device %d of the taskgraph cannot be the initial device: it takes a Vulkan device", ErrInvalidDevice, i)
		case d.d.rt != r.rt:
			return fmt.Errorf("%w: device %d of the taskgraph cannot be one of another runtime", ErrInvalidDevice, i)
		case slices.Contains(given[:i], d):
			return fmt.Errorf("%w: two devices of the taskgraph are the same device %d", ErrInvalidDevice, d.Number())
		}
	}
	r.devices = given
	return nil
}

// prepare makes the kernels and the storage.
func (r *savedRun) prepare(ctx context.Context) error {
	g := r.graph
	for i := range g.Kernels {
		k := &g.Kernels[i]
		made, err := r.rt.NewKernel(KernelSource{Name: k.Name, SPIRV: k.code, Entry: k.Entry, Specialize: k.Specialize})
		if err != nil {
			return err
		}
		r.kernels = append(r.kernels, made)
	}
	for i := range g.Storage {
		all := make([]byte, g.Storage[i].Size+2*savedAlign)
		at := (uint64(savedAlign) - uint64(uintptr(unsafe.Pointer(&all[0])))%savedAlign + g.Storage[i].Align)
		r.storage = append(r.storage, all[at:at+g.Storage[i].Size:at+g.Storage[i].Size])
		r.sections = append(r.sections, sectionOf(r.storage[i]))
	}
	slices.SortFunc(r.sections, func(a, b memory.Section) int { return cmp.Compare(a.Start(), b.Start()) })
	for i := range g.Memory {
		p, err := r.devices[g.Memory[i].Device].Alloc(ctx, int(g.Memory[i].Size))
		if err != nil {
			return err
		}
		r.memory = append(r.memory, p)
	}
	r.associated = make(map[int]DevicePtr)
	for i := range g.Present {
		b := &g.Present[i]
		if !b.Infinite {
			continue
		}
		p, err := r.devices[b.Device].Alloc(ctx, int(b.Size))
		if err != nil {
			return err
		}
		if err := r.devices[b.Device].AssociatePtr(ctx, HostPtr(r.slice(&b.savedPlace)), p, int(b.Size), 0); err != nil {
			return errors.Join(err, r.devices[b.Device].Free(ctx, p))
		}
		r.associated[i] = p
	}
	return nil
}

// once runs the constructs from the saved contents and compares the outcome.
func (r *savedRun) once(ctx context.Context, records *TaskgraphRecords, when string) error {
	if err := r.fill(ctx); err != nil {
		return err
	}
	g := Taskgraph{Records: records, Label: r.graph.Label}
	err := r.rt.Taskgraph(ctx, g, func(ctx context.Context) error {
		for i := range r.graph.Constructs {
			if err := r.generate(ctx, &r.graph.Constructs[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = r.compare(ctx, when)
	}
	return errors.Join(err, r.unmap(context.WithoutCancel(ctx)))
}

// fill gives all storage the saved contents, and maps what was present.
func (r *savedRun) fill(ctx context.Context) error {
	g := r.graph
	for i := range g.Present {
		b := &g.Present[i]
		if b.absent() {
			continue
		}
		d, host := r.devices[b.Device], r.slice(&b.savedPlace)
		for range b.Count {
			if err := r.rt.TargetEnterData(ctx, TargetEnterData{Device: d, Maps: []Arg{Alloc(host)}}); err != nil {
				return err
			}
		}
		if err := r.rt.Memcpy(ctx, d.MappedPtr(HostPtr(host)), HostPtr(b.bytes[0]), len(host)); err != nil {
			return err
		}
	}
	for i := range g.Memory {
		if err := r.rt.Memcpy(ctx, r.memory[i], HostPtr(g.Memory[i].bytes[0]), int(g.Memory[i].Size)); err != nil {
			return err
		}
	}
	for i := range g.Storage {
		copy(r.storage[i], g.Storage[i].bytes[0])
	}
	return nil
}

// compare adds the differences between the storage and the saved outcome.
func (r *savedRun) compare(ctx context.Context, when string) error {
	g := r.graph
	for i := range g.Storage {
		r.differ(fmt.Sprintf("storage/%d%s", i, when), r.storage[i], g.Storage[i].bytes[1])
	}
	read := func(where string, p DevicePtr, want []byte) error {
		got := make([]byte, len(want))
		if err := r.rt.Memcpy(ctx, HostPtr(got), p, len(got)); err != nil {
			return err
		}
		r.differ(where, got, want)
		return nil
	}
	expected := make(map[savedSection]bool)
	for i := range g.Present {
		b := &g.Present[i]
		expected[savedSection{b.Device, sectionOf(r.slice(&b.savedPlace))}] = true
		where := fmt.Sprintf("present/%d on device %d%s", i, b.Device, when)
		p := wholeMapped(r.devices[b.Device], sectionOf(r.slice(&b.savedPlace)))
		switch {
		case p.IsNil() != b.Gone:
			r.differences = append(r.differences, SavedDifference{Where: where})
		case !b.Gone:
			if err := read(where, p, b.bytes[1]); err != nil {
				return err
			}
		}
	}
	for i, d := range r.devices {
		for _, b := range r.mapped(d) {
			// A file of version 1 does not say what the replay has made present.
			if at := (savedSection{i, b.Host}); !expected[at] && g.Version > 1 {
				r.differences = append(r.differences, SavedDifference{Where: r.where(at) + when})
			}
		}
	}
	for i := range g.Memory {
		if err := read(fmt.Sprintf("memory/%d on device %d%s", i, g.Memory[i].Device, when), r.memory[i], g.Memory[i].bytes[1]); err != nil {
			return err
		}
	}
	return nil
}

// savedSection is host storage on a device, by the index of that.
type savedSection struct {
	device int
	memory.Section
}

// where names a section of the run's storage.
func (r *savedRun) where(at savedSection) string {
	for i := range r.storage {
		if of := sectionOf(r.storage[i]); overlap(of, at.Section) {
			return fmt.Sprintf("%d bytes from byte %d of storage/%d on device %d", at.Size, at.Start()-of.Start(), i, at.device)
		}
	}
	return fmt.Sprintf("%v on device %d", at.Section, at.device)
}

// differ adds a difference if got is not want.
func (r *savedRun) differ(where string, got, want []byte) {
	if bytes.Equal(got, want) {
		return
	}
	d := SavedDifference{Where: where}
	for i := range want {
		if got[i] == want[i] {
			continue
		}
		if d.Count == 0 {
			d.Offset, d.Want, d.Got = uint64(i), want[i], got[i]
		}
		d.Count++
	}
	r.differences = append(r.differences, d)
}

// unmap waits for the run's tasks, which go on after their taskgroup if ctx has ended, and removes what is
// mapped of the run's storage.
func (r *savedRun) unmap(ctx context.Context) error {
	errs := []error{r.rt.Taskwait(ctx)}
	for _, d := range r.devices {
		for _, b := range r.mapped(d) {
			if !b.Infinite {
				host := unsafe.Slice((*byte)(b.Host.Ptr), b.Host.Size)
				errs = append(errs, r.rt.TargetExitData(ctx, TargetExitData{Device: d, Maps: []Arg{Delete(host)}}))
			}
		}
	}
	return errors.Join(errs...)
}

// mapped returns what of the run's storage is present on a device.
func (r *savedRun) mapped(d Device) []sched.Block {
	return slices.DeleteFunc(d.blocks(), func(b sched.Block) bool {
		_, found := overlapping(r.sections, itself, b.Host)
		return len(found) == 0
	})
}

// release gives back everything.
func (r *savedRun) release(ctx context.Context) error {
	errs := []error{r.unmap(ctx)}
	for i, p := range r.associated {
		b := &r.graph.Present[i]
		d := r.devices[b.Device]
		errs = append(errs, d.DisassociatePtr(ctx, HostPtr(r.slice(&b.savedPlace))), d.Free(ctx, p))
	}
	for i, p := range r.memory {
		errs = append(errs, r.devices[r.graph.Memory[i].Device].Free(ctx, p))
	}
	for _, k := range r.kernels {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}
