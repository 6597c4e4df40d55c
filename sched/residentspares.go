package sched

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// residentSpares has the records of resident tasks that are over, for others. Each record goes back to the shelf from which it
// was taken, and so to the processor that creates the tasks. Whoever ends tasks, those of other goroutines too, would otherwise
// collect their records, and the others would have to fetch these from its cache one after the other.
type residentSpares struct {
	// shelves has a shelf for each processor, as far as the garbage collector leaves it: one that has not been used for a while
	// goes, with the records on it.
	shelves sync.Pool // of *residentShelf
	// more has the records for which the shelves have no room.
	more sync.Pool // of *resident
}

// residentShelf has spare records, which resident.next links.
type residentShelf struct {
	// spare are records that only who has the shelf uses.
	spare *resident
	// room is the largest number of returned records.
	room int32

	// What follows is changed by those who end tasks, and is in another cache line than what is read for each new task.
	_ [64]byte

	// returned are the records that have come back since spare was last empty. count is about their number: it only decides
	// whether there is room for another.
	returned atomic.Pointer[resident]
	count    atomic.Int32
}

// shelvedRecords is how many returned records the shelves of a device have room for together, on up to 128 processors. As many
// can be spare: 5 MB in all.
const shelvedRecords = 8192

func newShelf() *residentShelf {
	return &residentShelf{room: int32(max(shelvedRecords/runtime.GOMAXPROCS(0), groupTasks))}
}

// take returns a record for a task.
func (p *residentSpares) take(s *Scheduler) *resident {
	shelf, _ := p.shelves.Get().(*residentShelf)
	if shelf == nil {
		shelf = newShelf()
	}
	l := shelf.take()
	if l == nil {
		l, _ = p.more.Get().(*resident)
	}
	if l == nil {
		l = &resident{s: s}
		l.order.Owner = l
	}
	l.shelf = shelf
	p.shelves.Put(shelf)
	return l
}

// take returns a record on the shelf, or nil.
func (f *residentShelf) take() *resident {
	l := f.spare
	if l == nil && f.count.Load() > 0 {
		f.count.Store(0)
		l = f.returned.Swap(nil)
	}
	if l != nil {
		f.spare, l.next = l.next, nil
	}
	return l
}

// giveBack keeps a record for another task.
func (p *residentSpares) giveBack(l *resident) {
	shelf := l.shelf
	l.shelf = nil
	if shelf.count.Add(1) > shelf.room {
		p.more.Put(l)
		return
	}
	for {
		l.next = shelf.returned.Load()
		if shelf.returned.CompareAndSwap(l.next, l) {
			return
		}
	}
}
