package vktest

import (
	"bytes"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/vk"
)

// Faults makes calls of Vulkan commands fail: see tests/layers/fault.c, also for the effects of
// VK_ERROR_DEVICE_LOST. Commands are named like "vkQueueSubmit".
type Faults struct {
	t       testing.TB
	control []byte
}

// The control block of the layer: a header with the number of instances, then entries.
const (
	faultHeader  = 64
	faultEntries = 64
)

type faultEntry struct {
	name                       [48]byte
	calls, from, until, failed atomic.Uint64
	result                     atomic.Int64
}

// InjectFaults puts the fault layer nearest to the program, and others as in [Layers] below it,
// for the runtimes that the test opens. No call fails until the test asks for it.
func InjectFaults(t testing.TB, layers ...string) *Faults {
	t.Helper()
	Layers(t, append([]string{"fault"}, layers...)...)
	// Implicit layers of the loader, such as Mesa's device selection, assume that nothing fails.
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
	t.Setenv("VKOMP_FAULT_CONTROL", path)
	return &Faults{t: t, control: mapShared(t, file, size)}
}

// Fail makes count calls of a command fail with a result, beginning with the n-th next call; n is
// 1 for the next one. A negative count means all calls from there on. It replaces earlier
// settings for that command.
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

// Mend makes all later calls succeed. A lost device stays lost.
func (f *Faults) Mend() {
	for e := range f.entries {
		e.until.Store(0)
	}
}

// Calls returns how many times a command has been called, over all devices and runtimes.
func (f *Faults) Calls(command string) int {
	f.t.Helper()
	return int(f.entry(command).calls.Load())
}

// Failed returns how many calls of a command were made to fail, not counting those that a lost
// device refused.
func (f *Faults) Failed(command string) int {
	f.t.Helper()
	return int(f.entry(command).failed.Load())
}

// Commands returns the commands that can fail and how many times each has been called. It is
// empty before a runtime has been opened.
func (f *Faults) Commands() map[string]int {
	calls := make(map[string]int)
	for e := range f.entries {
		calls[e.command()] = int(e.calls.Load())
	}
	return calls
}

// entries iterates over the entries that have a name.
func (f *Faults) entries(yield func(*faultEntry) bool) {
	for k := range faultEntries {
		if e := f.at(k); e.name[0] == 0 || !yield(e) {
			return
		}
	}
}

// entry returns the entry of a command. When the first instance is created, the layer makes an
// entry for each command that it knows and refuses other names.
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
