//go:build unix

package vktest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/vk"
)

// Faults makes calls of Vulkan commands fail: see tests/layers/fault.c, and there what
// VK_ERROR_DEVICE_LOST does. Commands are named as in "vkQueueSubmit".
type Faults struct {
	t       testing.TB
	control []byte
}

// The control block of the layer: a header of the number of instances, then entries.
const (
	faultHeader  = 64
	faultEntries = 64
)

type faultEntry struct {
	name                       [48]byte
	calls, from, until, failed atomic.Uint64
	result                     atomic.Int64
}

// InjectFaults puts the fault layer nearest to the program, and others as in [Layers]
// below it, for the runtimes that the test opens. No call fails before the test asks
// for it.
func InjectFaults(t testing.TB, layers ...string) *Faults {
	t.Helper()
	Layers(t, append([]string{"fault"}, layers...)...)
	// The loader's implicit layers, such as Mesa's choice of devices, take it that
	// nothing fails.
	t.Setenv("VK_LOADER_LAYERS_DISABLE", "~implicit~")
	path := filepath.Join(t.TempDir(), "control")
	size := faultHeader + faultEntries*int(unsafe.Sizeof(faultEntry{}))
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	control, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(control) })
	t.Setenv("VKOMP_FAULT_CONTROL", path)
	return &Faults{t: t, control: control}
}

// Fail makes calls of a command fail with a result: count calls, from the n-th from now
// on, the next one being n = 1. A negative count is for all calls from there on. What was
// chosen of that command before is forgotten.
func (f *Faults) Fail(command string, n, count int, result vk.Result) {
	f.t.Helper()
	e := f.entry(command)
	if n < 1 || count == 0 || result == vk.Success {
		f.t.Fatalf("%s, call %d, %d times %v: nothing would fail", command, n, count, result)
	}
	e.until.Store(0)
	from := e.calls.Load() + uint64(n)
	e.from.Store(from)
	e.result.Store(int64(result))
	if count < 0 {
		e.until.Store(^uint64(0))
	} else {
		e.until.Store(from + uint64(count))
	}
}

// Mend lets all calls to come succeed. A device that was lost stays so.
func (f *Faults) Mend() {
	for e := range f.entries {
		e.until.Store(0)
	}
}

// Calls is how often a command has been called, over all devices and runtimes.
func (f *Faults) Calls(command string) int {
	f.t.Helper()
	return int(f.entry(command).calls.Load())
}

// Failed is how many calls of a command were made to fail. What a lost device refused
// does not count.
func (f *Faults) Failed(command string) int {
	f.t.Helper()
	return int(f.entry(command).failed.Load())
}

// Commands returns the commands that can fail with how often each has been called. Before
// a runtime has been opened there are none.
func (f *Faults) Commands() map[string]int {
	calls := make(map[string]int)
	for e := range f.entries {
		calls[e.command()] = int(e.calls.Load())
	}
	return calls
}

// entries goes through the entries that have a name.
func (f *Faults) entries(yield func(*faultEntry) bool) {
	for k := range faultEntries {
		if e := f.at(k); e.name[0] == 0 || !yield(e) {
			return
		}
	}
}

// entry returns the entry of a command. The layer refuses names that it does not know
// when the first instance is made; then it has an entry for each that it does.
func (f *Faults) entry(command string) *faultEntry {
	f.t.Helper()
	n := 0
	for e := range f.entries {
		if e.command() == command {
			return e
		}
		n++
	}
	instances := (*atomic.Uint64)(unsafe.Pointer(&f.control[0])).Load()
	if instances > 0 || n == faultEntries || len(command) >= len(faultEntry{}.name) {
		f.t.Fatalf("%s is not among the commands that the fault layer can fail", command)
	}
	e := f.at(n)
	copy(e.name[:], command)
	return e
}

func (f *Faults) at(k int) *faultEntry {
	return (*faultEntry)(unsafe.Pointer(&f.control[faultHeader+k*int(unsafe.Sizeof(faultEntry{}))]))
}

func (e *faultEntry) command() string {
	name, _, _ := bytes.Cut(e.name[:], []byte{0})
	return string(name)
}
