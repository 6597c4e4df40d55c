package pipelinefile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var some = Identity{Vendor: 0x10de, Device: 0x2330, Driver: 7, UUID: [16]byte{1, 2, 15: 16}}

// newFolder returns an empty folder that only the user can write to, whatever the umask is.
func newFolder(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "pipelines")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	f := In(filepath.Join(t.TempDir(), "new", "folder"), some)
	if data, err := f.Read(); data != nil || err != nil {
		t.Errorf("without a file: %q, %v", data, err)
	}
	for _, data := range [][]byte{[]byte("first"), {}, bytes.Repeat([]byte("more"), 1<<16)} {
		if err := f.Write(data); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Read(); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v, of %d", len(got), err, len(data))
		}
	}
	if err := f.Write(make([]byte, MaxBytes+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too much: %v", err)
	}
	onlyFile(t, f)
}

// onlyFile checks that the folder has the file and nothing else, for its user alone.
func onlyFile(t *testing.T, f *File) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.Path()))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(f.Path()) {
		t.Errorf("%v, %v", entries, err)
	}
	if info, err := os.Stat(f.Path()); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestEachDeviceAndDriverHasAFile(t *testing.T) {
	folder := newFolder(t)
	others := []Identity{some, some, some, some}
	others[0].Vendor++
	others[1].Device++
	others[2].Driver++
	others[3].UUID[7]++
	first := In(folder, some)
	if err := first.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(first.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range others {
		other := In(folder, id)
		if data, err := other.Read(); data != nil || err != nil {
			t.Errorf("%v: %q, %v", id, data, err)
		}
		// A file that was renamed.
		if _, err := decode(id, written); !errors.Is(err, ErrInvalid) {
			t.Errorf("%v: %v", id, err)
		}
	}
}

func TestEveryDamageIsFound(t *testing.T) {
	whole := encode(some, []byte("some data of a driver"))
	refused := func(what string, at int, b []byte) {
		t.Helper()
		if data, err := decode(some, b); data != nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s at %d: %q, %v", what, at, data, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := slices.Clone(whole)
			b[i] ^= 1 << bit
			refused("a bit", i, b)
		}
		refused("the end", i, whole[:i])
	}
	refused("more", len(whole), append(slices.Clone(whole), 0))
	f := In(newFolder(t), some)
	if err := os.WriteFile(f.Path(), whole[1:], 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read(); data != nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), f.Path()) {
		t.Errorf("%q, %v", data, err)
	}
}

func TestFilesThatAreTooLarge(t *testing.T) {
	f := In(newFolder(t), some)
	if err := f.Write(nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.Path(), int64(headerBytes)+MaxBytes+1); err != nil {
		t.Fatal(err)
	}
	if data, err := f.Read(); data != nil || !errors.Is(err, ErrInvalid) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestWritersAtTheSameTime(t *testing.T) {
	folder := newFolder(t)
	var all sync.WaitGroup
	for w := range 8 {
		f := In(folder, some)
		all.Go(func() {
			for range 20 {
				if err := f.Write(bytes.Repeat([]byte{byte(w)}, 1000*w+1)); err != nil {
					t.Error(err)
				}
				data, err := f.Read()
				if err != nil || len(data) != 1000*int(data[0])+1 {
					t.Errorf("%d bytes, %v", len(data), err)
				}
			}
		})
	}
	all.Wait()
	onlyFile(t, In(folder, some))
}

func TestFoldersThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		f := In(path, some)
		if err := f.Write(nil); err == nil {
			t.Errorf("%s was written", f.Path())
		}
		if data, err := f.Read(); data != nil || err == nil {
			t.Errorf("%s: %q, %v", f.Path(), data, err)
		}
	}
}

// A write that fails leaves the file, and nothing beside it.
func TestWritesThatFail(t *testing.T) {
	folder := newFolder(t)
	f := In(folder, some)
	// A folder that has something in it cannot be replaced by a file.
	if err := os.MkdirAll(filepath.Join(f.Path(), "kept"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Write([]byte("new")); err == nil {
		t.Error("a folder was replaced")
	}
	if _, err := f.Read(); err == nil {
		t.Error("a folder was read")
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(encode(some, nil))
	f.Add(encode(some, []byte("data")))
	f.Fuzz(func(t *testing.T, b []byte) {
		data, err := decode(some, b)
		switch {
		case err != nil && (data != nil || !errors.Is(err, ErrInvalid)):
			t.Fatalf("%q, %v", data, err)
		case err == nil && !bytes.Equal(encode(some, data), b):
			t.Fatalf("%q means %q", b, data)
		}
	})
}

func TestRandomDataIsReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		data := make([]byte, r.IntN(300))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		if got, err := decode(some, encode(some, data)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%x, %v, of %x", got, err, data)
		}
	}
}
