package sched

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
	states := make(map[string]taskState)
	for st := range taskCount {
		states[st.String()] = st
	}
	var documented [taskCount][]taskState
	for line := range strings.Lines(string(text)) {
		from, rest, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "→")
		st, known := states[strings.TrimSpace(from)]
		if !ok || !known {
			continue
		}
		for word := range strings.FieldsSeq(rest) {
			next, more := strings.CutSuffix(word, ",")
			if _, known := states[next]; !known {
				t.Fatalf("%q is no state: %s", next, line)
			}
			documented[st] = append(documented[st], states[next])
			if !more {
				break
			}
		}
	}
	if diff := cmp.Diff(transitions, documented); diff != "" {
		t.Errorf("transitions (-code +doc.go):\n%s", diff)
	}
}
