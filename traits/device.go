package traits

import (
	"fmt"
	"slices"
	"strings"
)

// Device holds the traits of a device. Names are compared regardless of case.
type Device struct {
	// Number is the device's number, which device_num compares.
	Number int
	// Kinds, ISAs, Archs and Vendors are the names of the device for each trait,
	// the most specific one first. kind(any) matches every device without a name
	// here.
	Kinds, ISAs, Archs, Vendors []string
	// UID is unique to the device.
	UID string
}

// String shows the device's traits as expressions would name them, joined by spaces.
func (d *Device) String() string {
	var all []string
	for _, of := range []struct {
		name  string
		names []string
	}{{"kind", d.Kinds}, {"vendor", d.Vendors}, {"arch", d.Archs}, {"isa", d.ISAs}, {"uid", []string{d.UID}}} {
		for _, n := range of.names {
			all = append(all, trait{name: of.name, value: n}.String())
		}
	}
	return strings.Join(all, " ")
}

// Kinds are the names that kind accepts: those of OpenMP, then one for each
// VkPhysicalDeviceType.
var Kinds = []string{"host", "nohost", "any", "cpu", "gpu", "fpga", "discrete", "integrated", "virtual", "software", "other"}

// expression is a condition on a device.
type expression interface {
	match(d *Device) bool
	// String writes the expression in a form that parses to the same expression.
	String() string
}

// every is the expression "*", which matches every device.
type every struct{}

func (every) match(*Device) bool { return true }
func (every) String() string     { return "*" }

// trait compares one of the device's names with value, or, for device_num, its
// number with number.
type trait struct {
	name, value string
	number      int
}

func (t trait) match(d *Device) bool {
	is := func(s string) bool { return strings.EqualFold(s, t.value) }
	switch t.name {
	case "kind":
		return is("any") || slices.ContainsFunc(d.Kinds, is)
	case "isa":
		return slices.ContainsFunc(d.ISAs, is)
	case "arch":
		return slices.ContainsFunc(d.Archs, is)
	case "vendor":
		return slices.ContainsFunc(d.Vendors, is)
	case "uid":
		return is(d.UID)
	}
	return d.Number == t.number
}

func (t trait) String() string {
	switch {
	case t.name == "device_num":
		return fmt.Sprintf("%s(%d)", t.name, t.number)
	case t.value == "" || strings.ContainsFunc(t.value, func(r rune) bool { return !bare(r) }):
		return fmt.Sprintf(`%s("%s")`, t.name, t.value)
	}
	return fmt.Sprintf("%s(%s)", t.name, t.value)
}

// not is the expression "!".
type not struct{ of expression }

func (n not) match(d *Device) bool { return !n.of.match(d) }
func (n not) String() string       { return "!" + operand(n.of) }

// all is the expression "&&" and some the expression "||", of two or more operands.
type (
	all  []expression
	some []expression
)

func (a all) match(d *Device) bool {
	return !slices.ContainsFunc(a, func(e expression) bool { return !e.match(d) })
}
func (a all) String() string { return join(a, "&&") }

func (s some) match(d *Device) bool {
	return slices.ContainsFunc(s, func(e expression) bool { return e.match(d) })
}
func (s some) String() string { return join(s, "||") }

func join(of []expression, operator string) string {
	var b strings.Builder
	for i, e := range of {
		if i > 0 {
			b.WriteString(operator)
		}
		b.WriteString(operand(e))
	}
	return b.String()
}

// operand writes an expression as an operand of another, in parentheses if needed.
func operand(e expression) string {
	switch e.(type) {
	case all, some:
		return "(" + e.String() + ")"
	}
	return e.String()
}
