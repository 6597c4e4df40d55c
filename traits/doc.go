// Package traits reads the values of OMP_AVAILABLE_DEVICES and OMP_DEFAULT_DEVICE
// (OpenMP 6.0 §4.3.7 and §4.3.8), which choose devices by what they are:
//
//	available   = item { "," item }
//	item        = "*" [ subscript ] | operand subscript | expression
//	default     = choice { "," choice }
//	choice      = number | "initial" | "invalid" | "default" | operand subscript | expression
//	expression  = operand { "&&" operand } | operand { "||" operand }
//	operand     = { "!" } ( trait | "(" expression ")" )
//	trait       = ( "kind" | "isa" | "arch" | "vendor" | "uid" ) "(" name ")"
//	            | "device_num" "(" number ")"
//	subscript   = "[" number "]" | "[" [ number ] ":" [ number ] [ ":" [ number ] ] "]"
//	name        = letters, digits, "_", "-" and "."; or anything between double quotes
//
// White space between tokens and the case of letters have no meaning. && and ||
// on one level need parentheses, and so does an expression of several operands
// with a subscript. device_num and kind(host) are for OMP_DEFAULT_DEVICE only,
// because the host is always available. A subscript is an element as in C, or a
// section with lower bound, length and stride. It selects from the devices that
// match, in their order; indices past their end are ignored. Parentheses and !
// nest up to 100 levels.
//
// Lists are immutable: any goroutine may use one.
package traits
