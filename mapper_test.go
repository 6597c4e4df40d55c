package vkomp_test

import (
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestPanicOfAMapperIsTheTasksFailure(t *testing.T) {
	type value struct{ n int32 }
	type image struct{ N int32 }
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		ctx := t.Context()
		v := &value{1}
		panics := true
		m := vkomp.Mapper[value, image]{
			Encode: func(i *image, v *value) {
				if panics {
					panic("encode")
				}
				i.N = v.n
			},
			Decode: func(*value, *image) { panic("decode") },
		}
		check := func(what string, err error) {
			t.Helper()
			var p *vkomp.PanicError
			if !errors.As(err, &p) || p.Value != what {
				t.Errorf("%s: %v", what, err)
			}
		}
		check("encode", rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}, NoWait: true}))
		check("encode", rt.Taskwait(ctx))
		if s := rt.Stats(); s.Storage.Allocations != 0 || s.Staging.Allocations != 0 {
			t.Errorf("%d allocations of storage and %d of staging left", s.Storage.Allocations, s.Staging.Allocations)
		}
		panics = false
		must(t, rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{m.To(v)}}))
		panics = true
		check("encode", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.To(v)}}))
		check("decode", rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{m.From(v)}}))
		check("decode", rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.From(v)}}))
		_ = rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{m.Delete(v)}})
		if s := rt.Stats(); s.Storage.Allocations != 0 {
			t.Errorf("%d allocations of storage left", s.Storage.Allocations)
		}
	})
}
