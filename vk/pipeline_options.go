package vk

import (
	"encoding/binary"
	"slices"
	"strings"
	"unsafe"

	"github.com/vkomp/vkomp/vk/spirv"
)

// SPIR-V §2.3 (physical layout), §3.32 (instructions).
const (
	spirvMagic          = 0x07230203
	spirvHeaderWords    = 5
	spirvOpEntryPoint   = 15
	spirvOpFunction     = 54
	spirvOpFunctionEnd  = 56
	spirvModelGLCompute = 5
)

// name returns the name of the pipeline in errors.
func (o *PipelineOptions) name() string {
	if o.Label != "" {
		return o.Label
	}
	return o.Entry
}

// check returns an error for options that are invalid in Vulkan, and the mask of the
// binding numbers.
func (o *PipelineOptions) check(limits *Limits) (mask uint32, err error) {
	const op = "Device.CreatePipeline"
	if o.Entry == "" || strings.ContainsRune(o.Entry, 0) {
		return 0, invalid(op, "%q: no entry point name", o.name())
	}
	if problem := checkCode(o.Code, o.Entry); problem != "" {
		return 0, invalid(op, "%q: %s", o.name(), problem)
	}
	for k, b := range o.Bindings {
		if b >= MaxBindings {
			return 0, invalid(op, "%q: binding number %d is above %d", o.name(), b, MaxBindings-1)
		}
		if k > 0 && b <= o.Bindings[k-1] {
			return 0, invalid(op, "%q: binding number %d does not ascend", o.name(), b)
		}
		mask |= 1 << b
	}
	if n := len(o.Bindings); n > int(limits.MaxPerStageDescriptorStorageBuffers) {
		return 0, invalid(op, "%q: %d bindings, the device takes %d", o.name(), n,
			limits.MaxPerStageDescriptorStorageBuffers)
	}
	if o.PushConstants%4 != 0 || o.PushConstants > limits.MaxPushConstantsSize {
		return 0, invalid(op, "%q: %d push constant bytes, the device takes up to %d in steps of 4",
			o.name(), o.PushConstants, limits.MaxPushConstantsSize)
	}
	if err := o.checkMerging(mask, limits); err != nil {
		return 0, err
	}
	for k, s := range o.Specialization {
		if s.Size != 1 && s.Size != 2 && s.Size != 4 && s.Size != 8 {
			return 0, invalid(op, "%q: specialization constant %d of %d bytes", o.name(), s.ID, s.Size)
		}
		if slices.ContainsFunc(o.Specialization[:k], func(t SpecEntry) bool { return t.ID == s.ID }) {
			return 0, invalid(op, "%q: specialization constant %d twice", o.name(), s.ID)
		}
	}
	return mask, nil
}

// checkMerging returns an error for a pipeline that cannot do several dispatches of another one, if it
// is to. mask is that of its binding numbers.
func (o *PipelineOptions) checkMerging(mask uint32, limits *Limits) error {
	const op = "Device.CreatePipeline"
	if o.Merges.Handle == 0 {
		if o.Launches != 0 || o.Base != 0 || o.Stride != 0 || o.LaunchBindings != 0 || o.Elements != nil {
			return invalid(op, "%q: %d launches of no pipeline", o.name(), o.Launches)
		}
		return nil
	}
	descriptors := uint64(o.elements()) * uint64(len(o.Bindings))
	switch {
	case o.Launches < 2 || descriptors > MaxBindings || descriptors > uint64(limits.MaxPerStageDescriptorStorageBuffers) ||
		o.Launches > min(MaxMergedLaunches, limits.MaxComputeWorkGroupCount[2]):
		return invalid(op, "%q: %d launches of %d bindings in a dispatch", o.name(), o.Launches, len(o.Bindings))
	case mask != o.Merges.BindingMask:
		return invalid(op, "%q: the bindings are not those of the pipeline that it merges", o.name())
	case !o.spaces():
		return invalid(op, "%q: elements of %d bytes, and push constants from byte %d on, of %d bindings", o.name(), o.Elements, o.Base, len(o.Bindings))
	case o.Stride%4 != 0 || o.Stride < o.Merges.PushConstants || o.PushConstants > MaxMergedPush ||
		uint64(o.Base)+uint64(o.Launches)*uint64(o.Stride) != uint64(o.PushConstants):
		return invalid(op, "%q: %d push constant bytes for %d launches of %d bytes each, behind %d", o.name(), o.PushConstants, o.Launches, o.Stride, o.Base)
	}
	return nil
}

// elements returns the number of descriptors of each binding.
func (o *PipelineOptions) elements() uint32 {
	if o.Merges.Handle == 0 || o.LaunchBindings != spirv.OwnBindings {
		return 1
	}
	return o.Launches
}

// spaces reports whether the push constants have room for what a dispatch says of parts of the bindings, if it does.
func (o *PipelineOptions) spaces() bool {
	switch o.LaunchBindings {
	case spirv.OwnBindings, spirv.SharedBindings:
		return o.Base == 0 && len(o.Elements) == 0
	case spirv.SpacedBindings:
		return len(o.Bindings) > 0 && int64(o.Base) >= 8*int64(len(o.Bindings)) && o.Base%4 == 0 && len(o.Elements) == len(o.Bindings) && !slices.Contains(o.Elements, 0)
	}
	return false
}

// checkCode walks the instructions of a module, so that a driver neither reads past its
// end nor misses the entry point. It returns what is wrong, or "".
func checkCode(code []uint32, entry string) string {
	if len(code) < spirvHeaderWords || code[0] != spirvMagic {
		return "the code is not SPIR-V in native-endian words"
	}
	found, inFunction := false, false
	for rest := code[spirvHeaderWords:]; len(rest) > 0; {
		n := int(rest[0] >> 16)
		if n == 0 || n > len(rest) {
			return "the code is cut off or damaged"
		}
		switch rest[0] & 0xffff {
		case spirvOpEntryPoint:
			found = found || n > 3 && rest[1] == spirvModelGLCompute && literalIs(rest[3:n], entry)
		case spirvOpFunction:
			inFunction = true
		case spirvOpFunctionEnd:
			inFunction = false
		}
		rest = rest[n:]
	}
	if inFunction {
		return "the code is cut off or damaged"
	}
	if !found {
		return "the code has no compute entry point of that name"
	}
	return ""
}

// literalIs reports whether a SPIR-V literal string, whose first byte is the low byte of
// the first word, is s.
func literalIs(words []uint32, s string) bool {
	at := func(k int) byte { return byte(words[k/4] >> (k % 4 * 8)) }
	if len(s) >= len(words)*4 || at(len(s)) != 0 {
		return false
	}
	for k := 0; k < len(s); k++ {
		if at(k) != s[k] {
			return false
		}
	}
	return true
}

// specialization returns the constants in the layout of the C code: each value in the
// first bytes of a word of its own.
func (o *PipelineOptions) specialization() (ids, sizes []uint32, data []uint64) {
	for _, s := range o.Specialization {
		var word uint64
		bytes := (*[8]byte)(unsafe.Pointer(&word))[:]
		switch s.Size {
		case 1:
			bytes[0] = byte(s.Value)
		case 2:
			binary.NativeEndian.PutUint16(bytes, uint16(s.Value))
		case 4:
			binary.NativeEndian.PutUint32(bytes, uint32(s.Value))
		default:
			word = s.Value
		}
		ids, sizes, data = append(ids, s.ID), append(sizes, s.Size), append(data, word)
	}
	return ids, sizes, data
}
