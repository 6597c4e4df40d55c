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
// Space between them means nothing, nor does case. && and || of one level need
// parentheses, and so does an expression of several operands with a subscript.
// device_num and kind(host) are for OMP_DEFAULT_DEVICE, the host is not among what
// is available or not. A subscript is C's, a section lower bound, length and stride:
// it picks among the devices that match, in their order, and what it names beyond
// their end is dropped. Nesting ends at 100 levels.
//
// All of it is plain data: any goroutine may use a list that was read.
package traits
