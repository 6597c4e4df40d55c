package vkomp_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Bytes come back as they went, by whatever way: sizes lie around those at which the way changes,
// constructs wait or are deferred, one goroutine copies or several do.
func TestLargeDataComesBack(t *testing.T) {
	const mebibyte = 1 << 20
	sizes := []int{64<<10 - 1, mebibyte + 3, 2 * mebibyte, 2*mebibyte + 1, 4*mebibyte + 1, 9*mebibyte + 5, 17 * mebibyte}
	if testing.Short() {
		sizes = sizes[1:5]
	}
	for name, option := range map[string]func(*vkomp.Options){"auto": func(*vkomp.Options) {}, "staged": vktest.Staging} {
		for _, threads := range []string{"1", "5"} {
			t.Run(name+" by "+threads, func(t *testing.T) {
				rt := vktest.Open(t, option, func(o *vkomp.Options) {
					o.LookupEnv = func(name string) (string, bool) { return threads, name == "OMP_NUM_THREADS" }
				})
				for _, size := range sizes {
					for _, noWait := range []bool{false, true} {
						comesBack(t, rt, size, noWait)
					}
				}
			})
		}
	}
}

// comesBack maps two slices of a size, updates them, in whole and in part, and maps them back.
func comesBack(t *testing.T, rt *vkomp.Runtime, size int, noWait bool) {
	ctx := context.Background()
	name := fmt.Sprintf("%d bytes, deferred %v", size, noWait)
	done := func(err error) {
		t.Helper()
		must(t, err)
		must(t, rt.Taskwait(ctx))
	}
	x, y := noise(size, 1), noise(size, 2)
	wantX, wantY := bytes.Clone(x), bytes.Clone(y)
	done(rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}, NoWait: noWait}))
	clear(x)
	clear(y)
	from := func(s []byte) {
		t.Helper()
		done(rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(s)}, NoWait: noWait}))
	}
	from(x)
	from(y[1:])
	if !bytes.Equal(x, wantX) || y[0] != 0 || !bytes.Equal(y[1:], wantY[1:]) {
		t.Errorf("%s: an update brought other bytes", name)
	}
	// Both at once, and the columns of an array besides.
	copy(x, noise(size, 3))
	copy(y, noise(size, 4))
	wantX, wantY = bytes.Clone(x), bytes.Clone(y)
	done(rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(x), vkomp.To(y)}, NoWait: noWait}))
	const rows = 16
	width := size / rows
	columns := vkomp.From(x[:rows*width]).Shape(rows, width).Section(vkomp.Span{Count: rows}, vkomp.Span{Start: 3, Count: width / 2})
	clear(x)
	done(rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{columns}, NoWait: noWait}))
	for i, got := range x[:rows*width] {
		want := byte(0)
		if at := i % width; at >= 3 && at < 3+width/2 {
			want = wantX[i]
		}
		if got != want {
			t.Errorf("%s: byte %d of the columns is %d, want %d", name, i, got, want)
			break
		}
	}
	done(rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x), vkomp.From(y)}, NoWait: noWait}))
	if !bytes.Equal(x, wantX) || !bytes.Equal(y, wantY) {
		t.Errorf("%s: other bytes were mapped back", name)
	}
}
