package vkomp_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
)

// runWithFile opens a device whose pipeline cache is in the folder, uses it and closes it. It returns
// what the cache had at first, the name of its file, and the warnings that were logged.
func runWithFile(t *testing.T, folder string, use func(*vkomp.Runtime, vkomp.Device)) (data []byte, file, warnings string) {
	t.Helper()
	var log bytes.Buffer
	rt, err := vkomp.Open(vkomp.Options{
		Logger:        slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		PipelineCache: folder,
	})
	must(t, err)
	d, err := rt.Device(0)
	must(t, err)
	data, file = vkomp.ReadPipelines(d)
	log.Reset() // the device reads it again
	p, err := d.Alloc(t.Context(), 64)
	must(t, err)
	must(t, d.Free(t.Context(), p))
	if use != nil {
		use(rt, d)
	}
	must(t, rt.Close())
	return data, file, log.String()
}

func TestCompiledPipelinesAreKeptInAFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pipelines")
	data, file, warnings := runWithFile(t, folder, func(rt *vkomp.Runtime, d vkomp.Device) {
		if entries, err := os.ReadDir(folder); !os.IsNotExist(err) {
			t.Errorf("before the device is closed: %v, %v", entries, err)
		}
		if made := d.Decisions(); !slices.ContainsFunc(made, func(m vkomp.Decision) bool {
			return m.Name == "compiled pipelines" && strings.HasPrefix(m.Choice, "in "+folder)
		}) {
			t.Errorf("decisions: %q", made)
		}
	})
	if len(data) > 0 || warnings != "" {
		t.Errorf("without a file: %d bytes, %s", len(data), warnings)
	}
	written, err := os.ReadFile(file)
	must(t, err)
	data, _, warnings = runWithFile(t, folder, func(rt *vkomp.Runtime, d vkomp.Device) {
		must(t, os.Remove(file))
		must(t, rt.PauseResource(t.Context(), vkomp.PauseHard, d))
		if _, err := os.Stat(file); err != nil {
			t.Errorf("after a hard pause: %v", err)
		}
	})
	if len(data) == 0 || !bytes.HasSuffix(written, data) || warnings != "" {
		t.Errorf("the second run begins with %d bytes, of a file of %d: %s", len(data), len(written), warnings)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// The runtime goes on without a file that is damaged, and replaces it.
func TestDamagedFilesOfPipelinesAreReplaced(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pipelines")
	_, file, _ := runWithFile(t, folder, nil)
	whole, err := os.ReadFile(file)
	must(t, err)
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1] ^= 1
	must(t, os.WriteFile(file, damaged, 0o600))
	data, _, warnings := runWithFile(t, folder, nil)
	if len(data) > 0 || !strings.Contains(warnings, file) || strings.Contains(warnings, "not kept") {
		t.Errorf("%d bytes of a damaged file are used: %s", len(data), warnings)
	}
	// What no driver has written, in a file that is whole.
	data, _, warnings = runWithFile(t, folder, func(_ *vkomp.Runtime, d vkomp.Device) {
		must(t, vkomp.WritePipelines(d, []byte("damaged before it was written")))
	})
	if len(data) == 0 || warnings != "" {
		t.Errorf("%d bytes after the damage: %s", len(data), warnings)
	}
	data, _, warnings = runWithFile(t, folder, nil)
	if len(data) == 0 || bytes.HasPrefix(data, []byte("damaged")) || warnings != "" {
		t.Errorf("%q is not replaced: %s", data, warnings)
	}
}

func TestFoldersThatCannotKeepPipelines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if data, _, warnings := runWithFile(t, file, nil); len(data) > 0 || !strings.Contains(warnings, "not kept") {
		t.Errorf("a file as the folder: %d bytes, %s", len(data), warnings)
	}
}

// Where the file is, from the option, the variable and the user's folder.
func TestWherePipelinesAreKept(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for _, c := range []struct {
		name, option, variable string
		file, reason           string
	}{
		{"default", "", "", "$XDG_CACHE_HOME/vkomp/", "in the user's folder"},
		{"variable", "", "$HOME/there", "$HOME/there/", "VKOMP_PIPELINE_CACHE"},
		{"option", "$HOME/here", "$HOME/there", "$HOME/here/", "Options.PipelineCache"},
		{"option off", " Off ", "$HOME/there", "", "Options.PipelineCache is Off"},
		{"variable off", "", "off", "", "VKOMP_PIPELINE_CACHE is off"},
		{"option before off", "$HOME/here", "off", "$HOME/here/", "Options.PipelineCache"},
	} {
		t.Setenv("VKOMP_PIPELINE_CACHE", os.ExpandEnv(c.variable))
		rt, err := vkomp.Open(vkomp.Options{PipelineCache: os.ExpandEnv(c.option)})
		must(t, err)
		t.Setenv("VKOMP_PIPELINE_CACHE", "changed after Open") // which has read it
		d, err := rt.Device(0)
		must(t, err)
		_, file := vkomp.ReadPipelines(d)
		if want := os.ExpandEnv(c.file); !strings.HasPrefix(file, want) || (file == "") != (want == "") {
			t.Errorf("%s: %q, want %q…", c.name, file, want)
		}
		made := d.Decisions()
		if last := made[len(made)-1]; !strings.HasPrefix(last.Reason, c.reason) {
			t.Errorf("%s: %q, want %q", c.name, last, c.reason)
		}
		must(t, rt.Close())
	}
	here := t.TempDir()
	t.Chdir(here)
	_, file, warnings := runWithFile(t, "relative", func(*vkomp.Runtime, vkomp.Device) { t.Chdir(t.TempDir()) })
	if _, err := os.Stat(filepath.Join(here, "relative", filepath.Base(file))); err != nil || warnings != "" {
		t.Errorf("in another working folder than at Open: %v, %s", err, warnings)
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	t.Setenv("VKOMP_PIPELINE_CACHE", "")
	if data, file, warnings := runWithFile(t, "", nil); len(data) > 0 || file != "" || warnings != "" {
		t.Errorf("without a home: %d bytes, %q, %s", len(data), file, warnings)
	}
}
