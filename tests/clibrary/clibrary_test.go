package clibrary

import (
	"os"
	"path/filepath"
	"testing"
)

// A library is compiled again when a source, a header or an option changes, and otherwise not.
func TestKeyIsOfAllThatALibraryIsMadeOf(t *testing.T) {
	folder, headers := t.TempDir(), t.TempDir()
	source, header := filepath.Join(folder, "a.c"), filepath.Join(headers, "a.h")
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(source, "int a;")
	write(header, "")
	seen := make(map[string]string)
	key := func(what string, command ...string) {
		t.Helper()
		k, err := keyOf(append([]string{"cc", "-I" + headers, source}, command...))
		if err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[k]; ok {
			t.Errorf("%s: the same key as %s", what, before)
		}
		seen[k] = what
	}
	key("at first")
	key("with an option", "-O1")
	write(source, "int b;")
	key("with another source")
	write(header, "int c;")
	key("with another header")
	write(filepath.Join(folder, "b.h"), "int d;")
	key("with a header beside the source")
	again, err := keyOf([]string{"cc", "-I" + headers, source})
	if err != nil || seen[again] != "with a header beside the source" {
		t.Errorf("the key is not that of the same files: %s, %v", seen[again], err)
	}
}

func TestSourceThatDoesNotCompileIsAnError(t *testing.T) {
	source := filepath.Join(t.TempDir(), "wrong.c")
	if err := os.WriteFile(source, []byte("wrong"), 0o644); err != nil {
		t.Fatal(err)
	}
	if library, err := compile([]string{source}); err == nil {
		t.Errorf("compiled as %s", library)
	}
	if library, err := compile([]string{source + ".c"}); err == nil {
		t.Errorf("a source that is missing is compiled as %s", library)
	}
}
