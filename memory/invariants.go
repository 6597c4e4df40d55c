package memory

// holds panics unless the table is valid.
func (t *Table) holds() {
	if err := t.Validate(); err != nil {
		panic(err)
	}
}

// holds panics unless the allocator is valid.
func (a *Allocator) holds() {
	if err := a.Validate(); err != nil {
		panic(err)
	}
}
