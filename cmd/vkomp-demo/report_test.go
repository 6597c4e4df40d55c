package main

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vkomp/vkomp"
)

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestReportNamesEveryFigure(t *testing.T) {
	r := report{
		work:   [2]string{"image", "512×512 in 32 bands"},
		device: vkomp.DeviceInfo{Number: 1, Name: "llvmpipe", Type: "software"},
		stats:  vkomp.Stats{Tasks: 128, Edges: 249, Submissions: 4, Barriers: 10, BytesToDevice: 1 << 20, BytesFromDevice: 1500},
		time:   12345678 * time.Nanosecond,
	}
	var printed bytes.Buffer
	if err := r.print(&printed); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.golden", printed.Bytes())
}

func TestReportPassesOnWriteErrors(t *testing.T) {
	if err := (&report{}).print(full{}); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

// full is a file on a full disk.
type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestByteCountsAreInBinaryUnits(t *testing.T) {
	for n, want := range map[uint64]string{
		0:           "0 B",
		1023:        "1023 B",
		1024:        "1.0 KiB",
		1536:        "1.5 KiB",
		1 << 20:     "1.0 MiB",
		2 << 30:     "2.0 GiB",
		1<<64 - 1:   "16.0 EiB",
		3<<40 + 512: "3.0 TiB",
	} {
		if got := byteCount(n); got != want {
			t.Errorf("byteCount(%d) = %q, want %q", n, got, want)
		}
	}
}
