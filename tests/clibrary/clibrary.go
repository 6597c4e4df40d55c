// Package clibrary compiles C sources into shared libraries for tests: Vulkan layers, and drivers
// that behave as a test needs it.
package clibrary

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Build writes a shared library of these sources to a file; options of the compiler may be among
// them. Each test gets a file of its own, because the state of a loaded library stays. It is
// compiled once, which takes longer than most tests: compiled libraries are kept in
// .cache/test-libraries under the hash of everything that they are made of.
func Build(t testing.TB, file string, args ...string) {
	t.Helper()
	compiled, err := compile(args)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
	code, err := os.ReadFile(compiled)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, code, 0o755); err != nil {
		t.Fatal(err)
	}
}

// compile returns the path of the library, which it compiles unless an earlier test has.
func compile(args []string) (library string, err error) {
	command := append([]string{cmp.Or(os.Getenv("CC"), "gcc"), "-std=c11", "-fPIC", "-shared"}, args...)
	key, err := keyOf(command)
	if err != nil {
		return "", err
	}
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "..", "..", ".cache", "test-libraries")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	library = filepath.Join(folder, key+".so")
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	// Tests of other packages may compile the same library; the last one to finish replaces the
	// others.
	unfinished, err := os.CreateTemp(folder, key+"-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(unfinished.Name())
	if err := unfinished.Close(); err != nil {
		return "", err
	}
	command = append(command, "-o", unfinished.Name())
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return library, os.Rename(unfinished.Name(), library)
}

// keyOf returns the hash of a compiler's command, of the sources in it, and of the headers in
// their folders and in the folders of options -I.
func keyOf(command []string) (string, error) {
	hash := sha256.New()
	var files, folders []string
	for _, arg := range command {
		fmt.Fprintln(hash, filepath.Base(arg))
		switch {
		case strings.HasPrefix(arg, "-I"):
			folders = append(folders, arg[2:])
		case strings.HasSuffix(arg, ".c"):
			files, folders = append(files, arg), append(folders, filepath.Dir(arg))
		}
	}
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		headers, err := filepath.Glob(filepath.Join(folder, "*.h"))
		if err != nil {
			return "", err
		}
		files = append(files, headers...)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(hash, filepath.Base(name), len(text))
		hash.Write(text)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:12]), nil
}
