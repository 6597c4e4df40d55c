package sched

import (
	"context"
	"testing"

	"github.com/vkomp/vkomp/memory"
)

// Without robustBufferAccess2 a kernel could reach what else is in the pages of imported
// storage. So only storage that fills whole pages is used in place, unless the construct asks
// for it.
func TestSharingKeepsKernelsOutOfOtherStorage(t *testing.T) {
	for _, c := range []struct {
		name     string
		robust   bool
		elements int
		share    memory.Share
		shared   bool
	}{
		{"bounded by the device", true, 3 << 18, memory.ShareNever, true},
		{"bounded by the device, not all of a page", true, 3<<18 + 4, memory.ShareNever, true},
		{"whole pages", false, 3 << 18, memory.ShareNever, true},
		{"not all of a page", false, 3<<18 + 4, memory.ShareNever, false},
		{"not all of a page, and asked for", false, 3<<18 + 4, memory.ShareMust, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFakeDevice(t, unifiedMemory, 1)
			d.props.Features.RobustBufferAccess2 = c.robust
			r := newRigOn(t, d, memoryMode{memory: unifiedMemory, share: ShareLarge})
			defer r.close()
			x := filled(c.elements, 1)
			g := r.region(launch{label: "add", kernel: "add", args: []arg{tofrom(x)}, constant: 4, included: true})
			g.Enter[0].Share = c.share
			if err := r.s.Run(context.Background(), g); err != nil {
				t.Fatal(err)
			}
			r.expect("x", x, filled(c.elements, 5)...)
			if moved := r.s.Stats().BytesToDevice; (moved == 0) != c.shared || (d.imports > 0) != c.shared {
				t.Errorf("%d bytes moved, %d imports", moved, d.imports)
			}
		})
	}
}

// Only large slices that a target construct alone maps are used in place. Small ones, and those
// of data regions, are copied unless the construct asks for it.
func TestSharingIsForLargeTargetsAlone(t *testing.T) {
	r := newRigOn(t, newFakeDevice(t, unifiedMemory, 1), memoryMode{memory: unifiedMemory, share: ShareLarge})
	defer r.close()
	small, large := filled(1024, 1), filled(1<<18, 1)
	r.run(launch{label: "small", kernel: "add", args: []arg{tofrom(small)}, constant: 4, included: true})
	r.run(launch{label: "written and not mapped back", kernel: "add", args: []arg{to(large)}, constant: 4, included: true})
	r.run(launch{label: "region", enter: []arg{to(large)}, included: true})
	r.run(launch{label: "in it", kernel: "add", args: []arg{tofrom(large)}, constant: 4, included: true})
	if r.d.imports != 0 {
		t.Errorf("%d imports", r.d.imports)
	}
	r.expect("large", large[:4], 1, 1, 1, 1)
	r.run(launch{label: "end", exit: []arg{from(large)}, included: true})
	r.expect("large", large[:4], 5, 5, 5, 5)
	r.run(launch{label: "alone", kernel: "add", args: []arg{tofrom(large)}, constant: 4, included: true})
	if r.d.imports != 1 {
		t.Errorf("%d imports for a large target", r.d.imports)
	}
	r.expect("large", large[:4], 9, 9, 9, 9)
}
