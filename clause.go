package vkomp

// Cond is the value of an if clause. The zero Cond is the clause's absence, which
// counts as true.
type Cond uint8

const (
	condAbsent Cond = iota
	condTrue
	condFalse
)

// If returns an if clause with that value, evaluated when it is written.
func If(condition bool) Cond {
	if condition {
		return condTrue
	}
	return condFalse
}

// isFalse reports whether the clause is there and false.
func (c Cond) isFalse() bool { return c == condFalse }
