//go:build cgo

package vk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// twoDevices opens two VkDevices of one physical device.
func twoDevices(t *testing.T) [2]*Device {
	t.Helper()
	p := usable(t, openInstance(t))
	var devices [2]*Device
	for k := range devices {
		d, err := p.Open(DeviceOptions{InteropQueues: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if live := d.Live(); len(live) != 0 {
				t.Errorf("left of device %d: %v", k, live)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		devices[k] = d
	}
	return devices
}

func has(d *Device, extension string) bool {
	return slices.Contains(d.Properties().Extensions, extension)
}

// descriptors returns the process's open files.
func descriptors(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		// Leave out the directory itself, which is closed again, and a file that
		// SwiftShader keeps open for its code.
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.Contains(to, "swiftshader_jit") {
			open = append(open, e.Name()+" "+to)
		}
	}
	return open
}

// checkDescriptors fails the test if do leaves files open or closes files.
func checkDescriptors(t *testing.T, do func()) {
	t.Helper()
	before := descriptors(t)
	do()
	if after := descriptors(t); !slices.Equal(before, after) {
		t.Errorf("open before: %q\nafter: %q", before, after)
	}
}

func TestBlockIsOneMemoryOnTwoDevices(t *testing.T) {
	devices := twoDevices(t)
	d, other := devices[0], devices[1]
	if !has(d, "VK_KHR_external_memory_fd") {
		if _, err := d.CreateExportableBlock(64, 0); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "VK_KHR_external_memory_fd") {
			t.Errorf("without the extension: %v", err)
		}
		if _, err := d.ImportBlockFd(0, 64, 0); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "VK_KHR_external_memory_fd") {
			t.Errorf("without the extension: %v", err)
		}
		return
	}
	checkDescriptors(t, func() {
		const words = 5000
		memoryType := hostType(d)
		b, err := d.CreateExportableBlock(4*words, memoryType)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := d.ExportBlock(b)
		if err != nil {
			t.Fatal(err)
		}
		there, err := other.ImportBlockFd(fd, 4*words, memoryType)
		if err != nil {
			t.Fatal(err)
		}
		again, err := other.ImportBlockFd(fd, 4*words, memoryType)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Close(fd); err != nil {
			t.Errorf("the descriptor is not the caller's: %v", err)
		}
		// The exporting device fills, the importing one multiplies, the first one reads.
		var s Stream
		s.Fill(b.Buffer, 0, b.Size, 7)
		s.Barrier(Barrier{StageTransfer, StageAllCommands, AccessTransferWrite, AccessMemoryRead | AccessMemoryWrite})
		run(t, d, &s, 1)
		add := newPipeline(t, other, "add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8})
		ones, from := newBlock(t, other, words)
		for k := range from {
			from[k] = uint32(k)
		}
		s.Reset()
		s.Dispatch(add, []BufferRange{all(ones), all(there)}, push(words, 2), [3]uint32{}, [3]uint32{(words + 63) / 64, 1, 1})
		s.Barrier(toHost)
		run(t, other, &s, 1)
		// The exported block may be destroyed before the imported ones.
		result := unsafe.Slice((*uint32)(b.Host), words)
		for k, v := range result {
			if v != 7+2*uint32(k) {
				t.Fatalf("word %d is %d", k, v)
			}
		}
		d.DestroyBlock(b)
		for _, imported := range []Block{there, again} {
			if v := unsafe.Slice((*uint32)(imported.Host), words)[words-1]; v != 7+2*(words-1) {
				t.Errorf("the last word is %d", v)
			}
			other.DestroyBlock(imported)
		}
	})
}

func TestSemaphoreOrdersTwoDevices(t *testing.T) {
	devices := twoDevices(t)
	features := devices[0].Properties().Features
	for kind, can := range map[SemaphoreType]bool{BinarySemaphore: features.ExternalBinaryFd, TimelineSemaphore: features.ExternalTimelineFd} {
		if !has(devices[0], "VK_KHR_external_semaphore_fd") && can {
			t.Errorf("semaphores of type %d without the extension", kind)
		}
		if !can {
			for _, err := range []error{
				second(devices[0].CreateExportableSemaphore(kind)), second(devices[0].ImportSemaphore(kind, 0)),
			} {
				if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "VK_KHR_external_semaphore_fd") {
					t.Errorf("type %d: %v", kind, err)
				}
			}
			continue
		}
		t.Logf("type %d is passed", kind)
		checkDescriptors(t, func() { passSemaphore(t, devices, kind) })
	}
	if strings.Contains(devices[0].Properties().Name, "SwiftShader") && !features.ExternalBinaryFd {
		t.Error("SwiftShader passes binary semaphores")
	}
}

func second(_ Semaphore, err error) error { return err }

// passSemaphore makes the devices wait for each other in turns.
func passSemaphore(t *testing.T, devices [2]*Device, kind SemaphoreType) {
	t.Helper()
	s, err := devices[0].CreateExportableSemaphore(kind)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := devices[0].ExportSemaphore(s)
	if err != nil {
		t.Fatal(err)
	}
	there, err := devices[1].ImportSemaphore(kind, fd)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Close(fd); err != nil {
		t.Errorf("the descriptor is not the caller's: %v", err)
	}
	first, next := devices[0].Queues()[0], devices[1].Queues()[0]
	if n := devices[0].Live()["VkSemaphore"]; n != 1 {
		t.Errorf("%d semaphores are live", n)
	}
	for round := uint64(1); round <= 20; round++ {
		if err := first.Submit(nil, nil, []SemaphoreValue{{s, round}}, round); err != nil {
			t.Fatal(err)
		}
		if err := next.Submit(nil, []SemaphoreValue{{there, round}}, nil, round); err != nil {
			t.Fatal(err)
		}
		wait(t, next, round)
		wait(t, first, round)
	}
	devices[0].DestroySemaphore(s)
	devices[1].DestroySemaphore(there)
}

func TestImpossibleFilesAreRefusedWithoutLeak(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	timeline := newTimeline(t, d, 0)
	plain, _ := newBlock(t, d, 64)
	r, w, err := os.Pipe() // nobody writes to it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(r.Close(), w.Close()) }()
	pipe := int(r.Fd())
	checkDescriptors(t, func() {
		for name, err := range map[string]error{
			"import no block":              blockError(d.ImportBlockFd(-1, 64, 0)),
			"import no semaphore":          second(d.ImportSemaphore(BinarySemaphore, -1)),
			"import a pipe":                blockError(d.ImportBlockFd(pipe, 64, 0)),
			"import a pipe as a semaphore": second(d.ImportSemaphore(BinarySemaphore, pipe)),
			"import beyond 32 bits":        blockError(d.ImportBlockFd(1<<32+pipe, 64, 0)),
			"a semaphore beyond 32 bits":   second(d.ImportSemaphore(BinarySemaphore, 1<<32+pipe)),
			"a semaphore of no type":       second(d.CreateExportableSemaphore(2)),
			"export a block of no file":    fileError(d.ExportBlock(plain)),
			"export no block":              fileError(d.ExportBlock(Block{})),
			"export a timeline of no file": fileError(d.ExportSemaphore(timeline)),
			"export a queue's timeline":    fileError(d.ExportSemaphore(d.Queues()[0].Timeline())),
		} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d.Properties().Features.ExternalMemoryFd {
			for name, err := range map[string]error{
				"no bytes":       blockError(d.CreateExportableBlock(0, 0)),
				"no memory type": blockError(d.CreateExportableBlock(64, 99)),
			} {
				if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "Device.CreateExportableBlock") {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := d.ImportBlockFd(1<<20, 64, 0); !errors.Is(err, ErrUnsupported) {
				t.Errorf("a descriptor that is not open: %v", err)
			}
		}
		if d.Properties().Features.ExternalBinaryFd {
			if _, err := d.ImportSemaphore(BinarySemaphore, 1<<20); !errors.Is(err, ErrUnsupported) {
				t.Errorf("a descriptor that is not open: %v", err)
			}
		}
	})
	if live := d.Live(); live["VkBuffer"] != 1 || live["VkDeviceMemory"] != 1 || live["VkSemaphore"] != 1 {
		t.Errorf("live: %v", live)
	}
}

// exportUntil has two goroutines export an object until they are refused because destroy has destroyed it.
func exportUntil(t *testing.T, export func() (fd int, err error), destroy func()) {
	t.Helper()
	var exporting sync.WaitGroup
	for range 2 {
		exporting.Go(func() {
			for {
				fd, err := export()
				if err == nil {
					err = syscall.Close(fd)
				} else if errors.Is(err, ErrInvalid) {
					return
				}
				if err != nil {
					t.Errorf("export: %v", err)
					return
				}
			}
		})
	}
	destroy()
	exporting.Wait()
}

// A semaphore is exported as long as nobody has destroyed it: the driver is asked for no descriptor of one that another
// goroutine has destroyed meanwhile.
func TestExportOfASemaphoreThatIsDestroyedMeanwhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // the system suspends goroutines anywhere, also where they never block
	d := openDevice(t, DeviceOptions{InteropQueues: -1})
	features := d.Properties().Features
	for kind, can := range map[SemaphoreType]bool{BinarySemaphore: features.ExternalBinaryFd, TimelineSemaphore: features.ExternalTimelineFd} {
		for range 2000 {
			if !can {
				break
			}
			s, err := d.CreateExportableSemaphore(kind)
			if err != nil {
				t.Fatal(err)
			}
			exportUntil(t, func() (int, error) { return d.ExportSemaphore(s) }, func() { d.DestroySemaphore(s) })
		}
	}
}

// A block is exported as long as nobody has destroyed it, as a semaphore is.
func TestExportOfABlockThatIsDestroyedMeanwhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // the system suspends goroutines anywhere, also where they never block
	d := openDevice(t, DeviceOptions{InteropQueues: -1})
	if !d.Properties().Features.ExternalMemoryFd {
		return
	}
	for range 2000 {
		b, err := d.CreateExportableBlock(64, hostType(d))
		if err != nil {
			t.Fatal(err)
		}
		exportUntil(t, func() (int, error) { return d.ExportBlock(b) }, func() { d.DestroyBlock(b) })
	}
}

// An import into a process that can open no more files fails for want of them, and not because the device
// does not support it. An export there fails, with an error that is the driver's choice.
func TestExportAndImportWhereNoFileCanBeOpened(t *testing.T) {
	d := openDevice(t, DeviceOptions{InteropQueues: -1})
	features := d.Properties().Features
	semaphores := features.ExternalBinaryFd
	if !features.ExternalMemoryFd {
		return
	}
	b, err := d.CreateExportableBlock(64, hostType(d))
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroyBlock(b)
	block, err := d.ExportBlock(b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(block) }()
	var exportable Semaphore
	if semaphores {
		if exportable, err = d.CreateExportableSemaphore(BinarySemaphore); err != nil {
			t.Fatal(err)
		}
		defer d.DestroySemaphore(exportable)
	}
	checkDescriptors(t, func() {
		// No descriptor from the lowest one that is free on may be opened.
		free, err := syscall.Dup(block)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Close(free); err != nil {
			t.Fatal(err)
		}
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		few := limit
		few.Cur = uint64(free)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		_, memory := d.ImportBlockFd(block, 64, hostType(d))
		file, exported := d.ExportBlock(b)
		var semaphore, exportedSemaphore error
		semaphoreFile := -1
		if semaphores {
			_, semaphore = d.ImportSemaphore(BinarySemaphore, block)
			semaphoreFile, exportedSemaphore = d.ExportSemaphore(exportable)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(memory, ErrOutOfMemory) || errors.Is(memory, ErrUnsupported) {
			t.Errorf("import a block: %v", memory)
		}
		if semaphores && (!errors.Is(semaphore, ErrOutOfMemory) || errors.Is(semaphore, ErrUnsupported)) {
			t.Errorf("import a semaphore: %v", semaphore)
		}
		if file != -1 || exported == nil {
			t.Errorf("export a block: %d, %v", file, exported)
		}
		if semaphores && (semaphoreFile != -1 || exportedSemaphore == nil) {
			t.Errorf("export a semaphore: %d, %v", semaphoreFile, exportedSemaphore)
		}
	})
}

func blockError(_ Block, err error) error { return err }
func fileError(_ int, err error) error    { return err }

// Each call on the way to an imported block fails in turn. The descriptor stays open and
// no other one is left.
func TestImportOfAFileThatFailsHalfwayLeavesNothing(t *testing.T) {
	d := layeredDevice(t)
	if !d.Properties().Features.ExternalMemoryFd {
		t.Fatal("the device has no VK_KHR_external_memory_fd")
	}
	b, err := d.CreateExportableBlock(64, hostType(d))
	if err != nil {
		t.Fatal(err)
	}
	defer d.DestroyBlock(b)
	fd, err := d.ExportBlock(b)
	if err != nil {
		t.Fatal(err)
	}
	before := d.Live()
	for _, call := range []string{"vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory", "vkMapMemory"} {
		checkDescriptors(t, func() {
			t.Setenv("VKOMP_TEST_FAIL", fmt.Sprintf("%s=%d", call, ErrorOutOfHostMemory))
			if _, err := d.ImportBlockFd(fd, 64, hostType(d)); !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), call) {
				t.Errorf("%s: %v", call, err)
			}
		})
		if live := d.Live(); live["VkBuffer"] != before["VkBuffer"] || live["VkDeviceMemory"] != before["VkDeviceMemory"] {
			t.Errorf("%s: left %v, before %v", call, live, before)
		}
	}
	t.Setenv("VKOMP_TEST_FAIL", "")
	again, err := d.ImportBlockFd(fd, 64, hostType(d))
	if err != nil {
		t.Fatal(err)
	}
	d.DestroyBlock(again)
	if err := syscall.Close(fd); err != nil {
		t.Error(err)
	}
}
