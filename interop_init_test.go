package vkomp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
)

func TestInitClauses(t *testing.T) {
	type prefer = []interop.Preference
	for _, c := range []struct {
		types  interop.Types
		prefer prefer
		says   string // "" if it is allowed
	}{
		{interop.TypeTarget, nil, ""},
		{interop.TypeTarget | interop.TypeTargetSync, nil, ""},
		{0, nil, "without an interop type"},
		{interop.TypeTarget | 0x40, nil, "target,Types(0x40)"},
		{interop.TypeTarget, prefer{{Runtime: interop.ForeignRuntimeCUDA}, {Name: "vulkan", Attr: []string{"ompx_a"}}, {Attr: []string{"ompx_b"}}}, ""},
		{interop.TypeTarget, prefer{{Name: "hip"}, {}}, "item 1"},
		{interop.TypeTarget, prefer{{Runtime: interop.ForeignRuntimeCUDA, Name: "sycl"}}, `as cuda and as "sycl"`},
		{interop.TypeTarget, prefer{{Attr: []string{"x_a"}}}, `"x_a"`},
		{interop.TypeTarget, prefer{{Attr: []string{"ompx_a,b"}}}, `"ompx_a,b"`},
	} {
		err := vkomp.CheckInit(c.types, c.prefer)
		if c.says == "" {
			if err != nil {
				t.Errorf("%v %+v: %v", c.types, c.prefer, err)
			}
			continue
		}
		if !errors.Is(err, interop.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v %+v: got %v, want %q", c.types, c.prefer, err, c.says)
		}
	}
}
