package tests

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/vkomp/vkomp"

// room is a folder of the module, including folders below it that are not rooms themselves, with
// the packages that its files may import. A room may always import itself.
type room struct {
	// imports lists rooms; the root is ".".
	imports []string
	// thirdParty lists prefixes of import paths; nil forbids all imports from other modules.
	// Samples and tests use free instead.
	thirdParty []string
	// free allows all imports.
	free bool
	// cgo allows C, as import "C" and as source files.
	cgo bool
}

const xsync = "golang.org/x/sync"

// rooms is the layout of the project.
var rooms = map[string]room{
	"timeline": {},
	"traits":   {},
	"tasks":    {imports: []string{"timeline", "internal/invariants", "internal/lockrank"}, thirdParty: []string{xsync}},
	"memory":   {imports: []string{"timeline", "internal/invariants", "internal/lockrank"}, thirdParty: []string{xsync}},
	"ompt":     {imports: []string{"timeline"}, thirdParty: []string{xsync}},
	// The order in which locks are taken.
	"internal/lockrank": {},
	// What drivers have compiled, from run to run.
	"internal/pipelinefile": {},
	// Whether tests have the runtime check its own state.
	"internal/invariants": {},
	// Counts that many goroutines change at once.
	"internal/striped": {},
	// Layout of pictures of task graphs.
	"internal/layered": {},
	// The exporters are tools like others: they see of the runtime only what ompt reports.
	"ompt/trace": {imports: []string{"ompt", "internal/layered"}},
	"vk":         {imports: []string{"internal/lockrank", "internal/mutant", "timeline"}, thirdParty: []string{xsync, vulkanGo}, cgo: true},
	"sched":      {imports: []string{"internal/invariants", "internal/lockrank", "timeline", "tasks", "memory", "ompt", "vk", "sched/allocation", "sched/construct", "sched/kernel", "sched/order", "sched/pipeline", "sched/protect", "sched/trace", "sched/transfer", "internal/mutant"}, thirdParty: []string{xsync}},
	// Concepts that know nothing of the scheduler.
	"sched/allocation": {imports: []string{"internal/invariants", "internal/lockrank", "timeline", "memory", "vk", "sched/order"}},
	"sched/construct":  {imports: []string{"tasks", "ompt"}},
	"sched/host":       {imports: []string{"internal/lockrank", "tasks", "sched/construct", "sched/protect"}},
	"sched/kernel":     {imports: []string{"vk"}},
	"sched/order":      {imports: []string{"timeline", "vk", "internal/mutant"}},
	"sched/pipeline":   {imports: []string{"internal/lockrank", "internal/striped", "vk", "sched/kernel", "sched/protect"}},
	"sched/protect":    {},
	"sched/trace":      {imports: []string{"internal/lockrank", "ompt", "vk", "sched/construct", "sched/order", "sched/protect"}},
	"sched/transfer":   {imports: []string{"tasks", "memory", "ompt", "vk", "sched/allocation", "sched/construct", "sched/kernel", "sched/order", "sched/protect", "sched/trace", "internal/mutant"}},
	// A device for tests of the rooms.
	"sched/internal/softdevice": {imports: []string{"timeline", "vk", "sched/order"}},
	// Defects to show that tests notice them.
	"internal/mutant": {},
	"interop":         {imports: []string{"internal/foreign", "vk"}},
	// What interop objects are made of: the order of foreign work and tasks.
	"internal/foreign": {imports: []string{"internal/lockrank", "timeline", "sched", "sched/construct", "sched/protect", "tasks", "memory", "ompt", "vk"}, thirdParty: []string{xsync}},
	// The stream of events and its listeners.
	"internal/observe":       {imports: []string{"sched", "sched/construct", "tasks", "memory", "ompt", "sched/transfer"}},
	"internal/observe/tool":  {imports: []string{"internal/lockrank", "internal/observe", "sched", "sched/construct", "sched/protect", "sched/trace", "tasks", "memory", "ompt", "vk"}},
	"internal/observe/races": {imports: []string{"internal/lockrank", "internal/observe", "sched", "sched/construct", "tasks", "memory", "ompt", "sched/transfer"}},
	// gogpu/naga turns WGSL into SPIR-V.
	".":       {imports: []string{"internal/invariants", "internal/lockrank", "internal/striped", "timeline", "traits", "sched", "sched/construct", "sched/host", "sched/kernel", "sched/protect", "tasks", "memory", "ompt", "vk", "interop", "internal/foreign", "internal/layered", "internal/pipelinefile", "internal/observe", "internal/observe/tool", "internal/observe/races", "sched/transfer"}, thirdParty: []string{xsync, "github.com/gogpu/naga"}},
	"shaders": {imports: []string{"."}},

	"interop/vgpu": {free: true, cgo: true},
	"cmd":          {free: true},
	"tests":        {free: true},
	"tests/layers": {free: true, cgo: true},
	"tests/vktest": {free: true},
	// C libraries for tests of every room, vk among them, which tests/vktest imports.
	"tests/clibrary": {},
	// The order checker, and the cost model that the demo prints; they know a run by its log alone.
	"tests/order": {imports: []string{"vk"}},
	// The check of traces is for tests of packages that write traces.
	"tests/tracecheck": {},
	// Plain Vulkan that the demo measures vkomp beside.
	"cmd/vkomp-demo/rawvulkan": {imports: []string{"vk"}, cgo: true},
	// Foreign Vulkan code: it knows vkomp only by its interop objects.
	"tests/foreign": {imports: []string{"interop", "vk"}, cgo: true},
}

const vulkanGo = "github.com/vulkan-go/vulkan"

// onlyIn lists who may import packages that even free rooms may not.
var onlyIn = map[string][]string{
	vulkanGo:                   {"vk"},
	".":                        {"cmd", "shaders", "tests", "tests/layers", "interop/vgpu", "tests/vktest"},
	"cmd":                      {},
	"tests":                    {},
	"cmd/vkomp-demo/rawvulkan": {"cmd"},
	// The runtime does not contain the exporters.
	"ompt/trace": {"cmd", "tests"},
}

// testImports lists what test files of a room may import in addition; "*" stands for every room.
// A test in a package of its own uses a room from outside: the root's examples run the kernels of
// package shaders, whose tests compare shader sources with the reflected modules.
var testImports = map[string][]string{
	"*":                {"tests/vktest", "tests/clibrary"},
	"sched":            {"sched/host"},
	"sched/allocation": {"sched/internal/softdevice"},
	"sched/transfer":   {"sched/internal/softdevice", "timeline"},
	// A fake device takes submissions.
	"sched/trace": {"timeline"},
	".":           {"shaders", "tests/foreign"},
	"shaders":     {"vk"},
	// Objects as programs see them.
	"internal/foreign": {"interop"},
	// Its example traces a runtime.
	"ompt/trace": {".", "shaders", "tests/tracecheck"},
}

// testLibraries lists modules that test files of every room may import.
var testLibraries = []string{
	"github.com/cockroachdb/datadriven", "github.com/google/go-cmp", "github.com/rogpeppe/go-internal",
	"go.uber.org/goleak", "pgregory.net/rapid",
}

// sourceFile is what the rules need to know about a file.
type sourceFile struct {
	path    string // from the module's root, with slashes
	test    bool
	imports []string
	// c is set for a file in C or assembly; import "C" is among imports.
	c bool
}

// roomOf returns the room of a folder or package of the module, which is the longest matching
// prefix; "" if there is none.
func roomOf(folder string) string {
	if folder == "." || folder == "" {
		return "."
	}
	for ; folder != "" && folder != "."; folder = parent(folder) {
		if _, ok := rooms[folder]; ok {
			return folder
		}
	}
	return ""
}

// parent returns the folder that contains a folder or file, "." for the root.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}

// breaches returns every import and every piece of C code that the layout forbids, in the order
// of the files.
func breaches(files []sourceFile) []string {
	var found []string
	for _, file := range files {
		report := func(format string, args ...any) {
			found = append(found, file.path+": "+fmt.Sprintf(format, args...))
		}
		name := roomOf(parent(file.path))
		if name == "" {
			report("lies in no room of the layout")
			continue
		}
		rule := rooms[name]
		if file.c && !rule.cgo {
			report("C source outside vk and the test layers")
		}
		for _, path := range file.imports {
			if why := forbidden(name, rule, file.test, path); why != "" {
				report("%s", why)
			}
		}
	}
	return found
}

// forbidden returns why a file of a room may not import path, "" if it may.
func forbidden(name string, rule room, test bool, path string) string {
	switch {
	case path == "C":
		if !rule.cgo {
			return "cgo outside vk and the test layers"
		}
		return ""
	case path == module || strings.HasPrefix(path, module+"/"):
		folder := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
		to := roomOf(folder)
		if to == "" {
			return fmt.Sprintf("imports %s, which lies in no room of the layout", path)
		}
		// External tests import their own package.
		if to == name {
			return ""
		}
		if test && (slices.Contains(testImports["*"], to) || slices.Contains(testImports[name], to)) {
			return ""
		}
		if only, limited := onlyIn[to]; limited && !slices.Contains(only, name) {
			return fmt.Sprintf("room %s may not import room %s", name, to)
		}
		if !rule.free && !slices.Contains(rule.imports, to) {
			return fmt.Sprintf("room %s may not import room %s", name, to)
		}
		if !test && (to == "tests/vktest" || to == "tests/tracecheck" || to == "tests/clibrary") && name != "tests" && name != "tests/vktest" {
			return fmt.Sprintf("room %s may import room %s in tests alone", name, to)
		}
		return ""
	case !strings.Contains(strings.SplitN(path, "/", 2)[0], "."):
		return "" // the standard library
	}
	for prefix, only := range onlyIn {
		if under(path, prefix) && !slices.Contains(only, name) {
			return fmt.Sprintf("room %s may not import %s", name, path)
		}
	}
	allowed := rule.thirdParty
	if test {
		allowed = slices.Concat(allowed, testLibraries)
	}
	if !rule.free && !slices.ContainsFunc(allowed, func(prefix string) bool { return under(path, prefix) }) {
		return fmt.Sprintf("room %s may not import %s", name, path)
	}
	return ""
}

// under reports whether path is prefix or a package below it.
func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
