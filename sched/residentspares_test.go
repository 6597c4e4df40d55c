package sched

import (
	"sync"
	"testing"
)

// onShelf returns the records that have come back to a shelf.
func onShelf(shelf *residentShelf) (records []*resident) {
	for l := shelf.returned.Load(); l != nil; l = l.next {
		records = append(records, l)
	}
	return records
}

func TestRecordOfAResidentTaskGoesBackToWhereItCameFrom(t *testing.T) {
	var p residentSpares
	s := &Scheduler{}
	l := p.take(s)
	shelf := l.shelf
	var ended sync.WaitGroup
	ended.Go(func() {
		// Another goroutine has a shelf of its own.
		for p.shelves.Get() != nil {
		}
		p.shelves.Put(newShelf())
		p.giveBack(l)
	})
	ended.Wait()
	if got := onShelf(shelf); len(got) != 1 || got[0] != l || l.shelf != nil {
		t.Errorf("on the shelf there are %d records", len(got))
	}
}

// A shelf has room for a number of records, so that a burst of tasks leaves no more for long: the garbage collector
// takes the others.
func TestShelfHasRoomForANumberOfRecords(t *testing.T) {
	var p residentSpares
	s := &Scheduler{}
	shelf := newShelf()
	room := int(shelf.room)
	for range room + 100 {
		p.giveBack(&resident{s: s, shelf: shelf})
	}
	if got := len(onShelf(shelf)); got != room {
		t.Errorf("on the shelf there are %d records", got)
	}
	// Those that are on it are taken, and then it has room again.
	taken := make(map[*resident]bool)
	for range room {
		l := shelf.take()
		if l == nil || l.next != nil || taken[l] {
			t.Fatalf("after %d records the shelf has %v", len(taken), l)
		}
		taken[l] = true
	}
	if l := shelf.take(); l != nil {
		t.Errorf("one record more than there were: %v", l)
	}
	p.giveBack(&resident{s: s, shelf: shelf})
	if got := len(onShelf(shelf)); got != 1 {
		t.Errorf("on the shelf there are %d records", got)
	}
}

// Goroutines that take records, and give back those of each other, never have the same.
func TestNoRecordOfAResidentTaskIsTakenTwice(t *testing.T) {
	var p residentSpares
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
