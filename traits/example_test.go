package traits_test

import (
	"fmt"

	"github.com/vkomp/vkomp/traits"
)

var devices = []traits.Device{
	{Number: 0, Kinds: []string{"nohost", "gpu", "integrated"}, Vendors: []string{"intel"}, UID: "a"},
	{Number: 1, Kinds: []string{"nohost", "gpu", "discrete"}, Vendors: []string{"nvidia"}, UID: "b"},
	{Number: 2, Kinds: []string{"nohost", "cpu", "software"}, Vendors: []string{"mesa"}, UID: "c"},
	{Number: 3, Kinds: []string{"host", "cpu"}, UID: "host"},
}

func ExampleParseAvailable() {
	list, err := traits.ParseAvailable("kind(gpu) && !vendor(intel), *")
	fmt.Println(list, err)
	fmt.Println(list.Devices(devices[:3]))

	_, err = traits.ParseAvailable("kind(gpu) && vendor(amd) || vendor(nvidia)")
	fmt.Println(err)
	// Output:
	// kind(gpu)&&!vendor(intel),* <nil>
	// [1 0 2]
	// "kind(gpu) && vendor(amd) || vendor(nvidia)": byte 25, at "|| vendor(nvidia"…: want parentheses where both && and || are used
}

func ExampleParseDefault() {
	list, err := traits.ParseDefault("vendor(amd), kind(gpu)[1], initial")
	fmt.Println(list, err)
	choice, device := list.Choose(devices)
	fmt.Println(choice == traits.ChooseDevice, devices[device].UID)
	// Output:
	// vendor(amd),kind(gpu)[1],initial <nil>
	// true b
}
