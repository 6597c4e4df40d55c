package traits

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oracle generates random text and evaluates it at the same time as sets of
// devices, bit k being device k. It uses neither the parser's trees nor their match
// methods.
type oracle struct {
	*rapid.T
	devices []Device
	all     uint
	host    bool
}

// few holds the names of the random devices; there are few, so that they often
// match.
var few = []string{"a", "b", "c", "d e"}

// spaced joins tokens, with a space between them at random.
func (o *oracle) spaced(tokens ...string) string {
	var b strings.Builder
	for _, token := range tokens {
		if rapid.IntRange(0, 5).Draw(o.T, "space") == 0 {
			b.WriteString(rapid.SampledFrom([]string{" ", "\t", "  "}).Draw(o.T, "of"))
		}
		b.WriteString(token)
	}
	return b.String()
}

func (o *oracle) caseless(s string) string {
	if rapid.Bool().Draw(o.T, "upper") {
		return strings.ToUpper(s)
	}
	return s
}

func (o *oracle) set(has func(*Device) bool) (set uint) {
	for k := range o.devices {
		if has(&o.devices[k]) {
			set |= 1 << k
		}
	}
	return set
}

func (o *oracle) trait() (string, uint) {
	names := func(of func(*Device) []string, from []string) (string, uint) {
		name := rapid.SampledFrom(from).Draw(o.T, "name")
		set := o.set(func(d *Device) bool { return slices.Contains(of(d), name) })
		name = o.caseless(name)
		if strings.Contains(name, " ") || rapid.Bool().Draw(o.T, "quoted") {
			name = `"` + name + `"`
		}
		return name, set
	}
	choices := []string{"kind", "isa", "arch", "vendor", "uid"}
	if o.host {
		choices = append(choices, "device_num")
	}
	trait := rapid.SampledFrom(choices).Draw(o.T, "trait")
	var name string
	var set uint
	switch trait {
	case "kind":
		if name, set = names(func(d *Device) []string { return d.Kinds }, []string{"nohost", "any", "cpu", "gpu"}); strings.Contains(strings.ToLower(name), "any") {
			set = o.all
		}
	case "isa":
		name, set = names(func(d *Device) []string { return d.ISAs }, few)
	case "arch":
		name, set = names(func(d *Device) []string { return d.Archs }, few)
	case "vendor":
		name, set = names(func(d *Device) []string { return d.Vendors }, few)
	case "uid":
		name, set = names(func(d *Device) []string { return []string{d.UID} }, []string{"u0", "u1", "u2", "u3", "u9"})
	case "device_num":
		n := rapid.IntRange(0, 8).Draw(o.T, "number")
		name, set = fmt.Sprint(n), o.set(func(d *Device) bool { return d.Number == n })
	}
	return o.spaced(o.caseless(trait), "(", name, ")"), set
}

// expression returns a random expression, and whether it has one operand.
func (o *oracle) expression(depth int) (string, uint, bool) {
	n := rapid.IntRange(1, 3).Draw(o.T, "operands")
	text, set := o.operand(depth)
	if n == 1 {
		return text, set, true
	}
	and := rapid.Bool().Draw(o.T, "and")
	for range n - 1 {
		more, of := o.operand(depth)
		if and {
			text, set = o.spaced(text, "&&", more), set&of
		} else {
			text, set = o.spaced(text, "||", more), set|of
		}
	}
	return text, set, false
}

func (o *oracle) operand(depth int) (string, uint) {
	kind := rapid.IntRange(0, 3).Draw(o.T, "operand")
	switch {
	case depth == 0 || kind < 2:
		return o.trait()
	case kind == 2:
		text, set := o.operand(depth - 1)
		return o.spaced("!", text), o.all &^ set
	}
	text, set, _ := o.expression(depth - 1)
	return o.spaced("(", text, ")"), set
}

// item returns a random item and the devices that it means, in order.
func (o *oracle) item() (string, []int) {
	text, set, single := o.expression(2)
	if !o.host && rapid.IntRange(0, 5).Draw(o.T, "star") == 0 {
		text, set, single = "*", o.all, true
	}
	var matches []int
	for k := range bits.Len(set) {
		if set&(1<<k) != 0 {
			matches = append(matches, k)
		}
	}
	if rapid.Bool().Draw(o.T, "no subscript") {
		return text, matches
	}
	if !single {
		text = o.spaced("(", text, ")")
	}
	number := func(label string, least int) (int, string) {
		if n := rapid.IntRange(least-1, 5).Draw(o.T, label); n >= least {
			return n, fmt.Sprint(n)
		}
		return -1, ""
	}
	if rapid.Bool().Draw(o.T, "element") {
		i := rapid.IntRange(0, 5).Draw(o.T, "index")
		var meant []int
		if i < len(matches) {
			meant = matches[i : i+1]
		}
		return o.spaced(text, "[", fmt.Sprint(i), "]"), meant
	}
	lower, lowerText := number("lower", 0)
	length, lengthText := number("length", 0)
	stride, strideText := number("stride", 1)
	tokens := []string{text, "[", lowerText, ":", lengthText}
	if strideText != "" {
		tokens = append(tokens, ":", strideText)
	}
	lower, stride = max(lower, 0), max(stride, 1)
	// Element i is in the section where it is one of lower, lower+stride, …
	var meant []int
	for i, d := range matches {
		if i >= lower && (i-lower)%stride == 0 && (length < 0 || (i-lower)/stride < length) {
			meant = append(meant, d)
		}
	}
	return o.spaced(append(tokens, "]")...), meant
}

func newOracle(t *rapid.T, host bool) *oracle {
	o := &oracle{T: t, host: host}
	some := func(label string, from []string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID[string]).Draw(t, label)
	}
	for k := range rapid.IntRange(0, 6).Draw(t, "devices") {
		o.devices = append(o.devices, Device{
			Number: k, Kinds: some("kinds", []string{"nohost", "cpu", "gpu"}),
			ISAs: some("isas", few), Archs: some("archs", few), Vendors: some("vendors", few), UID: fmt.Sprint("u", k),
		})
	}
	o.all = 1<<len(o.devices) - 1
	return o
}

func TestAvailableDevicesAgreeWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOracle(t, false)
		var texts []string
		var want []int
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			text, meant := o.item()
			texts = append(texts, text)
			for _, d := range meant {
				if !slices.Contains(want, d) {
					want = append(want, d)
				}
			}
		}
		text := o.spaced(strings.Join(texts, ","), "")
		a, err := ParseAvailable(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := a.Devices(o.devices); !slices.Equal(got, want) {
			t.Fatalf("%s: devices %v, want %v", text, got, want)
		}
		again, err := ParseAvailable(a.String())
		if err != nil || !slices.Equal(again.Devices(o.devices), want) || again.String() != a.String() {
			t.Fatalf("%s is %s, read again %v, %v", text, a, again, err)
		}
	})
}

func TestDefaultDevicesAgreeWithTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOracle(t, true)
		var texts []string
		choice, device := ChooseNone, 0
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			var text string
			var meant []int
			kind := ChooseDevice
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				n := rapid.IntRange(0, 8).Draw(t, "number")
				if text = fmt.Sprint(n); n < len(o.devices) {
					meant = []int{n}
				}
			case 1:
				text = o.caseless(rapid.SampledFrom([]string{"initial", "invalid", "default"}).Draw(t, "word"))
				meant = []int{0}
				kind = map[byte]Choice{'l': ChooseInitial, 'd': ChooseInvalid, 't': ChooseDefault}[strings.ToLower(text)[len(text)-1]]
			default:
				text, meant = o.item()
			}
			texts = append(texts, text)
			if choice == ChooseNone && len(meant) > 0 {
				choice, device = kind, meant[0]
			}
		}
		text := strings.Join(texts, o.spaced("", ",", ""))
		d, err := ParseDefault(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if c, k := d.Choose(o.devices); c != choice || k != device {
			t.Fatalf("%s: choice %d, device %d; want %d, %d", text, c, k, choice, device)
		}
		again, err := ParseDefault(d.String())
		if err != nil || again.String() != d.String() {
			t.Fatalf("%s is %s, read again %v, %v", text, d, again, err)
		}
		if c, k := again.Choose(o.devices); c != choice || k != device {
			t.Fatalf("%s: choice %d, device %d; want %d, %d", d, c, k, choice, device)
		}
	})
}
