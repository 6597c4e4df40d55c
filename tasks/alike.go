package tasks

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"regexp"
	"strings"
)

// Failures of tasks with the same label are alike, and are counted instead of kept, if they have
// the same text and the same types in their trees of causes. A program can still distinguish them
// with errors.Is if their causes are different values. So up to maxDistinct failures with
// different causes are kept, for errors.Is and errors.As.

// likeness is what failures are compared by. It consists of hashes; the zero value stands for nil.
type likeness struct {
	// text is a hash of the text and of the types of the causes. After the first line, where
	// the stack of a panic begins, addresses are left out, and so are the numbers and states of
	// goroutines and what has created them.
	text uint64
	// causes is a hash of the values of all causes, roots of the values of causes that wrap no
	// other: failures that wrap the same sentinel each time have the same roots.
	causes, roots uint64
}

var seed = maphash.MakeSeed()

// likenessOf returns the likeness of an error. The methods of the error belong to the program and
// may panic.
func (g *Graph) likenessOf(err error) likeness {
	if err == nil {
		return likeness{}
	}
	h := likenessHash{graph: g, left: maxCauses}
	h.text.SetSeed(seed)
	h.causes.SetSeed(seed)
	h.roots.SetSeed(seed)
	if failed := g.failureOf(err); failed != nil && failed.likeness != (likeness{}) {
		h.text.WriteString(failed.Task)
		maphash.WriteComparable(&h.text, failed.likeness.text)
		return likeness{h.text.Sum64() | 1, failed.likeness.causes, failed.likeness.roots}
	}
	h.add(err)
	first, rest, _ := strings.Cut(textOf(err), "\n")
	h.text.WriteString(first)
	h.text.WriteByte(0)
	h.text.WriteString(passing.ReplaceAllString(rest, ""))
	return likeness{h.text.Sum64() | 1, h.causes.Sum64(), h.roots.Sum64()}
}

// maxCauses is the largest number of causes of one failure that are examined, because the program
// may build any tree, even one in which an error is its own cause. Failures that differ only in
// later causes count as alike.
const maxCauses = 1000

// likenessHash computes a likeness.
type likenessHash struct {
	graph               *Graph
	text, causes, roots maphash.Hash
	// left is the number of causes that may still be added.
	left int
}

// add adds an error, and what it wraps.
func (h *likenessHash) add(err error) {
	h.left--
	if failed := h.graph.failureOf(err); failed != nil && failed.likeness != (likeness{}) {
		// The failure of another task, which has been examined already.
		l := failed.likeness
		maphash.WriteComparable(&h.text, l.text)
		maphash.WriteComparable(&h.causes, l.causes)
		maphash.WriteComparable(&h.roots, l.roots)
		return
	}
	h.text.WriteString(reflect.TypeOf(err).String())
	h.text.WriteByte('(')
	defer h.text.WriteByte(')')
	wrapped := wrappedBy(err)
	if reflect.ValueOf(err).Comparable() {
		maphash.WriteComparable(&h.causes, err)
		if len(wrapped) == 0 {
			maphash.WriteComparable(&h.roots, err)
		}
	}
	for _, e := range wrapped {
		if h.left == 0 {
			return
		}
		if e != nil {
			h.add(e)
		}
	}
}

// wrappedBy returns the errors that an error wraps, as errors.Is finds them.
func wrappedBy(err error) (wrapped []error) {
	defer func() { _ = recover() }()
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if e := err.Unwrap(); e != nil {
			return []error{e}
		}
	case interface{ Unwrap() []error }:
		return err.Unwrap()
	}
	return nil
}

// passing matches what differs between the stacks of the same panic in several tasks. The state of
// a goroutine, in brackets, also says whether the garbage collector is looking at its stack.
var passing = regexp.MustCompile(`0x[0-9a-f]+|goroutine [0-9]+( \[[^]\n]*\])?|(?s:\ncreated by .*)`)

// textOf returns err.Error(), which is code of the program and may panic.
func textOf(err error) (text string) {
	defer func() { _ = recover() }()
	return err.Error()
}

// maxDistinct is the largest number of failures that are kept of those that are alike. Half of it
// is for failures whose roots no other one has, so that many failures with one root, which each
// task wraps anew, leave room for others.
const maxDistinct = 16

// failedAlike are failures that are alike, except for errors.Is and errors.As.
type failedAlike []*Error

// add keeps a failure if it differs from all others that are kept, and if there is room.
func (d *failedAlike) add(e *Error) {
	room := maxDistinct
	for _, o := range *d {
		if o.likeness == e.likeness {
			return
		}
		if o.likeness.roots == e.likeness.roots {
			room = maxDistinct / 2
		}
	}
	if len(*d) < room {
		*d = append(*d, e)
	}
}

// or returns the failures, or root alone if there are none.
func (d failedAlike) or(root *Error) failedAlike {
	if d == nil {
		return failedAlike{root}
	}
	return d
}

// count adds e to the tally's distinct failures if it is different.
func (t *tally) count(e *Error) {
	if e == t.root || e.likeness == t.root.likeness {
		return
	}
	t.distinct = t.distinct.or(t.root)
	t.distinct.add(e)
}

// countAll adds the failures of another tally.
func (t *tally) countAll(o *tally) {
	for _, e := range o.distinct.or(o.root) {
		t.count(e)
	}
}

// summary is a failure and the number of others that are reported with it.
type summary struct {
	failures failedAlike
	more     int
	// others says that these are not alike.
	others bool
}

// Error returns the text of the first failure and the number of the others.
func (s *summary) Error() string {
	if s.others {
		return fmt.Sprintf("%v (and %d others)", s.failures[0], s.more)
	}
	return fmt.Sprintf("%v (and %d more like it)", s.failures[0], s.more)
}

// Unwrap returns the failures that are kept.
func (s *summary) Unwrap() []error {
	var errs []error
	for _, e := range s.failures {
		errs = append(errs, e.shown())
	}
	return errs
}
