package main

import (
	"path/filepath"
	"strings"

	"github.com/vkomp/vkomp"
)

// graphExtensions are the kinds of file that -graph writes.
var graphExtensions = []string{".svg", ".dot"}

// writeGraph writes the graph of a sample's tasks to path, in the form that its
// extension says.
func writeGraph(path string, g vkomp.Graph) error {
	write := g.WriteSVG
	if strings.EqualFold(filepath.Ext(path), ".dot") {
		write = g.WriteDOT
	}
	return writeFile(path, write)
}
