//go:build unix

package pipelinefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe in the file's place is not read, which would wait for a writer, but is replaced.
func TestAPipeIsNoFile(t *testing.T) {
	f := In(newFolder(t), some)
	if err := syscall.Mkfifo(f.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read(); data != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("%q, %v", data, err)
	}
	if err := f.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read(); string(data) != "data" || err != nil {
		t.Errorf("replaced: %q, %v", data, err)
	}
}

func TestTheFolderIsPrivate(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	f := In(made, some)
	if err := f.Write([]byte("data")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	refused := func(why string) {
		t.Helper()
		data, err := f.Read()
		if data != nil || err == nil || !strings.Contains(err.Error(), made) || !strings.Contains(err.Error(), why) {
			t.Errorf("read: %q, %v", data, err)
		}
		if err := f.Write([]byte("new")); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("written: %v", err)
		}
	}
	for _, mode := range []os.FileMode{0o720, 0o702, 0o777} {
		if err := os.Chmod(made, mode); err != nil {
			t.Fatal(err)
		}
		refused("others can write")
	}
	if err := os.Chmod(made, 0o755); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read(); string(data) != "data" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	if err := os.Chown(made, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	refused("12345")
}
