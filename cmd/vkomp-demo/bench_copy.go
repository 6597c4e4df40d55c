package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

// sizeName is a size in the name of a figure, such as 64MiB.
func sizeName(size int) string {
	for _, unit := range []string{"B", "KiB"} {
		if size < 1024 {
			return fmt.Sprint(size, unit)
		}
		size /= 1024
	}
	return fmt.Sprint(size, "MiB")
}

// copies is storage for copies of one size: slices of the host's, allocations of vkomp's and buffers
// of plain Vulkan's.
type copies struct {
	host [2][]byte
	mem  [2]vkomp.DevicePtr
	raw  [2]rawvulkan.Buffer
}

// withCopies calls body with storage, which it frees.
func (b *bench) withCopies(size int, body func(c *copies) error) (err error) {
	var c copies
	for k := range 2 {
		c.host[k] = make([]byte, size)
		// Pages that are touched for the first time would count as a part of the copy.
		for i := range c.host[k] {
			c.host[k][i] = byte(i*7 + k)
		}
		if c.mem[k], err = b.device.Alloc(b.ctx, size); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.device.Free(b.ctx, c.mem[k])) }()
		if c.raw[k], err = b.raw.NewBuffer(size); err != nil {
			return err
		}
		defer b.raw.FreeBuffer(c.raw[k])
	}
	return body(&c)
}

// checkBack calls back, the copy of a side from the device to got, and returns an error unless it brings what
// was copied there.
func checkBack(side string, got, want []byte, back func() error) error {
	clear(got) // has what the other side brought
	if err := back(); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the bytes of %s came back otherwise", side)
	}
	return nil
}

// benchMemcpySmall has bytes of its own for each of the deferred copies, which nothing orders.
func benchMemcpySmall(b *bench) error {
	const size = 64
	return b.withCopies(size*b.tasks, func(c *copies) error {
		x, y := c.host[0][:size], c.host[1][:size]
		in := func(int) error { return b.rt.Memcpy(b.ctx, c.mem[0], vkomp.HostPtr(x), size) }
		out := func(int) error { return b.rt.Memcpy(b.ctx, vkomp.HostPtr(y), c.mem[0], size) }
		repeated := func(call func(int) error) benchSide {
			return timed(func() error {
				for i := range b.calls {
					if err := call(i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for _, way := range []struct {
			name  string
			raw   func() error
			vkomp func(int) error
		}{
			{"h2d_sync", func() error { return b.raw.CopyIn(c.raw[0], x, b.calls) }, in},
			{"d2h_sync", func() error { return b.raw.CopyOut(y, c.raw[0], b.calls) }, out},
		} {
			samples, err := b.alternate(timed(way.raw), repeated(way.vkomp))
			if err != nil {
				return err
			}
			b.figure("memcpy.64B."+way.name, "call", b.calls, benchTotal, samples[1], samples[0])
		}
		rawBack := func() error { return b.raw.CopyOut(y, c.raw[0], 1) }
		err := errors.Join(checkBack("vkomp", y, x, func() error { return out(0) }), checkBack("raw Vulkan", y, x, rawBack))
		if err != nil {
			return err
		}
		err = b.taskFigures("memcpy.64B.h2d_async", b.tasks, func() error {
			for i := range b.tasks {
				if err := b.rt.MemcpyAsync(b.ctx, c.mem[0].Add(i*size), vkomp.HostPtr(c.host[0][i*size:(i+1)*size]), size); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = checkBack("deferred copies", c.host[1], c.host[0], func() error {
			return b.rt.Memcpy(b.ctx, vkomp.HostPtr(c.host[1]), c.mem[0], size*b.tasks)
		})
		if err != nil {
			return err
		}
		return b.taskFigures("memcpy.64B.h2d_async_chain", b.tasks, func() error {
			for range b.tasks {
				if err := b.rt.MemcpyAsync(b.ctx, c.mem[0], vkomp.HostPtr(x), size, vkomp.InOut(x)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func benchMemcpy(b *bench) error {
	size := b.copied
	return b.withCopies(size, func(c *copies) error {
		rawBack := func() error { return b.raw.CopyOut(c.host[1], c.raw[1], 1) }
		vkompBack := func() error { return b.rt.Memcpy(b.ctx, vkomp.HostPtr(c.host[1]), c.mem[1], size) }
		for _, way := range []struct {
			name       string
			raw, vkomp func() error
		}{
			{"h2d", func() error { return b.raw.CopyIn(c.raw[0], c.host[0], 1) },
				func() error { return b.rt.Memcpy(b.ctx, c.mem[0], vkomp.HostPtr(c.host[0]), size) }},
			{"d2d", func() error { return b.raw.Copy(c.raw[1], c.raw[0]) },
				func() error { return b.rt.Memcpy(b.ctx, c.mem[1], c.mem[0], size) }},
			{"d2h", rawBack, vkompBack},
		} {
			samples, err := b.alternate(timed(way.raw), timed(way.vkomp))
			if err != nil {
				return err
			}
			b.rate("memcpy."+sizeName(size)+"."+way.name, size, samples[1], samples[0])
		}
		return errors.Join(checkBack("vkomp", c.host[1], c.host[0], vkompBack), checkBack("raw Vulkan", c.host[1], c.host[0], rawBack))
	})
}

func benchMemset(b *bench) error {
	const value = 7
	size := b.copied
	return b.withCopies(size, func(c *copies) error {
		samples, err := b.alternate(timed(func() error { return b.raw.Fill(c.raw[0], value*0x01010101) }),
			timed(func() error { return b.device.Memset(b.ctx, c.mem[0], value, size) }))
		if err != nil {
			return err
		}
		b.rate("memset."+sizeName(size), size, samples[1], samples[0])
		if err := b.rt.Memcpy(b.ctx, vkomp.HostPtr(c.host[0]), c.mem[0], size); err != nil {
			return err
		}
		if err := b.raw.CopyOut(c.host[1], c.raw[0], 1); err != nil {
			return err
		}
		want := bytes.Repeat([]byte{value}, size)
		if !bytes.Equal(c.host[0], want) || !bytes.Equal(c.host[1], want) {
			return errors.New("not every byte is filled")
		}
		return nil
	})
}
