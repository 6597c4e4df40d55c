//go:build !linux

package vkomp

import "errors"

// maxReserve is the largest size in bytes that is allocated: a Go program that cannot
// allocate is ended.
const maxReserve = 1 << 36

// canReserve returns an error for a block size that no system has.
func canReserve(size uint64) error {
	if size > maxReserve {
		return errors.New("no system has that much")
	}
	return nil
}
