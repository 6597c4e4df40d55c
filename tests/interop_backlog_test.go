package tests

import (
	"context"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/foreign"
	"github.com/vkomp/vkomp/tests/vktest"
)

// A program closes its runtime without a wait before. All of its foreign work has been submitted, and
// however little time that has to signal, nothing is signalled in its place.
func TestCloseEndsABacklogOfForeignWork(t *testing.T) {
	rt := vktest.Open(t, func(o *vkomp.Options) { o.InteropQueues, o.ForeignTimeout = -1, 1 })
	ctx := t.Context()
	k := newCompiledAffine(t, rt)
	const n, rounds = 1 << 16, 100
	a, b := repeated(n, 1), repeated(n, 0)
	succeed(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(a), vkomp.To(b)}}))
	var o interop.Object
	succeed(t, rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTarget | interop.TypeTargetSync}}}))
	code, err := foreign.Open(o)
	succeed(t, err)
	from, err := rt.InteropBuffer(o, vkomp.HostPtr(a), 0)
	succeed(t, err)
	to, err := rt.InteropBuffer(o, vkomp.HostPtr(b), 0)
	succeed(t, err)
	copying, err := code.Copy(from, to)
	succeed(t, err)
	depend := []vkomp.Depend{vkomp.InOut(a), vkomp.InOut(b)}
	use := vkomp.Interop{Use: []interop.Object{o}, NoWait: true, Depend: depend}
	x, y := uint32(1), uint32(0)
	for range rounds {
		offload(t, rt, k.add(a, 1, vkomp.InOut(a)))
		succeed(t, rt.Interop(ctx, use), o.Submit(ctx, func(q uintptr) error { return code.Submit(q, copying) }), rt.Interop(ctx, use))
		offload(t, rt, k.on(a, b, 1, 1, 0, vkomp.In(b), vkomp.InOut(a))) // a += b
		y = x + 1
		x = 2 * y
	}
	succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(a), vkomp.From(b)}, NoWait: true, Depend: depend}))
	succeed(t, rt.Task(ctx, vkomp.Task{Depend: depend, Body: func(context.Context) error {
		code.Close()
		return nil
	}}))
	limit, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	succeed(t, rt.CloseContext(limit))
	if a[0] != x || a[n-1] != x || b[n-1] != y {
		t.Errorf("got %d, %d and %d, want %d and %d", a[0], a[n-1], b[n-1], x, y)
	}
}
