package vktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Layers puts layers of tests/layers between the driver and the runtimes that the test
// opens, "manyqueue", "shuffle" or "record", the first nearest to the program. It
// compiles them, which takes gcc and the package libvulkan-dev; what they read of the
// environment is the caller's to set.
func Layers(t testing.TB, layers ...string) {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	sources := filepath.Join(filepath.Dir(file), "..", "layers")
	// The loader puts layers in the order in which it finds them, whatever
	// VK_INSTANCE_LAYERS says. Validation, which the test may ask for, is nearest.
	folders := []string{"/usr/share/vulkan/explicit_layer.d", "/usr/local/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"}
	var names []string
	for _, layer := range layers {
		folder := t.TempDir()
		folders = append(folders, folder)
		files := []string{filepath.Join(sources, "layer.c"), filepath.Join(sources, "map.c"), filepath.Join(sources, layer+".c")}
		more, err := filepath.Glob(filepath.Join(sources, layer+"_*.c"))
		if err != nil {
			t.Fatal(err)
		}
		library := filepath.Join(folder, "lib"+layer+".so")
		args := append([]string{"-std=c11", "-O1", "-fPIC", "-pthread", "-fvisibility=hidden", "-shared", "-o", library}, append(files, more...)...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("layer %s: %v\n%s", layer, err, out)
		}
		name := "VK_LAYER_VKOMP_" + layer
		text := fmt.Sprintf(`{"file_format_version": "1.1.2", "layer": {"name": %q, "type": "GLOBAL", "library_path": %q,
			"api_version": "1.3.0", "implementation_version": "1", "description": "for tests"}}`, name, library)
		if err := os.WriteFile(filepath.Join(folder, layer+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	t.Setenv("VK_LAYER_PATH", strings.Join(folders, ":"))
	t.Setenv("VK_INSTANCE_LAYERS", strings.Join(names, ":"))
}
