package sched

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/mutant"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/sched/kernel"
	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/tasks"
	"github.com/vkomp/vkomp/vk"
)

// Compound has what successive target constructs do, so that one task can do it again and again: a
// compound task. The task has the maps and the depend items of all constructs. It therefore comes after
// whatever one of them comes after, and before whatever comes after one of them. Its commands are
// encoded once, with barriers between constructs that depend on each other, and are copied into a batch
// each time, as long as the storage stays where it is; on a queue where they come again they are recorded
// once, in a command buffer of their own.
type Compound struct {
	s     *Scheduler
	label string
	// kernels are those of the launches, each once.
	kernels []*kernel.Kernel
	// launches are in the order of their levels, and within a level in that of their kernels. values has for each construct
	// where its push constants are among push, those of all launches.
	launches []compoundLaunch
	values   []compoundValues
	push     []byte
	// items are the maps, of which those that overlap are one. memory is what the kernels use besides, each once.
	items    compoundItems
	memory   []compoundMemory
	readOnly []bool // of memory: no kernel writes it
	depend   []tasks.Depend
	// invocations is the number of invocations of all kernels.
	invocations uint64

	// The following fields are guarded by Scheduler.mu.

	// joined are the items of the next task, nil before the first one: of items, neighbours in one block are one.
	// moved says that the storage has changed since they were found.
	joined *compoundItems
	moved  bool
	// commands are the encoded launches for the items and the memory where they are bound, with the push constants pushed.
	// barriers is the number of barriers among them.
	commands vk.Stream
	barriers int
	bound    []compoundStorage
	pushed   []byte
	filled   []byte // pushed, with the members for offsets filled in
	encoded  bool
	// recorded are the commands as they are recorded for the queues, by index, and placed says how
	// often they have been placed there. destroyed is what Scheduler.destroyed had counted when they
	// were encoded.
	recorded  []*recordedCommands
	placed    []int
	destroyed uint64
	// merged is what Kernel.MergingsLocked returned, for all kernels together, when they were encoded.
	merged int
}

// compoundStorage is where the storage of an item lies, or the memory. padded says that a part at its end is
// bound in whole words (see argument.padded).
type compoundStorage struct {
	buffer   vk.Buffer
	at, size uint64
	padded   bool
}

// compoundMemory is memory that kernels of a compound task use and that the task does not map: that of a pointer, or the storage
// in which an item without bytes lies, from there on to its end. The task keeps it as it keeps memory of pointers.
type compoundMemory struct {
	// pointer, size and toEnd are those of a Buffer.
	pointer Pointer
	size    uint64
	toEnd   bool
	// item is the item without bytes. Its Ptr is nil for memory of a pointer.
	item memory.Section
}

// compoundValues are the push constants of a construct, which begin at a byte of Compound.push. Its kernel is nil if it runs nothing.
type compoundValues struct {
	kernel *kernel.Kernel
	at     int
}

// CompoundValue is another value for a value argument of one of the constructs of a compound task.
type CompoundValue struct {
	// Construct and Value are the indexes of the construct and of the value among its Region.Values.
	Construct, Value int
	// Bytes are as many as those with which the Compound was made. They are only read until RunCompound returns.
	Bytes []byte
}

// compoundLaunch is one launch of a compound task.
type compoundLaunch struct {
	kernel int
	// level is above those of the launches that this one follows.
	level  int32
	groups [3]uint32
	// push is where the launch's push constants begin among Compound.push.
	push int
	// parts are the buffers for the bindings that the kernel uses.
	parts []compoundPart
}

// compoundPart is a part of an item, or memory, that is bound to a kernel.
type compoundPart struct {
	binding int
	// memory is the index among Compound.memory, or -1 for a part of an item, whose address on the host is start, and
	// whose number of bytes is size.
	memory int
	start  uintptr
	size   uint64
}

// assumedReplays is how often a compound task is assumed to be run, where that matters.
const assumedReplays = 100

// MaxCompound is the largest number of constructs of a Compound. A batch has room for several.
const MaxCompound = order.MaxCommands / 2

// Plain reports whether the region does nothing but run a kernel on mapped storage, for which it has no
// wishes beyond its maps, and on memory of pointers, and nobody observes it.
func (r *Region) Plain() bool { return r.Observer == nil && r.plain() }

// plain is Plain for a region that may be observed.
func (r *Region) plain() bool {
	if r.Kernel == nil || !r.Structured || r.Priority > 0 || r.Absent || r.Found != nil || r.Site != nil ||
		len(r.Exit)+len(r.Transfers)+len(r.Addresses)+len(r.Pointers)+len(r.Images) > 0 || r.Buffers != nil && !r.bindsInOrder() {
		return false
	}
	for i := range r.Enter {
		if m := &r.Enter[i]; m.Size == 0 && r.Buffers == nil || m.Always || m.Delete || m.DeviceSize != 0 || m.Share == memory.ShareMust || !m.Type.Enters() {
			return false
		}
	}
	return true
}

// NewCompound returns what the regions do in that order, at most MaxCompound of them, each of which is
// Plain. It returns nil if one task cannot do it, or not with the same results: then Run is called
// for each of them.
func (s *Scheduler) NewCompound(regions []*Region) *Compound {
	if s.leakSites || s.general || len(regions) == 0 || len(regions) > MaxCompound {
		return nil
	}
	c := &Compound{s: s, label: regions[0].Label}
	if others := len(regions) - 1; others > 0 {
		c.label = fmt.Sprintf("%s and %d more", c.label, others)
	}
	depend := make([][]tasks.Depend, len(regions))
	var items []compoundItem
	for i, r := range regions {
		depend[i] = r.Depend
		for k := range r.buffers() {
			if b := r.buffer(k); b.Map >= 0 && !b.ToEnd {
				items = append(items, compoundItem{&r.Enter[b.Map], r.Kernel.ReadOnly(k)})
			}
		}
	}
	levels, err := dependLevels(depend)
	if err != nil || !c.items.merge(items) {
		return nil
	}
	c.depend = mergeDepend(depend)
	memory := make(map[compoundMemory]int)
	for i, r := range regions {
		if !c.addLaunch(r, levels[i], memory) {
			return nil
		}
	}
	if len(c.launches) > 1 && c.invocations > order.MostInvocations {
		return nil // one by one they go to the queue in several submissions
	}
	// Launches of one kernel stand side by side, so that they can be merged.
	slices.SortStableFunc(c.launches, func(a, b compoundLaunch) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.kernel, b.kernel), slices.Compare(a.groups[:], b.groups[:]))
	})
	return c
}

// addLaunch adds the launch of a region, unless it runs nothing, and the memory to which the region has pointers. It reports
// false if the region takes more than a dispatch, or does not fit the kernel or the device. memory has the indexes of c.memory.
func (c *Compound) addLaunch(r *Region, level int32, memory map[compoundMemory]int) bool {
	plan, runs, err := planLaunch(r.Kernel, &r.Range, c.s.props, r.sizes(nil), r.Values, nil)
	if err != nil || len(plan.Calls) > 1 || plan.Fold != 0 {
		return false
	}
	align := kernel.BindAlignment(c.s.props)
	var parts []compoundPart
	for k, b := range r.Kernel.Bindings() {
		part := compoundPart{binding: k, memory: c.memoryOf(r, k, memory)}
		if !b.Used || !runs {
			continue
		}
		if part.memory >= 0 {
			c.readOnly[part.memory] = c.readOnly[part.memory] && b.ReadOnly
		} else {
			m := &r.Enter[r.buffer(k).Map]
			part.start, part.size = m.Start(), m.Size
			_, offset := c.items.find(part.start)
			if _, ok := b.Skip(offset, offset, align); !ok {
				return false // by itself it could be bound
			}
		}
		parts = append(parts, part)
	}
	if !runs {
		c.values = append(c.values, compoundValues{})
		return true
	}
	l := compoundLaunch{kernel: slices.Index(c.kernels, r.Kernel), level: level, groups: plan.Calls[0].Count, push: len(c.push), parts: parts}
	c.values = append(c.values, compoundValues{r.Kernel, len(c.push)})
	c.push = append(c.push, r.Kernel.Push(nil, r.Values)...)
	if l.kernel < 0 {
		l.kernel = len(c.kernels)
		c.kernels = append(c.kernels, r.Kernel)
	}
	c.launches = append(c.launches, l)
	c.invocations += r.Range[0] * r.Range[1] * r.Range[2]
	return true
}

// memoryOf returns the index among c.memory of what is bound to a region's kernel, or -1 if that is an item.
func (c *Compound) memoryOf(r *Region, binding int, memory map[compoundMemory]int) int {
	b := r.buffer(binding)
	m := compoundMemory{pointer: b.Pointer, size: b.Size, toEnd: b.ToEnd}
	if b.Map >= 0 {
		if !b.ToEnd {
			return -1
		}
		m = compoundMemory{item: r.Enter[b.Map].Section}
	}
	i, ok := memory[m]
	if !ok {
		i = len(c.memory)
		memory[m] = i
		c.memory, c.readOnly = append(c.memory, m), append(c.readOnly, true)
	}
	return i
}

// RunCompound generates a compound task, with the scope, the group and the place of with, and with some other values. It reports
// false, and has done nothing, if the constructs have to be run one by one: because an earlier task has
// not got to the device or has failed, so that one construct would wait or fail for what another depends
// on; a kernel is closed or not compiled yet; the device takes no task; or an item or a pointer does not lead to storage
// that all of them find at once and can use on the same queues (see useAll).
func (s *Scheduler) RunCompound(ctx context.Context, c *Compound, with construct.Construct, values ...CompoundValue) (ran bool, err error) {
	with.Label, with.Depend, with.NoWait = c.label, c.depend, true
	s.settleIntake()
	if !with.Scope.OnDevice(s.domain) {
		return false, nil
	}
	items := c.join()
	r := Region{Construct: with, Enter: items.maps, Structured: true}
	t := s.newTarget(&r)
	t.dispatch.compound, t.dispatch.items = c, items
	if len(values) > 0 {
		t.dispatch.push = c.pushWith(values, t.dispatch.push)
	}
	if !s.useAll(t) || s.resolve(t, &r) != nil {
		discard(t)
		return false, nil
	}
	return true, s.add(ctx, &r, t, nil, tasks.NewWork())
}

// pushWith returns the push constants of all launches with some other values, in the memory of push.
func (c *Compound) pushWith(values []CompoundValue, push []byte) []byte {
	push = append(push[:0], c.push...)
	for i := range values {
		v := &values[i]
		if of := &c.values[v.Construct]; of.kernel != nil {
			copy(push[of.at+int(of.kernel.Values()[v.Value].Offset):], v.Bytes)
		}
	}
	return push
}

// useAll keeps the pipelines and the memory of a compound task until it is complete, and encodes its commands. It reports
// false if one of the pipelines cannot be had at once, if the storage of an item or the memory cannot (see
// storageLocked), if they are for queues of different families, or if a launch does not fit them: then the constructs
// are run one by one.
func (s *Scheduler) useAll(t *target) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusalLocked() != nil || s.order.WaitsForForeign() {
		return false // foreign work may begin only after one of the constructs
	}
	c := t.dispatch.compound
	for _, k := range c.kernels {
		p, err := s.useLocked(k)
		if err != nil {
			return false
		}
		t.dispatch.kernels = append(t.dispatch.kernels, p)
		if p.Ready(0) == nil {
			return false
		}
	}
	items := t.dispatch.items
	for i := range items.maps {
		block, offset := s.storageLocked(items.maps[i].Section)
		if block == nil {
			c.moved = true
			return false
		}
		t.dispatch.arguments = append(t.dispatch.arguments, items.argument(i, block, offset))
	}
	for i := range c.memory {
		a, ok := s.memoryLocked(&c.memory[i])
		if !ok {
			return false
		}
		a.readOnly = c.readOnly[i]
		t.pinLocked(a.Allocation)
		t.dispatch.targets = append(t.dispatch.targets, a)
	}
	t.dispatch.arguments = append(t.dispatch.arguments, t.dispatch.targets...)
	for i := range t.dispatch.arguments {
		if t.dispatch.arguments[i].Families != t.dispatch.arguments[0].Families {
			return false
		}
	}
	return c.encodeLocked(t) == nil
}

// storageLocked returns the block in which storage that a compound task uses lies, and where. It returns nil if
// a task that uses it could wait or fail, or may find other storage when it starts: if it is not
// present, or only tasks in flight keep it, if a task in flight copies or removes it whatever its reference
// count, if the copy to it has failed, or if it is an image of a value.
func (s *Scheduler) storageLocked(section memory.Section) (block *memory.Present, offset uint64) {
	if block, offset = s.keptLocked(section, 0); block == nil || !stateOf(block).usable() {
		return nil, 0
	}
	return block, offset
}

// usable reports whether nothing is about to copy or remove the block whatever its reference count, the copy to it has not
// failed, and it is no image of a value.
func (b *blockState) usable() bool { return b.ignoring == 0 && b.broken == nil && b.image == nil }

// memoryLocked returns where memory is that a compound task uses besides its items. It reports false if the memory is not
// there, or a task that uses it could wait or fail because of storage that is mapped to it: see storageLocked.
func (s *Scheduler) memoryLocked(m *compoundMemory) (a argument, ok bool) {
	if m.item.Ptr != nil {
		block, offset := s.storageLocked(m.item)
		if block == nil || stateOf(block).filling != 0 {
			return a, false // only a task that maps it waits for its contents
		}
		// The data construct that keeps the block has made it dirty: see openBlocksLocked.
		return argument{Allocation: stateOf(block).Allocation, at: blockAt(block) + offset, size: block.Storage.Size - offset, toEnd: true}, true
	}
	a, err := s.pointedLocked(&Buffer{Pointer: m.pointer, Size: m.size, ToEnd: m.toEnd})
	if err != nil {
		return a, false
	}
	for _, block := range a.Blocks {
		s.presence.table.Wake(block)
		if !kept(block, 0) || !stateOf(block).usable() {
			return a, false
		}
	}
	return a, true
}

// bindCompoundLocked finds the storage that a compound task, which has entered, uses, and encodes its commands.
func (s *Scheduler) bindCompoundLocked(t *target) error {
	items := t.dispatch.items
	for i := range items.maps {
		u := &t.entry.uses[i]
		t.dispatch.arguments = append(t.dispatch.arguments, items.argument(i, u.Present, u.Offset))
	}
	t.dispatch.arguments = append(t.dispatch.arguments, t.dispatch.targets...)
	return t.dispatch.compound.encodeLocked(t)
}

// encodeLocked encodes the commands for the storage and the push constants of a task, unless they are encoded for them.
func (c *Compound) encodeLocked(t *target) error {
	items, arguments, destroyed := t.dispatch.items, t.dispatch.arguments, c.s.destroyed.count.Load()
	merged := 0
	for _, k := range t.dispatch.kernels {
		merged += k.MergingsLocked()
	}
	// Where the items lie, and how large they are, says also which neighbours are one.
	same := slices.EqualFunc(c.bound, arguments, func(s compoundStorage, a argument) bool { return s == a.storage() })
	push := t.dispatch.push
	if len(push) == 0 {
		push = c.push
	}
	if c.encoded && same && c.destroyed == destroyed && c.merged == merged && bytes.Equal(c.pushed, push) {
		return nil
	}
	c.moved = c.moved || !same
	c.pushed = append(c.pushed[:0], push...)
	c.bound, c.barriers, c.encoded, c.destroyed, c.merged = c.bound[:0], 0, false, destroyed, merged
	c.forgetRecordedLocked()
	c.commands.Reset()
	c.filled = append(c.filled[:0], push...)
	var ranges []vk.BufferRange
	for i := range c.launches {
		l := &c.launches[i]
		if i > 0 && l.level > c.launches[i-1].level && !mutant.Active(mutant.CompoundBarrierDropped) {
			c.commands.Barrier(order.LevelBarrier)
			c.barriers++
		}
		k := t.dispatch.kernels[l.kernel]
		push := c.filled[l.push:][:k.PushSize()]
		ranges = ranges[:0]
		for _, p := range l.parts {
			a := c.argument(&p, items, arguments)
			if a.toEnd && a.size < leastSize(k.Kernel, p.binding) {
				return fmt.Errorf("%w: binding %d of kernel %q: %d bytes up to the end of the storage", kernel.ErrInvalidLaunch, p.binding, k.Name(), a.size)
			}
			r, err := a.bindLocked(k.Kernel, p.binding, c.s.props, push)
			if err != nil {
				return err
			}
			ranges = append(ranges, r)
		}
		c.commands.Dispatch(*k.Ready(0), ranges, push, [3]uint32{}, l.groups)
		c.s.mergeLocked(&c.commands, k, assumedReplays)
	}
	for i := range arguments {
		c.bound = append(c.bound, arguments[i].storage())
	}
	c.encoded = true
	return nil
}

// argument returns what a launch binds, of a task's items and its arguments: those for the items, and then for the memory.
func (c *Compound) argument(p *compoundPart, items *compoundItems, arguments []argument) argument {
	if p.memory >= 0 {
		return arguments[len(items.maps)+p.memory]
	}
	item, offset := items.find(p.start)
	a := arguments[item]
	a.at, a.size = a.at+offset, p.size
	return a
}

// storage returns where the argument of a compound task is.
func (a *argument) storage() compoundStorage {
	return compoundStorage{vk.Buffer(a.Block.ID), a.Offset + a.at, a.size, a.padded()}
}

// launch returns what is known beforehand of how long the task takes. It is not bounded: it has levels one behind the
// other, and such tasks are to run side by side where nothing orders them.
func (c *Compound) launch() order.Launch { return order.Launch{Invocations: c.invocations} }

// placeLocked adds the commands to a level of the pending batch of a queue.
func (c *Compound) placeLocked(q *order.Queue, t *target, stream *vk.Stream) error {
	// Another task can have encoded them for other storage since this one has entered.
	if err := c.encodeLocked(t); err != nil {
		return err
	}
	if r := c.recordLocked(q); r != nil {
		r.users.Add(1)
		t.dispatch.recorded = r
		stream.Execute(r.recording)
	} else {
		stream.Append(&c.commands)
	}
	c.s.order.CountDispatches(q, len(c.launches), c.launch())
	c.s.order.CountBarriers(q, c.barriers)
	return nil
}
