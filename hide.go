package vkomp

import (
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
)

// Escape analysis sends every slice of a directive to the heap as soon as one pointer
// of the directive is kept, a device's, say. The constructs that programs call most often
// therefore hide their directives, which leaves the slices on the caller's stack, and
// takes the compiler's protection from them. In its place there is a rule:
//
// No pointer to a hidden directive, to an element of its slices, or to the bytes of one
// of its strings is stored on the heap. That is so for an object that outlives the call,
// as the stack is gone by then, and no less for one that does not, as stacks move when
// they grow: pointers on the stack move along, those on the heap do not. What such a
// pointer points to then is another goroutine's stack, or memory without an owner, for
// which the garbage collector ends the process ("found bad pointer in Go heap").
//
// Elements themselves may be copied to the heap as they are: what they point to the
// constructors of Arg and Depend have sent there (see escape). What an element holds is
// copied and not referred to, so that [Arg.bytes] of a small value stays on the stack.
// Strings are interned (see labels).
//
// So that the compiler can be asked whether the rule is kept, which a test does, a
// construct takes the slices out of its directive before it passes either on, and passes
// elements to no function value and to no method of an interface.

// hide returns p, unknown to escape analysis: see the rule above.
//
// A stack moves where a function is called, and there must be no call while its address
// is in an integer, nor one that the compiler adds to check pointers.
//
//go:nosplit
//go:nocheckptr
func hide[T any](p *T) *T {
	address := uintptr(unsafe.Pointer(p))
	return *(**T)(unsafe.Pointer(&address))
}

// escape sends what p points to to the heap, and with it all that it refers to.
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
