package vkomp

import (
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
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
	maps   []memory.Map
	depend []tasks.Depend
	values [][]byte
	bytes  []byte
}

var spareClauses = sync.Pool{New: func() any { return new(clauses) }}

func newClauses() *clauses { return spareClauses.Get().(*clauses) }

func (c *clauses) giveBack() {
	clear(c.maps)
	clear(c.depend)
	clear(c.values)
	c.maps, c.depend, c.values, c.bytes = c.maps[:0], c.depend[:0], c.values[:0], c.bytes[:0]
	spareClauses.Put(c)
}

// arguments adds the maps and values among args, each in order.
func (c *clauses) arguments(args []Arg) {
	total := 0
	for k := range args {
		total += args[k].size
	}
	if cap(c.bytes) < total {
		c.bytes = make([]byte, 0, total)
	}
	for k := range args {
		a := &args[k]
		if !a.isValue {
			c.maps = append(c.maps, memory.Map{Section: a.section, Type: a.mapType, Label: argumentLabel(k)})
			continue
		}
		from := len(c.bytes)
		c.bytes = append(c.bytes, a.bytes()...)
		c.values = append(c.values, c.bytes[from:len(c.bytes):len(c.bytes)])
	}
}
