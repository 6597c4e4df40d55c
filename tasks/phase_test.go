package tasks

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The documentation of the package draws the same transitions as the code allows.
func TestTransitionsAreThoseOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	phases := make(map[string]phase)
	for p := range phaseCount {
		phases[p.String()] = p
	}
	var documented [phaseCount][]phase
	for line := range strings.Lines(string(text)) {
		from, rest, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "→")
		p, known := phases[strings.TrimSpace(from)]
		if !ok || !known {
			continue
		}
		for word := range strings.FieldsSeq(rest) {
			next, more := strings.CutSuffix(word, ",")
			if _, known := phases[next]; !known {
				t.Fatalf("%q is no phase: %s", next, line)
			}
			documented[p] = append(documented[p], phases[next])
			if !more {
				break
			}
		}
	}
	if diff := cmp.Diff(transitions, documented); diff != "" {
		t.Errorf("transitions (-code +doc.go):\n%s", diff)
	}
}
