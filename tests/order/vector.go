package order

// vector is knowledge of execution: entry c is the number of known commands of column c. Missing
// entries are zero.
type vector []uint64

func (v vector) at(column int) uint64 {
	if column < len(v) {
		return v[column]
	}
	return 0
}

// join takes the maximum of each entry.
func (v *vector) join(o vector) {
	if len(*v) < len(o) {
		*v = append(*v, make(vector, len(o)-len(*v))...)
	}
	w := (*v)[:len(o)]
	for i, n := range o {
		w[i] = max(w[i], n)
	}
}

// raise makes one entry at least n.
func (v *vector) raise(column int, n uint64) {
	if len(*v) <= column {
		*v = append(*v, make(vector, column+1-len(*v))...)
	}
	(*v)[column] = max((*v)[column], n)
}

// meet takes the minimum of each entry.
func (v vector) meet(o vector) {
	for i := range v {
		v[i] = min(v[i], o.at(i))
	}
}

func (v vector) clone() vector { return append(vector(nil), v...) }

func (v vector) equal(o vector) bool {
	for i := range max(len(v), len(o)) {
		if v.at(i) != o.at(i) {
			return false
		}
	}
	return true
}

// within reports whether o covers everything in v.
func (v vector) within(o vector) bool {
	for i, n := range v {
		if n > o.at(i) {
			return false
		}
	}
	return true
}
