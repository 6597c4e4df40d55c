//go:build cgo

package vk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/clibrary"
)

// compile builds a shared library from C sources; compiler options may be among them.
func compile(t *testing.T, sources ...string) (library string) {
	t.Helper()
	library = filepath.Join(t.TempDir(), "library.so")
	clibrary.Build(t, library, append([]string{"-Wall", "-Werror", "-I."}, sources...)...)
	return library
}

// Drivers are often installed for devices that the machine does not have.
func TestDriverWithoutDeviceIsNoDriver(t *testing.T) {
	useDriver(t, compile(t, "testdata/nodevice/driver.c"))
	i, err := Open(InstanceOptions{})
	if err == nil {
		// A loader may create an instance that has no device.
		if n := len(i.PhysicalDevices()); n != 0 {
			t.Errorf("%d devices of a driver that has none", n)
		}
		i.Close()
		return
	}
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// Loaders differ in what they say of a manifest that is no JSON: some that there is no driver, some
// that memory is lacking.
func TestDamagedManifestIsNamedAsACause(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "driver.json")
	if err := os.WriteFile(manifest, []byte(`{"file_format_version": "1.0.0", "ICD": {`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(variable, manifest)
	}
	i, err := Open(InstanceOptions{})
	if err == nil {
		i.Close()
		t.Fatal("an instance without a driver")
	}
	if !errors.Is(err, ErrUnsupported) && !strings.Contains(err.Error(), "manifest") {
		t.Errorf("error %v", err)
	}
}
