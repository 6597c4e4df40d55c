package tests

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
	"github.com/vkomp/vkomp/vk/spirv"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/indices.spv testdata/indices.comp

//go:embed testdata/indices.spv
var indicesModule []byte

// seen is what an invocation of the kernel writes.
type seen [4]uint32

// checkSeen compares the results of a folded launch over width times height invocations with those
// of an ordinary one.
func checkSeen(t *testing.T, got []seen, width, height int, size [2]uint32) {
	t.Helper()
	wrong := 0
	for i := range got {
		x, y := uint32(i%width), uint32(i/width)
		want := seen{3*x + y, x / size[0], y / size[1], x%size[0] + size[0]*(y%size[1])}
		if got[i] != want {
			if wrong++; wrong <= 3 {
				t.Errorf("invocation %d, %d has seen %v, want %v", x, y, got[i], want)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("and %d more of %d are wrong", wrong-3, width*height)
	}
}

// Many devices support at most 65535 workgroups in a dimension.
func TestLaunchBeyondWorkgroupLimit(t *testing.T) {
	for _, test := range []struct {
		width, height int
		size          [2]uint32
	}{
		{200003, 1, [2]uint32{1, 1}},
		{2 * 65535, 1, [2]uint32{1, 1}},
		{3 * 70001, 2, [2]uint32{3, 2}},
		{1, 131077, [2]uint32{1, 1}},
		{5, 2*65536 + 1, [2]uint32{2, 2}},
	} {
		t.Run(fmt.Sprintf("%dx%d by %v", test.width, test.height, test.size), func(t *testing.T) {
			rt := vktest.Open(t)
			kernel, err := rt.NewKernel(vkomp.KernelSource{
				Name:       "indices",
				SPIRV:      indicesModule,
				Specialize: map[uint32]uint32{0: test.size[0], 1: test.size[1]},
			})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]seen, test.width*test.height)
			if err := rt.Target(context.Background(), vkomp.Target{
				Kernel: kernel,
				Range:  vkomp.Range{X: test.width, Y: test.height},
				Args:   []vkomp.Arg{vkomp.From(got), vkomp.Value(uint32(test.width)), vkomp.Value(uint32(test.height))},
			}); err != nil {
				t.Fatal(err)
			}
			checkSeen(t, got, test.width, test.height, test.size)
		})
	}
}

// The limit is chosen small, so that the kernel is folded on every device.
func TestFoldedDispatchesShowIndicesOfLaunch(t *testing.T) {
	module, err := spirv.Parse(indicesModule)
	if err != nil {
		t.Fatal(err)
	}
	device := openDevice(t)
	value := uint64(0)
	for _, test := range []struct {
		dimension     int
		limit         uint32
		width, height int
		size          [2]uint32
	}{
		{0, 1, 5, 1, [2]uint32{1, 1}},
		{0, 5, 13, 1, [2]uint32{1, 1}},
		{0, 4, 64, 3, [2]uint32{4, 1}}, // whole layers
		{0, 7, 100, 6, [2]uint32{3, 2}},
		{1, 7, 6, 100, [2]uint32{2, 3}},
		{1, 100, 3, 201, [2]uint32{1, 2}},
	} {
		t.Run(fmt.Sprintf("%dx%d by %v, dimension %d, limit %d", test.width, test.height, test.size, test.dimension, test.limit), func(t *testing.T) {
			code, err := spirv.Fold(module, "main", test.dimension, test.limit)
			if err != nil {
				t.Fatal(err)
			}
			pipeline, err := device.CreatePipeline(vk.PipelineOptions{
				Code: code, Entry: "main", Bindings: []uint32{0}, PushConstants: 8,
				Specialization: []vk.SpecEntry{{ID: 0, Value: uint64(test.size[0]), Size: 4}, {ID: 1, Value: uint64(test.size[1]), Size: 4}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer device.DestroyPipeline(pipeline)
			block, got := newSeen(t, device, test.width*test.height)
			defer device.DestroyBlock(block)

			var stream vk.Stream
			bindings := []vk.BufferRange{{Buffer: block.Buffer, Size: block.Size}}
			push := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, uint32(test.width)), uint32(test.height))
			groups := [3]uint32{
				(uint32(test.width) + test.size[0] - 1) / test.size[0],
				(uint32(test.height) + test.size[1] - 1) / test.size[1], 1,
			}
			layers, rest := groups[test.dimension]/test.limit, groups[test.dimension]%test.limit
			whole := groups
			whole[test.dimension], whole[2] = test.limit, layers
			stream.Dispatch(pipeline, bindings, push, [3]uint32{}, whole)
			if rest > 0 {
				last := groups
				last[test.dimension] = rest
				stream.Dispatch(pipeline, bindings, push, [3]uint32{2: layers}, last)
			}
			stream.Barrier(vk.Barrier{
				SrcStage: vk.StageCompute, DstStage: vk.StageHost,
				SrcAccess: vk.AccessShaderWrite, DstAccess: vk.AccessHostRead,
			})
			value++
			queue := device.Queues()[0]
			if err := queue.Submit(&stream, nil, nil, value); err != nil {
				t.Fatal(err)
			}
			if done, err := queue.Wait(value, time.Minute); !done || err != nil {
				t.Fatalf("wait: %v, %v", done, err)
			}
			checkSeen(t, got, test.width, test.height, test.size)
		})
	}
}

// openDevice opens the first usable device under validation. Its cleanup fails the test on a
// message of validation.
func openDevice(t *testing.T) *vk.Device {
	t.Helper()
	instance, err := vk.Open(vk.InstanceOptions{ApplicationName: "vkomp", Validation: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := instance.Messages(); n > 0 {
			t.Errorf("%d validation messages", n)
		}
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, p := range instance.PhysicalDevices() {
		if len(p.Missing()) > 0 {
			continue
		}
		device, err := p.Open(vk.DeviceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := device.Close(); err != nil {
				t.Error(err)
			}
		})
		return device
	}
	t.Fatal("no usable Vulkan device: install a driver, for example Mesa's lavapipe")
	return nil
}

// newSeen creates a block of n values in host-visible memory.
func newSeen(t *testing.T, device *vk.Device, n int) (vk.Block, []seen) {
	t.Helper()
	size := uint64(n) * uint64(unsafe.Sizeof(seen{}))
	accepted, err := device.BlockMemoryTypes(size)
	if err != nil {
		t.Fatal(err)
	}
	const want = vk.MemoryHostVisible | vk.MemoryHostCoherent
	for i, m := range device.Properties().MemoryTypes {
		if accepted>>i&1 == 0 || m.Flags&want != want {
			continue
		}
		block, err := device.CreateBlock(size, i)
		if err != nil {
			t.Fatal(err)
		}
		values := unsafe.Slice((*seen)(block.Host), n)
		clear(values)
		return block, values
	}
	t.Fatal("no memory is both visible to the host and coherent")
	return vk.Block{}, nil
}
