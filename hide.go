package vkomp

import (
	"sync"
	"unsafe"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/sched"
)

// Escape analysis moves every slice of a directive to the heap as soon as any pointer in the
// directive is stored, for example that of a device. The constructs that programs call most
// often therefore hide their directives from it. The slices then stay on the caller's stack,
// but without the compiler's protection. The following rule replaces it.
//
// No pointer to a hidden directive, to an element of its slices, or to the bytes of one of
// its strings may be stored on the heap: neither in an object that outlives the call, since
// the stack frame is gone by then, nor in one that does not, since stacks move when they
// grow, and only pointers on the stack are adjusted. Such a pointer would point to another
// goroutine's stack or to free memory, and the garbage collector would end the process
// ("found bad pointer in Go heap").
//
// Elements themselves may be copied to the heap: the constructors of Arg and Depend have
// already moved what they point to there (see escape). The contents of an element must be
// copied and not referred to, so that [Arg.bytes] of a small value may stay on the stack.
// Strings are interned (see labels).
//
// A test asks the compiler whether the rule is kept. For this a construct takes the slices
// out of its directive before it passes either on, and does not pass elements to function
// values or interface methods.

// hide returns p without escape analysis noticing: see the rule above.
//
// A stack can move at any function call, so there must be no call while the address is in an
// integer, and the compiler must not add one to check pointers.
//
//go:nosplit
//go:nocheckptr
func hide[T any](p *T) *T {
	address := uintptr(unsafe.Pointer(p))
	return *(**T)(unsafe.Pointer(&address))
}

// escape moves the target of p, and everything that it refers to, to the heap.
func escape(p unsafe.Pointer) {
	if escaped.never {
		escaped.to = p
	}
}

var escaped struct {
	never bool
	to    unsafe.Pointer
}

// labels interns the strings of labels on the heap.
type labels struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	seen map[string]string
}

// maxLabels bounds the number of interned labels, for programs that use a new label for
// each task.
const maxLabels = 4096

// intern returns a copy of label on the heap.
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

// clauses is heap memory for the clauses that a construct passes on: a region, and what that
// refers to.
type clauses struct {
	sched.Region
	// device is where the task runs. directive and does are what listeners are told of the
	// construct; does is nil if none wants to know it.
	device    *device
	directive directive
	does      *observe.Data
	// kept says that a record has the clauses.
	kept bool
	// buffers is for Region.Buffers, and not nil.
	buffers []sched.Buffer
	// bytes has what Values refers to.
	bytes []byte
}

var spareClauses = sync.Pool{New: func() any { return &clauses{buffers: make([]sched.Buffer, 0, 4)} }}

func newClauses() *clauses { return spareClauses.Get().(*clauses) }

// giveBack makes the memory that of another construct, unless a record has taken it over.
func (c *clauses) giveBack() {
	if c.kept {
		return
	}
	clear(c.Enter)
	clear(c.Exit)
	clear(c.Transfers)
	clear(c.Depend)
	clear(c.Images)
	enter, exit, transfers, depend := c.Enter[:0], c.Exit[:0], c.Transfers[:0], c.Depend[:0]
	addresses, pointers, values, images := c.Addresses[:0], c.Pointers[:0], c.Values[:0], c.Images[:0]
	if c.Buffers != nil {
		c.buffers = c.Buffers[:0]
	}
	c.Region = sched.Region{}
	c.directive = directive{}
	c.device, c.does = nil, nil
	c.Enter, c.Exit, c.Transfers, c.Depend = enter, exit, transfers, depend
	c.Addresses, c.Pointers, c.Values, c.Images = addresses, pointers, values, images
	c.bytes = c.bytes[:0]
	spareClauses.Put(c)
}
