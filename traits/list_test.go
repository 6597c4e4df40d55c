package traits

import (
	"slices"
	"strings"
	"testing"
)

// machine has two GPUs of vendor A, two of B, a software device of B, and the host.
var machine = []Device{
	{Number: 0, Kinds: []string{"nohost", "gpu"}, Vendors: []string{"A"}, Archs: []string{"spirv", "aa"}, ISAs: []string{"shaderInt64"}, UID: "uid-gpu1"},
	{Number: 1, Kinds: []string{"nohost", "gpu"}, Vendors: []string{"B", "B driver"}, Archs: []string{"spirv", "bb"}, ISAs: []string{"shaderInt64", "shaderFloat64"}, UID: "uid-gpu2"},
	{Number: 2, Kinds: []string{"nohost", "gpu"}, Vendors: []string{"a"}, Archs: []string{"spirv", "aa"}, ISAs: []string{"shaderFloat64"}, UID: "uid-gpu3"},
	{Number: 3, Kinds: []string{"nohost", "gpu"}, Vendors: []string{"B"}, Archs: []string{"spirv", "bb"}, UID: "uid-gpu4"},
	{Number: 4, Kinds: []string{"nohost", "cpu"}, Vendors: []string{"B"}, Archs: []string{"spirv"}, UID: "uid-cpu"},
	{Number: 5, Kinds: []string{"host", "cpu"}, UID: "host"},
}

func numbers(indices []int) string {
	var b strings.Builder
	for _, i := range indices {
		b.WriteByte('0' + byte(i))
	}
	return b.String()
}

// The examples of the traits chapter of the OpenMP examples document.
func TestAvailableDevicesAreNumberedItemByItem(t *testing.T) {
	for text, want := range map[string]string{
		"*":                      "01234",
		"kind(gpu)":              "0123",
		"kind(GPU)":              "0123",
		"kind(any)":              "01234",
		"kind(nohost)":           "01234",
		"kind(fpga)":             "",
		"!kind(gpu)":             "4",
		"!!kind(gpu)":            "0123",
		"kind(gpu)&&vendor(A),*": "02134",
		"!kind(gpu)&&vendor(b)":  "4",
		"(kind(gpu)&&vendor(A))[0],(kind(gpu)&&vendor(B))[0:2],*": "01324",
		"uid(uid-gpu3),uid(UID-GPU2),uid(uid-gpu1)":               "210",
		`vendor("b driver"),arch(bb)`:                             "13",
		"arch(aa)||arch(bb)":                                      "0123",
		"isa(shaderFloat64)&&isa(shaderInt64)":                    "1",
		"(isa(shaderfloat64)||isa(shaderint64))&&!vendor(A)":      "1",
		"!(isa(shaderFloat64)||isa(shaderInt64)),!(!vendor(A)),*": "34021",
		"vendor(nobody),uid(host)":                                "",
		"kind(cpu)":                                               "4",
		"*[4],*[0]":                                               "40",
		"*[5]":                                                    "",
		"*[5],*[1]":                                               "1",
		"*[2147483647]":                                           "",
		"*[1:2]":                                                  "12",
		"*[3:9]":                                                  "34",
		"*[:2]":                                                   "01",
		"*[3:]":                                                   "34",
		"*[:]":                                                    "01234",
		"*[2:0]":                                                  "",
		"*[5:2]":                                                  "",
		"*[::2]":                                                  "024",
		"*[1::2]":                                                 "13",
		"*[::3],*":                                                "03124",
		"*[1:2:2]":                                                "13",
		"*[1:3:3]":                                                "14",
		"*[0:2147483647:2147483647]":                              "0",
		"!kind(gpu)[0]":                                           "4",
		"vendor(B)[2],vendor(B)":                                  "413",
		"kind(gpu)[0],kind(gpu)[0]":                               "0", // the subscript counts what is taken
		"kind(gpu)[0],kind(gpu)[1]":                               "01",
		"kind(gpu),kind(gpu),*,*":                                 "01234",
	} {
		a, err := ParseAvailable(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := numbers(a.Devices(machine[:5])); got != want {
			t.Errorf("%s: devices %s, want %s", text, got, want)
		}
	}
	a, err := ParseAvailable("*,kind(gpu)[0]")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Devices(nil); len(got) != 0 {
		t.Errorf("of no devices: %v", got)
	}
}

func TestDefaultDeviceIsTheFirstThatMatches(t *testing.T) {
	for _, c := range []struct {
		text   string
		choice Choice
		device int
	}{
		{"0", ChooseDevice, 0},
		{"5", ChooseDevice, 5},
		{"6", ChooseNone, 0},
		{"6,3", ChooseDevice, 3},
		{"kind(gpu)", ChooseDevice, 0},
		{"kind(gpu)[1]", ChooseDevice, 1},
		{"kind(gpu)[2:2]", ChooseDevice, 2},
		{"kind(gpu)[4]", ChooseNone, 0},
		{"kind(gpu)[4],kind(cpu)", ChooseDevice, 4},
		{"kind(cpu)[1]", ChooseDevice, 5},
		{"kind(host)", ChooseDevice, 5},
		{"uid(host)", ChooseDevice, 5},
		{"!kind(nohost)", ChooseDevice, 5},
		{"!device_num(0)", ChooseDevice, 1},
		{"device_num(5)", ChooseDevice, 5},
		{"device_num(6)", ChooseNone, 0},
		{"device_num(3)||device_num(2)", ChooseDevice, 2},
		{"kind(gpu)&&vendor(A),initial", ChooseDevice, 0},
		{"kind(gpu)&&vendor(C),initial", ChooseInitial, 0},
		{"kind(gpu)&&vendor(C),invalid", ChooseInvalid, 0},
		{"kind(gpu)&&vendor(C),default", ChooseDefault, 0},
		{"kind(gpu)&&vendor(C)", ChooseNone, 0},
		{"initial,kind(gpu)", ChooseInitial, 0},
	} {
		d, err := ParseDefault(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if choice, device := d.Choose(machine); choice != c.choice || device != c.device {
			t.Errorf("%s: choice %d, device %d; want %d, %d", c.text, choice, device, c.choice, c.device)
		}
	}
}

func TestOnlyOneNumberIsANumber(t *testing.T) {
	for text, want := range map[string]int{"0": 0, " 77 ": 77, "1,2": -1, "device_num(1)": -1, "initial": -1} {
		d, err := ParseDefault(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := d.Number(); ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
}

// A device's own traits select it.
func TestTraitsOfADeviceAreExpressions(t *testing.T) {
	d := &machine[1]
	const want = `kind(nohost) kind(gpu) vendor(B) vendor("B driver") arch(spirv) arch(bb) isa(shaderInt64) isa(shaderFloat64) uid(uid-gpu2)`
	if got := d.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	a, err := ParseAvailable(strings.NewReplacer(") ", ")&&").Replace(want))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Devices(machine); !slices.Equal(got, []int{1}) {
		t.Errorf("devices %v", got)
	}
}
