//go:build !mutants

package mutant

// Active reports whether the caller is to be wrong as the name says.
func Active(Name) bool { return false }
