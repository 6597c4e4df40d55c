package tasks

import (
	"errors"
	"fmt"
)

// slots returns the number of entries for which the tables have room.
func (x *index) slots() int { return len(x.granules.slots) + len(x.groups.slots) }

// validate recomputes everything from the locations and returns the first difference.
func (x *index) validate() error {
	if err := x.granules.validate(); err != nil {
		return fmt.Errorf("granules: %w", err)
	}
	if err := x.groups.validate(); err != nil {
		return fmt.Errorf("groups: %w", err)
	}
	locations := 0
	var occupied [maxClass - minClass + 1][]uint64
	for i := range x.granules.slots {
		entry := &x.granules.slots[i]
		if entry.key == 0 {
			continue
		}
		if entry.value == nil {
			return fmt.Errorf("granule %#x: occupied without a location", entry.key)
		}
		var seen map[section]bool
		if entry.value.next != nil {
			seen = make(map[section]bool)
		}
		c := classOf(entry.value.size)
		n := uint64(entry.value.start) >> (granuleShift(c) & 63)
		occupied[c-minClass] = append(occupied[c-minClass], n)
		for l := entry.value; l != nil; l = l.next {
			c := classOf(l.size)
			if l.size == 0 || l.start+(l.size-1) < l.start {
				return fmt.Errorf("location %#x+%d: not a section", l.start, l.size)
			}
			if granuleKey(c, uint64(l.start)>>granuleShift(c)) != entry.key {
				return fmt.Errorf("location %#x+%d: in granule %#x", l.start, l.size, entry.key)
			}
			if seen[l.section] {
				return fmt.Errorf("location %#x+%d: twice", l.start, l.size)
			}
			if head := entry.value; c > minClass && (l.start-head.start >= head.size && head.start-l.start >= l.size) {
				return fmt.Errorf("location %#x+%d: in a chain with one apart from it", l.start, l.size)
			}
			if seen != nil {
				seen[l.section] = true
			}
			locations++
		}
	}
	if locations != x.count {
		return fmt.Errorf("%d locations, counted as %d", locations, x.count)
	}
	groups := 0
	for i, numbers := range occupied {
		n, err := x.validateClass(uint(i)+minClass, numbers)
		if err != nil {
			return fmt.Errorf("class %d: %w", i+minClass, err)
		}
		groups += n
	}
	if groups != x.groups.count {
		return fmt.Errorf("%d groups, kept are %d", groups, x.groups.count)
	}
	return nil
}

// validateClass compares the class with the granules that it occupies, and returns the number of
// its groups.
func (x *index) validateClass(c uint, granules []uint64) (groups int, err error) {
	if got := x.occupied>>(c-minClass)&1 == 1; got != (len(granules) > 0) {
		return 0, fmt.Errorf("%d granules, occupied %t", len(granules), got)
	}
	k := x.classes[c-minClass]
	if k == nil {
		if len(granules) > 0 {
			return 0, errors.New("no class")
		}
		return 0, nil
	}
	level := make(map[uint64]bool)
	for _, n := range granules {
		level[n] = true
	}
	children := 0
	for h := uint(1); h <= k.height; h++ {
		masks := make(map[uint64]uint64)
		for n := range level {
			masks[n>>6] |= 1 << (n & 63)
		}
		children = len(level)
		clear(level)
		for n, mask := range masks {
			level[n] = true
			i := x.groups.find(groupKey(c, h, n))
			if i < 0 || x.groups.slots[i].value != mask {
				return 0, fmt.Errorf("height %d: group %#x lacks %#x", h, n, mask)
			}
		}
		groups += len(masks)
	}
	if k.children != children || k.height > 0 && children <= minChildren {
		return 0, fmt.Errorf("height %d: %d children, counted as %d", k.height, children, k.children)
	}
	if k.rooted != len(level) || k.rooted > maxRoots {
		return 0, fmt.Errorf("height %d: %d roots, listed are %d", k.height, len(level), k.rooted)
	}
	for _, n := range k.roots[:k.rooted] {
		if !level[n] {
			return 0, fmt.Errorf("height %d: %#x is not a root, or twice", k.height, n)
		}
		delete(level, n)
	}
	return groups, nil
}

// validate looks up every key and counts the entries.
func (t *hashTable[V]) validate() error {
	count := 0
	for i, entry := range t.slots {
		if entry.key == 0 {
			if entry != (hashSlot[V]{}) {
				return fmt.Errorf("slot %d: free but not clear", i)
			}
			continue
		}
		if t.find(entry.key) != i {
			return fmt.Errorf("slot %d: key %#x not found there", i, entry.key)
		}
		count++
	}
	if count != t.count {
		return fmt.Errorf("%d entries, counted as %d", count, t.count)
	}
	if n := len(t.slots); count > n/8*5 || n > minSlots && count < n/8 {
		return fmt.Errorf("%d entries in %d slots", count, n)
	}
	return nil
}
