package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

// shot returns an error that names the first pixel in which the frames differ from those of the
// host.
func shot(t *testing.T, rt *vkomp.Runtime, f *film) (s stats, wrong error) {
	t.Helper()
	got, s, err := f.shoot(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.reference(t.Context(), rt)
	if err != nil {
		t.Fatal(err)
	}
	return s, f.compare(got, want)
}

func TestFramesAreTheHosts(t *testing.T) {
	for _, path := range vktest.Paths {
		t.Run(fmt.Sprint(path), func(t *testing.T) {
			s, wrong := shot(t, vktest.Open(t, vktest.Path(path)), &film{width: 67, height: 45, frames: 60, steps: 3})
			if wrong != nil {
				t.Error(wrong)
			}
			if s.copies != 0 {
				t.Errorf("%d copies between simulation and drawing", s.copies)
			}
		})
	}
}

// The driver has many queues here whose submissions take time, so that only the constructs
// order simulation and drawing: without them the frames must be wrong.
func TestFramesWithoutOrderAreWrong(t *testing.T) {
	vktest.Layers(t, "manyqueue")
	t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "2000")
	for _, unordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("unordered %t", unordered), func(t *testing.T) {
			_, wrong := shot(t, vktest.Open(t), &film{width: 67, height: 45, frames: 20, steps: 3, unordered: unordered})
			if (wrong != nil) != unordered {
				t.Errorf("frames: %v", wrong)
			}
		})
	}
}

// No work can begin before the loop has ended: the loop would hang if it waited for any.
func TestHostWaitsForNothingInTheLoop(t *testing.T) {
	rt := vktest.Open(t)
	hold := make(chan struct{})
	f := &film{width: 16, height: 16, frames: 60, steps: 3}
	f.begin = func(ctx context.Context, plate []float32) error {
		return rt.Task(ctx, vkomp.Task{Depend: []vkomp.Depend{vkomp.InOut(plate)}, Body: func(ctx context.Context) error {
			<-hold
			return nil
		}})
	}
	f.end = func() { close(hold) }
	if _, wrong := shot(t, rt, f); wrong != nil {
		t.Error(wrong)
	}
}

func TestComparisonNamesThePixel(t *testing.T) {
	f := &film{width: 3, height: 2, frames: 2, steps: 1}
	want := make([]byte, f.frames*f.frameSize())
	got := bytes.Clone(want)
	if err := f.compare(got, want); err != nil {
		t.Error(err)
	}
	got[f.frameSize()+4*(1*3+2)+1] = 7
	if err := f.compare(got, want); err == nil || !strings.Contains(err.Error(), "frame 1, pixel (2, 1) is [0 7 0 0]") {
		t.Errorf("%v", err)
	}
	if err := f.compare(want[:4], want); err == nil {
		t.Error("frames that are missing are not missed")
	}
}

func TestRunWritesTheFramesAsPNGs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "film")
	var out strings.Builder
	err := run(t.Context(), []string{"-width", "20", "-height", "10", "-frames", "3", "-steps", "2", "-out", folder, "-verify", "-validation"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"3 frames of 20×10", "0 copies between", "verified"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q does not say %q", out.String(), text)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		// The upper edge is hot, and the lower one is not.
		if r, _, b, _ := picture.At(10, 0).RGBA(); r != 0xffff || b != 0xffff || picture.Bounds().Dx() != 20 {
			t.Errorf("%s: the upper edge is %v", file.Name(), picture.At(10, 0))
		}
		if r, _, _, _ := picture.At(0, 9).RGBA(); r != 0 {
			t.Errorf("%s: the lower edge is %v", file.Name(), picture.At(0, 9))
		}
	}
}

func TestRunRefusesWhatIsNotAFilm(t *testing.T) {
	for _, c := range []struct {
		args []string
		text string
	}{
		{[]string{"-width", "2"}, "-width 2: want 3 to 4096"},
		{[]string{"-frames", "0"}, "-frames 0"},
		{[]string{"-steps", "1001"}, "-steps 1001"},
		{[]string{"more"}, `unexpected argument "more"`},
		{[]string{"-out", filepath.Join(os.DevNull, "x"), "-width", "4", "-height", "4", "-frames", "1"}, "not a directory"},
	} {
		if err := run(t.Context(), c.args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%q: %v, want %q", c.args, err, c.text)
		}
	}
}

func TestDeviceWithoutVulkanIsAnError(t *testing.T) {
	_, _, err := (&film{width: 4, height: 4, frames: 1, steps: 1}).shoot(t.Context(), vktest.Open(t, vktest.Host))
	if err == nil || !strings.Contains(err.Error(), "none of Vulkan's") {
		t.Errorf("%v", err)
	}
}
