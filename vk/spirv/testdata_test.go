package spirv

import (
	"os"
	"path/filepath"
	"testing"
)

//go:generate sh testdata/generate.sh

// testModules returns every module of testdata by file name. go generate makes them with
// glslangValidator and spirv-as.
func testModules(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.spv")
	if err != nil {
		t.Fatal(err)
	}
	modules := make(map[string][]byte)
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		modules[filepath.Base(file)] = code
	}
	if len(modules) < 14 {
		t.Fatalf("testdata has only %d modules", len(modules))
	}
	return modules
}

// entryPoint parses a module of testdata and returns one of its entry points.
func entryPoint(t testing.TB, file, name string) *EntryPoint {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.EntryPoint(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
