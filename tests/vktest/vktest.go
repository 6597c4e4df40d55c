// Package vktest opens runtimes for tests: on a real Vulkan device, under Khronos validation with
// synchronization checks. The test's cleanup closes them and fails the test if anything is left
// behind.
package vktest

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
)

// Open returns a runtime under validation. Its cleanup closes it and fails the test on an error
// of Close, on a validation message (for example about a leaked Vulkan object), and on a
// goroutine that is left. A missing driver or validation layer fails the test, which is never
// skipped.
//
// Tests that call it must not run in parallel with others of their package, because the
// goroutines of those would count as left.
func Open(t testing.TB, options ...func(*vkomp.Options)) *vkomp.Runtime {
	t.Helper()
	before := goleak.IgnoreCurrent()
	log := &recorder{}
	// Where one thread waits for a timeline semaphore that another one signals, both can spend ten seconds in the
	// validation layer (1.3.239), which is as long as Close waits for foreign work otherwise.
	o := vkomp.Options{Validation: true, Logger: slog.New(log), ForeignTimeout: time.Minute}
	own := o.Logger
	for _, change := range options {
		change(&o)
	}
	if o.Logger != own {
		t.Fatal("an option replaced the Logger, which is how validation is watched")
	}
	var checker *ToolChecker
	if checkTools && o.Tool.Check() == nil {
		checker = new(ToolChecker)
		o.Tool = ompt.Tee(o.Tool, checker.Callbacks())
	}
	if runtime.GOMAXPROCS(0) == 1 {
		twoThreads(&o)
	}
	rt, err := vkomp.Open(o)
	if err != nil {
		t.Fatalf("open a runtime: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := rt.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
		for _, message := range log.validation() {
			t.Errorf("validation: %s", message)
		}
		if checker != nil {
			for _, wrong := range checker.Wrong() {
				t.Errorf("events: %s", wrong)
			}
		}
		if err := goleak.Find(before); err != nil {
			t.Errorf("goroutines left behind: %v", err)
		}
	})
	if checker != nil {
		checker.Host, checker.Probe = rt.NumDevices, func() { rt.Stats() }
	}
	if rt.NumDevices() == 0 && o.Validation {
		t.Fatal("no Vulkan device: install a driver, for example Mesa's lavapipe")
	}
	return rt
}

// Host is an option for a runtime without Vulkan devices.
func Host(o *vkomp.Options) {
	o.Validation = false
	o.LookupEnv = func(name string) (string, bool) {
		if name == "OMP_TARGET_OFFLOAD" {
			return "disabled", true
		}
		return "", false
	}
}

// Staging is an option that hides device memory from the host.
func Staging(o *vkomp.Options) { o.MemoryPath = vkomp.MemoryStaged }

// Paths are all memory paths, for tests to run on each.
var Paths = []vkomp.MemoryPath{vkomp.MemoryAuto, vkomp.MemoryUnified, vkomp.MemoryStaged, vkomp.MemoryNonCoherent, vkomp.MemoryImported}

// Path is an option that forces a memory path.
func Path(p vkomp.MemoryPath) func(*vkomp.Options) {
	return func(o *vkomp.Options) { o.MemoryPath = p }
}

// NoSynchronizationChecks is an option for tests with unordered tasks on adjacent sub-slices that
// do not have the device's alignment: the layer assumes that a kernel accesses everything that is
// bound.
func NoSynchronizationChecks(o *vkomp.Options) { o.NoSynchronizationChecks = true }

// Debug is an option that adds settings to VKOMP_DEBUG.
func Debug(settings string) func(*vkomp.Options) {
	const variable = "VKOMP_DEBUG"
	return func(o *vkomp.Options) {
		lookup := lookupOf(o)
		all, _ := lookup(variable)
		all = strings.TrimPrefix(all+","+settings, ",")
		o.LookupEnv = func(name string) (string, bool) {
			if name == variable {
				return all, true
			}
			return lookup(name)
		}
	}
}

// recorder is a slog.Handler that keeps validation messages.
type recorder struct {
	mu       sync.Mutex
	messages []string
}

// Enabled implements slog.Handler.
func (*recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// LayersOwn is a message of the validation layer about its own state: it has lost track of a
// timeline, "most likely a validation bug". On a busy machine it can record a queue's signal
// after the next signal of the host (KhronosGroup/Vulkan-ValidationLayers, issue 4968). The layer
// then waits for ten seconds, which the program does not.
const LayersOwn = "UNASSIGNED-VkSemaphore-state-timeout"

// Handle implements slog.Handler.
func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	found := false
	var b strings.Builder
	b.WriteString(record.Message)
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "validation" {
			found = true
		}
		b.WriteString(" ")
		b.WriteString(a.String())
		return true
	})
	if found && !strings.Contains(b.String(), LayersOwn) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.messages = append(r.messages, b.String())
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

// WithGroup implements slog.Handler.
func (r *recorder) WithGroup(string) slog.Handler { return r }

func (r *recorder) validation() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages
}

// twoThreads is an option for two threads for host tasks, unless OMP_NUM_THREADS says how many: tests let one
// task wait while another one runs. How many there are by default is tested below vkomp.
func twoThreads(o *vkomp.Options) {
	lookup := lookupOf(o)
	o.LookupEnv = func(name string) (string, bool) {
		value, found := lookup(name)
		if name == "OMP_NUM_THREADS" && !found {
			return "2", true
		}
		return value, found
	}
}

// lookupOf returns how a runtime with the options looks up its environment.
func lookupOf(o *vkomp.Options) func(name string) (string, bool) {
	if o.LookupEnv == nil {
		return os.LookupEnv
	}
	return o.LookupEnv
}
