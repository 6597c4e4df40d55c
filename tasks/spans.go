package tasks

// span is a range of bytes [start, end) in spans, with a value.
type span[V any] struct {
	start, end uintptr
	// reach is the largest end in the subtree.
	reach uintptr
	// id distinguishes spans with the same start; weight orders parents before children.
	id          uint64
	weight      uint64
	left, right *span[V]
	value       V
}

// spans is a set of spans, which may overlap. It is a treap ordered by start; each subtree knows
// its largest end. Insertion and removal take O(log n) steps, and a query takes as many for each
// span that it finds. The zero value is empty. Callers serialize access and own the spans.
type spans[V any] struct {
	root  *span[V]
	count int
	ids   uint64
}

func (t *spans[V]) empty() bool { return t.root == nil }

// before reports whether a comes before b.
func (a *span[V]) before(b *span[V]) bool {
	return a.start < b.start || a.start == b.start && a.id < b.id
}

func (a *span[V]) update() {
	a.reach = a.end
	if a.left != nil {
		a.reach = max(a.reach, a.left.reach)
	}
	if a.right != nil {
		a.reach = max(a.reach, a.right.reach)
	}
}

// insert adds a, whose start, end and value are set.
func (t *spans[V]) insert(a *span[V]) {
	t.ids++
	t.count++
	a.id, a.weight = t.ids, t.ids*golden
	a.weight ^= a.weight >> 32
	a.weight *= golden
	a.left, a.right = nil, nil
	if t.root == nil {
		a.reach = a.end
		t.root = a
		return
	}
	t.root = t.root.insert(a)
}

func (a *span[V]) insert(b *span[V]) *span[V] {
	switch {
	case a == nil:
		b.reach = b.end
		return b
	case b.weight > a.weight:
		b.left, b.right = a.split(b)
		b.update()
		return b
	case b.before(a):
		a.left = a.left.insert(b)
	default:
		a.right = a.right.insert(b)
	}
	a.reach = max(a.reach, b.end)
	return a
}

// split returns the spans before at, and those after it.
func (a *span[V]) split(at *span[V]) (l, r *span[V]) {
	if a == nil {
		return nil, nil
	}
	if a.before(at) {
		a.right, r = a.right.split(at)
		a.update()
		return a, r
	}
	l, a.left = a.left.split(at)
	a.update()
	return l, a
}

// remove removes a, which must be in t.
func (t *spans[V]) remove(a *span[V]) {
	t.count--
	t.root = t.root.remove(a)
}

func (a *span[V]) remove(b *span[V]) *span[V] {
	switch {
	case a == b:
		return merge(a.left, a.right)
	case b.before(a):
		a.left = a.left.remove(b)
	default:
		a.right = a.right.remove(b)
	}
	a.update()
	return a
}

// resize changes the end of a, which must be in t.
func (t *spans[V]) resize(a *span[V], end uintptr) {
	a.end = end
	t.root.refresh(a)
}

func (a *span[V]) refresh(b *span[V]) {
	switch {
	case a == b:
	case b.before(a):
		a.left.refresh(b)
	default:
		a.right.refresh(b)
	}
	a.update()
}

// merge merges two trees; all spans of l come before those of r.
func merge[V any](l, r *span[V]) *span[V] {
	switch {
	case l == nil:
		return r
	case r == nil:
		return l
	case l.weight > r.weight:
		l.right = merge(l.right, r)
		l.update()
		return l
	}
	r.left = merge(l, r.left)
	r.update()
	return r
}

// appendOverlapping appends the spans with a byte in [start, end), in order.
func (t *spans[V]) appendOverlapping(dst []*span[V], start, end uintptr) []*span[V] {
	return t.root.appendOverlapping(dst, start, end)
}

func (a *span[V]) appendOverlapping(dst []*span[V], start, end uintptr) []*span[V] {
	for a != nil && a.reach > start {
		if a.left != nil && a.left.reach > start {
			dst = a.left.appendOverlapping(dst, start, end)
		}
		if a.start >= end {
			break
		}
		if a.end > start {
			dst = append(dst, a)
		}
		a = a.right
	}
	return dst
}

// find returns the first span with a byte in [start, end) for which ok is true, or nil.
func (t *spans[V]) find(start, end uintptr, ok func(*span[V]) bool) *span[V] {
	return t.root.find(start, end, ok)
}

func (a *span[V]) find(start, end uintptr, ok func(*span[V]) bool) *span[V] {
	for a != nil && a.reach > start {
		if found := a.left.find(start, end, ok); found != nil {
			return found
		}
		if a.start >= end {
			break
		}
		if a.end > start && ok(a) {
			return a
		}
		a = a.right
	}
	return nil
}

// each calls do for all spans, in order.
func (t *spans[V]) each(do func(*span[V])) { t.root.each(do) }

func (a *span[V]) each(do func(*span[V])) {
	for ; a != nil; a = a.right {
		a.left.each(do)
		do(a)
	}
}

// overlaps reports whether some span has a byte in [start, end).
func (t *spans[V]) overlaps(start, end uintptr) bool {
	a := t.root
	for a != nil && a.reach > start {
		if a.left != nil && a.left.reach > start {
			// If none of these overlaps, all that reach further begin at end or later.
			a = a.left
			continue
		}
		if a.start >= end {
			return false
		}
		if a.end > start {
			return true
		}
		a = a.right
	}
	return false
}

// appendAll appends all spans, in order.
func (t *spans[V]) appendAll(dst []*span[V]) []*span[V] {
	return t.root.appendOverlapping(dst, 0, ^uintptr(0))
}
