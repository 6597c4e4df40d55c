package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vkomp/vkomp/tests/vktest"
)

func TestRoomsImportOnlyWhatTheLayoutAllows(t *testing.T) {
	files := moduleFiles(t)
	for _, breach := range breaches(files) {
		t.Error(breach)
	}

	// Check that the walk has seen the module: its root and the package with C code.
	for _, want := range []string{".", "vk", "timeline", "tests"} {
		if !slices.ContainsFunc(files, func(f sourceFile) bool { return roomOf(parent(f.path)) == want }) {
			t.Errorf("no file of room %s among the %d files read", want, len(files))
		}
	}
	if !slices.ContainsFunc(files, func(f sourceFile) bool { return slices.Contains(f.imports, "C") }) {
		t.Error("no file with cgo among those read, though vk has some: build tags must not hide files")
	}
}

// An application that imports vkomp links these modules, and vkomp-demo links those: each of them
// can run code when a program starts.
func TestProgramsHoldTheseModulesOnly(t *testing.T) {
	vktest.Once(t)
	for _, c := range []struct {
		program string
		want    []string
	}{
		{".", []string{module, vulkanGo, xsync}},
		{"./cmd/vkomp-demo", []string{
			module, module + "/cmd/vkomp-demo", "github.com/alecthomas/kong", "github.com/mitchellh/colorstring", "github.com/rivo/uniseg",
			"github.com/schollz/progressbar/v3", vulkanGo, xsync, "golang.org/x/sys", "golang.org/x/term",
		}},
	} {
		list := exec.Command(vktest.GoTool(t), "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", c.program)
		list.Dir, list.Stderr = "..", os.Stderr
		printed, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(string(printed))
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, slices.Compact(got)); diff != "" {
			t.Errorf("modules of %s (-want +got):\n%s", c.program, diff)
		}
	}
}

func TestBreachesOfTheLayoutAreReported(t *testing.T) {
	const ours = module + "/"
	file := func(path string, imports ...string) sourceFile {
		return sourceFile{path: path, test: strings.HasSuffix(path, "_test.go"), imports: imports}
	}
	for _, c := range []struct {
		name string
		file sourceFile
		want string // "" when allowed
	}{
		{"leaf imports a room", file("timeline/a.go", ours+"memory"), "timeline/a.go: room timeline may not import room memory"},
		{"leaf imports third party", file("timeline/a.go", xsync+"/errgroup"), "timeline/a.go: room timeline may not import golang.org/x/sync/errgroup"},
		{"pure room imports vk", file("memory/heap.go", ours+"vk"), "memory/heap.go: room memory may not import room vk"},
		{"pure room imports a part of vk", file("tasks/a.go", ours+"vk/spirv"), "tasks/a.go: room tasks may not import room vk"},
		{"pure room's sibling", file("tasks/a.go", ours+"memory"), "tasks/a.go: room tasks may not import room memory"},
		{"vk imports sched", file("vk/a.go", ours+"sched"), "vk/a.go: room vk may not import room sched"},
		{"sched imports interop", file("sched/a.go", ours+"interop"), "sched/a.go: room sched may not import room interop"},
		{"core room imports the root", file("interop/a.go", module), "interop/a.go: room interop may not import room ."},
		{"tests of a core room import the root", file("sched/a_test.go", module), "sched/a_test.go: room sched may not import room ."},
		{"root imports shaders", file("a.go", ours+"shaders"), "a.go: room . may not import room shaders"},
		{"root imports the test helper", file("a.go", ours+"tests/vktest"), "a.go: room . may not import room tests/vktest"},
		{"demo imports the test helper", file("cmd/vkomp-demo/a.go", ours+"tests/vktest"), "cmd/vkomp-demo/a.go: room cmd may import room tests/vktest in tests alone"},
		{"demo imports the check of traces", file("cmd/vkomp-demo/a.go", ours+"tests/tracecheck"), "cmd/vkomp-demo/a.go: room cmd may import room tests/tracecheck in tests alone"},
		{"somebody imports the demo", file("tests/a.go", ours+"cmd/vkomp-demo"), "tests/a.go: room tests may not import room cmd"},
		{"vulkan-go outside vk", file("sched/a.go", vulkanGo), "sched/a.go: room sched may not import " + vulkanGo},
		{"vulkan-go in a free room", file("cmd/vkomp-demo/a.go", vulkanGo), "cmd/vkomp-demo/a.go: room cmd may not import " + vulkanGo},
		{"third party in the core", file("sched/a.go", "github.com/alecthomas/kong"), "sched/a.go: room sched may not import github.com/alecthomas/kong"},
		{"a longer name is another module", file("memory/a.go", xsync+"hronous"), "memory/a.go: room memory may not import " + xsync + "hronous"},
		{"test library in the core", file("tasks/a.go", "pgregory.net/rapid"), "tasks/a.go: room tasks may not import pgregory.net/rapid"},
		{"cgo in a core room", file("sched/a.go", "C"), "sched/a.go: cgo outside vk and the test layers"},
		{"cgo in the demo", file("cmd/vkomp-demo/a.go", "C"), "cmd/vkomp-demo/a.go: cgo outside vk and the test layers"},
		{"somebody imports the demo's plain Vulkan", file("tests/a.go", ours+"cmd/vkomp-demo/rawvulkan"), "tests/a.go: room tests may not import room cmd/vkomp-demo/rawvulkan"},
		{"plain Vulkan imports vkomp", file("cmd/vkomp-demo/rawvulkan/a.go", module), "cmd/vkomp-demo/rawvulkan/a.go: room cmd/vkomp-demo/rawvulkan may not import room ."},
		{"C source in a core room", sourceFile{path: "memory/a.c", c: true}, "memory/a.c: C source outside vk and the test layers"},
		{"exporters import the scheduler", file("ompt/trace/a.go", ours+"sched"), "ompt/trace/a.go: room ompt/trace may not import room sched"},
		{"exporters import the root", file("ompt/trace/a.go", module), "ompt/trace/a.go: room ompt/trace may not import room ."},
		{"root imports the exporters", file("a.go", ours+"ompt/trace"), "a.go: room . may not import room ompt/trace"},
		{"tool interface imports the exporters", file("ompt/a.go", ours+"ompt/trace"), "ompt/a.go: room ompt may not import room ompt/trace"},
		{"unknown room", file("helpers/a.go"), "helpers/a.go: lies in no room of the layout"},
		{"import of an unknown room", file("a.go", ours+"helpers"), "a.go: imports " + ours + "helpers, which lies in no room of the layout"},

		{"root imports the core", file("a.go", ours+"timeline", ours+"tasks", ours+"memory", ours+"ompt", ours+"vk", ours+"vk/spirv", ours+"sched", ours+"interop", xsync+"/singleflight", "fmt"), ""},
		{"sched imports the core below it", file("sched/a.go", ours+"timeline", ours+"tasks", ours+"memory", ours+"ompt", ours+"vk"), ""},
		{"vk imports its own parts, cgo, vulkan-go", file("vk/a.go", ours+"vk/spirv", "C", vulkanGo), ""},
		{"C in vk and the layers", sourceFile{path: "tests/layers/a.c", c: true}, ""},
		{"the core takes x/sync", file("memory/a.go", xsync+"/errgroup"), ""},
		{"a room's outside test imports it", file("tasks/a_test.go", ours+"tasks", "pgregory.net/rapid"), ""},
		{"root's tests run shipped kernels", file("a_test.go", module, ours+"shaders", ours+"tests/vktest"), ""},
		{"shaders' tests reflect on their modules", file("shaders/a_test.go", ours+"vk/spirv"), ""},
		{"shaders do not", file("shaders/a.go", ours+"vk/spirv"), "shaders/a.go: room shaders may not import room vk"},
		{"exporters import the tool interface", file("ompt/trace/a.go", ours+"ompt"), ""},
		{"exporters' tests trace a runtime", file("ompt/trace/a_test.go", ours+"ompt/trace", module, ours+"shaders", ours+"tests/tracecheck"), ""},
		{"the demo's plain Vulkan", file("cmd/vkomp-demo/rawvulkan/a.go", ours+"vk", "C"), ""},
		{"demo imports its plain Vulkan", file("cmd/vkomp-demo/a.go", ours+"cmd/vkomp-demo/rawvulkan"), ""},
		{"demo imports the exporters", file("cmd/vkomp-demo/a.go", ours+"ompt/trace"), ""},
		{"the edges", file("cmd/vkomp-demo/a.go", module, ours+"shaders", "github.com/alecthomas/kong"), ""},
		{"the adapter", file("interop/vgpu/a.go", module, "C"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, breaches([]sourceFile{c.file})); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

// moduleFiles reads the imports of all Go files, and the names of all C and assembly files, below
// the repository's root, regardless of build tags and including nested modules.
func moduleFiles(t *testing.T) []sourceFile {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var files []sourceFile
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// The go tool ignores these too.
			if name := entry.Name(); path != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go":
		case ".c", ".h", ".cc", ".cpp", ".hpp", ".cxx", ".m", ".s", ".S":
			files = append(files, sourceFile{path: path, c: true})
			return nil
		default:
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := sourceFile{path: path, test: strings.HasSuffix(path, "_test.go")}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			file.imports = append(file.imports, imported)
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
