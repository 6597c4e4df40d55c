package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/ompt"
	"github.com/vkomp/vkomp/shaders"
	"go.uber.org/goleak"
)

var errEnough = errors.New("enough of it")

// The validation layer tells of what is left of a device when it is destroyed.
func TestInteropThatFailsLeavesNothing(t *testing.T) {
	for _, protocol := range []string{"explicit", "implicit"} {
		// Two targets a round, and what keeps the device busy: rounds end in between,
		// when no foreign work is announced that would not come.
		const after = interopLoads + 2*20
		ctx, fail := context.WithCancelCause(t.Context())
		var targets atomic.Int32
		var stdout, stderr bytes.Buffer
		sh := shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
			// With the explicit protocol another goroutine submits, whose announced work
			// is withdrawn: the host signals then, and the layer waits ten seconds for
			// what it has not seen.
			o.Validation = protocol == "implicit"
			o.Logger = slog.New(watch{t})
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
