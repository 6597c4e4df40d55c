package vkomp_test

import (
	"errors"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

func TestKernelWithoutHostVariantSaysWhyThereIsNoDevice(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		// driver is the manifest of the only driver, "" for those of the tests.
		driver string // manifest of the only driver, "" for the drivers under test
		want   string // a regular expression
	}{
		{name: "no driver", driver: "absent.json", want: "and there is no other: .*Vulkan"},
		{name: "disabled", env: []string{"OMP_TARGET_OFFLOAD", "disabled"}, want: "and there is no other: OMP_TARGET_OFFLOAD is disabled"},
		{name: "none available", env: []string{"OMP_AVAILABLE_DEVICES", "uid(nobody)"}, want: `and there is no other: OMP_AVAILABLE_DEVICES is uid\(nobody\), which none of \d+ devices matches`},
		{name: "mandatory", env: []string{"OMP_TARGET_OFFLOAD", "mandatory"}, driver: "absent.json", want: "OMP_TARGET_OFFLOAD is mandatory, and there is no non-host device: .*Vulkan"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.driver != "" {
				for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
					t.Setenv(variable, filepath.Join(t.TempDir(), c.driver))
				}
			}
			var o vkomp.Options
			within(c.env...)(&o)
			rt, err := vkomp.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer rt.Close()
			// The kernel of package shaders has a Host variant.
			kernel := newKernel(t, rt, vkomp.KernelSource{Name: "saxpy", SPIRV: shaders.Saxpy.SPIRV})
			x, y := ramp(4), ramp(4)
			region, err := shaders.SaxpyTarget(kernel, 2, x, y)
			if err != nil {
				t.Fatal(err)
			}
			err = rt.Target(t.Context(), region)
			if !errors.Is(err, vkomp.ErrUnsupported) && !errors.Is(err, vkomp.ErrInvalidDevice) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("error %v\nwant %q in it", err, c.want)
			}
		})
	}
}
