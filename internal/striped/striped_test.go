package striped

import (
	"sync"
	"testing"
)

func TestChangesOfManyGoroutinesAddUp(t *testing.T) {
	const goroutines, each = 8, 10000
	var c Count
	var all sync.WaitGroup
	for k := range int64(goroutines) {
		all.Go(func() {
			at := Here()
			for range each {
				c.Add(at, k+1)
				c.Add(Here(), -k)
			}
		})
	}
	all.Wait()
	if got := c.Sum(); got != goroutines*each {
		t.Errorf("got %d, want %d", got, goroutines*each)
	}
}

// While one user stays, and others come to no effect or leave, no sum says that there is none.
func TestSumSeesWhoStays(t *testing.T) {
	const leaving = 20000
	for stays := range Cell(1 << cellBits) {
		var c Count
		c.Add(stays, 1)
		c.Add(0, leaving)
		var others sync.WaitGroup
		for k := range Cell(3) {
			others.Go(func() {
				for i := range Cell(leaving) {
					if k == 0 {
						c.Add(i%(1<<cellBits), -1)
						continue
					}
					at := (i + k) % (1 << cellBits)
					c.Add(at, 1)
					c.Add(at, -1)
				}
			})
		}
		for c.Sum() > 1 {
		}
		if got := c.Sum(); got < 1 {
			t.Fatalf("the sum is %d while a user stays in cell %d", got, stays)
		}
		others.Wait()
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
