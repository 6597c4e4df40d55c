package sched

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched/transfer"
)

// image returns the image of an item, nil for an item that is mapped as it is.
func (t *target) image(item int) *transfer.Image {
	i, found := slices.BinarySearchFunc(t.Images, item, func(image transfer.Image, item int) int { return cmp.Compare(image.Item, item) })
	if !found {
		return nil
	}
	return &t.Images[i]
}

// checkImagesLocked refuses items that are mapped as an image in one place and otherwise in another.
func (t *target) checkImagesLocked() error {
	for i := range t.entry.uses {
		u, m := &t.entry.uses[i], &t.Enter[i]
		if u.Present != nil && u.Created && m.DeviceSize != 0 && m.Section == u.Present.Section {
			stateOf(u.Present).image = new(transfer.Pointers)
		}
	}
	for i := range t.entry.uses {
		if u := &t.entry.uses[i]; u.Present != nil {
			if err := checkMapImage(u.Present, &t.Enter[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMapImage is checkImage for an item of a map.
func checkMapImage(block *memory.Present, m *memory.Map) error {
	return checkImage(block, m.Label, m.DeviceSize != 0, m.Section, m.DeviceSize)
}

// checkImage returns an error unless the block is what an item takes it for: an image, of that size,
// of that host storage, or no image at all.
func checkImage(block *memory.Present, label string, image bool, host memory.Section, size uint64) error {
	if is := stateOf(block).image != nil; is != image || is && (host != block.Section || size != block.Storage.Size) {
		return fmt.Errorf("%s: %w: %s is mapped with another image, or none", label, memory.ErrPartialOverlap, block.Section)
	}
	return nil
}

// addAttachmentsLocked finds the pointers that have to be attached: those in images that are new, and
// those to storage that is new. It adds transfers of pointers in images that are not copied in
// anyway.
func (s *Scheduler) addAttachmentsLocked(t *target) {
	// Of several items that are one image, one copies it in, with the pointers of all.
	var copied map[*memory.Present]*transfer.Image
	if len(t.Images) > 1 {
		copied = make(map[*memory.Present]*transfer.Image, len(t.Images))
	}
	for i := range t.Images {
		image := &t.Images[i]
		image.New = image.New[:0]
		if u := t.imageUse(image); u != nil && u.CopyIn {
			image.Attached = append(image.Attached[:0], *stateOf(u.Present).image...)
			if copied != nil {
				copied[u.Present] = image
			}
		}
	}
	for i := range t.Images {
		image := &t.Images[i]
		u := t.imageUse(image)
		if u == nil {
			continue
		}
		into := image
		if !u.CopyIn {
			into = copied[u.Present]
		}
		for _, a := range image.Attach {
			pointee := &t.entry.uses[a.Item]
			if pointee.Present == nil || !u.Created && !pointee.Created {
				continue
			}
			address := s.pointerIntoLocked(pointee.Present, pointee.Offset).Address
			pointer := transfer.Attached{Offset: a.Offset, Address: address}
			image.New.Point(pointer)
			if into != nil {
				into.Attached.Point(pointer)
				continue
			}
			bytes := binary.NativeEndian.AppendUint64(nil, address)
			state := stateOf(u.Present)
			t.pinLocked(state.Allocation)
			x := t.transfers.Add(transfer.Attach)
			x.Host, x.Size, x.Label = memory.Section{Ptr: unsafe.Pointer(&bytes[0]), Size: 8}, 8, "attachment"
			x.Dst, x.DstAt, x.Block = state.Allocation, blockAt(u.Present)+a.Offset, u.Present
		}
	}
}

// imageUse returns the use of an image's item, nil if the task does not enter it.
func (t *target) imageUse(image *transfer.Image) *memory.Use {
	if image.Item >= len(t.entry.uses) || t.entry.uses[image.Item].Present == nil {
		return nil
	}
	return &t.entry.uses[image.Item]
}

// attachLocked records the pointers that addAttachmentsLocked found with the blocks of their images. Several items can be
// one image.
func (t *target) attachLocked() {
	for i := range t.Images {
		image := &t.Images[i]
		for _, p := range image.New {
			stateOf(t.entry.uses[image.Item].Present).image.Point(p)
		}
	}
}
