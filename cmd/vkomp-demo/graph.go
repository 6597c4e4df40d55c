package main

import (
	"path/filepath"
	"strings"

	"github.com/vkomp/vkomp"
)

// graphExtensions are the extensions of files that -graph can write.
var graphExtensions = []string{".svg", ".dot"}

// writeGraph writes the graph of a sample's tasks to path, in the format of its extension.
func writeGraph(path string, g vkomp.Graph) error {
	write := g.WriteSVG
	if strings.EqualFold(filepath.Ext(path), ".dot") {
		write = g.WriteDOT
	}
	return writeFile(path, write)
}
