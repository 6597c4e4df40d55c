//go:build invariants

package invariants

// Enabled reports whether the program is built with the tag invariants.
const Enabled = true
