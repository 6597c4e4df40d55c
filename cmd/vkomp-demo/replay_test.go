package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// savedSaxpy returns a saved taskgraph: y = 2x + y, twice, and where y is in the file.
func savedSaxpy(t *testing.T) (file []byte, after string) {
	t.Helper()
	rt := vktest.Open(t)
	if rt.DefaultDevice(t.Context()).IsInitial() {
		t.Skip("needs a Vulkan device")
	}
	k, err := rt.NewKernel(shaders.Saxpy)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]float32, 64) // x and y, so that their order in memory is known
	for i := range data {
		data[i] = float32(i)
	}
	g := vkomp.Taskgraph{Records: new(vkomp.TaskgraphRecords)}
	err = rt.Taskgraph(t.Context(), g, func(ctx context.Context) error {
		for range 2 {
			add, err := shaders.SaxpyTarget(k, 2, data[:32], data[32:])
			if err != nil {
				return err
			}
			add.NoWait, add.DependArgs = true, true
			if err := rt.Target(ctx, add); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rt.SaveTaskgraph(t.Context(), g, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), "storage/1.after"
}

// withChange returns the file with another content of one of its entries, and the checksum of that.
func withChange(t *testing.T, file []byte, name string, change func([]byte) []byte) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var changed bytes.Buffer
	w, sum := zip.NewWriter(&changed), sha256.New()
	for _, f := range r.File {
		e, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(e)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == name {
			content = change(content)
		}
		if f.Name == "sha256" {
			content = []byte(hex.EncodeToString(sum.Sum(nil)))
		}
		fmt.Fprintf(sum, "%s %d\n", f.Name, len(content))
		sum.Write(content)
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err == nil {
			_, err = to.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return changed.Bytes()
}

func TestReplayComparesWithTheSavedRun(t *testing.T) {
	file, after := savedSaxpy(t)
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	saved, other := write("saved.zip", file), write("other.zip", withChange(t, file, after, func(b []byte) []byte { return append([]byte{b[0] + 1}, b[1:]...) }))
	if got := succeed(t, "replay", saved, "-verify"); !strings.Contains(got, "constructs: 2, kernels: 1, bytes of storage: 256") || !strings.Contains(got, "executed and replayed: the same bytes as saved") {
		t.Errorf("the saved file: %q", got)
	}
	const differs = "storage/1: 1 bytes differ, the first is byte 0"
	if got := succeed(t, "replay", other); !strings.Contains(got, differs) {
		t.Errorf("another outcome: %q", got)
	}
	if got := demo(t, "replay", other, "-verify"); got.status != 1 || !strings.Contains(got.stdout, differs) || !strings.Contains(got.stderr, "other.zip: the run leaves other bytes than the one that was saved, in 2 places") {
		t.Errorf("another outcome, -verify: %+v", got)
	}
	for name, want := range map[string]string{
		write("damaged.zip", file[:len(file)/2]): "damaged.zip: ",
		filepath.Join(folder, "absent.zip"):      "absent.zip: no such file",
	} {
		if got := demo(t, "replay", name); got.status != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, flag := range [][]string{{"-device", "-1"}, {"-device=-1"}} {
		if got := demo(t, append([]string{"replay", saved}, flag...)...); got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, "-device -1: that is the initial device") {
			t.Errorf("the initial device: %+v", got)
		}
	}
	if got := demo(t, "replay", saved, "-device"); got.status != 1 || !strings.Contains(got.stderr, "--device: missing value") {
		t.Errorf("no device: %+v", got)
	}
	var stderr bytes.Buffer
	if status := run(shell{ctx: t.Context(), stdout: full{}, stderr: &stderr, open: vkomp.Open}, []string{"replay", saved}); status != 1 || !strings.Contains(stderr.String(), errFull.Error()) {
		t.Errorf("without room for the output: status %d, stderr %q", status, stderr.String())
	}
	if got := demo(t, "replay", saved, "-device", ","); got.status != 1 || !strings.Contains(got.stderr, "without a name") {
		t.Errorf("devices without names: %+v", got)
	}
	if got := demo(t, "replay", saved, "-device", "no such device"); got.status != 1 || !strings.Contains(got.stderr, "no such device") {
		t.Errorf("a device that is absent: %+v", got)
	}
	withoutDrivers(t)
	if got := demoWith(t, func(*vkomp.Options) {}, "replay", saved); got.status != 1 || !regexp.MustCompile(`(?m)^level=WARN msg="no (usable )?Vulkan`).MatchString(got.stderr) ||
		!strings.Contains(got.stderr, "saved.zip: vkomp: run saved taskgraph: ") {
		t.Errorf("no Vulkan device: %+v", got)
	}
}

func TestTextOfAFileDoesNotControlTheTerminal(t *testing.T) {
	file, _ := savedSaxpy(t)
	const clear = `\u001b[2J`
	replace := strings.NewReplacer(`"version":`, `"failure": "`+clear+`", "version":`, `"name": "`, `"name": "`+clear)
	path := filepath.Join(t.TempDir(), "changed.zip")
	err := os.WriteFile(path, withChange(t, file, "graph.json", func(b []byte) []byte { return []byte(replace.Replace(string(b))) }), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if got := succeed(t, "replay", path); strings.Count(got, `\x1b[2J`) != 2 || strings.Contains(got, "\x1b") {
		t.Errorf("output %q", got)
	}
}
