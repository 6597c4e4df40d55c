//go:build !linux

package vkomp

import "errors"

// maxReserve is the size in bytes past which no block is asked for: a Go program
// that allocates more than the system has ends.
const maxReserve = 1 << 36

// canReserve refuses a block of a size that no system has.
func canReserve(size uint64) error {
	if size > maxReserve {
		return errors.New("no system has that much")
	}
	return nil
}
