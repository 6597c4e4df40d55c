package vktest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/clibrary"
)

// Layers puts layers of tests/layers between the driver and the runtimes that the test opens:
// "manyqueue", "shuffle" or "record", the first nearest to the program. It compiles them unless
// an earlier test has, which needs gcc and the package libvulkan-dev. The caller sets the
// environment variables that they read.
func Layers(t testing.TB, layers ...string) {
	t.Helper()
	// The loader orders layers as it finds them, whatever VK_INSTANCE_LAYERS says. Validation, if
	// the test uses it, is nearest to the program.
	folders := []string{"/usr/share/vulkan/explicit_layer.d", "/usr/local/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"}
	var names []string
	for _, layer := range layers {
		folder := t.TempDir()
		folders = append(folders, folder)
		library := filepath.Join(folder, "lib"+layer+".so")
		clibrary.Build(t, library, layerSources(t, layer)...)
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

// layerSources returns the arguments with which a layer is compiled.
func layerSources(t testing.TB, layer string) []string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "..", "layers")
	parts, err := filepath.Glob(filepath.Join(folder, layer+"_*.c"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"-O1", "-pthread", "-fvisibility=hidden",
		filepath.Join(folder, "layer.c"), filepath.Join(folder, "map.c"), filepath.Join(folder, layer+".c")}, parts...)
}
