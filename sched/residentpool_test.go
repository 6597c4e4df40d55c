package sched

import (
	"sync"
	"testing"
)

// returnedTo returns the records that have come back to a free list.
func returnedTo(list *freeResidents) (records []*resident) {
	for l := list.returned.Load(); l != nil; l = l.next {
		records = append(records, l)
	}
	return records
}

func TestRecordOfAResidentTaskGoesBackToWhereItCameFrom(t *testing.T) {
	var p residentPool
	s := &Scheduler{}
	l := p.take(s)
	list := l.list
	var ended sync.WaitGroup
	ended.Go(func() {
		// Another goroutine has a list of its own.
		for p.lists.Get() != nil {
		}
		p.lists.Put(newFreeResidents())
		p.giveBack(l)
	})
	ended.Wait()
	if got := returnedTo(list); len(got) != 1 || got[0] != l || l.list != nil {
		t.Errorf("%d records have come back to the list", len(got))
	}
}

// A free list has a limit, so that a burst of tasks leaves no more records for long: the garbage collector
// takes the others.
func TestFreeListOfResidentTasksHasALimit(t *testing.T) {
	var p residentPool
	s := &Scheduler{}
	list := newFreeResidents()
	limit := int(list.limit)
	for range limit + 100 {
		p.giveBack(&resident{s: s, list: list})
	}
	if got := len(returnedTo(list)); got != limit {
		t.Errorf("%d records have come back to the list", got)
	}
	// Those that are on it are taken, and then others can come back.
	taken := make(map[*resident]bool)
	for range limit {
		l := list.take()
		if l == nil || l.next != nil || taken[l] {
			t.Fatalf("after %d records the list has %v", len(taken), l)
		}
		taken[l] = true
	}
	if l := list.take(); l != nil {
		t.Errorf("one record more than there were: %v", l)
	}
	p.giveBack(&resident{s: s, list: list})
	if got := len(returnedTo(list)); got != 1 {
		t.Errorf("%d records have come back to the list", got)
	}
}

// Goroutines that take records, and give back those of each other, never have the same.
func TestNoRecordOfAResidentTaskIsTakenTwice(t *testing.T) {
	var p residentPool
	s := &Scheduler{}
	const takers, each = 4, 20_000
	taken := make(chan *resident, 64)
	var enders sync.WaitGroup
	for range takers {
		enders.Go(func() {
			for range each {
				l := <-taken
				l.distinct--
				p.giveBack(l)
			}
		})
	}
	for range takers {
		go func() {
			for range each {
				l := p.take(s)
				if l.distinct++; l.distinct != 1 {
					t.Errorf("a record is taken %d times", l.distinct)
				}
				taken <- l
			}
		}()
	}
	enders.Wait()
}
