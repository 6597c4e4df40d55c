//go:build !cgo

package foreign

import (
	"errors"

	"github.com/vkomp/vkomp/interop"
)

var errNoCgo = errors.New("foreign code is C, and this program was built without cgo")

type Code struct{}

type Commands uintptr

func Open(interop.Object) (*Code, error) { return nil, errNoCgo }

func (*Code) Close() {}

func (*Code) Copy(from, to interop.Buffer) (Commands, error) { return 0, errNoCgo }

func (*Code) Buffer(size uint64) (NewBuffer, error) { return NewBuffer{}, errNoCgo }

func (*Code) Free(NewBuffer) {}

func (*Code) Submit(queue uintptr, c Commands) error { return errNoCgo }

func (*Code) SubmitBetween(queue uintptr, c Commands, o interop.Object, wait, signal uint64) error {
	return errNoCgo
}
