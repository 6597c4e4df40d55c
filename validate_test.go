package vkomp_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

// withWrongType returns a module in which the first result of an arithmetic instruction has the
// type of another value: it is well-formed but invalid.
func withWrongType(t *testing.T, code []byte) []byte {
	t.Helper()
	const header, opIAdd, opTypeVoid = 5, 128, 19
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	void := uint32(0)
	for at := header; at < len(words); at += int(words[at] >> 16) {
		switch words[at] & 0xffff {
		case opTypeVoid:
			void = words[at+1]
		case opIAdd:
			words[at+1] = void
			wrong := make([]byte, 0, len(code))
			for _, w := range words {
				wrong = binary.LittleEndian.AppendUint32(wrong, w)
			}
			return wrong
		}
	}
	t.Fatal("the module adds no integers")
	return nil
}

func TestValidateRefusesWhatSpirvValRefuses(t *testing.T) {
	wrong := withWrongType(t, beyondSPIRV)
	for _, validate := range []bool{true, false} {
		rt := vktest.Open(t, func(o *vkomp.Options) { o.Validate = validate })
		_, err := rt.NewKernel(vkomp.KernelSource{Name: "wrong", SPIRV: wrong})
		if !validate {
			if err != nil {
				t.Errorf("without Validate: %v", err)
			}
			continue
		}
		if !errors.Is(err, vkomp.ErrInvalidModule) || !strings.Contains(err.Error(), `kernel "wrong": spirv-val: error: line `) {
			t.Errorf("got %v", err)
		}
		k, err := rt.NewKernel(shaders.Saxpy)
		must(t, err)
		must(t, k.Close())
		_, err = rt.NewKernel(vkomp.KernelSource{Name: "host", Host: func(*vkomp.HostCall) error { return nil }})
		must(t, err)
	}
}

func TestValidateWithoutTheToolIsRefused(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	rt, err := vkomp.Open(vkomp.Options{Validate: true})
	if !errors.Is(err, vkomp.ErrUnsupported) || !strings.Contains(err.Error(), "spirv-val") {
		t.Errorf("got %v", err)
	}
	if rt != nil {
		must(t, rt.Close())
	}
}
