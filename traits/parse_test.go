package traits

import (
	"errors"
	"strings"
	"testing"
)

func TestAvailableIsReadAndSpeltAgain(t *testing.T) {
	for text, want := range map[string]string{
		"*":                      "*",
		"kind(gpu)":              "kind(gpu)",
		" KIND ( GPU ) ":         "kind(GPU)",
		"kind(gpu)&&vendor(A),*": "kind(gpu)&&vendor(A),*",
		"!kind(gpu)&&vendor(A)":  "!kind(gpu)&&vendor(A)",
		"(kind(gpu)&&vendor(A))[0],(kind(gpu)&&vendor(B))[0:2],*": "(kind(gpu)&&vendor(A))[0],(kind(gpu)&&vendor(B))[0:2],*",
		"uid(uid-gpu3),uid(uid-gpu2),uid(uid-gpu1)":               "uid(uid-gpu3),uid(uid-gpu2),uid(uid-gpu1)",
		`vendor("Intel open-source Mesa driver")`:                 `vendor("Intel open-source Mesa driver")`,
		`vendor("mesa")`:          "vendor(mesa)",
		`uid("")`:                 `uid("")`,
		`isa("a,b)[0]")`:          `isa("a,b)[0]")`,
		"((kind(gpu)))":           "kind(gpu)",
		"!(!kind(gpu))":           "!!kind(gpu)",
		"!(kind(gpu)||kind(cpu))": "!(kind(gpu)||kind(cpu))",
		"(isa(a)&&isa(b))||isa(c)||!(isa(d)||isa(e))": "(isa(a)&&isa(b))||isa(c)||!(isa(d)||isa(e))",
		"isa(a)&&(isa(b)&&isa(c))":                    "isa(a)&&(isa(b)&&isa(c))",
		"kind(gpu)[3]":                                "kind(gpu)[3]",
		"!kind(gpu) [ 3 : 4 ]":                        "!kind(gpu)[3:4]",
		"*[1:]":                                       "*[1:]",
		"*[:2]":                                       "*[0:2]",
		"*[:]":                                        "*[0:]",
		"*[::2]":                                      "*[0::2]",
		"*[1:2:3]":                                    "*[1:2:3]",
		"*[1:2:]":                                     "*[1:2]",
		"*[0:1]":                                      "*[0]",
		"*[2147483647:0:2147483647]":                  "*[2147483647:0:2147483647]",
		"\tarch(spirv)\n,\nisa(vulkan1.2)":            "arch(spirv),isa(vulkan1.2)",
	} {
		a, err := ParseAvailable(text)
		if want == "" {
			if err == nil {
				t.Errorf("%s: read as %s", text, a)
			}
			continue
		}
		if err != nil || a.String() != want {
			t.Errorf("%s: read as %v, error %v; want %s", text, a, err, want)
			continue
		}
		if again, err := ParseAvailable(a.String()); err != nil || again.String() != want {
			t.Errorf("%s, read again: %v, %v", want, again, err)
		}
	}
}

func TestDefaultIsReadAndSpeltAgain(t *testing.T) {
	for text, want := range map[string]string{
		"0":                             "0",
		" 007 ":                         "7",
		"Initial":                       "initial",
		"INVALID":                       "invalid",
		"default":                       "default",
		"kind(gpu)&&vendor(A),initial":  "kind(gpu)&&vendor(A),initial",
		"kind(HOST)":                    "kind(HOST)",
		"device_num(3)||Device_Num( 4)": "device_num(3)||device_num(4)",
		"uid(initial)[1], 2 ,invalid":   "uid(initial)[1],2,invalid",
		"(kind(gpu))":                   "kind(gpu)",
		"!device_num(0)":                "!device_num(0)",
	} {
		d, err := ParseDefault(text)
		if err != nil || d.String() != want {
			t.Errorf("%s: read as %v, error %v; want %s", text, d, err, want)
		}
	}
}

func TestErrorsQuoteTheTextAndSayWhere(t *testing.T) {
	available := func(text string) error { _, err := ParseAvailable(text); return err }
	preferred := func(text string) error { _, err := ParseDefault(text); return err }
	deep := strings.Repeat("(", maxDepth)
	for _, c := range []struct {
		parse  func(string) error
		text   string
		offset int
		says   string
	}{
		{available, "", 0, "want a trait"},
		{available, "  ", 2, "want a trait"},
		{available, ",", 0, "want a trait"},
		{available, "*,", 2, "want a trait"},
		{available, "*,,*", 2, "want a trait"},
		{available, "**", 1, "want a comma"},
		{available, "!*", 1, "want a trait"},
		{available, "(*)", 1, "want a trait"},
		{available, "gpu", 0, "want a trait"},
		{available, "0", 0, "want a trait"},
		{available, "initial", 0, "want a trait"},
		{available, "kind", 4, `want "("`},
		{available, "kind gpu", 5, `want "("`},
		{available, "kind(", 5, "want a name"},
		{available, "kind()", 5, "want a name"},
		{available, "kind(gpu", 8, `want ")"`},
		{available, "kind(gpu,cpu)", 8, `want ")"`},
		{available, "kind(gpu))", 9, "want a comma or the end"},
		{available, "kind(voodoo)", 5, "want a kind: host, nohost, any, cpu, gpu"},
		{available, "kind(host)", 5, "want another kind"},
		{available, "!kind(Host)", 6, "want another kind"},
		{available, "device_num(0)", 0, "device_num is for OMP_DEFAULT_DEVICE"},
		{available, `uid("x`, 4, "want a closing quote"},
		{available, "uid(ä)", 4, "want a name"},
		{available, "kinds(gpu)", 0, "want a trait"},
		{available, "(kind(gpu)", 10, `want ")"`},
		{available, "kind(gpu)&vendor(a)", 9, "want a comma"},
		{available, "kind(gpu)|vendor(a)", 9, "want a comma"},
		{available, "kind(gpu)&&", 11, "want a trait"},
		{available, "&&kind(gpu)", 0, "want a trait"},
		{available, "isa(a)&&isa(b)||isa(c)", 14, "want parentheses where both && and ||"},
		{available, "isa(a)||isa(b)||isa(c)&&isa(d)", 22, "want parentheses where both && and ||"},
		{available, "(isa(a)||isa(b)&&isa(c))", 15, "want parentheses where both && and ||"},
		{available, "isa(a)&&isa(b)[0]", 14, "want parentheses around an expression with a subscript"},
		{available, "isa(a)[0]&&isa(b)", 9, "want a comma"},
		{available, "(isa(a)[0])", 7, `want ")"`},
		{available, "*[0][0]", 4, "want a comma"},
		{available, "*[", 2, "want an index or a section"},
		{available, "*[]", 2, "want an index or a section"},
		{available, "*[-1]", 2, "want an index or a section"},
		{available, "*[x]", 2, "want an index or a section"},
		{available, "*[0:-1]", 4, `want "]"`},
		{available, "*[0", 3, `want "]"`},
		{available, "*[0:1:0]", 6, "want a positive stride"},
		{available, "*[0:1:2:3]", 7, `want "]"`},
		{available, "*[2147483648]", 2, "too large"},
		{available, "*[0:99999999999999999999]", 4, "too large"},
		{available, "*[0:1:99999999999999999999]", 6, "too large"},
		{available, deep + "isa(a)", maxDepth, "100 levels"},
		{available, strings.Repeat("!", 1000000) + "isa(a)", maxDepth, "100 levels"},
		{preferred, "", 0, "want a trait"},
		{preferred, "-1", 0, "a non-negative device number"},
		{preferred, "1.5", 1, "want a comma"},
		{preferred, "2147483648", 0, "too large"},
		{preferred, "*", 0, "want a trait"},
		{preferred, "first", 0, "initial, invalid or default"},
		{preferred, "0[0]", 1, "want a comma"},
		{preferred, "initial[0]", 7, "want a comma"},
		{preferred, "!initial", 1, "want a trait"},
		{preferred, "initial&&kind(gpu)", 7, "want a comma"},
		{preferred, "kind(gpu)&&0", 11, "want a trait"},
		{preferred, "device_num(initial)", 11, "want a device number"},
		{preferred, "device_num(2147483648)", 11, "too large"},
		{preferred, "device_num(1", 12, `want ")"`},
		{preferred, "kind(gpu),initial,", 18, "want a trait"},
	} {
		err := c.parse(c.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.60q: error %v", c.text, err)
			continue
		}
		if e.Text != c.text || e.Offset != c.offset || !strings.Contains(e.Problem, c.says) {
			t.Errorf("%.60q: %d, %q; want %d, %q", c.text, e.Offset, e.Problem, c.offset, c.says)
		}
	}
	for text, want := range map[string]string{
		"kind(gpu":                   `"kind(gpu": byte 8, at its end: want ")"`,
		"*;*":                        `"*;*": byte 1, at ";*": want a comma or the end`,
		"*; and this goes on and on": `"*; and this goes on and on": byte 1, at "; and this goes "…: want a comma or the end`,
	} {
		if err := available(text); err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	// Levels end where their parentheses do.
	if err := available(strings.Repeat("!(isa(a)),", maxDepth) + "*"); err != nil {
		t.Errorf("side by side: %v", err)
	}
	if err := available(strings.Repeat("(", maxDepth-1) + "isa(a)" + strings.Repeat(")", maxDepth-1)); err != nil {
		t.Errorf("as deep as it may be: %v", err)
	}
}
