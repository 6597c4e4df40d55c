package main

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp"
)

// benchPage is the size of slices that are present or associated, in bytes.
const benchPage = 4096

func benchMapHit(b *bench) error {
	for _, n := range b.entries {
		if err := b.mapHitAmong(n); err != nil {
			return err
		}
	}
	x := make([]byte, benchPage)
	return b.call("maphit.roundtrip_4KiB_to_from", "pair", b.calls, func(int) error {
		if err := b.rt.TargetEnterData(b.ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(x)}}); err != nil {
			return err
		}
		return b.rt.TargetExitData(b.ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(x)}})
	})
}

// mapHitAmong has so many slices present, and maps those again in no order.
func (b *bench) mapHitAmong(n int) (err error) {
	all := make([]byte, n*benchPage)
	at := func(i int) []byte { return all[i*benchPage : (i+1)*benchPage] }
	// A construct has so many maps at most, as an array of pointers has.
	const portion = 1000
	entered := 0
	defer func() {
		for i := 0; i < entered; i += portion {
			var maps []vkomp.Arg
			for k := i; k < min(i+portion, entered); k++ {
				maps = append(maps, vkomp.Delete(at(k)))
			}
			err = errors.Join(err, b.rt.TargetExitData(b.ctx, vkomp.TargetExitData{Maps: maps}))
		}
	}()
	for entered < n {
		var maps []vkomp.Arg
		last := min(entered+portion, n)
		for k := entered; k < last; k++ {
			maps = append(maps, vkomp.Alloc(at(k)))
		}
		if err := b.rt.TargetEnterData(b.ctx, vkomp.TargetEnterData{Maps: maps}); err != nil {
			return err
		}
		entered = last
	}
	random := benchRandom()
	err = b.call(fmt.Sprintf("maphit.enter_exit_among_%d", n), "pair", b.calls, func(int) error {
		x := at(random.IntN(n))
		if err := b.rt.TargetEnterData(b.ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.Alloc(x)}}); err != nil {
			return err
		}
		return b.rt.TargetExitData(b.ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(x)}})
	})
	if err != nil {
		return err
	}
	return b.call(fmt.Sprintf("maphit.is_present_among_%d", n), "call", b.calls, func(int) error {
		if !b.device.IsPresent(vkomp.HostPtr(at(random.IntN(n)))) {
			return errors.New("a present slice was not found")
		}
		return nil
	})
}

func benchAssociate(b *bench) (err error) {
	host := make([]byte, (b.associated+1)*benchPage)
	at := func(i int) vkomp.DevicePtr { return vkomp.HostPtr(host[i*benchPage : (i+1)*benchPage]) }
	memory, err := b.device.Alloc(b.ctx, len(host))
	if err != nil {
		return err
	}
	associated := 1
	defer func() {
		for i := 1; i < associated; i++ {
			err = errors.Join(err, b.device.DisassociatePtr(b.ctx, at(i)))
		}
		err = errors.Join(err, b.device.Free(b.ctx, memory))
	}()
	pair := func(int) error {
		if err := b.device.AssociatePtr(b.ctx, at(0), memory, benchPage, 0); err != nil {
			return err
		}
		return b.device.DisassociatePtr(b.ctx, at(0))
	}
	if err := b.call("associate.pair_empty", "pair", b.calls, pair); err != nil {
		return err
	}
	for ; associated <= b.associated; associated++ {
		if err := b.device.AssociatePtr(b.ctx, at(associated), memory, benchPage, associated*benchPage); err != nil {
			return err
		}
	}
	if err := b.call(fmt.Sprintf("associate.pair_among_%d", b.associated), "pair", b.calls, pair); err != nil {
		return err
	}
	return b.call(fmt.Sprintf("associate.mapped_ptr_among_%d", b.associated), "call", b.calls, func(i int) error {
		if b.device.MappedPtr(at(1 + i%b.associated)).IsNil() {
			return errors.New("an associated slice has no address")
		}
		return nil
	})
}
