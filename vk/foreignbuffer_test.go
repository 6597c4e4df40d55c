package vk

import (
	"errors"
	"strings"
	"testing"
)

const blockUsage = BufferTransferSrc | BufferTransferDst | BufferStorage

func TestForeignBuffersAreHeldToTheQueuesAndTheUsage(t *testing.T) {
	whole := ForeignBuffer{Buffer: 1, Memory: 2, Size: 64, Usage: blockUsage, Exclusive: true, Family: 1}
	with := func(change func(b *ForeignBuffer)) ForeignBuffer {
		b := whole
		change(&b)
		return b
	}
	shared := func(families ...uint32) ForeignBuffer {
		return with(func(b *ForeignBuffer) { b.Exclusive, b.Families = false, families })
	}
	const all = 4 // families of the device
	for _, c := range []struct {
		buffer   ForeignBuffer
		families []uint32 // families of the queues that compute
		want     error
		text     string
	}{
		{whole, []uint32{1}, nil, ""},
		{with(func(b *ForeignBuffer) { b.Usage |= BufferDeviceAddress | 1<<30 }), []uint32{1}, nil, ""},
		{shared(0, 1, 2), []uint32{0, 2}, nil, ""},
		{shared(1), []uint32{1}, nil, ""},
		{with(func(b *ForeignBuffer) { b.Buffer = 0 }), []uint32{1}, ErrInvalid, "no Buffer"},
		{with(func(b *ForeignBuffer) { b.Memory = 0 }), []uint32{1}, ErrInvalid, "no Memory"},
		{with(func(b *ForeignBuffer) { b.Size = 0 }), []uint32{1}, ErrInvalid, "no bytes"},
		{shared(), []uint32{1}, ErrInvalid, "neither Exclusive nor Families"},
		{with(func(b *ForeignBuffer) { b.Families = []uint32{1} }), []uint32{1}, ErrInvalid, "Exclusive, and shared"},
		{with(func(b *ForeignBuffer) { b.Family = all }), []uint32{1}, ErrInvalid, "family 4, of 4"},
		{shared(1, 1<<31), []uint32{1}, ErrInvalid, "family 2147483648, of 4"},
		{with(func(b *ForeignBuffer) { b.Usage = BufferTransferSrc | BufferDeviceAddress }), []uint32{1}, ErrUnsupported,
			"buffer 0x1 was made without VK_BUFFER_USAGE_TRANSFER_DST_BIT, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT"},
		{with(func(b *ForeignBuffer) { b.Usage &^= BufferTransferSrc }), []uint32{1}, ErrUnsupported, "without VK_BUFFER_USAGE_TRANSFER_SRC_BIT"},
		{whole, []uint32{0, 1, 2}, nil, ""},
		{whole, []uint32{0, 2}, ErrUnsupported, "buffer 0x1 is exclusive to family [1], and the queues that compute are of families [0 2]"},
		{shared(0, 1), []uint32{2, 3}, ErrUnsupported, "buffer 0x1 is shared among families [0 1], and the queues that compute are of families [2 3]"},
	} {
		err := c.buffer.check(c.families, all)
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v for families %v: %v, want %q", c.buffer, c.families, err, c.text)
		}
	}
}
