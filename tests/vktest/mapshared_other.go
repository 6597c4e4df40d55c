//go:build !unix

package vktest

import (
	"os"
	"testing"
)

// mapShared skips the test: there is no Vulkan on such systems, so nothing would read the mapping.
func mapShared(t testing.TB, _ *os.File, _ int) []byte {
	t.Helper()
	t.Skip("no shared mappings of files on this system")
	return nil
}
