package spirv

import (
	"errors"
	"fmt"
)

var (
	// ErrInvalid matches every error of Parse.
	ErrInvalid = errors.New("spirv: invalid module")

	// ErrEntryPoint matches every error of Module.EntryPoint: no entry point has
	// that name, or it is not a compute shader.
	ErrEntryPoint = errors.New("spirv: no such compute entry point")
)

// Error is a defect of a module and its position.
type Error struct {
	Word int    // offset of the instruction's first word; 0 to 4 is the header
	Op   string // name of the instruction, as "OpVariable", or "header"
	Msg  string // the defect
}

// Error returns the position, the instruction and the defect.
func (e *Error) Error() string {
	return fmt.Sprintf("spirv: word %d: %s: %s", e.Word, e.Op, e.Msg)
}

// Is reports whether target is ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

func headerError(word int, format string, args ...any) error {
	return &Error{Word: word, Op: "header", Msg: fmt.Sprintf(format, args...)}
}
