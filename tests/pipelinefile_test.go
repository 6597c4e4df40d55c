package tests

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
	"github.com/vkomp/vkomp/vk"
)

// Two programs keep compiled pipelines in one file. The one that closes last adds what it has; if the
// driver fails meanwhile, the log says so, the file stays and Close has no error.
func TestFailuresLeaveTheFileOfPipelines(t *testing.T) {
	for _, call := range []string{"", "vkCreatePipelineCache", "vkMergePipelineCaches", "vkGetPipelineCacheData"} {
		t.Run(call, func(t *testing.T) {
			faults := vktest.InjectFaults(t)
			folder := filepath.Join(t.TempDir(), "pipelines")
			first, log := openWithFile(t, folder)
			second, _ := openWithFile(t, folder)
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(folder, "*"))
			if err != nil || len(files) != 1 {
				t.Fatalf("%q, %v", files, err)
			}
			before, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if call != "" {
				faults.Fail(call, 1, -1, vk.ErrorOutOfHostMemory)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if told := bytes.Contains(log.Bytes(), []byte("compiled pipelines are not kept")); told != (call != "") {
				t.Errorf("log: %s", log)
			}
			after, err := os.ReadFile(files[0])
			if err != nil || call != "" && !bytes.Equal(before, after) {
				t.Errorf("%d bytes, %v, of %d before", len(after), err, len(before))
			}
		})
	}
}

// openWithFile returns a runtime that has used a device with a pipeline cache of that folder, and what
// it logs as warnings.
func openWithFile(t *testing.T, folder string) (*vkomp.Runtime, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	rt, err := vkomp.Open(vkomp.Options{
		Logger:        slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		PipelineCache: folder,
	})
	if err != nil {
		t.Fatal(err)
	}
	d := rt.DefaultDevice(t.Context())
	p, err := d.Alloc(t.Context(), 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return rt, log
}

// A device begins with what the file has: if the driver does not take it, it begins with nothing, and
// only without a file that failure is one of the device.
func TestDevicesBeginWithTheirFileOfPipelines(t *testing.T) {
	faults := vktest.InjectFaults(t)
	folder := filepath.Join(t.TempDir(), "pipelines")
	for _, written := range []bool{false, true} {
		rt, err := vkomp.Open(vkomp.Options{PipelineCache: folder})
		if err != nil {
			t.Fatal(err)
		}
		d := rt.DefaultDevice(t.Context())
		faults.Fail("vkCreatePipelineCache", 1, 1, vk.ErrorOutOfHostMemory)
		p, err := d.Alloc(t.Context(), 64)
		if refused := errors.Is(err, vkomp.ErrOutOfMemory); refused == written || err != nil && !refused {
			t.Errorf("with a file: %t: %v", written, err)
		}
		faults.Mend()
		if err != nil {
			p, err = d.Alloc(t.Context(), 64)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Free(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if err := rt.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
