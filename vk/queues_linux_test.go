//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// useManyQueues makes every device that the test opens have three queue families, ordered
// only by semaphores, and puts the fault layer above. Compiling the layers needs Vulkan's
// headers.
func useManyQueues(t *testing.T) {
	t.Helper()
	sources, err := filepath.Glob("../tests/layers/manyqueue*.c")
	if err != nil {
		t.Fatal(err)
	}
	sources = append(sources, "../tests/layers/layer.c", "../tests/layers/map.c", "-pthread", "-fvisibility=hidden")
	useLayers(t, faultLayer, layer{"VK_LAYER_VKOMP_manyqueue", sources})
	t.Setenv("VKOMP_MANYQUEUE_FAMILIES", "GCT2,CT4,T2")
	t.Setenv("VKOMP_MANYQUEUE_SEED", "1")
	// About the time of a submission under validation, so that submissions overlap.
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "1000")
}

// manyQueues holds the families of the queues of such a device with default options.
// There is one more queue of family 0, for interop.
var manyQueues = []int{1, 1, 1, 1, 0, 2, 2}

func TestManyQueuesAreOpenedAsPlanned(t *testing.T) {
	long(t)
	useManyQueues(t)
	p := usable(t, openInstance(t))
	for _, c := range []struct {
		options DeviceOptions
		want    []int
		interop []int
	}{
		{DeviceOptions{}, manyQueues, []int{0}},
		{DeviceOptions{InteropQueues: -1}, manyQueues, nil},
		{DeviceOptions{InteropQueues: 3}, manyQueues, []int{0}},
		{DeviceOptions{ComputeQueues: 3, TransferQueues: 1}, []int{1, 1, 1, 2}, []int{0}},
		{DeviceOptions{ComputeQueues: 6, InteropQueues: -1}, []int{1, 1, 1, 1, 0, 0, 2, 2}, nil},
		{DeviceOptions{ComputeQueues: 1, TransferQueues: -1}, []int{1}, []int{0}},
		{DeviceOptions{ComputeQueues: 1, TransferQueues: -1, InteropQueues: 3}, []int{1}, []int{0, 0}},
		{DeviceOptions{ComputeQueues: 100, TransferQueues: 100}, manyQueues, []int{0}},
	} {
		d, err := p.Open(c.options)
		if err != nil {
			t.Fatal(err)
		}
		checkQueues(t, d, c.want, c.interop)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, families := range [][]int{{0, 0, 0}, {0, 1, 1, 1, 1, 1}, {0, 2, 2, 2}} {
		if _, err := p.openQueues(families, nil, DeviceOptions{}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "of family") {
			t.Errorf("queues of families %v: %v", families, err)
		}
	}
}

// Each call on the way to a device fails in turn. Validation reports objects that are left.
func TestDeviceThatFailsHalfwayLeavesNothing(t *testing.T) {
	useLayers(t, faultLayer)
	failOpening(t, usable(t, openInstance(t)))
}

func TestDeviceOfManyQueuesThatFailsHalfwayLeavesNothing(t *testing.T) {
	long(t)
	useManyQueues(t)
	failOpening(t, usable(t, openInstance(t)))
}

func failOpening(t *testing.T, p *PhysicalDevice) {
	t.Helper()
	queues, interop := planDevice(p.Properties().QueueFamilies, 0, defaultTransferQueues, defaultInteropQueues)
	families := slices.Concat(queues, interop)
	fail := func(call, detail string, at int) {
		t.Helper()
		for result, want := range map[Result]error{ErrorOutOfHostMemory: ErrOutOfMemory, ErrorDeviceLost: ErrDeviceLost} {
			t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s@%d=%d", call, at, result))
			d, err := p.Open(DeviceOptions{})
			if d != nil || !errors.Is(err, want) || !strings.Contains(err.Error(), call+": "+result.String()) || !strings.HasSuffix(err.Error(), detail) {
				t.Errorf("%s, time %d, gives %v: %v", call, at, result, err)
			}
		}
	}
	counts := make([]int, len(p.Properties().QueueFamilies))
	for k, family := range families {
		fail("vkCreateCommandPool", fmt.Sprintf("family %d", family), k+1)
		fail("vkCreateSemaphore", fmt.Sprintf("family %d", family), k+1)
		counts[family]++
	}
	var list []string
	for family, n := range counts {
		if n > 0 {
			list = append(list, fmt.Sprintf("%d of family %d", n, family))
		}
	}
	fail("vkCreatePipelineCache", "0 bytes", 1)
	fail("vkCreateDevice", "queues: "+strings.Join(list, ", "), 1)
	t.Setenv("VKOMP_TEST_FAIL", "")
	d, err := p.Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkQueues(t, d, queues, interop)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestBlocksAreSharedAmongTheFamiliesInUse(t *testing.T) {
	long(t)
	useManyQueues(t)
	p := usable(t, openInstance(t))
	for _, c := range []struct {
		options DeviceOptions
		want    string
	}{
		{DeviceOptions{}, "0,1,2"},
		{DeviceOptions{TransferQueues: -1}, "0,1"},
		{DeviceOptions{ComputeQueues: 1}, "0,1,2"}, // the interop queue is of family 0
		{DeviceOptions{ComputeQueues: 1, InteropQueues: -1}, "1,2"},
		{DeviceOptions{ComputeQueues: 1, TransferQueues: -1, InteropQueues: -1}, ""}, // exclusive
	} {
		d, err := p.Open(c.options)
		if err != nil {
			t.Fatal(err)
		}
		unit := d.Properties().Limits.MinImportedHostPointerAlignment
		if !d.Properties().Features.ExternalMemoryHost {
			t.Fatal("the device imports no host memory")
		}
		data := hostMemory(t, 2*unit, unit)
		for _, sharing := range []string{"", "0,1", "0,2", "1,2", "0,1,2", "0,1,2,3"} {
			t.Setenv("VKOMP_TEST_SHARING", sharing)
			made, madeErr := d.CreateBlock(64, 0)
			imported, importedErr := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), unit)
			d.DestroyBlock(made)
			d.DestroyBlock(imported)
			if (sharing == c.want) != (madeErr == nil) || (sharing == c.want) != (importedErr == nil) {
				t.Errorf("%+v, shared among %q: made %v, imported %v", c.options, sharing, madeErr, importedErr)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// openManyQueues opens a device with manyQueues under validation.
func openManyQueues(t *testing.T, o DeviceOptions) *Device {
	t.Helper()
	useManyQueues(t)
	d := openDevice(t, o)
	checkQueues(t, d, manyQueues, []int{0})
	return d
}

func TestEveryQueueDoesWhatItsFamilyCan(t *testing.T) {
	long(t)
	for name, o := range map[string]DeviceOptions{"default": {}, "pools": {NoPushDescriptors: true}} {
		t.Run(name, func(t *testing.T) {
			d := openManyQueues(t, o)
			add := newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
			for k, q := range d.Queues() {
				src, _ := newBlock(t, d, 256)
				dst, words := newBlock(t, d, 256)
				within := Barrier{StageTransfer, StageTransfer, AccessTransferWrite, AccessTransferRead | AccessTransferWrite}
				var s, dispatch Stream
				s.Fill(src.Buffer, 0, src.Size, uint32(k)+1)
				s.Barrier(within)
				s.Copy(src.Buffer, dst.Buffer, 0, 0, dst.Size)
				dispatch.Append(&s)
				dispatch.Barrier(between)
				dispatch.Dispatch(add, []BufferRange{all(src), all(dst)}, push(256, 10), [3]uint32{}, [3]uint32{4, 1, 1})
				want := uint32(k) + 1
				err := q.Submit(&dispatch, nil, nil, 1)
				if q.Compute() {
					want *= 11
					if err != nil {
						t.Fatalf("queue %d: %v", k, err)
					}
					s.Reset()
				} else if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "queue family 2 only transfers") {
					t.Fatalf("dispatch on queue %d: %v", k, err)
				}
				s.Barrier(toHost)
				if err := q.Submit(&s, []SemaphoreValue{{q.Timeline(), 0}}, nil, 2); err != nil {
					t.Fatalf("queue %d: %v", k, err)
				}
				wait(t, q, 2)
				for n, v := range words {
					if v != want {
						t.Fatalf("queue %d: word %d is %d, want %d", k, n, v, want)
					}
				}
			}
		})
	}
}

func TestTimestampsOfAllQueuesFollowTheirWaits(t *testing.T) {
	long(t)
	d := openManyQueues(t, DeviceOptions{})
	queues := d.Queues()
	p := newQueries(t, d, 2*uint32(len(queues)))
	r := newRelay(t, d)
	var waits []SemaphoreValue
	for k, q := range queues {
		if q.TimestampBits() == 0 {
			t.Fatalf("queue %d has no timestamps", k)
		}
		stage := StageTransfer
		if q.Compute() {
			stage = StageCompute
		} else {
			var s Stream
			s.Timestamp(p, 0, StageCompute)
			if err := q.Submit(&s, nil, nil, 1); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "only transfers") {
				t.Errorf("queue %d: %v", k, err)
			}
		}
		var s Stream
		s.Timestamp(p, 2*uint32(k), StageTopOfPipe)
		s.Append(r.step(q.Compute(), k))
		s.Timestamp(p, 2*uint32(k)+1, stage)
		if err := q.Submit(&s, waits, nil, 1); err != nil {
			t.Fatal(err)
		}
		waits = []SemaphoreValue{{q.Timeline(), 1}}
	}
	wait(t, queues[len(queues)-1], 1)
	ticks := make([]uint64, p.Count)
	if err := d.Timestamps(p, 0, ticks); err != nil {
		t.Fatal(err)
	}
	if ticks[0] == 0 || !slices.IsSorted(ticks) {
		t.Errorf("timestamps %v", ticks)
	}
	r.check(t)
	for _, q := range queues {
		checkCalibration(t, d, q, 2)
	}
}

// relay is a chain of steps over two blocks, each on another queue: a compute queue adds a
// multiple of one block to the other, a transfer queue copies it back. Every step uses
// what the step before it wrote.
type relay struct {
	blocks [2]Block
	words  [2][]uint32
	add    Pipeline
	model  [2]uint32
}

func newRelay(t *testing.T, d *Device) *relay {
	t.Helper()
	r := &relay{add: newPipeline(t, d, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})}
	for k := range r.blocks {
		r.blocks[k], r.words[k] = newBlock(t, d, 4096)
		for n := range r.words[k] {
			r.words[k][n] = uint32(2*k + 1)
		}
		r.model[k] = uint32(2*k + 1)
	}
	return r
}

// step returns the operations of step n for a queue with or without compute.
func (r *relay) step(compute bool, n int) *Stream {
	var s Stream
	if compute {
		factor := uint32(2 * (n%5 + 1)) // odd values stay odd and never become 0
		s.Dispatch(r.add, []BufferRange{all(r.blocks[0]), all(r.blocks[1])}, push(4096, factor), [3]uint32{}, [3]uint32{64, 1, 1})
		r.model[1] += factor * r.model[0]
	} else {
		s.Copy(r.blocks[1].Buffer, r.blocks[0].Buffer, 0, 0, r.blocks[0].Size)
		r.model[0] = r.model[1]
	}
	s.Barrier(toHost)
	return &s
}

func (r *relay) check(t *testing.T) {
	t.Helper()
	for k, words := range r.words {
		for n, v := range words {
			if v != r.model[k] {
				t.Fatalf("block %d, word %d is %d, want %d", k, n, v, r.model[k])
			}
		}
	}
}

func TestWaitsCarryABlockThroughAllQueues(t *testing.T) {
	long(t)
	d := openManyQueues(t, DeviceOptions{})
	queues := d.Queues()
	r := newRelay(t, d)
	random := rand.New(rand.NewPCG(1, 2))
	var before []SemaphoreValue
	submitted := make([]uint64, len(queues))
	for n := range 300 {
		k := random.IntN(len(queues))
		q := queues[k]
		submitted[k]++
		if err := q.Submit(r.step(q.Compute(), n), before, nil, submitted[k]); err != nil {
			t.Fatalf("step %d on queue %d: %v", n, k, err)
		}
		before = []SemaphoreValue{{q.Timeline(), submitted[k]}}
	}
	for k, q := range queues {
		if submitted[k] == 0 {
			t.Fatalf("queue %d has no step", k)
		}
		wait(t, q, submitted[k])
	}
	r.check(t)
}

// Each queue in turn waits for all others in one submission, and all others continue
// after it.
func TestSubmissionWaitsForAllOtherQueues(t *testing.T) {
	d := openManyQueues(t, DeviceOptions{})
	queues := d.Queues()
	var parts []Block
	for range queues {
		b, _ := newBlock(t, d, 64)
		parts = append(parts, b)
	}
	gathered, words := newBlock(t, d, 64*len(queues))
	var before []SemaphoreValue
	for round := range uint64(20) {
		value := 2*round + 1
		var waits []SemaphoreValue
		for k, q := range queues {
			var s Stream
			s.Fill(parts[k].Buffer, 0, 256, uint32(round)<<8|uint32(k))
			if err := q.Submit(&s, before, nil, value); err != nil {
				t.Fatal(err)
			}
			waits = append(waits, SemaphoreValue{q.Timeline(), value})
		}
		gatherer := queues[round%uint64(len(queues))]
		var s Stream
		for k := range parts {
			s.Copy(parts[k].Buffer, gathered.Buffer, 0, uint64(k)*256, 256)
		}
		s.Barrier(toHost)
		if err := gatherer.Submit(&s, waits, nil, value+1); err != nil {
			t.Fatal(err)
		}
		wait(t, gatherer, value+1)
		for n, v := range words {
			if want := uint32(round)<<8 | uint32(n/64); v != want {
				t.Fatalf("round %d: word %d is %#x, want %#x", round, n, v, want)
			}
		}
		before = []SemaphoreValue{{gatherer.Timeline(), value + 1}}
	}
}

func TestQueuesAreUsedByManyGoroutinesAtOnce(t *testing.T) {
	d := openManyQueues(t, DeviceOptions{})
	var ends sync.WaitGroup
	for k, q := range d.Queues() {
		src, from := newBlock(t, d, 256)
		dst, to := newBlock(t, d, 256)
		ends.Go(func() {
			for value := uint64(1); value <= 30; value++ {
				for n := range from {
					from[n] = uint32(k)<<16 | uint32(value)
				}
				var s Stream
				s.Copy(src.Buffer, dst.Buffer, 0, 0, src.Size)
				s.Barrier(toHost)
				if err := q.Submit(&s, nil, nil, value); err != nil {
					t.Errorf("queue %d: %v", k, err)
					return
				}
				if done, err := q.Wait(value, time.Minute); !done || err != nil {
					t.Errorf("queue %d: done %v, %v", k, done, err)
					return
				}
				for n, v := range to {
					if v != uint32(k)<<16|uint32(value) {
						t.Errorf("queue %d, value %d: word %d is %#x", k, value, n, v)
						return
					}
				}
			}
		})
	}
	ends.Wait()
}

// Imported host memory is used from two families, as a block is.
func TestImportedBlockIsUsedFromSeveralFamilies(t *testing.T) {
	long(t)
	d := openManyQueues(t, DeviceOptions{})
	unit := d.Properties().Limits.MinImportedHostPointerAlignment
	if !d.Properties().Features.ExternalMemoryHost {
		t.Fatal("the device imports no host memory")
	}
	data := hostMemory(t, 2*unit, unit)
	b, err := d.ImportBlock(uintptr(unsafe.Pointer(&data[0])), 2*unit)
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroyBlock(b)
	var before []SemaphoreValue
	size := 2 * unit / 8
	for k, q := range d.Queues() {
		var s Stream
		if k == 0 {
			s.Fill(b.Buffer, 0, size, 0x01010101)
		} else {
			s.Copy(b.Buffer, b.Buffer, uint64(k-1)*size, uint64(k)*size, size)
		}
		s.Barrier(toHost)
		if err := q.Submit(&s, before, nil, 1); err != nil {
			t.Fatal(err)
		}
		before = []SemaphoreValue{{q.Timeline(), 1}}
	}
	last := d.Queues()[len(manyQueues)-1]
	wait(t, last, 1)
	for n, v := range data[:len(manyQueues)*int(size)] {
		if v != 1 {
			t.Fatalf("byte %d of %d is %d", n, size, v)
		}
	}
}

func TestClosingWaitsForAllQueues(t *testing.T) {
	useManyQueues(t)
	d, err := usable(t, openInstance(t)).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.CreateBlock(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	var before []SemaphoreValue
	for range 5 {
		for _, q := range d.Queues() {
			value := uint64(1)
			if before != nil {
				value = before[0].Value + 1
			}
			var s Stream
			s.Fill(b.Buffer, 0, b.Size, uint32(value))
			if err := q.Submit(&s, before, nil, value); err != nil {
				t.Fatal(err)
			}
			before = []SemaphoreValue{{q.Timeline(), value}}
		}
	}
	// Validation would report objects that are destroyed while in use.
	if err := d.Close(); !errors.Is(err, ErrBusy) || !strings.HasSuffix(err.Error(), "1 VkBuffer, 1 VkDeviceMemory") {
		t.Errorf("Close: %v", err)
	}
	for k, q := range d.Queues() {
		if err := q.Submit(nil, nil, nil, 1000); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), fmt.Sprintf("family %d", manyQueues[k])) {
			t.Errorf("queue %d after Close: %v", k, err)
		}
	}
}

func TestFailedSubmissionNamesItsQueuesFamily(t *testing.T) {
	long(t)
	useManyQueues(t)
	// Validation assumes that the value of a failed submission is used.
	t.Setenv("VK_INSTANCE_LAYERS", strings.TrimPrefix(os.Getenv("VK_INSTANCE_LAYERS"), validationLayer+":"))
	i, err := Open(InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	d, err := usable(t, i).Open(DeviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	checkQueues(t, d, manyQueues, []int{0})
	for k, q := range d.Queues() {
		t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("vkQueueSubmit=%d", ErrorOutOfDeviceMemory))
		err := q.Submit(nil, nil, nil, 1)
		if want := fmt.Sprintf("vkQueueSubmit: VK_ERROR_OUT_OF_DEVICE_MEMORY: queue of family %d, signal 1", manyQueues[k]); !errors.Is(err, ErrOutOfMemory) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("queue %d: %v", k, err)
		}
		t.Setenv("VKOMP_TEST_FAIL", "")
		if err := q.Submit(nil, nil, nil, 1); err != nil {
			t.Errorf("queue %d, again: %v", k, err)
		}
		wait(t, q, 1)
	}
}
