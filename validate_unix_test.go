//go:build unix

package vkomp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
)

// The run of another program of that name is limited in time and output.
func TestValidatorIsBounded(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"it does not end", "while :; do :; done", "has not ended after"},
		{"it talks for ever", "while :; do echo 0123456789; done", "has not ended after"},
		{"it is killed", "kill -9 $$", "killed"},
		{"it says much", "i=0; while [ $i -lt 2000 ]; do echo 0123456789; i=$((i+1)); done; exit 1", "0123456789"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "spirv-val")
			must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700))
			limit := 30 * time.Second
			if strings.Contains(c.want, "after") {
				limit = 50 * time.Millisecond
			}
			err := vkomp.CheckModule(path, limit, "kernel", beyondSPIRV)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 5000 {
				t.Errorf("got %.200v", err)
			}
		})
	}
}
