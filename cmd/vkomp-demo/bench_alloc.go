package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/vkomp/vkomp"
)

func benchAlloc(b *bench) error {
	for _, n := range b.live {
		if err := b.allocAmong(n); err != nil {
			return err
		}
	}
	return nil
}

// allocAmong measures pairs of 4 KiB without live allocations, and among live ones of many sizes pairs
// that replace one of them.
func (b *bench) allocAmong(n int) (err error) {
	if n == 0 {
		return b.call("alloc.pair_4KiB_0live", "pair", b.calls, func(int) error {
			p, err := b.device.Alloc(b.ctx, 4096)
			if err != nil {
				return err
			}
			return b.device.Free(b.ctx, p)
		})
	}
	random := benchRandom()
	// From 256 bytes to 1 MiB, as many of each power of two.
	size := func() int { return int(256*math.Exp2(12*random.Float64())) &^ 3 }
	live := make([]vkomp.DevicePtr, 0, n)
	defer func() {
		for _, p := range live {
			if !p.IsNil() {
				err = errors.Join(err, b.device.Free(b.ctx, p))
			}
		}
	}()
	for range n {
		p, err := b.device.Alloc(b.ctx, size())
		if err != nil {
			return err
		}
		live = append(live, p)
	}
	// What is replaced by what is drawn before it is measured.
	replaced, sizes := make([]int, b.calls), make([]int, b.calls)
	for i := range replaced {
		replaced[i], sizes[i] = random.IntN(n), size()
	}
	return b.call(fmt.Sprintf("alloc.pair_mixed_%dlive", n), "pair", b.calls, func(i int) error {
		at := &live[replaced[i]]
		p := *at
		*at = vkomp.DevicePtr{}
		if err := b.device.Free(b.ctx, p); err != nil {
			return err
		}
		*at, err = b.device.Alloc(b.ctx, sizes[i])
		return err
	})
}
