package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"go.uber.org/goleak"
)

var errEnough = errors.New("enough of it")

// The validation layer reports objects that are left when a device is destroyed.
func TestInteropThatFailsLeavesNothing(t *testing.T) {
	for _, protocol := range []string{"explicit", "implicit"} {
		// Two targets in each round, and the load: rounds end in between, when no foreign work
		// is announced that would never be submitted.
		const after = interopLoads + 2*20
		ctx, fail := context.WithCancelCause(t.Context())
		var targets atomic.Int32
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
			// With the explicit protocol another goroutine submits. Its announced work is withdrawn
			// and the host signals instead; the validation layer would wait ten seconds for a
			// submission that it has not seen.
			o.Validation = protocol == "implicit"
			// Foreign work may be under way when the program fails.
			o.Logger = slog.New(watch{t, "closing waits for foreign work"})
			o.Tool = ompt.Callbacks{TaskCreate: func(e ompt.TaskCreateEvent) {
				if e.Flags&ompt.TaskTarget != 0 && e.Label == shaders.Saxpy.Name && targets.Add(1) == after {
					fail(errEnough)
				}
			}}
			return vkomp.Open(o)
		}}
		leaks := goleak.IgnoreCurrent()
		status := run(sh, []string{"interop", "-rounds", "50", "-protocol", protocol})
		goleak.VerifyNone(t, leaks)
		if status != 1 || !strings.Contains(stderr.String(), errEnough.Error()) || strings.Contains(stderr.String(), vkomp.ErrLeaked.Error()) {
			t.Errorf("%s: status %d, stderr %q", protocol, status, stderr.String())
		}
	}
}

// An interrupt is noticed at the next wait, and what has been created by then is waited for.
func TestInteropWaitsBeforeItCreatesMoreRounds(t *testing.T) {
	vktest.Long(t)
	const window = interopLoads + 2*interopWindow
	var created, complete, atNext atomic.Int32
	result := demoWith(t, func(o *vkomp.Options) {
		o.Tool = ompt.Callbacks{TaskCreate: func(e ompt.TaskCreateEvent) {
			if e.Flags&ompt.TaskTarget != 0 && e.Label == shaders.Saxpy.Name {
				e.NewTask.Value = 1
				if created.Add(1) == window+1 {
					atNext.Store(complete.Load())
				}
			}
		}, TaskSchedule: func(e ompt.TaskScheduleEvent) {
			if e.PriorTask != nil && e.PriorTask.Value == 1 && e.PriorStatus == ompt.TaskComplete {
				complete.Add(1)
			}
		}}
	}, "interop", "-rounds", strconv.Itoa(interopWindow+1), "-protocol", "implicit")
	output(t, result)
	if n := atNext.Load(); n != window {
		t.Errorf("%d of %d tasks were complete when the next ones were created", n, window)
	}
}
