package vkomp

import (
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
)

// Escape analysis sends every slice of a directive to the heap as soon as one
// pointer in it is kept. A construct therefore hides its directive, and copies
// what it keeps element by element; what its elements point to, the program's
// slices, escape forced to the heap where they were made into arguments and
// depend items (see escape), and strings are interned.

// hide returns p, unknown to escape analysis. What p points to may lie on the
// stack: nothing of the callee may keep a pointer into it.
func hide[T any](p *T) *T {
	address := uintptr(unsafe.Pointer(p))
	return *(**T)(unsafe.Pointer(&address))
}

// escape makes p escape.
func escape(p unsafe.Pointer) {
	if escaped.never {
		escaped.to = p
	}
}

var escaped struct {
	never bool
	to    unsafe.Pointer
}

// labels keeps the strings of labels on the heap, one of each.
type labels struct {
	mu   sync.Mutex
	seen map[string]string
}

// maxLabels bounds the labels kept: a program that makes one up for each task
// pays for it, and no more.
const maxLabels = 4096

// intern returns a copy of label that lies on the heap.
func (l *labels) intern(label string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.seen[label]; ok {
		return s
	}
	if l.seen == nil || len(l.seen) >= maxLabels {
		l.seen = make(map[string]string)
	}
	s := string(append([]byte(nil), label...))
	l.seen[s] = s
	return s
}

// clauses is heap memory for what a construct passes on of its directive.
type clauses struct {
	// enter and exit are the items of map clauses for the construct's beginning and
	// its end; moves are motions.
	enter, exit []memory.Map
	moves       []sched.Move
	depend      []tasks.Depend
	// buffers, never nil, are what a kernel is bound to, where bound says that it is
	// not enter as it is.
	bound     bool
	images    []sched.Image
	buffers   []sched.Buffer
	addresses []sched.Address
	pointers  []sched.Pointer
	values    [][]byte
	bytes     []byte
}

var spareClauses = sync.Pool{New: func() any { return &clauses{buffers: make([]sched.Buffer, 0, 4)} }}

func newClauses() *clauses { return spareClauses.Get().(*clauses) }

func (c *clauses) giveBack() {
	clear(c.enter)
	clear(c.exit)
	clear(c.moves)
	clear(c.depend)
	clear(c.values)
	*c = clauses{
		enter: c.enter[:0], exit: c.exit[:0], moves: c.moves[:0], depend: c.depend[:0],
		buffers: c.buffers[:0], addresses: c.addresses[:0], pointers: c.pointers[:0],
		values: c.values[:0], bytes: c.bytes[:0],
	}
	spareClauses.Put(c)
}
