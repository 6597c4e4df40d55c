//go:build !unix

package pipelinefile

import (
	"errors"
	"io/fs"
)

// private returns an error unless the folder is one. Who can write to it is left to the system, which
// makes the user's folders private.
func private(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("it is no folder")
	}
	return nil
}
