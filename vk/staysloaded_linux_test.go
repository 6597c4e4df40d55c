//go:build cgo

package vk

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// driverLibrary returns the library of the first driver under test.
func driverLibrary(t *testing.T) string {
	t.Helper()
	manifests := filepath.SplitList(os.Getenv("VK_DRIVER_FILES"))
	if len(manifests) == 0 {
		var err error
		if manifests, err = filepath.Glob("/usr/share/vulkan/icd.d/lvp_icd*.json"); err != nil || len(manifests) == 0 {
			t.Fatalf("no manifest of a driver (%v)", err)
		}
	}
	text, err := os.ReadFile(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		ICD struct {
			Library string `json:"library_path"`
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	// A path is relative to the manifest, a bare name is searched for by the system.
	if library := manifest.ICD.Library; strings.Contains(library, "/") && !filepath.IsAbs(library) {
		return filepath.Join(filepath.Dir(manifests[0]), library)
	}
	return manifest.ICD.Library
}

// useDriver makes the loader use only the driver in that library.
func useDriver(t *testing.T, library string) {
	t.Helper()
	manifest := filepath.Join(filepath.Dir(library), "driver.json")
	text := fmt.Sprintf(`{"file_format_version": "1.0.0", "ICD": {"library_path": %q, "api_version": "1.3.0"}}`, library)
	if err := os.WriteFile(manifest, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(variable, manifest)
	}
}

// The driver refuses to be loaded a 30th time. The loader loads and unloads it for each
// instance and for queries of its extensions.
func TestDriverIsLoadedOnce(t *testing.T) {
	t.Setenv("VKOMP_TEST_DRIVER", driverLibrary(t))
	useDriver(t, compile(t, "testdata/refusing/driver.c"))
	for round := range 40 {
		i, err := Open(InstanceOptions{})
		if err != nil {
			t.Fatalf("opening %d: %v", round+1, err)
		}
		d, err := usable(t, i).Open(DeviceOptions{})
		if err == nil {
			err = d.Close()
		}
		if err != nil {
			t.Fatalf("opening %d: %v", round+1, err)
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
