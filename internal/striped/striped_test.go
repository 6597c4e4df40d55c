package striped

import (
	"sync"
	"testing"
)

// Goroutines can meet in a cell.
func TestChangesOfManyGoroutinesAddUp(t *testing.T) {
	const goroutines, each = 8, 50000
	var c Count
	var all sync.WaitGroup
	for k := range int64(goroutines) {
		all.Go(func() {
			for i := range Cell(each) {
				c.Add(i, k+1)
				c.Add(Here(), -k)
			}
		})
	}
	all.Wait()
	if got := c.Sum(); got != goroutines*each {
		t.Errorf("got %d, want %d", got, goroutines*each)
	}
}

// A user stays, one leaves in any cell, and one comes and goes at once, all of this at any time while the cells are
// read. The sum never says that nobody is left, unless the third one goes in another cell than it came in.
func TestSumSeesWhoStays(t *testing.T) {
	const cells = 1 << cellBits
	missed := func(apart bool) bool {
		for stays := range Cell(cells) {
			for n := range cells * cells * cells * cells {
				left, leaves := Cell(n%cells), n/cells%cells
				came, comes := Cell(n/cells/cells%cells), n/cells/cells/cells
				for goes := comes; goes < cells; goes++ {
					var c Count
					c.Add(stays, 1)
					c.Add(0, 1)
					if c.sum(func(i int) {
						if i == leaves {
							c.Add(left, -1)
						}
						if i == comes {
							c.Add(came, 1)
						}
						if i == goes && apart {
							c.Add(came+1, -1)
						} else if i == goes {
							c.Add(came, -1)
						}
					}) < 1 {
						return true
					}
				}
			}
		}
		return false
	}
	if missed(false) {
		t.Error("a sum has missed who stays")
	}
	if !missed(true) {
		t.Error("no sum misses who stays if another one goes in another cell than it came in")
	}
}

// Goroutines that are there at the same time use different cells, but for a few.
func TestGoroutinesHaveTheirOwnCells(t *testing.T) {
	const goroutines = 64
	cells := make(chan Cell)
	end := make(chan struct{})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			cells <- Here()
			<-end
		})
	}
	var users [1 << cellBits]int
	for range goroutines {
		users[<-cells]++
	}
	close(end)
	all.Wait()
	for at, n := range users {
		if n > goroutines/2 {
			t.Errorf("%d of %d goroutines use cell %d", n, goroutines, at)
		}
	}
}
