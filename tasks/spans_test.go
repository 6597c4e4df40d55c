package tasks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// check returns what is wrong with the tree of a.
func (a *span[V]) check() error {
	if a == nil {
		return nil
	}
	reach := a.end
	for _, b := range []*span[V]{a.left, a.right} {
		if b == nil {
			continue
		}
		if b.weight > a.weight || b.before(a) != (b == a.left) {
			return fmt.Errorf("[%d, %d) is in the wrong place", b.start, b.end)
		}
		reach = max(reach, b.reach)
		if err := b.check(); err != nil {
			return err
		}
	}
	if a.reach != reach {
		return fmt.Errorf("[%d, %d) reaches %d, not %d", a.start, a.end, reach, a.reach)
	}
	return nil
}

func TestSpansFindWhatOverlaps(t *testing.T) {
	oneGoroutine(t)
	for seed := range uint64(200) {
		choices := rand.New(rand.NewPCG(seed, 3))
		var set spans[int]
		var all []*span[int]
		most := uintptr(1 + choices.IntN(60))
		section := func() (start, end uintptr) {
			start = uintptr(choices.IntN(100))
			return start, start + 1 + uintptr(choices.IntN(int(most)))
		}
		for i := range 300 {
			switch k := choices.IntN(8); {
			case k < 4:
				a := &span[int]{value: i}
				a.start, a.end = section()
				set.insert(a)
				all = append(all, a)
			case len(all) == 0:
			case k < 6:
				k := choices.IntN(len(all))
				set.remove(all[k])
				all = slices.Delete(all, k, k+1)
			default:
				a := all[choices.IntN(len(all))]
				set.resize(a, a.start+1+uintptr(choices.IntN(60)))
			}
			start, end := section()
			want := slices.DeleteFunc(slices.Clone(all), func(a *span[int]) bool { return a.end <= start || end <= a.start })
			slices.SortFunc(want, func(a, b *span[int]) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			got := set.appendOverlapping(nil, start, end)
			if !slices.Equal(got, want) || set.overlaps(start, end) != (len(want) > 0) || set.count != len(all) || len(set.appendAll(nil)) != len(all) {
				t.Fatalf("seed %d: %d of %d spans share a byte with [%d, %d), found %d", seed, len(want), len(all), start, end, len(got))
			}
			if err := set.root.check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}
