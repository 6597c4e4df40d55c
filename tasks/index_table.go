package tasks

import "math/bits"

const (
	// A table doubles when it would be more than ⅝ full and halves when it is
	// less than ⅛ full.
	minSlots = 16

	// golden is 2⁶⁴ divided by the golden ratio: its multiples spread keys that
	// are evenly spaced, as the tiles of an array are, evenly.
	golden = 0x9E3779B97F4A7C15
)

// hashTable is a hash table whose keys are not 0, with open addressing and linear probing.
// Deleting an entry moves later ones back. An index into slots is valid until the next put or
// delete.
type hashTable[V comparable] struct {
	// slots is empty or a power of two long; a free slot is zero.
	slots []hashSlot[V]
	count int
	// shift reduces a product to the bits that index slots.
	shift uint
}

type hashSlot[V comparable] struct {
	key   uint64
	value V
}

// find returns the slot of key, or −1.
func (t *hashTable[V]) find(key uint64) int {
	mask := uint64(len(t.slots) - 1)
	for i := key * golden >> (t.shift & 63); i < uint64(len(t.slots)); i = (i + 1) & mask {
		switch t.slots[i].key {
		case key:
			return int(i)
		case 0:
			return -1
		}
	}
	return -1
}

// put returns the slot of key, and whether it is new, with a zero value.
func (t *hashTable[V]) put(key uint64) (i int, fresh bool) {
	if t.count >= len(t.slots)/8*5 {
		t.resize(max(2*len(t.slots), minSlots))
	}
	mask := len(t.slots) - 1
	for i = int(key * golden >> (t.shift & 63)); t.slots[i].key != 0; i = (i + 1) & mask {
		if t.slots[i].key == key {
			return i, false
		}
	}
	t.slots[i].key = key
	t.count++
	return i, true
}

// delete frees slot i.
func (t *hashTable[V]) delete(i int) {
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].key != 0; j = (j + 1) & mask {
		home := int(t.slots[j].key * golden >> (t.shift & 63))
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = hashSlot[V]{}
	t.count--
	if t.count < len(t.slots)/8 && len(t.slots) > minSlots {
		t.resize(len(t.slots) / 2)
	}
}

func (t *hashTable[V]) resize(n int) {
	old := t.slots
	t.slots = make([]hashSlot[V], n)
	t.shift = uint(64 - bits.TrailingZeros(uint(n)))
	for _, entry := range old {
		if entry.key == 0 {
			continue
		}
		i := int(entry.key * golden >> (t.shift & 63))
		for t.slots[i].key != 0 {
			i = (i + 1) & (n - 1)
		}
		t.slots[i] = entry
	}
}
