package traits

import (
	"fmt"
	"slices"
	"strings"
)

// Available is a value of OMP_AVAILABLE_DEVICES.
type Available struct {
	items []item
}

// item is an expression, and which of the devices that it matches are meant.
type item struct {
	of expression
	// which is nil for all of them.
	which *section
}

// section picks elements: lower, lower+stride, … of at most length, or to the end.
type section struct {
	// length is negative for as many as there are. An element [i] has length 1.
	lower, length, stride int64
}

func (s *section) pick(matches []int) []int {
	if s == nil {
		return matches
	}
	var picked []int
	// What a number that was read can make of i is far from overflow.
	for i := s.lower; i < int64(len(matches)) && int64(len(picked)) != s.length; i += s.stride {
		picked = append(picked, matches[i])
	}
	return picked
}

// String is "[lower:length:stride]" with what is not the default.
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

// matches gives the indices of the devices that are meant, in their order.
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

// Devices returns the indices of the available ones among devices, all non-host, in
// the order of their new numbers: item by item, each device with the first item that
// means it. A subscript counts devices that an earlier item has taken too.
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

// String spells the list so that ParseAvailable reads it as the same again.
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
	// ChooseNone: no item of the list matches. The device is omp_invalid_device.
	ChooseNone Choice = iota
	// ChooseDevice: a device was found.
	ChooseDevice
	// ChooseInitial, ChooseInvalid and ChooseDefault: the list says "initial",
	// "invalid" or "default".
	ChooseInitial
	ChooseInvalid
	ChooseDefault
)

// Default is a value of OMP_DEFAULT_DEVICE.
type Default struct {
	choices []choice
}

// choice is an item of the list: a number, a word, or devices.
type choice struct {
	// kind is ChooseNone for devices, ChooseDevice for a number.
	kind   Choice
	number int
	item   item
}

// words are the choices that are neither number nor trait.
var words = map[string]Choice{"initial": ChooseInitial, "invalid": ChooseInvalid, "default": ChooseDefault}

// Choose goes through the list until an item matches. With ChooseDevice comes the
// index of the device among devices: by number, the host last. Of several that match
// an item it is the first; a number matches where a device has it.
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

// Number returns the number that is the whole list, as before OpenMP 6.0.
func (d *Default) Number() (number int, ok bool) {
	if len(d.choices) != 1 || d.choices[0].kind != ChooseDevice {
		return 0, false
	}
	return d.choices[0].number, true
}

// String spells the list so that ParseDefault reads it as the same again.
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
