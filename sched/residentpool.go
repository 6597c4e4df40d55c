package sched

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// residentPool has the records of resident tasks that are over, for others. Each record goes back to the free list from which it
// was taken, and so to the processor that creates the tasks. Whoever ends tasks, those of other goroutines too, would otherwise
// collect their records, and the others would have to fetch these from its cache one after the other.
type residentPool struct {
	// lists has a free list for each processor, as far as the garbage collector leaves it: one that has not been used for a while
	// goes, with its records.
	lists sync.Pool // of *freeResidents
	// more has the records above the limits of the lists.
	more sync.Pool // of *resident
}

// freeResidents is a free list. resident.next links its records.
type freeResidents struct {
	// spare are records that only who has the list uses.
	spare *resident
	// limit is the largest number of returned records.
	limit int32

	// What follows is changed by those who end tasks, and is in another cache line than what is read for each new task.
	_ [64]byte

	// returned are the records that have come back since spare was last empty. count is about their number: it only decides
	// whether there may be another.
	returned atomic.Pointer[resident]
	count    atomic.Int32
}

// listedResidents is the largest number of returned records in all free lists of a device, on up to 128 processors. As many can
// be spare: 5 MB in all.
const listedResidents = 8192

func newFreeResidents() *freeResidents {
	return &freeResidents{limit: int32(max(listedResidents/runtime.GOMAXPROCS(0), groupTasks))}
}

// take returns a record for a task.
func (p *residentPool) take(s *Scheduler) *resident {
	list, _ := p.lists.Get().(*freeResidents)
	if list == nil {
		list = newFreeResidents()
	}
	l := list.take()
	if l == nil {
		l, _ = p.more.Get().(*resident)
	}
	if l == nil {
		l = &resident{s: s}
		l.order.Owner = l
	}
	l.list = list
	p.lists.Put(list)
	return l
}

// take returns a record of the list, or nil.
func (f *freeResidents) take() *resident {
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
func (p *residentPool) giveBack(l *resident) {
	list := l.list
	l.list = nil
	if list.count.Add(1) > list.limit {
		p.more.Put(l)
		return
	}
	for {
		l.next = list.returned.Load()
		if list.returned.CompareAndSwap(l.next, l) {
			return
		}
	}
}
