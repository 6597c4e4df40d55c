package sched

import (
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
)

// The image of a value goes to the device and comes back as a whole, and an update to the device
// changes only what Write sets. The image has several units of a flush, its words are not zero in
// either half, and the device changes all of them between the copies.
func TestImagesAreCopiedAsAWhole(t *testing.T) {
	const elements = 50
	inEveryMemory(t, func(t *testing.T, r *rig) {
		// Write sets every word of the image and, for the update, every other one.
		x, base, step, got := filled(4, 1), uint32(0x01010100), 1, array32(elements)
		image := transfer.Image{
			Write: func(to unsafe.Pointer) error {
				of := unsafe.Slice((*uint32)(to), elements)
				for i := 0; i < elements; i += step {
					of[i] = base + uint32(i)
				}
				return nil
			},
			Read: func(from unsafe.Pointer) error {
				copy(got, unsafe.Slice((*uint32)(from), elements))
				return nil
			},
		}
		item := arg{s: x, kind: memory.MapToFrom}.item("x")
		item.DeviceSize = 4 * elements
		enter := r.region(launch{label: "enter", included: true})
		enter.Enter, enter.Images = []memory.Map{item}, []transfer.Image{image}
		if err := r.s.Run(t.Context(), enter); err != nil {
			t.Fatal(err)
		}
		p, ok := r.s.MappedPointer(sectionOf(x))
		if !ok {
			t.Fatal("the value is not mapped")
		}
		want := array32(elements)
		for i := range want {
			want[i] = base + uint32(i)
		}
		add := func() {
			r.on(launch{label: "add", kernel: "add", constant: 0x11111111, included: true}, elements, p)
			for i := range want {
				want[i] += 0x11111111
			}
		}
		update := func(kind transfer.Kind, included bool) {
			r.transfer(launch{label: "update", included: included}, transfer.Request{Kind: kind, Host: sectionOf(x), Size: 4 * elements, Image: &image, Label: "x"})
			r.taskwait()
		}
		for _, included := range []bool{false, true} {
			add()
			update(transfer.UpdateFrom, included)
			r.expect("the image", got, want...)
		}
		base, step = 0x07070700, 2
		update(transfer.UpdateTo, true)
		for i := 0; i < elements; i += step {
			want[i] = base + uint32(i)
		}
		add()
		exit := r.region(launch{label: "exit", included: true})
		exit.Exit, exit.Images = []memory.Map{item}, []transfer.Image{image}
		if err := r.s.Run(t.Context(), exit); err != nil {
			t.Fatal(err)
		}
		r.expect("the image at the exit", got, want...)
	})
}
