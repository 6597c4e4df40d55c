package sched

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/sched/transfer"
)

// A deferred update fails when the host copies to storage that has gone. Kernels behind it, which find their storage present, are
// in flight by then and run, as behind other tasks that fail so late; tasks on the host do not.
func TestKernelsBehindAnUpdateThatFailsRun(t *testing.T) {
	for _, mode := range memoryModes {
		for _, mode.general = range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/general %v", mode.name, mode.general), func(t *testing.T) {
				pages, err := syscall.Mmap(-1, 0, syscall.Getpagesize(), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = syscall.Munmap(pages) }()
				x, y := unsafe.Slice((*uint32)(unsafe.Pointer(&pages[0])), 16), filled(16, 1)
				r := newRig(t, mode, 1)
				defer r.close()
				r.run(launch{label: "enter", enter: []arg{to(x), to(y)}, included: true})
				r.d.hold()
				add := func(s []uint32, c uint32) {
					r.run(launch{label: "kernel", kernel: "add", args: []arg{tofrom(s)}, constant: c, in: [][]uint32{x}, out: [][]uint32{s}})
				}
				add(x, 1)
				r.transfer(launch{label: "update", out: [][]uint32{x}}, transfer.Request{Kind: transfer.UpdateFrom, Host: sectionOf(x), Size: 64})
				if err := syscall.Mprotect(pages, syscall.PROT_NONE); err != nil {
					t.Fatal(err)
				}
				add(x, 4)
				add(y, 4)
				r.host("host", [][]uint32{x}, nil, func() { t.Error("a task on the host runs") })
				r.d.release()
				if err := r.scope.Wait(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "access to host storage") || !strings.Contains(err.Error(), "(1 dependent task") {
					t.Errorf("got %v", err)
				}
				if err := syscall.Mprotect(pages, syscall.PROT_READ|syscall.PROT_WRITE); err != nil {
					t.Fatal(err)
				}
				r.run(launch{label: "exit", exit: []arg{from(x), from(y)}, included: true})
				r.expect("x", x, filled(16, 5)...)
				r.expect("y", y, filled(16, 5)...)
			})
		}
	}
}
