//go:build unix

package vktest

import (
	"os"
	"syscall"
	"testing"
)

// mapShared maps the first bytes of a file until the test ends.
func mapShared(t testing.TB, file *os.File, size int) []byte {
	t.Helper()
	mapped, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mapped) })
	return mapped
}
