package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
)

// modelStep is one call of a history.
type modelStep struct {
	say string
	run func(ctx context.Context)
}

// GoString implements fmt.GoStringer, for the log of what was drawn.
func (s modelStep) GoString() string { return s.say }

// modelHistory is a random sequence of calls under way: it is drawn while the
// model goes along, and runs when it is complete.
type modelHistory struct {
	t *rapid.T
	e *modelEnvironment
	// arrays are the model's; the last one is declared for the target.
	arrays []*modelArray
	// chunks are those that are live, allocated all that there were.
	chunks, allocated []*modelChunk
	// freed and removed are what stale pointers point to.
	freed   []*modelChunk
	removed []*modelBlock
	// unreported are the errors of deferred tasks that the next taskwait returns.
	unreported [][]error
	// steps are what it is made of. list gets those to come: they are the history's
	// or those of a region's body.
	steps []modelStep
	list  *[]modelStep
	// depth counts the regions around the next step. deferred: one of them is a
	// deferred task, which has mine for its own.
	depth    int
	deferred bool
	mine     []*modelArray
	myChunks []*modelChunk
	named    int
	made     map[string]int
}

// below draws a number.
func (h *modelHistory) below(n int, what string) int {
	if n <= 1 {
		return 0
	}
	if n >= len(numbersBelow) {
		return rapid.IntRange(0, n-1).Draw(h.t, what)
	}
	return numbersBelow[n].Draw(h.t, what)
}

var numbersBelow = func() (g [130]*rapid.Generator[int]) {
	for n := 1; n < len(g); n++ {
		g[n] = rapid.IntRange(0, n-1)
	}
	return g
}()

// evenly draws a number, all with the same chance or nearly so; below prefers small
// ones.
func (h *modelHistory) evenly(n int, what string) int {
	v := 0
	for range 8 {
		v *= 2
		if coin.Draw(h.t, what) {
			v++
		}
	}
	return v * n / 256
}

var coin = rapid.Bool()

// rarely is true once in n draws or a little more often; what shrinks is false.
func (h *modelHistory) rarely(n int, what string) bool { return h.below(n, what) == n-1 }

func pick[T any](h *modelHistory, all []T, what string) T { return all[h.below(len(all), what)] }

func (h *modelHistory) emit(say string, run func(ctx context.Context)) {
	*h.list = append(*h.list, modelStep{say, run})
}

func (h *modelHistory) count(what string) { h.made[what]++ }

// modelAccess is what a task does with an array or a chunk.
type modelAccess struct {
	token  *modelToken
	writes bool
}

// ofArray returns the accesses of a task that uses an array and what corresponds
// to it.
func ofArray(a *modelArray, writes bool) []modelAccess {
	accesses := []modelAccess{{&a.token, writes}}
	for _, b := range a.blocks() {
		if b.chunk != nil {
			accesses = append(accesses, modelAccess{&b.chunk.token, writes})
		}
	}
	return accesses
}

// ofArrays returns the accesses of a task that changes the items' arrays.
func ofArrays(items []modelMap) (accesses []modelAccess) {
	for i, m := range items {
		if !slices.ContainsFunc(items[:i], func(o modelMap) bool { return o.array == m.array }) {
			accesses = append(accesses, ofArray(m.array, true)...)
		}
	}
	return accesses
}

// merged returns each token once, written if any of its accesses writes.
func merged(accesses []modelAccess) (all []modelAccess) {
	for _, a := range accesses {
		i := slices.IndexFunc(all, func(o modelAccess) bool { return o.token == a.token })
		if i < 0 {
			all = append(all, a)
			continue
		}
		all[i].writes = all[i].writes || a.writes
	}
	return all
}

func dependOf(accesses []modelAccess) (depend []vkomp.Depend) {
	for _, a := range accesses {
		if a.writes {
			depend = append(depend, vkomp.InOut(a.token.storage))
		} else {
			depend = append(depend, vkomp.In(a.token.storage))
		}
	}
	return depend
}

// poisoned reports whether a task with these accesses is not run, because one that
// it follows failed and nobody has said so.
func poisoned(accesses []modelAccess) bool {
	return slices.ContainsFunc(accesses, func(a modelAccess) bool {
		return a.token.writerFailed || a.writes && a.token.readerFailed
	})
}

// note records a task with these accesses.
func note(accesses []modelAccess, failed bool) {
	for _, a := range accesses {
		if !a.writes {
			a.token.readerFailed = a.token.readerFailed || failed
			continue
		}
		a.token.writerFailed, a.token.readerFailed, a.token.read = failed, false, false
	}
}

// modelCall is a construct or a routine that generates a task.
type modelCall struct {
	say      string
	accesses []modelAccess
	// wrong are the errors of which the call returns one at once, failing those of
	// which the task fails with one.
	wrong, failing []error
	// invoke makes the call; a task that is not deferred is included.
	invoke func(ctx context.Context, deferred bool, depend []vkomp.Depend) error
	// apply is what it does to the model.
	apply func()
}

// call adds a call to the history.
func (h *modelHistory) call(c modelCall) {
	accesses := merged(c.accesses)
	deferred := h.below(4, "included") != 3
	if (len(c.failing) > 0 && h.depth > 0) || poisoned(accesses) && h.depth > 0 {
		deferred = false
	}
	if poisoned(accesses) && !deferred && len(c.wrong) == 0 {
		h.wait(false)
	}
	if !deferred {
		c.say += " included"
	}
	depend := dependOf(accesses)
	if len(c.wrong) > 0 {
		// It generates no task.
		depend = nil
	}
	expect := func(want []error) {
		say := c.say
		h.emit(say, func(ctx context.Context) {
			if err := c.invoke(ctx, deferred, depend); !matches(err, want) {
				h.e.fail("%s: %s", say, gotInstead(err, want))
			}
		})
	}
	switch {
	case len(c.wrong) > 0:
		h.count("wrong call")
		expect(c.wrong)
	case poisoned(accesses):
		h.count("not run")
		c.say += " (not run)"
		note(accesses, true)
		expect(nil)
	case len(c.failing) > 0 && deferred:
		h.count("failing deferred")
		c.say += " (fails later)"
		note(accesses, true)
		h.unreported = append(h.unreported, c.failing)
		expect(nil)
	case len(c.failing) > 0:
		h.count("failing included")
		note(accesses, false)
		expect(c.failing)
	default:
		note(accesses, false)
		c.apply()
		expect(nil)
	}
}

func gotInstead(err error, want []error) string {
	if len(want) == 0 {
		return fmt.Sprintf("error %v", err)
	}
	return fmt.Sprintf("error %v, want one of %q", err, want)
}

// settle adds a wait for all that uses the arrays and chunks.
func (h *modelHistory) settle(accesses []modelAccess) {
	accesses = merged(accesses)
	if poisoned(accesses) {
		h.wait(false)
		return
	}
	for i := range accesses {
		accesses[i].writes = true
	}
	note(accesses, false)
	depend := dependOf(accesses)
	h.emit("taskwait depend", func(ctx context.Context) {
		if err := h.e.rt.Taskwait(ctx, depend...); err != nil {
			h.e.fail("taskwait depend: %v", err)
		}
	})
}

// wait adds a taskwait, and then looks at the host's arrays, and at the devices'
// storage too.
func (h *modelHistory) wait(devices bool) {
	h.count("taskwait")
	if h.deferred {
		// It is for the children of the region.
		h.emit("taskwait", func(ctx context.Context) {
			if err := h.e.rt.Taskwait(ctx); err != nil {
				h.e.fail("taskwait: %v", err)
			}
		})
		return
	}
	want := h.unreported
	h.unreported = nil
	for _, t := range h.tokens() {
		t.writerFailed, t.readerFailed, t.read = false, false, false
	}
	snapshot := h.snapshot(devices)
	h.emit("taskwait", func(ctx context.Context) {
		err := h.e.rt.Taskwait(ctx)
		if err != nil && len(want) == 0 {
			h.e.fail("taskwait: %v", err)
		}
		for _, one := range want {
			if !matches(err, one) {
				h.e.fail("taskwait: %s", gotInstead(err, one))
			}
		}
		snapshot.check(ctx, h.e)
	})
}

func (h *modelHistory) tokens() (all []*modelToken) {
	for _, a := range h.arrays {
		all = append(all, &a.token)
	}
	for _, c := range h.chunks {
		all = append(all, &c.token)
	}
	for _, c := range h.freed {
		all = append(all, &c.token)
	}
	return all
}

// modelSnapshot is what should be where at one moment.
type modelSnapshot struct {
	arrays  []*modelArray
	hosts   []contents
	present [][modelArrayWords]bool
	stored  []modelStored
}

// modelStored is what the storage of a block, or a chunk, should hold.
type modelStored struct {
	say     string
	block   *modelBlock
	chunk   *modelChunk
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

// modelEnvironment is the runtime that histories run on, one after the other.
type modelEnvironment struct {
	rt     *vkomp.Runtime
	device vkomp.Device
	affine vkomp.Kernel
	// through is there where the device has addresses.
	through    vkomp.Kernel
	hasThrough bool
	canShare   bool
	// pages are what arrays lie in.
	pages  []byte
	arrays []*modelArray

	mu      sync.Mutex
	failure string
	// attempts is how often each history runs: more often than once when one failed,
	// since failures can depend on what takes how long.
	attempts int
	// ran counts steps, made what they were.
	ran  int
	made map[string]int
}

// modelAttempts is how often a history runs before it is taken for a good one, once
// another has failed.
const modelAttempts = 30

const guardByte = 0xa5

// checkGuards looks at what lies between the arrays.
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

// run runs steps until one fails.
func (e *modelEnvironment) run(ctx context.Context, steps []modelStep) (last int) {
	for i, s := range steps {
		if e.failed() != "" {
			return i
		}
		s.run(ctx)
	}
	return len(steps)
}

// cleanUp takes off the device what a failed history left there.
func (e *modelEnvironment) cleanUp(ctx context.Context, h *modelHistory) {
	// What failed has been told.
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

// execute runs a history with a task region of its own. It returns what went wrong,
// of which it leaves nothing on the device.
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

func sayings(steps []modelStep) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(s.say)
	}
	return b.String()
}

var errBodyRan = errors.New("the body of a region that was refused ran")
