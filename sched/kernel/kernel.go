package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

// ErrInvalidLaunch says that arguments or a range do not fit the kernel or the device.
var ErrInvalidLaunch = errors.New("kernel and launch do not fit")

// offsetPrefix begins the names of push-constant members for buffer offsets. If an argument of
// binding k starts at an address that is not aligned as the device requires, the runtime binds
// the aligned address before it and passes the distance, in elements, in the member.
const offsetPrefix = "vkomp_offset_"

// Kernel is the entry point of a compute shader, with what reflection says about the arguments of
// a launch. It belongs to no device.
type Kernel struct {
	name    string
	module  *spirv.Module
	entry   *spirv.EntryPoint
	spec    map[uint32]uint32
	local   [3]uint32
	buffers []Binding
	// needed is the number of buffer arguments that a launch has to have: those after them are not
	// accessed.
	needed int
	// values are the push-constant members for value arguments, in order.
	values   []spirv.Member
	pushSize uint32
	closed   atomic.Bool
}

// Binding describes a buffer argument of a kernel.
type Binding struct {
	// Used says that the kernel accesses the binding. The argument of an unused binding is mapped
	// but not bound.
	Used bool
	// ReadOnly says that the kernel does not write to the binding.
	ReadOnly bool
	// Stride is the size of an element, or 0 if there are none; MinSize is the smallest size of an
	// argument. Both are in bytes.
	Stride  uint32
	MinSize uint64
	// offsetAt is the byte offset of the binding's vkomp_offset_ member in the
	// push constants, or -1.
	offsetAt int
}

// Skip returns how many bytes before an argument its descriptor begins, so that it begins at a multiple of align, a
// power of two. The argument begins at offset, and the bytes before it, of which there are that many, belong
// to the same storage; so may those up to the next multiple of align. It reports false if there is no such place. If the
// descriptor begins before the argument, these bytes must be whole elements, the kernel must have an offset member,
// and the block nothing but the array, because the offset is that of elements alone.
func (b *Binding) Skip(offset, before, align uint64) (bytes uint64, ok bool) {
	bytes = offset & (align - 1)
	if bytes == 0 {
		return 0, true
	}
	if b.offsetAt < 0 || b.Stride == 0 || b.MinSize != 0 {
		return 0, false
	}
	for stride := uint64(b.Stride); bytes%stride != 0; {
		// Remainders repeat after a multiple of both.
		if bytes += align; bytes > before || bytes >= align*stride {
			return 0, false
		}
	}
	return bytes, true
}

// New reads a SPIR-V module and one of its entry points; spec sets
// specialization constants by their SpecId.
func New(name string, code []byte, entry string, spec map[uint32]uint32) (*Kernel, error) {
	fail := func(err error) (*Kernel, error) { return nil, fmt.Errorf("kernel %q: %w", name, err) }
	module, err := spirv.ParseSpecialized(code, spec)
	if err != nil {
		if _, plain := spirv.Parse(code); plain == nil {
			err = fmt.Errorf("%w: with its specialization constants: %w", ErrInvalidLaunch, err)
		}
		return fail(err)
	}
	e, err := module.EntryPoint(entry)
	if err != nil {
		return fail(fmt.Errorf("%w: %w", spirv.ErrInvalid, err))
	}
	for _, id := range slices.Sorted(maps.Keys(spec)) {
		i := slices.IndexFunc(e.SpecConstants, func(c spirv.SpecConstant) bool { return c.ID == id })
		if i < 0 {
			return fail(fmt.Errorf("%w: entry point %q has no specialization constant with SpecId %d", ErrInvalidLaunch, e.Name, id))
		}
		if c := e.SpecConstants[i]; c.Size != 4 {
			return fail(fmt.Errorf("%w: specialization constant %d (%s) is %d bytes, only constants of 4 bytes can be set", ErrInvalidLaunch, id, c.Name, c.Size))
		}
	}
	k := &Kernel{name: name, module: module, entry: e, spec: maps.Clone(spec), local: e.WorkgroupSize(spec)}
	if slices.Contains(k.local[:], 0) {
		return fail(fmt.Errorf("%w: its specialization constants make a workgroup of %d×%d×%d invocations", ErrInvalidLaunch, k.local[0], k.local[1], k.local[2]))
	}
	if err := k.readBindings(); err != nil {
		return fail(err)
	}
	if err := k.readPushConstants(); err != nil {
		return fail(err)
	}
	return k, nil
}

// ReadOnly reports whether the kernel does not write to the buffer argument i.
func (k *Kernel) ReadOnly(i int) bool {
	return i < len(k.buffers) && (k.buffers[i].ReadOnly || !k.buffers[i].Used)
}

// Bounded reports whether an invocation takes no longer than its instructions: the kernel has no loop.
func (k *Kernel) Bounded() bool { return !k.entry.Loops }

// Name returns the kernel's label.
func (k *Kernel) Name() string { return k.name }

// Bindings describes the buffer arguments, by binding. The slice belongs to the
// kernel.
func (k *Kernel) Bindings() []Binding { return k.buffers }

// Values returns the push-constant members for value arguments, in order. The slice belongs to
// the kernel.
func (k *Kernel) Values() []spirv.Member { return k.values }

// Close makes schedulers refuse the kernel from now on. Scheduler.Release frees what they keep for
// it.
func (k *Kernel) Close() { k.closed.Store(true) }

// Closed reports whether Close was called.
func (k *Kernel) Closed() bool { return k.closed.Load() }

func (k *Kernel) readBindings() error {
	for _, b := range k.entry.Bindings {
		at := fmt.Sprintf("binding %d of set %d (%s)", b.Binding, b.Set, b.Name)
		switch {
		case b.Set != 0:
			return fmt.Errorf("%w: %s: only set 0 can be bound", vk.ErrUnsupported, at)
		case b.Kind != spirv.StorageBuffer:
			return fmt.Errorf("%w: %s is a %v: only storage buffers can be bound", vk.ErrUnsupported, at, b.Kind)
		case b.Count != 1:
			return fmt.Errorf("%w: %s is an array of %d descriptors", vk.ErrUnsupported, at, b.Count)
		case b.Binding >= vk.MaxBindings:
			return fmt.Errorf("%w: %s: bindings go up to %d", vk.ErrUnsupported, at, vk.MaxBindings-1)
		}
		k.declare(b.Binding)
		k.needed = len(k.buffers)
		k.buffers[b.Binding] = Binding{
			Used: true, ReadOnly: b.ReadOnly, Stride: b.Stride, MinSize: b.MinSize, offsetAt: -1,
		}
	}
	// A compiler may have removed what accessed the others.
	for _, d := range k.module.Descriptors {
		if d.Set == 0 && d.Binding < vk.MaxBindings {
			k.declare(d.Binding)
		}
	}
	return nil
}

// declare adds bindings that are not accessed, up to the one with a number, if it is not there yet.
func (k *Kernel) declare(binding uint32) {
	for len(k.buffers) <= int(binding) {
		k.buffers = append(k.buffers, Binding{offsetAt: -1})
	}
}

func (k *Kernel) readPushConstants() error {
	block := k.entry.PushConstants
	if block == nil {
		return nil
	}
	k.pushSize = (block.Size + 3) &^ 3 // the sizes of blocks leave room for that
	for i := range block.Members {
		m := &block.Members[i]
		isOffset, err := k.readOffset(m)
		switch {
		case err != nil:
			return err
		case !isOffset:
			k.values = append(k.values, *m)
		}
	}
	// Compilers of WGSL make the structure that a program declares the only member of the block. Bind writes over
	// what the value for it has there.
	for i := range block.Inner {
		if _, err := k.readOffset(&block.Inner[i]); err != nil {
			return err
		}
	}
	return nil
}

// readOffset reports whether a push-constant member is for the offset of a binding.
func (k *Kernel) readOffset(m *spirv.Member) (bool, error) {
	number, isOffset := strings.CutPrefix(m.Name, offsetPrefix)
	if !isOffset {
		return false, nil
	}
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || m.Size != 4 {
		return true, fmt.Errorf("%w: push-constant member %q must be a uint named %s<binding>", ErrInvalidLaunch, m.Name, offsetPrefix)
	}
	// A member for a binding that the compiler has removed is never read.
	if n < uint64(len(k.buffers)) {
		k.buffers[n].offsetAt = int(m.Offset)
	}
	return true, nil
}

// Fits checks a launch, apart from where its storage is: sizes are the sizes of the buffer
// arguments in bytes, and values are the value arguments. With nil properties it does not
// check limits of the device.
func (k *Kernel) Fits(p *vk.Properties, sizes []uint64, values [][]byte) error {
	if len(sizes) < k.needed {
		return fmt.Errorf("%w: kernel %q uses binding %d of set 0, the launch has %d slice arguments (the k-th is binding k)", ErrInvalidLaunch, k.name, k.needed-1, len(sizes))
	}
	if len(sizes) > len(k.buffers) {
		return fmt.Errorf("%w: kernel %q has no binding %d of set 0, the launch has %d slice arguments (the k-th is binding k)", ErrInvalidLaunch, k.name, len(sizes)-1, len(sizes))
	}
	for i, size := range sizes {
		b := &k.buffers[i]
		if b.Used && size > 0 && size < b.MinSize {
			return fmt.Errorf("%w: argument for binding %d of kernel %q is %d bytes, the binding needs at least %d", ErrInvalidLaunch, i, k.name, size, b.MinSize)
		}
		if p == nil {
			continue
		}
		if limit := uint64(p.Limits.MaxStorageBufferRange); b.Used && size > limit {
			return fmt.Errorf("%w: argument for binding %d of kernel %q is %d bytes, device %q binds at most %d (maxStorageBufferRange)", ErrInvalidLaunch, i, k.name, size, p.Name, limit)
		}
	}
	if len(values) != len(k.values) {
		members := make([]string, len(k.values))
		for i := range k.values {
			members[i] = strings.TrimSpace(fmt.Sprintf("%s (%s)", k.values[i].Name, k.values[i].Type()))
		}
		return fmt.Errorf("%w: kernel %q takes %d values in its push constants [%s], the launch has %d", ErrInvalidLaunch, k.name, len(k.values), strings.Join(members, " "), len(values))
	}
	for i, v := range values {
		if m := &k.values[i]; !m.Holds(len(v)) {
			return fmt.Errorf("%w: value %d is %d bytes, push-constant member %q of kernel %q is of kind %s", ErrInvalidLaunch, i, len(v), m.Name, k.name, m.Type())
		}
	}
	return nil
}

// Bindable returns an error if an argument that the kernel accesses has no bytes, with which a launch
// that runs something cannot be.
func (k *Kernel) Bindable(sizes []uint64) error {
	for i, size := range sizes {
		if size == 0 && k.buffers[i].Used {
			return fmt.Errorf("%w: argument for binding %d of kernel %q has no elements, and a descriptor has at least a byte: do not launch, or give it an element", ErrInvalidLaunch, i, k.name)
		}
	}
	return nil
}

// PushSize returns the size of the push constants in bytes.
func (k *Kernel) PushSize() int { return int(k.pushSize) }

// Push returns the push constants with the given values. It uses the memory of into if that is
// large enough.
func (k *Kernel) Push(into []byte, values [][]byte) []byte {
	push := slices.Grow(into[:0], int(k.pushSize))[:k.pushSize]
	clear(push)
	for i, v := range values {
		m := &k.values[i]
		copy(push[m.Offset:], v[:min(len(v), int(m.Size))])
	}
	return push
}

// used returns the number of the buffer arguments that the kernel accesses.
func (k *Kernel) used() (n uint32) {
	for i := range k.buffers {
		if k.buffers[i].Used {
			n++
		}
	}
	return n
}

// Supported returns an error if the device cannot run the kernel.
func (k *Kernel) Supported(p *vk.Properties) error {
	lacks := "lacks"
	if p.Adopted { // the hardware may well have it
		lacks = "was adopted without"
	}
	for _, c := range k.module.Capabilities {
		if !p.Supports(c) {
			return fmt.Errorf("%w: kernel %q needs SPIR-V capability %v, which device %q %s", vk.ErrUnsupported, k.name, c, p.Name, lacks)
		}
	}
	if most := spirvVersion(p.APIVersion); k.module.Version > most {
		return fmt.Errorf("%w: kernel %q is a module of SPIR-V %d.%d, device %q has Vulkan %s and takes %d.%d", vk.ErrUnsupported, k.name,
			k.module.Version>>16, k.module.Version>>8&0xff, p.Name, vk.Version(p.APIVersion), most>>16, most>>8&0xff)
	}
	l, f, m := &p.Limits, &p.Features, k.module
	for _, needed := range [...]struct {
		used, supported bool
		what, feature   string
	}{
		{m.SizeByID, f.Maintenance4, "has execution mode LocalSizeId", "maintenance4"},
		{m.InitializesShared, f.ShaderZeroInitializeWorkgroupMemory, "initializes shared variables", "shaderZeroInitializeWorkgroupMemory"},
		{m.BufferInt64Atomics, f.ShaderBufferInt64Atomics, "has 64-bit atomic operations on buffers", "shaderBufferInt64Atomics"},
		{m.SharedInt64Atomics, f.ShaderSharedInt64Atomics, "has 64-bit atomic operations on shared variables", "shaderSharedInt64Atomics"},
		{m.SubgroupExtendedTypes, f.ShaderSubgroupExtendedTypes, "has subgroup operations on 8-bit, 16-bit or 64-bit types", "shaderSubgroupExtendedTypes"},
		{m.SubgroupBroadcastDynamicID, f.SubgroupBroadcastDynamicID, "broadcasts from an invocation that is no constant", "subgroupBroadcastDynamicId"},
	} {
		if needed.used && !needed.supported {
			return fmt.Errorf("%w: kernel %q %s, for which device %q %s %s", vk.ErrUnsupported, k.name, needed.what, p.Name, lacks, needed.feature)
		}
	}
	if n := k.used(); n > l.MaxPerStageDescriptorStorageBuffers {
		return fmt.Errorf("%w: kernel %q accesses %d storage buffers, device %q takes at most %d (maxPerStageDescriptorStorageBuffers)", vk.ErrUnsupported, k.name, n, p.Name, l.MaxPerStageDescriptorStorageBuffers)
	}
	if k.entry.SharedBytes > uint64(l.MaxComputeSharedMemorySize) {
		return fmt.Errorf("%w: kernel %q has %d bytes of shared variables, device %q takes at most %d (maxComputeSharedMemorySize)", vk.ErrUnsupported, k.name, k.entry.SharedBytes, p.Name, l.MaxComputeSharedMemorySize)
	}
	invocations := uint64(1)
	for d, n := range k.local {
		if n > l.MaxComputeWorkGroupSize[d] {
			return fmt.Errorf("%w: kernel %q has a workgroup of %d×%d×%d, device %q takes at most %v", vk.ErrUnsupported, k.name, k.local[0], k.local[1], k.local[2], p.Name, l.MaxComputeWorkGroupSize)
		}
		invocations *= uint64(n)
	}
	if invocations > uint64(l.MaxComputeWorkGroupInvocations) {
		return fmt.Errorf("%w: kernel %q has workgroups of %d invocations, device %q takes at most %d", vk.ErrUnsupported, k.name, invocations, p.Name, l.MaxComputeWorkGroupInvocations)
	}
	if k.pushSize > l.MaxPushConstantsSize {
		return fmt.Errorf("%w: kernel %q has %d bytes of push constants, device %q takes at most %d", vk.ErrUnsupported, k.name, k.pushSize, p.Name, l.MaxPushConstantsSize)
	}
	return nil
}

// spirvVersion returns the largest version of SPIR-V, as in a module's header, that a device of a version of
// Vulkan takes ("Versions and Formats" in the appendix "Vulkan Environment for SPIR-V").
func spirvVersion(api uint32) uint32 {
	if api >= 1<<22|3<<12 {
		return 0x00010600
	}
	return 0x00010500
}

// PipelineOptions returns the description of the kernel's pipeline for a Plan.Fold, on a device with
// the given properties.
func (k *Kernel) PipelineOptions(fold int, p *vk.Properties) (vk.PipelineOptions, error) {
	code := k.module.Words
	if fold > 0 {
		var err error
		code, err = spirv.Fold(k.module, k.entry.Name, fold-1, p.Limits.MaxComputeWorkGroupCount[fold-1])
		if err != nil {
			return vk.PipelineOptions{}, fmt.Errorf("%w: kernel %q has a form whose range cannot be split: %v", ErrInvalidLaunch, k.name, err)
		}
	}
	return k.options(code), nil
}

// options returns the description of a pipeline for a variant of the kernel.
func (k *Kernel) options(code []uint32) vk.PipelineOptions {
	o := vk.PipelineOptions{Code: code, Entry: k.entry.Name, PushConstants: k.pushSize, Label: k.name}
	for i, b := range k.buffers {
		if b.Used {
			o.Bindings = append(o.Bindings, uint32(i))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(k.spec)) {
		o.Specialization = append(o.Specialization, vk.SpecEntry{ID: id, Value: uint64(k.spec[id]), Size: 4})
	}
	return o
}

// MergingOptions returns the description of the pipeline MergingOwn, MergingShared or MergingSpaced, with which one
// dispatch does what several dispatches of merges do, the kernel's pipeline for the Plan.Fold 0. The error says why there
// is none for the kernel, or on the device.
func (k *Kernel) MergingOptions(merging int, merges vk.Pipeline, p *vk.Properties) (vk.PipelineOptions, error) {
	bindings := spirv.MergedBindings(merging - Merging)
	if bindings == spirv.OwnBindings && !MergesOwn(p) {
		return vk.PipelineOptions{}, fmt.Errorf("%w: device %q does not choose among storage buffers (shaderStorageBufferArrayDynamicIndexing)", vk.ErrUnsupported, p.Name)
	}
	v, err := spirv.Merge(k.module, k.entry.Name, spirv.MergeOptions{
		Bindings:    bindings,
		Launches:    min(vk.MaxMergedLaunches, p.Limits.MaxComputeWorkGroupCount[2]),
		Descriptors: min(vk.MaxBindings, p.Limits.MaxPerStageDescriptorStorageBuffers),
		PushBytes:   min(vk.MaxMergedPush, p.Limits.MaxPushConstantsSize),
	})
	if err != nil {
		return vk.PipelineOptions{}, err
	}
	o := k.options(v.Words)
	o.Merges, o.Launches, o.Base, o.Stride = merges, v.Launches, v.Base, v.Stride
	o.LaunchBindings, o.Elements, o.PushConstants = bindings, v.Elements, v.Base+v.Launches*v.Stride
	return o, nil
}

// MergesOwn reports whether a device does several launches of a kernel that bind different buffers in one dispatch.
// SwiftShader can, but does not know the name of the capability, and for each kernel writes so to the standard error.
func MergesOwn(p *vk.Properties) bool {
	return p.Supports(spirv.CapabilityStorageBufferArrayDynamicIndexing) && p.DriverName != "SwiftShader driver"
}

// Groups sets g to the number of workgroups that cover the range r in each
// dimension, all zero for an empty range.
func (k *Kernel) Groups(r, g *[3]uint64) {
	for d := range r {
		n := r[d]
		g[d] = n
		// Most dimensions of most launches are 1, and a division takes as long as the rest.
		if local := uint64(k.local[d]); local > 1 {
			if g[d] = min(n, 1); n > local {
				g[d] = (n + local - 1) / local
			}
		}
	}
	if g[0] == 0 || g[1] == 0 || g[2] == 0 {
		*g = [3]uint64{}
	}
}

// Access reports whether the instructions of the kernel read, and write, buffer argument i.
func (k *Kernel) Access(i int) (reads, writes bool) {
	for _, b := range k.entry.Bindings {
		if int(b.Binding) == i {
			return b.Read && !b.NonReadable, b.Written && !b.NonWritable
		}
	}
	return false, false
}

// Source returns what New makes an equal kernel of: the bytes of the module, the name of the entry point,
// and the specialization constants.
func (k *Kernel) Source() (code []byte, entry string, spec map[uint32]uint32) {
	code = make([]byte, 0, 4*len(k.module.Words))
	for _, w := range k.module.Words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code, k.entry.Name, maps.Clone(k.spec)
}
