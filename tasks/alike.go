package tasks

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"regexp"
	"strings"
)

// Failures of tasks with one label are alike, and are counted, if they have the same text
// and the same types in their trees of causes. A program can tell them apart all the same,
// with errors.Is, if their causes are different values. So the first failures whose causes
// differ are kept, up to maxDistinct, for errors.Is and errors.As to find.

// likeness is what failures are compared by. It consists of hashes, and is zero for nil.
type likeness struct {
	// text is of the text and of the types of the causes. Below the first line, which
	// begins the stack of a panic, addresses and the numbers of goroutines do not count.
	text uint64
	// causes is of the values of all causes, roots of the values of those that wrap no
	// other: failures that each wrap one sentinel anew have the same roots.
	causes, roots uint64
}

var seed = maphash.MakeSeed()

// likenessOf returns the likeness of an error, whose methods are the program's and may
// panic.
func likenessOf(err error) likeness {
	if err == nil {
		return likeness{}
	}
	h := likenessHash{left: maxCauses}
	h.text.SetSeed(seed)
	h.causes.SetSeed(seed)
	h.roots.SetSeed(seed)
	if failed, ok := err.(*Error); ok && failed.likeness != (likeness{}) {
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

// maxCauses bounds the causes of one failure that are looked at: the tree is the program's,
// and an error may be found in it many times, even among its own causes. Failures that
// differ only in later causes are taken for the same.
const maxCauses = 1000

// likenessHash is a likeness that is being computed.
type likenessHash struct {
	text, causes, roots maphash.Hash
	// left is the number of causes that may still be added.
	left int
}

// add adds an error, and what it wraps.
func (h *likenessHash) add(err error) {
	h.left--
	if failed, ok := err.(*Error); ok && failed.likeness != (likeness{}) {
		// The failure of another task: what it wraps has been looked at.
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

// wrappedBy returns what an error wraps, as errors.Is follows it.
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

// passing is what differs between the stacks of one panic in several tasks.
var passing = regexp.MustCompile(`0x[0-9a-f]+|goroutine [0-9]+`)

// textOf is err.Error(), which is the program's and may panic.
func textOf(err error) (text string) {
	defer func() { _ = recover() }()
	return err.Error()
}

// maxDistinct bounds the failures that are kept of those that are alike. Half of it is for
// failures whose roots none of the others has: a flood of one failure, which each task
// wraps anew, leaves room for others.
const maxDistinct = 16

// failedAlike are failures that are alike, but for errors.Is and errors.As.
type failedAlike []*Error

// add keeps a failure if it differs from all that are kept, and there is room.
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

// or returns the failures, or the one if there is no other.
func (d failedAlike) or(root *Error) failedAlike {
	if d == nil {
		return failedAlike{root}
	}
	return d
}

// count adds one of the failures that the tally counts.
func (t *tally) count(e *Error) {
	if e == t.root || e.likeness == t.root.likeness {
		return
	}
	t.distinct = t.distinct.or(t.root)
	t.distinct.add(e)
}

// countAll adds those of another tally.
func (t *tally) countAll(o *tally) {
	for _, e := range o.distinct.or(o.root) {
		t.count(e)
	}
}

// summary is a failure, and the number of others that are reported with it.
type summary struct {
	failures failedAlike
	more     int
	// others: they are not alike.
	others bool
}

// Error is the text of the first failure, and the number of the others.
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
		errs = append(errs, e)
	}
	return errs
}
