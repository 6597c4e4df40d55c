package vk

import (
	"errors"
	"os"
	"slices"
	"testing"
	"unsafe"
)

// leastLimits are the minimum limits that Vulkan requires.
var leastLimits = Limits{MaxPushConstantsSize: 128, MaxPerStageDescriptorStorageBuffers: 4}

// garbagePipelines returns options that no device accepts, keyed by what is wrong.
func garbagePipelines(t testing.TB) map[string]PipelineOptions {
	code := shader(t, "add")
	with := func(change func(o *PipelineOptions)) PipelineOptions {
		o := PipelineOptions{Code: code, Entry: "main", Bindings: []uint32{0, 1}, PushConstants: 8}
		change(&o)
		return o
	}
	damaged := slices.Clone(code)
	damaged[spirvHeaderWords] &= 0xffff // an instruction of zero words
	swapped := slices.Clone(code)
	swapped[0] = 0x03022307
	return map[string]PipelineOptions{
		"no code":                 with(func(o *PipelineOptions) { o.Code = nil }),
		"header alone":            with(func(o *PipelineOptions) { o.Code = code[:5] }),
		"other byte order":        with(func(o *PipelineOptions) { o.Code = swapped }),
		"cut off":                 with(func(o *PipelineOptions) { o.Code = code[:len(code)-1] }),
		"damaged":                 with(func(o *PipelineOptions) { o.Code = damaged }),
		"no entry point":          with(func(o *PipelineOptions) { o.Entry = "" }),
		"unknown entry point":     with(func(o *PipelineOptions) { o.Entry = "mai" }),
		"longer entry point":      with(func(o *PipelineOptions) { o.Entry = "mainmainmainmainmainmainmain" }),
		"entry point with zero":   with(func(o *PipelineOptions) { o.Entry = "main\x00" }),
		"binding number too high": with(func(o *PipelineOptions) { o.Bindings = []uint32{0, MaxBindings} }),
		"descending bindings":     with(func(o *PipelineOptions) { o.Bindings = []uint32{1, 0} }),
		"binding twice":           with(func(o *PipelineOptions) { o.Bindings = []uint32{1, 1} }),
		"odd push constants":      with(func(o *PipelineOptions) { o.PushConstants = 6 }),
		"huge push constants":     with(func(o *PipelineOptions) { o.PushConstants = 1 << 30 }),
		"constant of 3 bytes":     with(func(o *PipelineOptions) { o.Specialization = []SpecEntry{{ID: 1, Size: 3}} }),
		"constant of no bytes":    with(func(o *PipelineOptions) { o.Specialization = []SpecEntry{{ID: 1}} }),
		"constant twice": with(func(o *PipelineOptions) {
			o.Specialization = []SpecEntry{{ID: 1, Size: 4}, {ID: 2, Size: 4}, {ID: 1, Size: 4}}
		}),
	}
}

func TestGarbageOptionsNeverReachTheDriver(t *testing.T) {
	for name, o := range garbagePipelines(t) {
		if _, err := o.check(&leastLimits); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o := PipelineOptions{Code: shader(t, "add"), Entry: "main", Bindings: []uint32{0, 1, 2, 3, 4}}
	if _, err := o.check(&leastLimits); !errors.Is(err, ErrInvalid) {
		t.Errorf("more bindings than the device takes: %v", err)
	}
}

func TestBindingMaskHasTheBindingNumbers(t *testing.T) {
	o := PipelineOptions{Code: shader(t, "add"), Entry: "main", Bindings: []uint32{0, 3, 31}, PushConstants: 128}
	mask, err := o.check(&leastLimits)
	if err != nil || mask != 1|1<<3|1<<31 {
		t.Errorf("mask %#x, error %v", mask, err)
	}
}

func TestSpecializationPutsValuesInTheFirstBytes(t *testing.T) {
	const value = 0x8877665544332211
	o := PipelineOptions{Specialization: []SpecEntry{{3, value, 1}, {4, value, 2}, {5, value, 4}, {6, value, 8}}}
	ids, sizes, data := o.specialization()
	for k, s := range o.Specialization {
		if ids[k] != s.ID || sizes[k] != s.Size {
			t.Errorf("entry %d: id %d, size %d", k, ids[k], sizes[k])
		}
		at := unsafe.Pointer(&data[k])
		var got uint64
		switch s.Size {
		case 1:
			got = uint64(*(*uint8)(at))
		case 2:
			got = uint64(*(*uint16)(at))
		case 4:
			got = uint64(*(*uint32)(at))
		case 8:
			got = *(*uint64)(at)
		}
		if want := s.Value << (64 - 8*s.Size) >> (64 - 8*s.Size); got != want {
			t.Errorf("%d bytes hold %#x, want %#x", s.Size, got, want)
		}
	}
}

// FuzzCheckCode searches for modules that make checkCode read past their end.
func FuzzCheckCode(f *testing.F) {
	code, err := os.ReadFile("testdata/add.spv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(code, "main")
	f.Add(code[:40], "")
	f.Fuzz(func(t *testing.T, code []byte, entry string) {
		words := moduleWords(code)
		if checkCode(words, entry) == "" && len(words) < spirvHeaderWords+4 {
			t.Errorf("%d words have an entry point", len(words))
		}
	})
}
