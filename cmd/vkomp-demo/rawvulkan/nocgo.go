//go:build !cgo

package rawvulkan

import "errors"

var errNoCgo = errors.New("plain Vulkan is measured in C: rows beside raw Vulkan need a program that was built with cgo")

// Available returns an error in a program without cgo.
func Available() error { return errNoCgo }

type Device struct{}

func Open(Options) (*Device, error) { return nil, errNoCgo }

func (*Device) Close() error { return nil }

func (*Device) NewKernel(name string, code []byte, buffers, push int) (Kernel, error) {
	return Kernel{}, errNoCgo
}

func (*Device) NewBuffer(size int) (Buffer, error) { return Buffer{}, errNoCgo }

func (*Device) FreeBuffer(Buffer) {}

func (*Device) Copy(to, from Buffer) error { return errNoCgo }

func (*Device) Fill(b Buffer, word uint32) error { return errNoCgo }

func (*Device) CopyIn(to Buffer, from []byte, times int) error { return errNoCgo }

func (*Device) CopyOut(to []byte, from Buffer, times int) error { return errNoCgo }

func (*Device) NewBatch([]Launch) (*Batch, error) { return nil, errNoCgo }

type Batch struct{}

func (*Batch) Record() error { return errNoCgo }

func (*Batch) Run() error { return errNoCgo }

func (*Batch) Prepare() error { return errNoCgo }

func (*Batch) Replay() error { return errNoCgo }

func (*Batch) RunEach() error { return errNoCgo }
