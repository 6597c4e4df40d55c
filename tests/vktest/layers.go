package vktest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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
		compiled, err := compiledLayer(layer)
		if err != nil {
			t.Fatalf("layer %s: %v", layer, err)
		}
		code, err := os.ReadFile(compiled)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		folders = append(folders, folder)
		// A copy, because the state of a loaded library stays: each test gets its own.
		library := filepath.Join(folder, "lib"+layer+".so")
		if err := os.WriteFile(library, code, 0o755); err != nil {
			t.Fatal(err)
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

// compiledLayer returns the path of a layer's library. Libraries are kept in .cache/test-layers
// under the hash of their sources, because compiling one takes longer than most tests.
func compiledLayer(layer string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	sources := filepath.Join(filepath.Dir(file), "..", "layers")
	files := []string{filepath.Join(sources, "layer.c"), filepath.Join(sources, "map.c"), filepath.Join(sources, layer+".c")}
	parts, err := filepath.Glob(filepath.Join(sources, layer+"_*.c"))
	if err != nil {
		return "", err
	}
	files = append(files, parts...)
	headers, err := filepath.Glob(filepath.Join(sources, "*.h"))
	if err != nil {
		return "", err
	}
	flags := []string{"-std=c11", "-O1", "-fPIC", "-pthread", "-fvisibility=hidden", "-shared"}
	hash := sha256.New()
	fmt.Fprintln(hash, flags)
	for _, name := range append(headers, files...) {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, filepath.Base(name), len(text))
		hash.Write(text)
	}
	folder := filepath.Join(sources, "..", "..", ".cache", "test-layers")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	library := filepath.Join(folder, fmt.Sprintf("lib%s-%x.so", layer, hash.Sum(nil)[:8]))
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	// Tests of other packages may compile the same layer; the last one to finish replaces the
	// others.
	unfinished, err := os.CreateTemp(folder, layer+"-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return "", err
	}
	args := append(append(flags, "-o", unfinished.Name()), files...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return library, os.Rename(unfinished.Name(), library)
}
