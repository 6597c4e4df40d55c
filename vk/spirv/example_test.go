package spirv_test

import (
	_ "embed"
	"fmt"

	"github.com/vkomp/vkomp/vk/spirv"
)

//go:embed testdata/saxpy.spv
var saxpy []byte

//go:embed testdata/specialization.spv
var specialization []byte

func ExampleParse() {
	m, err := spirv.Parse(saxpy)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := m.EntryPoint("main")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("needs", m.Capabilities)
	fmt.Println("workgroups of", e.LocalSize)
	for _, b := range e.Bindings {
		fmt.Printf("set %d binding %d: %v %s, stride %d, read only %v\n", b.Set, b.Binding, b.Kind, b.Name, b.Stride, b.ReadOnly)
	}
	for _, p := range e.PushConstants.Members {
		fmt.Printf("push constant %s: %v at %d\n", p.Name, p.Kind, p.Offset)
	}
	// Output:
	// needs [Shader]
	// workgroups of [64 1 1]
	// set 0 binding 0: storage buffer X, stride 4, read only true
	// set 0 binding 1: storage buffer Y, stride 4, read only false
	// push constant a: float at 0
	// push constant n: uint at 4
}

func ExampleParse_invalid() {
	_, err := spirv.Parse(saxpy[:len(saxpy)-8])
	fmt.Println(err)
	// Output: spirv: word 261: OpFunction: the module ends inside this function
}

func ExampleModule_EntryPoint() {
	m, err := spirv.Parse(saxpy)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.EntryPoint("saxpy")
	fmt.Println(err)
	// Output: spirv: no such compute entry point: "saxpy": the module has "main"
}

func ExampleEntryPoint_WorkgroupSize() {
	m, err := spirv.Parse(specialization)
	if err != nil {
		fmt.Println(err)
		return
	}
	e, err := m.EntryPoint("main")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("by default", e.LocalSize, "and x is constant", *e.LocalSizeSpec[0])
	fmt.Println("specialized", e.WorkgroupSize(map[uint32]uint32{10: 128}))
	// Output:
	// by default [16 2 1] and x is constant 10
	// specialized [128 2 1]
}
