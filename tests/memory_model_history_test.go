package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
)

// modelStep is one call of a history.
type modelStep struct {
	say string
	run func(ctx context.Context)
}

// GoString implements fmt.GoStringer, for the log of drawn values.
func (s modelStep) GoString() string { return s.say }

// modelHistory is a random sequence of calls. It is drawn while the model is updated, and runs
// once it is complete.
type modelHistory struct {
	t *rapid.T
	e *modelEnvironment
	// arrays are the arrays of the model; the last one is declared with declare target.
	arrays []*modelArray
	// chunks are the live chunks, allocated all chunks so far.
	chunks, allocated []*modelChunk
	// freed and removed are the targets of stale pointers.
	freed   []*modelChunk
	removed []*modelBlock
	// unreported are the errors of deferred tasks that the next taskwait has to return.
	unreported [][]error
	// steps are the steps of the history. New steps are added to list, which is steps or
	// those of a region's body.
	steps []modelStep
	list  *[]modelStep
	// depth counts the regions around the next step. deferred says that one of them is a
	// deferred task, and mine are the arrays that only this task uses.
	depth    int
	deferred bool
	mine     []*modelArray
	myChunks []*modelChunk
	named    int
	made     map[string]int
}

// below draws a number below n.
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

// evenly draws a number below n with nearly equal chances; below prefers small ones.
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

// rarely is true once in about n draws; it shrinks to false.
func (h *modelHistory) rarely(n int, what string) bool { return h.below(n, what) == n-1 }

func pick[T any](h *modelHistory, all []T, what string) T { return all[h.below(len(all), what)] }

func (h *modelHistory) emit(say string, run func(ctx context.Context)) {
	*h.list = append(*h.list, modelStep{say, run})
}

func (h *modelHistory) count(what string) { h.made[what]++ }

// modelAccess is a task's access to an array or a chunk.
type modelAccess struct {
	token  *modelToken
	writes bool
}

// ofArray returns the accesses of a task that uses an array and its corresponding storage.
func ofArray(a *modelArray, writes bool) []modelAccess {
	accesses := []modelAccess{{&a.token, writes}}
	for _, b := range a.blocks() {
		if b.chunk != nil {
			accesses = append(accesses, modelAccess{&b.chunk.token, writes})
		}
	}
	return accesses
}

// ofArrays returns the accesses of a task that changes the arrays of the items.
func ofArrays(items []modelMap) (accesses []modelAccess) {
	for i, m := range items {
		if !slices.ContainsFunc(items[:i], func(o modelMap) bool { return o.array == m.array }) {
			accesses = append(accesses, ofArray(m.array, true)...)
		}
	}
	return accesses
}

// merged returns each token once; it is written if any of its accesses writes.
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

// failedBefore reports whether a task with these accesses is not run because a predecessor failed
// and no wait has reported that.
func failedBefore(accesses []modelAccess) bool {
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
	// wrong are errors of which the call must return one at once; failing are errors of
	// which the task must fail with one.
	wrong, failing []error
	// invoke makes the call; a task that is not deferred is included.
	invoke func(ctx context.Context, deferred bool, depend []vkomp.Depend) error
	// apply updates the model.
	apply func()
}

// call adds a call to the history.
func (h *modelHistory) call(c modelCall) {
	accesses := merged(c.accesses)
	deferred := h.below(4, "included") != 3
	if (len(c.failing) > 0 && h.depth > 0) || failedBefore(accesses) && h.depth > 0 {
		deferred = false
	}
	if failedBefore(accesses) && !deferred && len(c.wrong) == 0 {
		h.wait(false)
	}
	if !deferred {
		c.say += " included"
	}
	depend := dependOf(accesses)
	if len(c.wrong) > 0 {
		// Without a task there are no depend items.
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
	case failedBefore(accesses):
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

// settle adds a wait for everything that uses the arrays and chunks.
func (h *modelHistory) settle(accesses []modelAccess) {
	accesses = merged(accesses)
	if failedBefore(accesses) {
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

// wait adds a taskwait and then checks the host's arrays, and the devices' storage too if devices
// is set.
func (h *modelHistory) wait(devices bool) {
	h.count("taskwait")
	if h.deferred {
		// It waits for the children of the region.
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
