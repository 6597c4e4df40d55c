package memory

// holds panics unless the table is valid.
func (t *Table) holds() {
	if err := t.Validate(); err != nil {
		panic(err)
	}
}

// holdsLocked panics unless the allocator, whose lock the caller has, is valid.
func (a *Allocator) holdsLocked() {
	if err := a.validateLocked(); err != nil {
		panic(err)
	}
}
