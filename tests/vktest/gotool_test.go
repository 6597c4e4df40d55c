package vktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestTestsOfTheGoCommandAreSkippedOnlyWhereThereIsNone(t *testing.T) {
	for _, there := range []bool{false, true} {
		folder := t.TempDir()
		if there {
			if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", folder)
		found, skipped := "", false
		t.Run("", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			found = GoTool(t)
		})
		if want, _ := exec.LookPath("go"); skipped == there || found != want {
			t.Errorf("a go command is there %v: skipped %v, found %q", there, skipped, found)
		}
	}
}
