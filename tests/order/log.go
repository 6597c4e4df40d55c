package order

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
)

// header is the first line of a log.
const header = "vkomp-order 1"

// ErrLog matches the error for a log that cannot be read: it is not a log, has another version,
// or has a malformed line.
var ErrLog = errors.New("not a log of the recording layer")

// reader reads a log line by line, and a line field by field. It keeps the first error in err,
// after which fields are zero.
type reader struct {
	in    *bufio.Reader
	long  []byte
	line  int
	text  []byte // rest of the line
	whole []byte
	// cut says that the last line is incomplete.
	cut bool
	err error
}

func newReader(in io.Reader) (*reader, error) {
	r := &reader{in: bufio.NewReaderSize(in, 1<<18)}
	// A file that is no log can be one line without an end.
	begin, err := r.in.Peek(len(header))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(begin) != header || !r.next() || string(r.text) != header {
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return nil, r.err
		}
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrLog, header)
	}
	return r, nil
}

// next goes to the next line. It returns false at the end of the log or after an error.
func (r *reader) next() bool {
	if r.err != nil {
		return false
	}
	text, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], text...)
		for errors.Is(err, bufio.ErrBufferFull) {
			text, err = r.in.ReadSlice('\n')
			r.long = append(r.long, text...)
		}
		text = r.long
	}
	r.line++
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
		return false
	}
	if len(text) == 0 {
		return false
	}
	if text[len(text)-1] != '\n' {
		// The last line is incomplete: the program ended while it was written.
		r.cut = true
		return false
	}
	r.text = text[:len(text)-1]
	r.whole = r.text
	return true
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: line %d, %.100q: %s", ErrLog, r.line, r.whole, fmt.Sprintf(format, args...))
	}
}

// word returns the next field, empty at the end of the line. It is valid until the next line is
// read.
func (r *reader) word() []byte {
	i := 0
	for i < len(r.text) && r.text[i] != ' ' {
		i++
	}
	w := r.text[:i]
	if i < len(r.text) {
		i++
	}
	r.text = r.text[i:]
	return w
}

// rest returns the rest of the line.
func (r *reader) rest() string {
	s := string(r.text)
	r.text = nil
	return s
}

func (r *reader) more() bool { return len(r.text) > 0 }

// number parses a decimal number up to a blank, a colon, a comma, or the end.
func (r *reader) number() uint64 {
	var n uint64
	i := 0
	for ; i < len(r.text) && r.text[i]-'0' < 10; i++ {
		digit := uint64(r.text[i] - '0')
		if n > (math.MaxUint64-digit)/10 {
			return r.tooLarge()
		}
		n = n*10 + digit
	}
	r.after(i, "a decimal number")
	return n
}

// hex parses a hexadecimal number, like number.
func (r *reader) hex() uint64 {
	var n uint64
	i := 0
	for ; i < len(r.text); i++ {
		digit := r.text[i] - '0'
		if letter := r.text[i] - 'a'; letter < 6 {
			digit = letter + 10
		} else if digit >= 10 {
			break
		}
		if n >= 1<<60 {
			return r.tooLarge()
		}
		n = n<<4 | uint64(digit)
	}
	r.after(i, "a hexadecimal number")
	return n
}

func (r *reader) tooLarge() uint64 {
	r.fail("a number of more than 64 bits at %.20q", r.text)
	r.text = nil
	return 0
}

func (r *reader) after(i int, what string) {
	if i == 0 || i < len(r.text) && r.text[i] != ' ' && r.text[i] != ':' && r.text[i] != ',' {
		r.fail("want %s at %.20q", what, r.text)
		r.text = nil
		return
	}
	if i < len(r.text) {
		i++
	}
	r.text = r.text[i:]
}

func (r *reader) id() int {
	n := r.number()
	if n > 1<<31 {
		r.fail("object %d", n)
		return 0
	}
	return int(n)
}
