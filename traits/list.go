package traits

import (
	"fmt"
	"slices"
	"strings"
)

// Available is a parsed value of OMP_AVAILABLE_DEVICES.
type Available struct {
	items []item
}

// item is an expression and a subscript that selects from the devices it matches.
type item struct {
	of expression
	// which is nil if the item has no subscript: it selects all of them.
	which *section
}

// section selects elements lower, lower+stride, …: at most length, or all to the
// end.
type section struct {
	// length is negative if the section has none. An element [i] has length 1.
	lower, length, stride int64
}

func (s *section) pick(matches []int) []int {
	if s == nil {
		return matches
	}
	var picked []int
	// The numbers are bounded by the parser, so i cannot overflow.
	for i := s.lower; i < int64(len(matches)) && int64(len(picked)) != s.length; i += s.stride {
		picked = append(picked, matches[i])
	}
	return picked
}

// String writes "[lower:length:stride]", leaving out defaults.
func (s *section) String() string {
	switch {
	case s == nil:
		return ""
	case s.length == 1:
		return fmt.Sprintf("[%d]", s.lower)
	}
	length := ""
	if s.length >= 0 {
		length = fmt.Sprint(s.length)
	}
	if s.stride != 1 {
		return fmt.Sprintf("[%d:%s:%d]", s.lower, length, s.stride)
	}
	return fmt.Sprintf("[%d:%s]", s.lower, length)
}

// matches returns the indices of the devices that the item selects, in their order.
func (i *item) matches(devices []Device) []int {
	var matches []int
	for k := range devices {
		if i.of.match(&devices[k]) {
			matches = append(matches, k)
		}
	}
	return i.which.pick(matches)
}

func (i *item) String() string {
	if i.which == nil {
		return i.of.String()
	}
	return operand(i.of) + i.which.String()
}

// Devices returns the indices of the available devices among devices, which must
// be non-host devices. Their order is that of their new numbers: item by item, and
// each device with the first item that selects it. A subscript also counts devices
// that an earlier item has selected.
func (a *Available) Devices(devices []Device) []int {
	var order []int
	for k := range a.items {
		for _, d := range a.items[k].matches(devices) {
			if !slices.Contains(order, d) {
				order = append(order, d)
			}
		}
	}
	return order
}

// String writes the list in a form that ParseAvailable reads as the same list.
func (a *Available) String() string {
	var parts []string
	for k := range a.items {
		parts = append(parts, a.items[k].String())
	}
	return strings.Join(parts, ",")
}

// Choice is a way to choose the default device.
type Choice uint8

const (
	// ChooseNone says that no item of the list matches: the device is
	// omp_invalid_device.
	ChooseNone Choice = iota
	// ChooseDevice says that a device was found.
	ChooseDevice
	// ChooseInitial says that the list has "initial": the initial device.
	ChooseInitial
	// ChooseInvalid says that the list has "invalid": omp_invalid_device.
	ChooseInvalid
	// ChooseDefault says that the list has "default": the implementation chooses.
	ChooseDefault
)

// Default is a parsed value of OMP_DEFAULT_DEVICE.
type Default struct {
	choices []choice
}

// choice is an item of the list: a number, a keyword, or an expression.
type choice struct {
	// kind is ChooseNone for an expression and ChooseDevice for a number.
	kind   Choice
	number int
	item   item
}

// words holds the keywords.
var words = map[string]Choice{"initial": ChooseInitial, "invalid": ChooseInvalid, "default": ChooseDefault}

// Choose returns the choice of the first item that applies. With ChooseDevice it
// returns the index in devices of the chosen device; the host must be the last
// device. An expression chooses the first device that it matches, a number the
// device that has it.
func (d *Default) Choose(devices []Device) (Choice, int) {
	for k := range d.choices {
		switch c := &d.choices[k]; c.kind {
		case ChooseNone:
			if m := c.item.matches(devices); len(m) > 0 {
				return ChooseDevice, m[0]
			}
		case ChooseDevice:
			if i := slices.IndexFunc(devices, func(d Device) bool { return d.Number == c.number }); i >= 0 {
				return ChooseDevice, i
			}
		default:
			return c.kind, 0
		}
	}
	return ChooseNone, 0
}

// Number returns the device number and true if the list is a single number, which is all that
// OMP_DEFAULT_DEVICE could be before OpenMP 6.0. Otherwise it returns false.
func (d *Default) Number() (number int, ok bool) {
	if len(d.choices) != 1 || d.choices[0].kind != ChooseDevice {
		return 0, false
	}
	return d.choices[0].number, true
}

// String writes the list in a form that ParseDefault reads as the same list.
func (d *Default) String() string {
	var parts []string
	for k := range d.choices {
		switch c := &d.choices[k]; c.kind {
		case ChooseNone:
			parts = append(parts, c.item.String())
		case ChooseDevice:
			parts = append(parts, fmt.Sprint(c.number))
		default:
			for word, kind := range words {
				if kind == c.kind {
					parts = append(parts, word)
				}
			}
		}
	}
	return strings.Join(parts, ",")
}
