package vkomp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/protect"
)

// SaveTaskgraph replays a record and writes it to w together with all that the replay read and wrote, so
// that [ReadSavedTaskgraph] and [SavedTaskgraph.Run] can repeat it in another program, on another device.
// The record is the one that an encounter of g would replay; without one the error is an
// [ErrNotReplayable], as it is for a record that no file can have. Reset, If and NoGroup do not matter.
//
// SaveTaskgraph waits for the children of the current task, as [Runtime.Taskwait] does. It then copies
// the host storage that the record's constructs name, what of that is present on the devices, and the
// memory from [Device.Alloc] to which they have pointers; replays the record as a taskgroup; and copies
// everything again, and what of the storage has become present. Nothing else may change that storage in
// the meantime. If tasks of the replay fail, that is no error of SaveTaskgraph: the file has the text of
// the failure.
//
// A file cannot have tasks and Host variants, which are Go code; a [Mapper]; storage mapped with Self;
// copies with gaps; memory of the initial device; or device pointers to storage that is mapped or
// associated. Bytes that the record leaves undefined, such as those of a slice that is mapped From and
// not written as a whole, can be others when the file is run.
//
// The file is an archive in the zip format: graph.json has the constructs, kernels the SPIR-V modules, and
// the other folders the bytes before and after the replay. It contains the program's data as it is.
// Nothing is written to w unless the whole file is complete.
func (rt *Runtime) SaveTaskgraph(ctx context.Context, g Taskgraph, w io.Writer) error {
	if err := rt.saveTaskgraph(ctx, &g, w); err != nil {
		return fmt.Errorf("vkomp: save taskgraph %q: %w", cmp.Or(g.Label, "taskgraph"), err)
	}
	return nil
}

func (rt *Runtime) saveTaskgraph(ctx context.Context, g *Taskgraph, w io.Writer) error {
	if err := rt.construct(ctx); err != nil {
		return err
	}
	if err := g.check(true); err != nil {
		return err
	}
	if w == nil {
		return fmt.Errorf("%w: no writer", ErrInvalidArgument)
	}
	ctx, bound := bind(ctx, g.Params)
	record := g.Records.find(rt, g.ID, bound)
	if record == nil {
		return fmt.Errorf("%w: there is no record with ID %d and these parameters", ErrNotReplayable, g.ID)
	}
	err, reporting := rt.taskwait(ctx, nil)
	if err = errors.Join(err, reporting); err != nil {
		return err
	}
	s, err := record.describe(ctx, bound)
	if err != nil {
		return err
	}
	s.graph.Label = g.Label
	if err := s.take(ctx, false); err != nil {
		return err
	}
	err = rt.taskgroup(ctx, func(ctx context.Context) error { return record.replay(ctx, bound) })
	switch {
	case err != nil && (ctx.Err() != nil || !ofTask(err)):
		return err
	case err != nil:
		s.graph.Failure = err.Error()
	}
	if err := s.take(ctx, true); err != nil {
		return err
	}
	return s.graph.write(w)
}

// describe returns the constructs of the record with their storage.
func (r *taskgraphRecord) describe(ctx context.Context, bound *bindings) (*saving, error) {
	rt := r.rt
	if err := r.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer r.endTurn()
	defer rt.using.leave(rt.using.enter())
	c := rt.current(ctx)
	s := &saving{rt: rt, c: &c, bound: bound.ordered(r.bound), graph: &savedGraph{Version: savedVersion}}
	for _, construct := range r.constructs {
		if err := s.evaluate(construct); err != nil {
			return nil, err
		}
	}
	s.gather()
	if err := s.present(); err != nil {
		return nil, err
	}
	for i := range s.found {
		if err := s.describe(&s.found[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", &s.found[i], err)
		}
	}
	return s, nil
}

// take copies all bytes to the graph, from before the replay or after it.
func (s *saving) take(ctx context.Context, after bool) error {
	g := s.graph
	for i := range g.Storage {
		of := unsafe.Slice((*byte)(s.storage[i].Ptr), s.storage[i].Size)
		to := make([]byte, len(of))
		if err := protect.Touch(func() { copy(to, of) }); err != nil {
			return err
		}
		g.Storage[i].bytes[order(after)] = to
	}
	for i := range g.Present {
		b := &g.Present[i]
		from := wholeMapped(s.devices[b.Device], s.section(&b.savedPlace))
		if from.IsNil() {
			if !after {
				return fmt.Errorf("%w: storage that was present is not any more", ErrNotPresent)
			}
			continue
		}
		if err := s.copy(ctx, &b.bytes[order(after)], from, b.Size); err != nil {
			return err
		}
	}
	if after {
		if err := s.takeNew(ctx); err != nil {
			return err
		}
	}
	for i := range g.Memory {
		if err := s.copy(ctx, &g.Memory[i].bytes[order(after)], s.memory[i], g.Memory[i].Size); err != nil {
			return err
		}
	}
	return nil
}

// section returns the host storage at a place that has bytes.
func (s *saving) section(at *savedPlace) memory.Section {
	return memory.Section{Ptr: unsafe.Add(s.storage[at.Storage].Ptr, at.Offset), Size: at.Size}
}

// wholeMapped returns the pointer to the corresponding storage of a section, or nil if that is not all present.
func wholeMapped(d Device, host memory.Section) DevicePtr {
	p := d.MappedPtr(DevicePtr{host: host})
	if !d.IsAccessible(p, int(host.Size)) {
		return DevicePtr{}
	}
	return p
}

// takeNew adds the blocks that the replay has made and left present, with their bytes.
func (s *saving) takeNew(ctx context.Context) error {
	known := make(map[savedSection]bool)
	for i := range s.graph.Present {
		b := &s.graph.Present[i]
		known[savedSection{b.Device, s.section(&b.savedPlace)}] = true
	}
	for i, d := range s.devices {
		for _, b := range d.blocks() {
			at := s.place(b.Host)
			if at.Storage < 0 || known[savedSection{i, b.Host}] {
				continue
			}
			made := savedBlock{Device: i, savedPlace: at}
			if err := s.copy(ctx, &made.bytes[1], d.MappedPtr(DevicePtr{host: b.Host}), b.Host.Size); err != nil {
				return err
			}
			s.graph.Present = append(s.graph.Present, made)
		}
	}
	return nil
}

// order is the index of the bytes from before or after a replay.
func order(after bool) int {
	if after {
		return 1
	}
	return 0
}

// copy sets to to the bytes at from, on a device.
func (s *saving) copy(ctx context.Context, to *[]byte, from DevicePtr, size uint64) error {
	*to = make([]byte, size)
	return s.rt.Memcpy(ctx, HostPtr(*to), from, int(size))
}

// saving is a record that is being saved.
type saving struct {
	rt    *Runtime
	c     *current
	bound *bindings
	graph *savedGraph
	// found are the constructs, of which describe makes those of the graph.
	found []evaluated
	// sections are the host storage that the constructs name; storage has these merged, in ascending
	// order, as the graph has it.
	sections []memory.Section
	storage  []memory.Section
	// devices, memory and kernels are those of the graph, in its order.
	devices []Device
	memory  []DevicePtr
	kernels map[*kernel.Kernel]int
}

// deviceOf returns the index of a device in the graph.
func (s *saving) deviceOf(d *device) int {
	for i := range s.devices {
		if s.devices[i].d == d {
			return i
		}
	}
	s.devices = append(s.devices, Device{d})
	info := Device{d}.Info()
	s.graph.Devices = append(s.graph.Devices, savedOn{Number: info.Number, Name: info.Name, Driver: info.Driver})
	return len(s.devices) - 1
}

// blocks returns what is present on the device, which is nothing if the device is lost.
func (d Device) blocks() []sched.Block {
	if opened := d.d.opened(); opened != nil {
		return opened.Blocks()
	}
	return nil
}
