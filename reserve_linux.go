package vkomp

import (
	"fmt"
	"syscall"
)

// reserveFrom is the size in bytes from which the system is asked whether it has enough
// memory: a Go program that cannot allocate is ended.
const reserveFrom = 1 << 30

// canReserve returns an error for a block size that the system would not provide, or that
// exceeds its total memory, since it may overcommit.
func canReserve(size uint64) error {
	if size < reserveFrom {
		return nil
	}
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return fmt.Errorf("sysinfo: %w", err)
	}
	if total := (uint64(info.Totalram) + uint64(info.Totalswap)) * uint64(info.Unit); size > total {
		return fmt.Errorf("the system has %d bytes", total)
	}
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	return syscall.Munmap(b)
}
