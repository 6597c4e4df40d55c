package vkomp

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/transfer"
	"github.com/vkomp/vkomp/tasks"
)

// evaluated is a construct whose clauses are evaluated, and which is to be described.
type evaluated struct {
	savedConstruct
	// clauses are those of a directive, ends those of a routine.
	clauses *clauses
	ends    [2]DevicePtr
	depend  []tasks.Depend
}

// String names the construct for errors, as it is named when it is refused without being recorded.
func (e *evaluated) String() string {
	if e.Label == "" {
		return e.Kind
	}
	return fmt.Sprintf("%s %q", e.Kind, e.Label)
}

// evaluate adds a recorded construct to those that are found, with its clauses as a replay has them.
func (s *saving) evaluate(construct recorded) error {
	var err error
	found := evaluated{}
	switch r := construct.(type) {
	case *recordedCompound:
		for _, t := range r.targets {
			if err := s.evaluate(t); err != nil {
				return err
			}
		}
		return nil
	case *recordedTarget:
		found.Kind, found.Label, found.clauses = savedTarget, r.target.Label, r.passed
		if r.passed == nil {
			found.clauses, _, err = r.evaluate(s.c, s.bound)
		}
	case *recordedStandalone:
		found.Kind, found.Label, found.clauses = r.directive.name(), r.directive.label, r.passed
		if r.passed == nil {
			found.clauses = newClauses()
			r.move(s.bound)
			_, err = s.rt.evaluateStandalone(s.c, found.clauses, &r.directive, r.args, r.depend)
		}
	case *recordedJoin:
		s.bound.moveDepends(r.depend, r.places)
		found.Kind, found.depend = savedTaskwait, slices.Clone(r.depend)
	case *recordedRoutine:
		r.move(s.bound)
		found.Kind, found.Label, found.ends, found.depend = savedMemcpy, r.label, r.ends, slices.Clone(r.depend)
		err = found.routine(r)
	case *recordedTask:
		return fmt.Errorf("task %q: %w: its body is Go code, which no file can have", r.task.region.Label, ErrNotReplayable)
	default:
		return fmt.Errorf("%w: a construct of type %T", ErrNotReplayable, construct)
	}
	if err == nil && found.clauses != nil {
		found.depend, err = found.clauses.Depend, found.check()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", &found, err)
	}
	s.found = append(s.found, found)
	return nil
}

// routine describes what a memory routine does, without its ends.
func (e *evaluated) routine(r *recordedRoutine) error {
	if r.rows.RowBytes > 0 && r.rows.Count() != 1 {
		return fmt.Errorf("%w: it copies several rows", ErrNotReplayable)
	}
	e.Bytes, e.Value = r.rows.RowBytes, r.value
	if r.fills != nil {
		e.Kind = savedMemset
	}
	if e.Bytes == 0 {
		e.Kind = savedTaskwait // it only orders
		return nil
	}
	dst, _ := r.rows.DstSpan()
	src, _ := r.rows.SrcSpan()
	e.ends = [2]DevicePtr{e.ends[0].Add(int(dst)), e.ends[1].Add(int(src))}
	return nil
}

// check returns an error for a directive that no file can have.
func (e *evaluated) check() error {
	c := e.clauses
	initial := c.device.physical == nil
	switch {
	case initial && e.Kind == savedTarget:
		return fmt.Errorf("%w: it runs a Host variant, which is Go code and no file can have", ErrNotReplayable)
	case len(c.Images) > 0:
		return fmt.Errorf("%w: it maps a value with a Mapper, which is Go code and no file can have", ErrNotReplayable)
	case initial:
		e.Kind = savedTaskwait // it moves nothing, and only orders
		return nil
	}
	for _, m := range slices.Concat(c.Enter, c.Exit) {
		if m.Share == memory.ShareMust {
			return fmt.Errorf("%w: %s is mapped with Self", ErrNotReplayable, m.Label)
		}
	}
	for i := range c.Transfers {
		switch t := &c.Transfers[i]; {
		case t.Image != nil:
			return fmt.Errorf("%w: %s is a value with a Mapper, which is Go code and no file can have", ErrNotReplayable, t.Label)
		case t.Rows != nil:
			return fmt.Errorf("%w: %s is a section with gaps", ErrNotReplayable, t.Label)
		}
	}
	return nil
}

// gather finds the storage of the graph: all that the constructs name, and the blocks that are present
// there.
func (s *saving) gather() {
	for i := range s.found {
		e := &s.found[i]
		for _, d := range e.depend {
			s.name(memory.Section{Ptr: d.Ptr, Size: d.Size})
		}
		if e.Kind == savedTaskwait {
			continue
		}
		if c := e.clauses; c != nil {
			s.deviceOf(c.device)
			for k := range c.Enter {
				s.name(c.Enter[k].Section)
			}
			for k := range c.Exit {
				s.name(c.Exit[k].Section)
			}
			for k := range c.Transfers {
				s.name(c.Transfers[k].Host)
			}
			continue
		}
		for k := range e.ends {
			if p := e.ends[k]; p.d == nil && p.host.Ptr != nil {
				s.name(memory.Section{Ptr: unsafe.Add(p.host.Ptr, p.at), Size: e.Bytes})
			} else if p.onVulkan() {
				s.deviceOf(p.d)
			}
		}
	}
	for {
		s.merge()
		before := len(s.sections)
		for _, d := range s.devices {
			for _, b := range d.blocks() {
				if s.touches(b.Host) && s.place(b.Host).Storage < 0 {
					s.name(b.Host)
				}
			}
		}
		if len(s.sections) == before {
			break
		}
	}
	for _, of := range s.storage {
		s.graph.Storage = append(s.graph.Storage, savedStorage{Size: of.Size, Align: uint64(of.Start() % savedAlign)})
	}
}

// name adds storage that a construct names. That of a slice without elements is only named where
// something is present.
func (s *saving) name(of memory.Section) {
	switch {
	case of.Ptr == nil:
		return
	case of.Size > 0:
		s.sections = append(s.sections, of)
		return
	}
	for _, d := range s.devices {
		for _, b := range d.blocks() {
			if b.Host.Start() <= of.Start() && of.Start() < b.Host.End() && s.place(b.Host).Storage < 0 {
				s.sections = append(s.sections, b.Host)
			}
		}
	}
}

// merge makes storage of the sections, so that those which overlap are one.
func (s *saving) merge() {
	sorted := slices.SortedFunc(slices.Values(s.sections), func(a, b memory.Section) int { return cmp.Compare(a.Start(), b.Start()) })
	s.storage = s.storage[:0]
	for _, of := range sorted {
		if n := len(s.storage); n > 0 && of.Start() < s.storage[n-1].End() {
			last := &s.storage[n-1]
			last.Size = uint64(max(last.End(), of.End()) - last.Start())
			continue
		}
		s.storage = append(s.storage, of)
	}
}

// touches reports whether the section has a byte of the storage.
func (s *saving) touches(of memory.Section) bool {
	_, found := overlapping(s.storage, itself, of)
	return len(found) > 0
}

// place returns where a section is in the storage.
func (s *saving) place(of memory.Section) savedPlace {
	if i, _ := overlapping(s.storage, itself, of); i < len(s.storage) && s.storage[i].Start() <= of.Start() && of.End() <= s.storage[i].End() {
		return savedPlace{i, uint64(of.Start() - s.storage[i].Start()), of.Size}
	}
	return savedPlace{Storage: -1}
}

func itself(s *memory.Section) memory.Section { return *s }

// present describes the blocks that are present before the replay.
func (s *saving) present() error {
	for i, d := range s.devices {
		for _, b := range d.blocks() {
			at := s.place(b.Host)
			switch {
			case at.Storage < 0:
				continue
			case b.Shared:
				return fmt.Errorf("%w: storage of %d bytes is mapped with Self", ErrNotReplayable, b.Host.Size)
			case b.Count > savedCounts:
				return fmt.Errorf("%w: storage of %d bytes has a reference count of %d, more than %d", ErrNotReplayable, b.Host.Size, b.Count, savedCounts)
			}
			block := savedBlock{Device: i, savedPlace: at, Count: b.Count, Infinite: b.Infinite}
			if b.Infinite {
				block.Count = 0
			}
			s.graph.Present = append(s.graph.Present, block)
		}
	}
	return nil
}

// describe adds a construct to the graph.
func (s *saving) describe(e *evaluated) (err error) {
	for _, d := range e.depend {
		e.Depend = append(e.Depend, savedDepend{int(d.Kind), s.place(memory.Section{Ptr: d.Ptr, Size: d.Size})})
	}
	switch {
	case e.Kind == savedTaskwait:
	case e.clauses == nil:
		if e.Dst, err = s.end(e.ends[0], e.Bytes); err == nil && e.Kind == savedMemcpy {
			e.Src, err = s.end(e.ends[1], e.Bytes)
		}
	default:
		e.Device, e.Priority, e.Range = s.deviceOf(e.clauses.device), e.clauses.Priority, e.clauses.Range
		if e.Kind == savedTarget {
			s.kernel(e)
			err = s.values(e)
		}
		if err == nil {
			err = s.items(e)
		}
	}
	s.graph.Constructs = append(s.graph.Constructs, e.savedConstruct)
	return err
}

// kernel describes the kernel of a target construct.
func (s *saving) kernel(e *evaluated) {
	k := e.clauses.Kernel
	if s.kernels == nil {
		s.kernels = make(map[*kernel.Kernel]int)
	}
	index, ok := s.kernels[k]
	if !ok {
		index = len(s.graph.Kernels)
		s.kernels[k] = index
		saved := savedKernel{Name: k.Name()}
		saved.code, saved.Entry, saved.Specialize = k.Source()
		s.graph.Kernels = append(s.graph.Kernels, saved)
	}
	e.Kernel = index
}

// values describes the values of a target construct.
func (s *saving) values(e *evaluated) error {
	c := e.clauses
	for _, v := range c.Values {
		e.Values = append(e.Values, savedValue{Bytes: slices.Clone(v)})
	}
	for _, a := range c.Addresses {
		at := s.place(c.Enter[a.Map].Section)
		e.Values[a.Value] = savedValue{Host: &at}
	}
	for _, p := range c.Pointers {
		to, err := s.pointer(DevicePtr{d: c.device, p: p})
		if err != nil {
			return err
		}
		// The clauses do not say which of the values are pointers. A number that is the address of memory
		// which the kernel gets by address means that memory too.
		for i := range e.Values {
			v := e.Values[i].Bytes
			if len(v) == pointerSize && *(*[pointerSize]byte)(v) == *(*[pointerSize]byte)(unsafe.Pointer(&p.Address)) {
				e.Values[i] = savedValue{Memory: to}
			}
		}
	}
	return nil
}

// items describes the items of a directive, in the order of a target construct's bindings.
func (s *saving) items(e *evaluated) error {
	c := e.clauses
	item := func(m *memory.Map) savedItem {
		return savedItem{savedPlace: s.place(m.Section), Type: int(m.Type), Always: m.Always, Delete: m.Delete, Presence: int(m.Presence)}
	}
	switch {
	case c.Buffers != nil:
		for i := range c.Buffers {
			b := &c.Buffers[i]
			if b.Map >= 0 {
				e.Items = append(e.Items, item(&c.Enter[b.Map]))
				e.Items[i].Implicit = b.ToEnd
				continue
			}
			to, err := s.pointer(DevicePtr{d: c.device, p: b.Pointer})
			if err != nil {
				return err
			}
			bound := savedItem{savedPlace: savedPlace{Storage: -1, Size: b.Size}, Memory: to, Bound: !b.ToEnd}
			e.Items = append(e.Items, bound)
		}
	default:
		for i := range c.Enter {
			e.Items = append(e.Items, item(&c.Enter[i]))
		}
		for i := range c.Exit {
			e.Items = append(e.Items, item(&c.Exit[i]))
		}
		for i := range c.Transfers {
			t := &c.Transfers[i]
			update := savedItem{savedPlace: s.place(t.Host), Type: int(memory.MapTo)}
			if t.Kind == transfer.UpdateFrom {
				update.Type = int(memory.MapFrom)
			}
			if t.Present {
				update.Presence = int(memory.MustBePresent)
			}
			e.Items = append(e.Items, update)
		}
	}
	return nil
}

// end describes an end of a copy or a fill of so many bytes.
func (s *saving) end(p DevicePtr, size uint64) (*savedEnd, error) {
	if p.d == nil {
		at := s.place(memory.Section{Ptr: unsafe.Add(p.host.Ptr, p.at), Size: size})
		return &savedEnd{Host: &at}, nil
	}
	to, err := s.pointer(p)
	return &savedEnd{Memory: to}, err
}

// pointer describes a pointer into memory of Device.Alloc.
func (s *saving) pointer(p DevicePtr) (*savedPointer, error) {
	if p.IsNil() || p.p.IsNil() {
		return nil, fmt.Errorf("%w: %v is no memory of a Vulkan device", ErrNotReplayable, p)
	}
	opened, err := p.d.open()
	if err != nil {
		return nil, err
	}
	first, size, exclusive, err := opened.Extent(p.p)
	switch {
	case err != nil:
		return nil, err
	case !exclusive:
		return nil, fmt.Errorf("%w: %v points to memory that is not from Alloc, or is associated with host storage", ErrNotReplayable, p)
	}
	offset := p.p.Address - first.Address
	all := DevicePtr{d: p.d, p: first}
	i := slices.Index(s.memory, all)
	if i < 0 {
		i = len(s.memory)
		s.memory = append(s.memory, all)
		s.graph.Memory = append(s.graph.Memory, savedMemory{Device: s.deviceOf(p.d), Size: size})
	}
	return &savedPointer{i, offset}, nil
}
