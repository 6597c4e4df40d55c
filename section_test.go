package vkomp_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// selectedOf returns the indices that a section selects, computed element by element.
func selectedOf(dims []int, spans []vkomp.Span) []int {
	selected := []int{0}
	for i, dim := range dims {
		span := vkomp.Span{Count: dim, Stride: 1}
		if i < len(spans) {
			span = spans[i]
		}
		var next []int
		for _, base := range selected {
			for k := range span.Count {
				next = append(next, base*dim+span.Start+k*max(span.Stride, 1))
			}
		}
		selected = next
	}
	return selected
}

// randomSection draws an array section within the dimensions.
func randomSection(t *rapid.T, dims []int) []vkomp.Span {
	spans := make([]vkomp.Span, rapid.IntRange(0, len(dims)).Draw(t, "spans"))
	for i := range spans {
		s := &spans[i]
		s.Start = rapid.IntRange(0, dims[i]).Draw(t, "start")
		s.Stride = rapid.IntRange(0, 3).Draw(t, "stride")
		s.Count = rapid.IntRange(0, (dims[i]-s.Start+max(s.Stride, 1)-1)/max(s.Stride, 1)).Draw(t, "count")
	}
	return spans
}

func TestUpdateOfSectionsCopiesWhatTheyMean(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		rapid.Check(t, func(r *rapid.T) {
			dims := make([]int, rapid.IntRange(1, 4).Draw(r, "dims"))
			n := 1
			for i := range dims {
				dims[i] = rapid.IntRange(1, 7).Draw(r, "dim")
				n *= dims[i]
			}
			beyond := rapid.IntRange(0, 3).Draw(r, "beyond")
			at := rapid.IntRange(0, 3).Draw(r, "at")
			storage := make([]uint16, at+n+beyond)
			x := storage[at:]
			must(r, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(storage)}}))
			defer exit(t, rt, vkomp.Delete(storage))

			spans := randomSection(r, dims)
			part := func(a vkomp.Arg) vkomp.Arg {
				if rapid.Bool().Draw(r, "section first") {
					return a.Section(spans...).Shape(dims...)
				}
				return a.Shape(dims...).Section(spans...)
			}
			indices := selectedOf(dims, spans)
			want := make([]uint16, len(x))
			for i := range x {
				x[i] = uint16(i + 1)
			}
			for _, i := range indices {
				want[i] = uint16(i + 1)
			}
			must(r, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{part(vkomp.To(x)).Present()}}))
			if got := onDevice(t, rt, d, storage)[at:]; !slices.Equal(got, want) {
				r.Fatalf("on the device is %d, want %d", got, want)
			}
			setOnDevice(t, rt, d, storage, slices.Repeat([]uint16{999}, len(storage)))
			for i := range x {
				want[i] = uint16(i + 1)
			}
			for _, i := range indices {
				want[i] = 999
			}
			must(r, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{part(vkomp.From(x))}}))
			if !slices.Equal(x, want) {
				r.Fatalf("on the host is %d, want %d", x, want)
			}
		})
	})
}

func TestSectionsThatLeaveTheirArrayAreRefused(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	x := make([]uint32, 24)
	for _, c := range []struct {
		what  string
		item  vkomp.Arg
		texts []string
	}{
		{"a shape beyond the slice", vkomp.To(x).Shape(5, 5), []string{"[5 5]", "24 elements"}},
		{"a shape that overflows", vkomp.To(x).Shape(math.MaxInt, math.MaxInt, 2), []string{"shape"}},
		{"a negative shape", vkomp.To(x).Shape(-2, -12), []string{"[-2 -12]"}},
		{"no dimensions", vkomp.To(x).Shape(), []string{"0 dimensions"}},
		{"many dimensions", vkomp.To(x).Shape(make([]int, 100)...), []string{"100 dimensions"}},
		{"spans for dimensions that are not there", vkomp.To(x).Section(vkomp.Span{Count: 1}, vkomp.Span{Count: 1}), []string{"2 spans for 1"}},
		{"a start beyond the end", vkomp.To(x).Section(vkomp.Span{Start: 25}), []string{"[25:0:1]", "dimension 0", "24"}},
		{"an element at the end", vkomp.To(x).Section(vkomp.Span{Start: 24, Count: 1}), []string{"[24:1:1]"}},
		{"an element beyond the end", vkomp.To(x).Section(vkomp.Span{Count: 9, Stride: 3}), []string{"[0:9:3]"}},
		{"a negative start", vkomp.To(x).Section(vkomp.Span{Start: -1, Count: 1}), []string{"[-1:1:1]"}},
		{"a negative count", vkomp.To(x).Section(vkomp.Span{Count: -1}), []string{"[0:-1:1]"}},
		{"a negative stride", vkomp.To(x).Section(vkomp.Span{Count: 1, Stride: -1}), []string{"[0:1:-1]"}},
		{"a stride that overflows", vkomp.To(x).Section(vkomp.Span{Count: 3, Stride: math.MaxInt}), []string{"[0:3:"}},
		{"a row beyond the end", vkomp.To(x).Shape(4, 6).Section(vkomp.Span{Count: 1}, vkomp.Span{Start: 5, Count: 2}), []string{"[5:2:1]", "dimension 1"}},
		{"elements without bytes", vkomp.To(make([]struct{}, 4)).Section(vkomp.Span{Count: 1}), []string{"struct {}"}},
	} {
		for what, err := range map[string]error{
			"update":     rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{c.item}}),
			"enter data": rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{c.item}}),
		} {
			refused(t, what+" of "+c.what, err, vkomp.ErrInvalidArgument, c.texts...)
		}
	}
}

func TestSectionsWithoutGapsAreMapped(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(24, 1)
		for _, c := range []struct {
			item       vkomp.Arg
			start, end int
		}{
			{vkomp.ToFrom(x).Section(vkomp.Span{Start: 3, Count: 5}), 3, 8},
			{vkomp.ToFrom(x).Shape(4, 6).Section(vkomp.Span{Start: 1, Count: 2}), 6, 18},
			{vkomp.ToFrom(x).Shape(4, 6).Section(vkomp.Span{Start: 1, Count: 1}, vkomp.Span{Start: 2, Count: 3}), 8, 11},
			{vkomp.ToFrom(x).Shape(2, 2, 6).Section(vkomp.Span{Start: 1, Count: 1, Stride: 5}, vkomp.Span{Count: 2}), 12, 24},
			{vkomp.ToFrom(x).Shape(3, 4), 0, 12},
		} {
			enter(t, rt, c.item)
			for i := range x {
				if there := present(d, x[i:]); there != (i >= c.start && i < c.end) {
					t.Errorf("[%d,%d): element %d is present: %v", c.start, c.end, i, there)
				}
			}
			exit(t, rt, c.item)
			if present(d, x[c.start:]) {
				t.Errorf("[%d,%d) is there still", c.start, c.end)
			}
		}
		k := newKernel(t, rt, reach)
		must(t, rt.Target(t.Context(), vkomp.Target{Kernel: k, Range: vkomp.Range{X: 24}, Args: []vkomp.Arg{
			vkomp.ToFrom(x).Section(vkomp.Span{Start: 3, Count: 5}), vkomp.From(make([]uint32, 1)), vkomp.Value(uint32(4)),
		}}))
		for i, v := range x {
			if want := uint32(1 + 4*btoi(i >= 3 && i < 8)); v != want {
				t.Errorf("x[%d] = %d after a target region on a section, want %d", i, v, want)
			}
		}
	})
}

func TestHostVariantGetsASectionAlone(t *testing.T) {
	rt := vktest.Open(t, vktest.Host)
	x := fill(24, 1)
	item := vkomp.ToFrom(x).Shape(4, 6).Section(vkomp.Span{Start: 1, Count: 1}, vkomp.Span{Start: 2, Count: 3})
	if got := reached(t, rt, newKernel(t, rt, reach), item, 4); got != 3 || x[7] != 1 || x[8] != 5 || x[10] != 5 || x[11] != 1 {
		t.Errorf("%d elements reached, x = %d", got, x)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestUpdateOfAnEmptySectionDoesNothing(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		x := fill(24, 1)
		enter(t, rt, vkomp.To(x))
		x[0] = 2
		update(t, rt, vkomp.To(x).Section(vkomp.Span{}), vkomp.To(x[:0]), vkomp.To(x).Shape(4, 6).Section(vkomp.Span{Count: 4}, vkomp.Span{Start: 6}))
		if got := onDevice(t, rt, d, x)[0]; got != 1 {
			t.Errorf("x[0] = %d on the device", got)
		}
		exit(t, rt, vkomp.Release(x))
		if err := rt.Taskwait(t.Context()); errors.Is(err, vkomp.ErrNotPresent) {
			t.Error(err)
		}
	})
}

func TestEmptyShapes(t *testing.T) {
	onVulkan(t, func(t *testing.T, rt *vkomp.Runtime, d vkomp.Device) {
		var s []int32
		for _, dims := range [][]int{{0}, {5, 0}, {0, 5}} {
			must(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(s).Shape(dims...)}}))
		}
	})
}
