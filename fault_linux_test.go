package vkomp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// Host storage can disappear while it is mapped, for example when a file is unmapped. Copies
// that access it fail their tasks, on whichever goroutine they run.
func TestCopiesOfHostStorageThatIsGone(t *testing.T) {
	vktest.Long(t)
	for _, path := range []vkomp.MemoryPath{vkomp.MemoryUnified, vkomp.MemoryStaged, vkomp.MemoryNonCoherent} {
		t.Run(path.String(), func(t *testing.T) {
			rt := vktest.Open(t, vktest.Path(path))
			// Constructs that wait copy the smallest one without a task, and bring the largest one
			// through a ring of staging.
			for _, size := range []int{1 << 12, 1 << 16, 13 << 20} {
				storageGoes(t, rt, size)
			}
		})
	}
	t.Run("initial device", func(t *testing.T) {
		ctx := t.Context()
		rt := vktest.Open(t, vktest.Host)
		gone, y := newPages(t, 1<<16), make([]byte, 1<<16)
		gone.forbid(t, true)
		for name, routine := range map[string]error{
			"to":   rt.Memcpy(ctx, vkomp.HostPtr(gone), vkomp.HostPtr(y), len(y)),
			"from": rt.Memcpy(ctx, vkomp.HostPtr(y), vkomp.HostPtr(gone), len(y)),
		} {
			isGone(t, name, routine)
		}
		must(t, rt.MemcpyAsync(ctx, vkomp.HostPtr(y), vkomp.HostPtr(gone), len(y)))
		isGone(t, "deferred", rt.Taskwait(ctx))
	})
}

func storageGoes(t *testing.T, rt *vkomp.Runtime, size int) {
	ctx := t.Context()
	d := rt.DefaultDevice(ctx)
	s := newPages(t, size)
	for _, noWait := range []bool{false, true} {
		fails := func(what string, construct func() error) {
			t.Helper()
			s.forbid(t, true)
			before := rt.Stats().Tasks
			err := construct()
			if n := rt.Stats().Tasks - before; n != 1 {
				t.Errorf("%s counts as %d tasks", what, n)
			}
			if noWait {
				must(t, err)
				err = rt.Taskwait(ctx)
			}
			isGone(t, what, err)
			s.forbid(t, false)
		}
		enter := func() error {
			return rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(s)}, NoWait: noWait})
		}
		fails("enter", enter)
		if d.IsPresent(vkomp.HostPtr(s)) {
			t.Error("what failed to enter is present")
		}
		must(t, enter())
		must(t, rt.Taskwait(ctx))
		fails("update to", func() error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(s)}, NoWait: noWait})
		})
		fails("update from", func() error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(s)}, NoWait: noWait})
		})
		fails("update of columns", func() error {
			return rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(s).Shape(16, size/16).Section(vkomp.Span{Count: 16}, vkomp.Span{Count: 3})}, NoWait: noWait})
		})
		fails("exit", func() error {
			return rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(s)}, NoWait: noWait})
		})
		must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(s)}}))
	}
	if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
		t.Errorf("%d allocations of storage and %d of staging left", s.Storage.Allocations, s.Staging.Allocations)
	}
}

// A fill of storage that device and host share writes the program's own bytes.
func TestFillOfHostStorageThatIsGone(t *testing.T) {
	ctx := t.Context()
	rt := vktest.Open(t)
	d := rt.DefaultDevice(ctx)
	if !imports(t, rt, d) {
		t.Skip("the device imports no host storage")
	}
	s := newPages(t, 1<<16)
	pinned, err := vkomp.Pin(ctx, rt, s)
	must(t, err)
	enter := vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(s).Self()}}
	must(t, rt.TargetEnterData(ctx, enter))
	p := d.MappedPtr(vkomp.HostPtr(s))
	for _, n := range []int{1, 1000} {
		s.forbid(t, true)
		isGone(t, "fill", d.Memset(ctx, p.Add(1), 7, n))
		must(t, d.MemsetAsync(ctx, p.Add(1), 7, n))
		isGone(t, "deferred", rt.Taskwait(ctx))
		s.forbid(t, false)
		must(t, d.Memset(ctx, p.Add(1), 7, n))
		if s[0] != 0 || s[1] != 7 || s[n] != 7 || s[n+1] != 0 {
			t.Errorf("a fill of %d bytes: %v", n, s[:n+2])
		}
	}
	must(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Delete(s)}}))
	must(t, pinned.Free(ctx))
}

// pages is memory outside of Go's heap.
type pages []byte

func newPages(t *testing.T, size int) pages {
	t.Helper()
	s, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	must(t, err)
	t.Cleanup(func() { must(t, syscall.Munmap(s)) })
	return s
}

// forbid makes the pages inaccessible, as if they were unmapped, or accessible again.
func (s pages) forbid(t *testing.T, all bool) {
	t.Helper()
	access := syscall.PROT_READ | syscall.PROT_WRITE
	if all {
		access = syscall.PROT_NONE
	}
	must(t, syscall.Mprotect(s, access))
}

func isGone(t *testing.T, what string, err error) {
	t.Helper()
	var failed *vkomp.TaskError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "access to host storage at 0x") {
		t.Errorf("%s: %v, want the fault", what, err)
	}
}

// Saving a taskgraph copies the storage that its constructs name, and fails if that is gone.
func TestSavingStorageThatIsGone(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	gone, y := newPages(t, 1<<16), make([]byte, 1<<16)
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	must(t, rt.Taskgraph(t.Context(), g, func(ctx context.Context) error {
		return rt.MemcpyAsync(ctx, vkomp.HostPtr(y), vkomp.HostPtr(gone), len(y), vkomp.InOut(y))
	}))
	gone.forbid(t, true)
	if err := rt.SaveTaskgraph(t.Context(), g, io.Discard); err == nil || !strings.Contains(err.Error(), "access to host storage at 0x") {
		t.Errorf("%v, want the fault", err)
	}
	gone.forbid(t, false)
	must(t, rt.SaveTaskgraph(t.Context(), g, io.Discard))
}
