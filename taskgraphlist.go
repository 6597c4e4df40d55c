package vkomp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// savedList is a list in graph.json. In a file that is not trusted an element could take two bytes of text and
// hundreds of memory: {}. So it is refused if its text is shorter than that of any element which SaveTaskgraph writes.
type savedList[T any] []T

// leastElement is the least size of an element in bytes where all fields can be absent.
const leastElement = 16

// UnmarshalJSON implements json.Unmarshaler.
func (l *savedList[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	if string(text) == "null" {
		return nil
	}
	var zero T
	shortest, err := json.Marshal(&zero)
	if err != nil {
		return err
	}
	least := int64(max(len(shortest), leastElement))
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return fmt.Errorf("%.20s is no list", text)
	}
	for d.More() {
		from := d.InputOffset()
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		if d.InputOffset()-from < least {
			return fmt.Errorf("%s is no element of such a list", bytes.TrimLeft(text[from:d.InputOffset()], ", \n"))
		}
		*l = append(*l, element)
	}
	return nil
}
