// Package striped counts what many goroutines begin and end at the same time. If they changed one
// number, each would wait until the others' processors have given up its cache line, for longer than
// most of what they do takes.
package striped

import (
	"sync/atomic"
	"unsafe"
)

// Count is a number, the sum of its cells. The zero Count is 0.
type Count struct {
	_     [lines]byte // what is before the count is in other lines
	cells [1 << cellBits]struct {
		atomic.Int64
		_ [lines - 8]byte
	}
}

const (
	cellBits = 3
	// lines is the size of two cache lines in bytes: processors fetch them in pairs.
	lines = 128
)

// Cell is the number of a cell.
type Cell uint32

// Here returns a cell that few other goroutines use at the same time, most often another one for
// each of two goroutines. The same goroutine can get another one later.
func Here() Cell {
	// The stacks of goroutines are at least 2 KiB apart.
	var here byte
	address := uint64(uintptr(unsafe.Pointer(&here))) >> 11
	return Cell(address * 0x9E3779B97F4A7C15 >> (64 - cellBits))
}

// Add adds n to a cell.
func (c *Count) Add(at Cell, n int64) { c.cells[at%(1<<cellBits)].Add(n) }

// Sum returns the sum of the cells, which it reads one after the other: a change that is made meanwhile
// may be in it or not. If all of these are decrements, or increments that are undone in the same cell, the
// result is not less than the number is at the end without such increments. So once no more users are added
// for good, a Sum of 0 says that there are none.
func (c *Count) Sum() int64 { return c.sum(func(int) {}) }

// sum is Sum for tests, which make changes before each cell is read.
func (c *Count) sum(before func(cell int)) (n int64) {
	for i := range c.cells {
		before(i)
		n += c.cells[i].Load()
	}
	return n
}
