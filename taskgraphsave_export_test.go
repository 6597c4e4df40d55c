package vkomp

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// ChangeSaved returns a saved taskgraph with another content of an entry, and checksums that fit.
func ChangeSaved(file []byte, name string, change func(content []byte)) ([]byte, error) {
	s, err := ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("there is no %s", name)
	for _, e := range s.graph.entries() {
		if e.name == name {
			change(*e.bytes)
			err = nil
		}
	}
	var changed bytes.Buffer
	if err == nil {
		err = s.graph.write(&changed)
	}
	return changed.Bytes(), err
}

// EditSaved returns a saved taskgraph whose graph.json has been edited, and checksums that fit.
func EditSaved(file []byte, edit func(text string) string) ([]byte, error) {
	s, err := ReadSavedTaskgraph(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(&s.graph)
	if err != nil {
		return nil, err
	}
	var g savedGraph
	if err := json.Unmarshal([]byte(edit(string(text))), &g); err != nil {
		return nil, err
	}
	was := s.graph.entries()
	for i, e := range g.entries() {
		*e.bytes = *was[i].bytes
	}
	var edited bytes.Buffer
	err = g.write(&edited)
	return edited.Bytes(), err
}

// SavedWith returns a saved taskgraph with that graph.json, with the entries of which it speaks if they
// are small, and checksums that fit.
func SavedWith(graph []byte) []byte {
	var file bytes.Buffer
	archive, sum := zip.NewWriter(&file), sha256.New()
	put := func(name string, content []byte) {
		e, _ := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		e.Write(content)
	}
	put(savedGraphFile, graph)
	var g savedGraph
	if json.Unmarshal(graph, &g) == nil {
		for _, e := range g.entries() {
			put(e.name, make([]byte, min(max(e.size, 0), 1<<12)))
		}
	}
	put(savedSumFile, []byte(hex.EncodeToString(sum.Sum(nil))))
	archive.Close()
	return file.Bytes()
}
