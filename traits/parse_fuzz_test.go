package traits

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// No text makes a parser panic. Parsed text means the same when it is written and
// parsed again, and an error points into the text and says what is expected.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"*", "0", "77", "initial", "INVALID", "default,0", "kind(gpu)", "!kind(host)", "(kind(gpu)&&vendor(A))[0],(kind(gpu)&&vendor(B))[0:2],*",
		"uid(uid-gpu3),uid(uid-gpu2)", `vendor("B driver")||!(arch(aa)&&isa(shaderInt64))`, "*[1::2],*[:3],*[2:]", "device_num(3)[0],initial",
		"isa(a)&&isa(b)||isa(c)", "*[99999999999]", "((((", "!!!!", `uid("`, "kind(gpu)&", "*[-1]", "\xff", "kind(\u212a)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := ParseAvailable(text); err != nil {
			checkError(t, text, err)
		} else {
			again, err := ParseAvailable(a.String())
			if err != nil || again.String() != a.String() || !slices.Equal(again.Devices(machine[:5]), a.Devices(machine[:5])) {
				t.Fatalf("%q is %s, read again %v, %v", text, a, again, err)
			}
		}
		d, err := ParseDefault(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		again, err := ParseDefault(d.String())
		if err != nil || again.String() != d.String() {
			t.Fatalf("%q is %s, read again %v, %v", text, d, again, err)
		}
		c, k := d.Choose(machine)
		if c2, k2 := again.Choose(machine); c2 != c || k2 != k {
			t.Fatalf("%q: choice %d, device %d; read again %d, %d", text, c, k, c2, k2)
		}
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Text != text || e.Offset < 0 || e.Offset > len(text) || !strings.Contains(e.Error(), "want ") {
		t.Fatalf("%q: %v", text, err)
	}
}
