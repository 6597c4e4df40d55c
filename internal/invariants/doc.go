// Package invariants says whether the program is built with the tag invariants, for
// tests: the packages of the runtime then check after each change what has to hold of
// their state, and panic where it does not. Without the tag the checks are left out of
// the program.
package invariants
