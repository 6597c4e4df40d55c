package tests

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
)

// modelSnapshot is the expected contents of all memory at one moment.
type modelSnapshot struct {
	arrays  []*modelArray
	hosts   []contents
	present [][modelArrayWords]bool
	stored  []modelStored
}

// modelStored is the expected contents of the storage of a block or a chunk.
type modelStored struct {
	say     string
	want    contents
	got     []byte
	pointer func() vkomp.DevicePtr
}

func (h *modelHistory) snapshot(devices bool) *modelSnapshot {
	s := &modelSnapshot{arrays: h.arrays}
	for _, a := range h.arrays {
		s.hosts = append(s.hosts, slices.Clone(a.host))
		var present [modelArrayWords]bool
		for i := range present {
			present[i] = a.owner[4*i] != nil
		}
		s.present = append(s.present, present)
		if !devices {
			continue
		}
		for _, b := range a.blocks() {
			s.stored = append(s.stored, modelStored{
				say: b.String(), want: slices.Clone(b.device.bytes()), got: make([]byte, b.hi-b.lo),
				pointer: func() vkomp.DevicePtr { return h.e.device.MappedPtr(vkomp.HostPtr(a.bytes[b.lo:])) },
			})
		}
	}
	if devices {
		h.count("device contents")
		for _, c := range h.chunks {
			s.stored = append(s.stored, modelStored{
				say: c.name, want: slices.Clone(c.memory), got: make([]byte, len(c.memory)),
				pointer: func() vkomp.DevicePtr { return c.pointer },
			})
		}
	}
	return s
}

func (s *modelSnapshot) check(ctx context.Context, e *modelEnvironment) {
	for i, a := range s.arrays {
		for k, v := range s.hosts[i] {
			if v != modelUnknown && a.bytes[k] != byte(v) {
				e.fail("byte %d of %s is %d, want %d", k, a.name, a.bytes[k], v)
				break
			}
		}
		for k, want := range s.present[i] {
			if got := e.device.IsPresent(vkomp.HostPtr(a.words[k:])); got != want {
				e.fail("word %d of %s: present %t, want %t", k, a.name, got, want)
			}
		}
	}
	e.checkGuards()
	if len(s.stored) == 0 {
		return
	}
	for _, d := range s.stored {
		if err := e.rt.MemcpyAsync(ctx, vkomp.HostPtr(d.got), d.pointer(), len(d.got)); err != nil {
			e.fail("%s: %v", d.say, err)
		}
	}
	if err := e.rt.Taskwait(ctx); err != nil {
		e.fail("copies of what devices hold: %v", err)
	}
	for _, d := range s.stored {
		for k, v := range d.want {
			if v != modelUnknown && d.got[k] != byte(v) {
				e.fail("byte %d of the storage of %s is %d, want %d", k, d.say, d.got[k], v)
				break
			}
		}
	}
}

// modelEnvironment is the runtime on which histories run one after the other.
type modelEnvironment struct {
	rt     *vkomp.Runtime
	device vkomp.Device
	affine vkomp.Kernel
	// through is set if the device supports addresses.
	through    vkomp.Kernel
	hasThrough bool
	canShare   bool
	// pins says that the device can pin arrays, and that the second and the third are pinned.
	pins bool
	// pages is the memory that contains the arrays.
	pages  []byte
	arrays []*modelArray

	mu      sync.Mutex
	failure string
	// attempts is how many times each history runs: several times after a failure, because
	// failures can depend on timing.
	attempts int
	// ran counts steps; made counts them by kind.
	ran  int
	made map[string]int
}

// modelAttempts is how many times each history is run after the first failure. A failure can depend
// on timing: a shorter history that succeeds once may still be one that fails.
const modelAttempts = 30

const guardByte = 0xa5

// checkGuards checks the memory between the arrays.
func (e *modelEnvironment) checkGuards() {
	at := 0
	for i := range len(e.arrays) + 1 {
		end := len(e.pages)
		if i < len(e.arrays) {
			end = modelArrays[i]
		}
		for ; at < end; at++ {
			if e.pages[at] != guardByte {
				e.fail("byte %d between the arrays was written", at)
				e.pages[at] = guardByte
			}
		}
		at += 4 * modelArrayWords
	}
}

func (e *modelEnvironment) fail(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == "" {
		e.failure = fmt.Sprintf(format, args...)
	}
}

func (e *modelEnvironment) failed() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}

// run runs the steps up to the first failure.
func (e *modelEnvironment) run(ctx context.Context, steps []modelStep) (last int) {
	for i, s := range steps {
		if e.failed() != "" {
			return i
		}
		s.run(ctx)
	}
	return len(steps)
}

// cleanUp removes from the device what a failed history has left there.
func (e *modelEnvironment) cleanUp(ctx context.Context, h *modelHistory) {
	// The failures have been reported already.
	_ = e.rt.Taskwait(ctx)
	for _, a := range e.arrays[:len(e.arrays)-1] {
		for i := range a.bytes {
			host := vkomp.HostPtr(a.bytes[i:])
			if !e.device.IsPresent(host) {
				continue
			}
			if e.device.DisassociatePtr(ctx, host) != nil {
				_ = e.rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(a.bytes[i : i+1])}})
			}
		}
	}
	for _, c := range h.allocated {
		if !c.pointer.IsNil() {
			_ = c.pointer.Device().Free(ctx, c.pointer)
		}
	}
	e.failure = ""
}

// history draws a history and runs it.
func (e *modelEnvironment) history(t *rapid.T) {
	h := e.draw(t)
	for range e.attempts {
		if failure := e.execute(context.Background(), h); failure != "" {
			e.attempts = modelAttempts
			t.Fatal(failure)
		}
	}
}

// draw draws a history.
func (e *modelEnvironment) draw(t *rapid.T) *modelHistory {
	h := &modelHistory{e: e, steps: make([]modelStep, 0, 128), made: make(map[string]int)}
	h.list = &h.steps
	e.begin(h)
	step := rapid.Custom(func(t *rapid.T) modelStep {
		h.t = t
		from := len(h.steps)
		if rapid.IntRange(0, 1<<16).Draw(t, "end")%64 == 63 {
			return modelStep{say: "end"}
		}
		h.step()
		return modelStep{say: sayings(h.steps[from:])}
	})
	for len(h.steps) < 400 && step.Draw(t, "step").say != "end" {
	}
	h.t = t
	h.end()
	return h
}

// execute runs a history in a task region of its own. It returns a description of what went
// wrong, and leaves nothing on the device.
func (e *modelEnvironment) execute(ctx context.Context, h *modelHistory) string {
	e.fill(ctx, h)
	last := e.run(ctx, h.steps)
	if failure := e.failed(); failure != "" {
		e.cleanUp(ctx, h)
		return fmt.Sprintf("%s\nafter\n%s", failure, sayings(h.steps[:last]))
	}
	e.ran += len(h.steps)
	for what, n := range h.made {
		e.made[what] += n
	}
	return ""
}

// begin makes the model for an environment that has not been used.
func (e *modelEnvironment) begin(h *modelHistory) {
	for i, old := range e.arrays {
		a := &modelArray{name: old.name, bytes: old.bytes, words: old.words}
		a.token.storage = a.bytes
		a.owner = make([]*modelBlock, len(a.bytes))
		a.host = make(contents, len(a.bytes))
		for k := range a.bytes {
			a.host[k] = int16(firstByte(i, k))
		}
		h.arrays = append(h.arrays, a)
	}
	declared := h.arrays[len(h.arrays)-1]
	stored := slices.Clone(declared.host)
	b := &modelBlock{array: declared, hi: len(declared.bytes), infinite: true, device: memoryPlace{&stored, 0, len(stored)}}
	for i := range declared.owner {
		declared.owner[i] = b
	}
}

func firstByte(array, k int) byte { return byte(50*array + 3*k) }

// fill gives the arrays of a history their contents.
func (e *modelEnvironment) fill(ctx context.Context, h *modelHistory) {
	for i, a := range h.arrays {
		for k := range a.bytes {
			a.bytes[k] = firstByte(i, k)
		}
	}
	declared := h.arrays[len(h.arrays)-1]
	if err := e.rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(declared.bytes).Present()}}); err != nil {
		e.fail("update of what is declared for the target: %v", err)
	}
}
