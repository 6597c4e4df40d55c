package main

import (
	"errors"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/ompt/trace"
)

// benchInterop has no foreign work: its constructs order what could be there.
func benchInterop(b *bench) (err error) {
	var o interop.Object
	if err := b.rt.Interop(b.ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &o, Types: interop.TypeTargetSync}}}); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.rt.Interop(b.ctx, vkomp.Interop{Destroy: []*interop.Object{&o}}))
	}()
	n := max(b.tasks/10, 1)
	x := make([]uint32, 64)
	use := func() error {
		return b.rt.Interop(b.ctx, vkomp.Interop{Use: []interop.Object{o}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(x)}})
	}
	err = b.present([]vkomp.Arg{vkomp.To(x)}, []vkomp.Arg{vkomp.From(x)}, func() error {
		err := b.taskFigures("interop.use_nowait_depend", n, func() error {
			for range n {
				if err := use(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return b.taskFigures("interop.target_use_pair", n, func() error {
			for range n {
				if err := b.increment(b.ctx, x); err != nil {
					return err
				}
				if err := use(); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := benchCheck("x[0]", x[0], uint32(n*b.runs())); err != nil {
		return err
	}
	return b.call("interop.use_sync", "construct", n, func(int) error {
		return b.rt.Interop(b.ctx, vkomp.Interop{Use: []interop.Object{o}})
	})
}

// benchTrace has another runtime whose tool collects traces, and the command's own without a tool.
func benchTrace(b *bench) (err error) {
	// As many entries as there can be, since dropping them costs less.
	collector := trace.New(trace.Options{Limit: 64 * b.tasks * b.runs()})
	rt, err := b.sh.runtime(vkomp.Options{Tool: collector.Callbacks()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	device, err := rt.SelectDevice(b.device.UID())
	if err != nil {
		return err
	}
	if err := rt.SetDefaultDevice(b.ctx, device); err != nil {
		return err
	}
	traced := &bench{session: &session{rt: rt, device: device}, sh: b.sh, ctx: b.ctx, benchSizes: b.benchSizes, count: b.count}
	if traced.kernels.inc.vkomp, err = rt.NewKernel(b.kernels.inc.source); err != nil {
		return err
	}
	off, on := make([]uint32, 64), make([]uint32, 64)
	err = b.present([]vkomp.Arg{vkomp.To(off)}, []vkomp.Arg{vkomp.From(off)}, func() error {
		return traced.present([]vkomp.Arg{vkomp.To(on)}, []vkomp.Arg{vkomp.From(on)}, func() error {
			samples, err := b.alternate(b.deferred(func() error { return b.chain(off) }), traced.deferred(func() error { return traced.chain(on) }))
			if err != nil {
				return err
			}
			b.figure("trace.off.chain", "task", b.tasks, benchTotal, samples[0], nil)
			b.figure("trace.on.chain", "task", b.tasks, benchTotal, samples[1], nil)
			return nil
		})
	})
	if err != nil {
		return err
	}
	want := uint32(b.tasks * b.runs())
	if off[0] != want || on[0] != want {
		return errors.Join(benchCheck("x[0] without a tool", off[0], want), benchCheck("x[0] with a tool", on[0], want))
	}
	return nil
}
