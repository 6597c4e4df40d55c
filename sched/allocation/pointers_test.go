package allocation

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// However allocations come and go, a pointer finds the allocation that it was made for or, after
// that is forgotten, nothing, even if another allocation has its address or its slot.
func TestPointersFindWhatTheyWereMadeFor(t *testing.T) {
	type made struct {
		p  Pointer
		of *Allocation
	}
	rapid.Check(t, func(t *rapid.T) {
		var p Pointers
		p.Init(rapid.Uint32Range(0, 3).Draw(t, "generation"))
		var alive []*Allocation
		var all []made
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				a := new(Allocation)
				a.Size = rapid.Uint64Range(1, 600).Draw(t, "size")
				if rapid.Bool().Draw(t, "tells its address") {
					a.Block.Address = 1 << 12 * rapid.Uint64Range(1, 3).Draw(t, "address")
				}
				alive = append(alive, a)
			},
			"name": func(t *rapid.T) {
				if len(alive) == 0 {
					t.Skip("nothing to name")
				}
				a := rapid.SampledFrom(alive).Draw(t, "allocation")
				all = append(all, made{p.To(a), a})
			},
			"forget": func(t *rapid.T) {
				if len(alive) == 0 {
					t.Skip("nothing to forget")
				}
				i := rapid.IntRange(0, len(alive)-1).Draw(t, "allocation")
				p.Forget(alive[i])
				alive = append(alive[:i], alive[i+1:]...)
			},
			"": func(t *rapid.T) {
				named := make(map[*Allocation]bool)
				for _, m := range all {
					stale := true
					for _, a := range alive {
						stale = stale && a != m.of
					}
					at := rapid.Uint64Range(0, m.of.Size+1).Draw(t, "offset")
					size := rapid.Uint64Range(0, m.of.Size+1).Draw(t, "size")
					a, offset, err := p.Find(m.p.Add(int64(at)), size)
					switch inside := at+size <= m.of.Size; {
					case stale || !inside:
						if !errors.Is(err, ErrInvalidPointer) {
							t.Errorf("%d bytes at %d of %d (stale: %v): %v", size, at, m.of.Size, stale, err)
						}
					case err != nil || a != m.of || offset != at:
						t.Errorf("%d bytes at %d of %d: found at %d, %v", size, at, m.of.Size, offset, err)
					}
					named[m.of] = named[m.of] || !stale
				}
				for a := range p.All() {
					if !named[a] {
						t.Error("an allocation without a pointer is named")
					}
					delete(named, a)
				}
				for a, is := range named {
					if is {
						t.Errorf("%s is not among the named", a.Describe())
					}
				}
				if next := p.Generation(); next < p.first {
					t.Errorf("generation %d follows %d", next, p.first)
				}
			},
		})
	})
}

// Pointers of a device that was given up are stale on the next one.
func TestPointersOfAnotherGenerationAreStale(t *testing.T) {
	var first, second Pointers
	first.Init(0)
	var a, b Allocation
	a.Size, b.Size = 64, 64
	old := first.To(&a)
	for range 3 {
		first.Forget(&a)
		if p := first.To(&a); p == old {
			t.Errorf("%+v again", p)
		}
	}
	second.Init(first.Generation())
	if p := second.To(&b); p == old || p == first.To(&a) {
		t.Errorf("%+v is a pointer of both", p)
	}
	if _, _, err := second.Find(old, 0); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("%v", err)
	}
}

// The error of a stale pointer says what lies at its address now.
func TestStalePointersSayWhatTookTheirPlace(t *testing.T) {
	var p Pointers
	p.Init(0)
	before, after := Allocation{Origin: Allocated}, Allocation{Origin: Registered}
	before.Size, after.Size = 64, 128
	before.Block.Address, after.Block.Address = 4096, 4096-16
	old := p.To(&before)
	p.Forget(&before)
	p.To(&after)
	_, _, err := p.Find(old, 8)
	if err == nil || !strings.Contains(err.Error(), "16 bytes into registered buffer") {
		t.Errorf("%v", err)
	}
	if _, _, err := p.Find(Pointer{}, 0); !errors.Is(err, ErrInvalidPointer) {
		t.Errorf("nil: %v", err)
	}
	near := p.To(&after)
	if _, _, err := p.Find(near.Add(100), 64); err == nil || strings.Contains(err.Error(), "now") {
		t.Errorf("past the end of its own: %v", err)
	}
	next := Allocation{Origin: Allocated}
	next.Size, next.Block.Address = 64, after.Block.Address+after.Size
	p.To(&next)
	if _, _, err := p.Find(near.Add(130), 4); err == nil || !strings.Contains(err.Error(), "; 2 bytes into allocation") {
		t.Errorf("past the end, into the next: %v", err)
	}
}
