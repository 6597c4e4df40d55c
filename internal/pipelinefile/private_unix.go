//go:build unix

package pipelinefile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private returns an error unless the folder belongs to the user, and nobody else can write to it.
func private(info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("it is no folder")
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others can write to it: mode %#o", mode)
	}
	if s, is := info.Sys().(*syscall.Stat_t); is && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, not to %d", s.Uid, os.Geteuid())
	}
	return nil
}
