package main

import (
	"strings"
	"testing"
)

func TestLongFlagsTakeOneDashOrTwo(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"devices -json", "devices --json"},
		{"devices --json", "devices --json"},
		{"run saxpy -n 16 -device -1 -verify", "run saxpy -n 16 --device -1 --verify"},
		{"run saxpy -n=16 -device=-1", "run saxpy --n=16 --device=-1"},
		{"run image -in=a-b.png -out b.png", "run image --in=a-b.png --out b.png"},
		{"-h", "-h"},
		{"-help", "--help"},
		{"run -- -json", "run -- -json"},
		{"- -= -1 -2.5 -n16", "- -= -1 -2.5 -n16"},
		{"", ""},
	} {
		if got := strings.Join(longFlags(strings.Fields(c.in)), " "); got != c.want {
			t.Errorf("longFlags(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}
