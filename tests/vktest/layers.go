package vktest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/clibrary"
	"github.com/vkomp/vkomp/vk"
)

// Layers puts layers of tests/layers between the driver and the runtimes that the test opens:
// "manyqueue", "shuffle", "record" or "discrete" (see Discrete), the first nearest to the program. It compiles them unless
// an earlier test has, which needs gcc and the package libvulkan-dev. The caller sets the
// environment variables that they read.
func Layers(t testing.TB, layers ...string) {
	t.Helper()
	putLayers(t, layers, nil, nil)
}

// Recorded puts the layer "record" between the runtimes that the test opens and the layers of the
// environment, and returns the path of its log. The driver must have one device.
func Recorded(t testing.TB) (log string) {
	t.Helper()
	var folders, names []string
	if given := os.Getenv("VK_INSTANCE_LAYERS"); given != "" {
		names = strings.Split(given, ":")
		folders = filepath.SplitList(os.Getenv("VK_LAYER_PATH"))
	}
	putLayers(t, []string{"record"}, folders, names)
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv("VKOMP_RECORD", log)
	return log
}

// putLayers is Layers with others below them, which are in folders of their own.
func putLayers(t testing.TB, layers, foldersBelow, below []string) {
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
	t.Setenv("VK_LAYER_PATH", strings.Join(slices.Concat(folders, foldersBelow), ":"))
	t.Setenv("VK_INSTANCE_LAYERS", strings.Join(slices.Concat(names, below), ":"))
}

// Discrete shows the driver as a device with memory of its own: in the shape of a profile of the
// discrete layer, whose source lists them, and with other layers below that. The caller sets the
// other variables that the layer reads. The test is skipped where a driver has such memory itself,
// which no layer can show as another's, and where Once skips it.
func Discrete(t testing.TB, profile string, below ...string) {
	t.Helper()
	Once(t)
	i, err := vk.Open(vk.InstanceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range i.PhysicalDevices() {
		const all = vk.MemoryDeviceLocal | vk.MemoryHostVisible | vk.MemoryHostCoherent | vk.MemoryHostCached
		unified := func(m vk.MemoryType) bool { return m.Flags&all == all }
		if len(p.Missing()) == 0 && !slices.ContainsFunc(p.Properties().MemoryTypes, unified) {
			defer t.Skipf("the memory of %s is not the host's", p.Properties().Name)
		}
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	Layers(t, append([]string{"discrete"}, below...)...)
	t.Setenv("VKOMP_DISCRETE_PROFILE", profile)
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
