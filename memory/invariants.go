package memory

// holds panics unless the table is valid.
func (t *Table) holds() {
	if err := t.Validate(); err != nil {
		panic(err)
	}
}

// holds panics unless the allocator, whose lock the caller has, is valid.
func (a *Allocator) holds() {
	if err := a.validate(); err != nil {
		panic(err)
	}
}
