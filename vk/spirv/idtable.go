package spirv

// idTable maps ids to numbers other than zero. The id bound is a free choice of the module,
// so the table is an array only if that takes no more memory than the module.
type idTable struct {
	dense  []uint32
	sparse map[uint32]uint32
}

func newIDTable(bound uint32, words int) idTable {
	if uint64(bound) <= uint64(words) {
		return idTable{dense: make([]uint32, bound)}
	}
	return idTable{sparse: make(map[uint32]uint32)}
}

// get returns the number of an id, 0 if it has none or is out of bound.
func (t *idTable) get(id uint32) uint32 {
	if t.sparse != nil {
		return t.sparse[id]
	}
	if uint64(id) < uint64(len(t.dense)) {
		return t.dense[id]
	}
	return 0
}

// set gives a number to an id below the bound.
func (t *idTable) set(id, number uint32) {
	if t.sparse != nil {
		t.sparse[id] = number
	} else {
		t.dense[id] = number
	}
}
