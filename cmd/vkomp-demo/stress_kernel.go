package main

import (
	"embed"
	"fmt"

	"github.com/vkomp/vkomp"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=0 -o kernels/stress0.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=1 -o kernels/stress1.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=2 -o kernels/stress2.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=3 -o kernels/stress3.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=4 -o kernels/stress4.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=5 -o kernels/stress5.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=6 -o kernels/stress6.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=7 -o kernels/stress7.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -DINPUTS=8 -o kernels/stress8.spv kernels/stress.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o kernels/carry.spv kernels/carry.comp

//go:embed kernels/*.spv
var stressModules embed.FS

// stressInputs is the largest number of bindings for inputs of a task's kernel.
const stressInputs = 8

// stressKernels holds the kernels of a runtime: those of tasks, by the number of their bindings for
// inputs, and the carrier. Their Host variants do the same.
type stressKernels struct {
	tasks [stressInputs + 1]vkomp.Kernel
	carry vkomp.Kernel
}

// newStressKernels makes the kernels for slots with that many elements.
func newStressKernels(rt *vkomp.Runtime, elements int) (k stressKernels, err error) {
	make := func(name string, host func(*vkomp.HostCall) error) vkomp.Kernel {
		module, reading := stressModules.ReadFile("kernels/" + name + ".spv")
		kernel, making := vkomp.Kernel{}, reading
		if reading == nil {
			kernel, making = rt.NewKernel(vkomp.KernelSource{Name: name, SPIRV: module, Specialize: map[uint32]uint32{0: uint32(elements)}, Host: host})
		}
		if err == nil {
			err = making
		}
		return kernel
	}
	for n := range k.tasks {
		k.tasks[n] = make(fmt.Sprintf("stress%d", n), func(c *vkomp.HostCall) error { return stressOnHost(c, n) })
	}
	k.carry = make("carry", carryOnHost)
	return k, err
}

// spanWord encodes a span of inputs for the kernels.
func spanWord(s span) uint32 { return uint32(s.first) | uint32(s.points())<<16 }

// stressOnHost is the Host variant of kernels/stress.comp.
func stressOnHost(c *vkomp.HostCall, inputs int) error {
	who := vkomp.HostValue[[4]uint32](c, 0)
	own := slot(vkomp.HostSlice[uint32](c, 0))
	var spans [stressInputs]uint32
	for k := 0; k < inputs; k += 4 {
		words := vkomp.HostValue[[4]uint32](c, 1+k/4)
		copy(spans[k:], words[:])
	}
	lanes := beginning(who)
	for k, word := range spans[:inputs] {
		bound := vkomp.HostSlice[uint32](c, 1+k)
		for p := range int(word >> 16) {
			from := who
			from[0], from[1] = who[0]-1, word&0xffff+uint32(p)
			in := slot(bound[p*len(own):][:len(own)])
			value := in.lanes()
			in.check(from, &value, func(element int, found []uint32) { own.record(who, from[1], element, found) })
			lanes.take(&value, from[1])
		}
	}
	lanes.work(who)
	own.leave(who, &lanes)
	return nil
}

// carryOnHost is the Host variant of kernels/carry.comp.
func carryOnHost(c *vkomp.HostCall) error {
	own, source, sent := slot(vkomp.HostSlice[uint32](c, 0)), slot(vkomp.HostSlice[uint32](c, 1)), slot(vkomp.HostSlice[uint32](c, 2))
	who, task := vkomp.HostValue[[4]uint32](c, 0), vkomp.HostValue[[4]uint32](c, 1)
	clear(own[:slotHeader])
	hello, value := beginning(who), source.lanes()
	source.check(task, &value, func(element int, found []uint32) { own.record(who, task[1], element, found) })
	told := func(element int, found []uint32) { own.record(who, carried|who[1], element, found) }
	sent.check(who, &hello, told)
	if who[3] != 0 {
		own.check(who, &hello, told)
	}
	for l := range hello {
		hello[l] += value[l]
	}
	own.leave(who, &hello)
	return nil
}
