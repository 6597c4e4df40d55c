package main

import (
	"context"
	"fmt"
	"image/gif"
	"image/png"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestHeatAnimationHasAFrameForEveryPartOfTheSteps(t *testing.T) {
	for _, c := range []struct {
		steps  string
		frames int
	}{
		{"0", 1}, {"1", 2}, {"7", 8}, {"50", 51}, {"120", 51},
	} {
		t.Run(c.steps+" steps", func(t *testing.T) {
			t.Chdir(t.TempDir())
			printed := succeed(t, "run", "heat", "-n", "64", "-steps", c.steps, "-bands", "3", "-verify", "-out", "heat.gif")
			if !strings.Contains(printed, "64×64, "+c.steps+" steps in 3 bands") || !strings.Contains(printed, "picture written to heat.gif") {
				t.Errorf("output\n%s", printed)
			}
			file, err := os.Open("heat.gif")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			animation, err := gif.DecodeAll(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(animation.Image) != c.frames || animation.Config.Width != 64 || animation.Config.Height != 64 {
				t.Errorf("%d frames of %d×%d, want %d of 64×64", len(animation.Image), animation.Config.Width, animation.Config.Height, c.frames)
			}
		})
	}
}

func TestHeatIsTheSameInAnyNumberOfBands(t *testing.T) {
	for _, c := range []struct{ side, steps, count int }{
		{1, 3, 1}, {2, 3, 9}, {33, 41, 33}, {64, 41, 64}, {65, 200, 16}, {100, 40, 1}, {128, 200, 16},
	} {
		t.Run(fmt.Sprintf("%d×%d in %d", c.side, c.side, c.count), func(t *testing.T) {
			t.Chdir(t.TempDir())
			result := demoInBands(t, bands(c.side, c.side, c.count), "run", "heat", "-verify", "-out", "heat.png",
				"-n", strconv.Itoa(c.side), "-steps", strconv.Itoa(c.steps), "-bands", strconv.Itoa(c.count))
			if printed := output(t, result); !strings.Contains(printed, "\nverified: ") {
				t.Errorf("not verified:\n%s", printed)
			}
			file, err := os.Open("heat.png")
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := png.Decode(file); err != nil {
				t.Error(err)
			}
		})
	}
}

// newTestPlate makes a plate with its kernel.
func newTestPlate(t *testing.T, rt *vkomp.Runtime, side int) *plate {
	t.Helper()
	kernel, err := rt.NewKernel(shaders.Heat)
	if err != nil {
		t.Fatal(err)
	}
	return newPlate(kernel, side)
}

// Computed by hand: in a step a warm cell among cold ones gives alpha of its heat to each of its
// four neighbours.
func TestHeatFlowsToTheNeighboursOfAWarmCell(t *testing.T) {
	rt := vktest.Open(t)
	s := &session{rt: rt, device: rt.DefaultDevice(context.Background())}
	p := newTestPlate(t, rt, 5)
	clear(p.now)
	p.now[2*5+2] = 1
	if err := p.spread(t.Context(), s, bands(5, 5, 1), 1); err != nil {
		t.Fatal(err)
	}
	const alpha = float32(heatAlpha)
	want := map[int]float32{12: 1 - 4*alpha, 7: alpha, 11: alpha, 13: alpha, 17: alpha}
	for i, got := range p.now {
		if difference := got - want[i]; max(difference, -difference) > 1e-6 {
			t.Errorf("cell (%d, %d) is %v, want %v", i%5, i/5, got, want[i])
		}
	}
}

func TestHeatTasksDependOnBothNeighbours(t *testing.T) {
	p := newTestPlate(t, vktest.Open(t), 12)
	cut := bands(12, 12, 4)
	for band, want := range map[int]string{
		0: "in now0, in now1, out next0",
		1: "in now0, in now1, in now2, out next1",
		3: "in now2, in now3, out next3",
	} {
		task, err := p.step(cut, cut[band])
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range task.Depend {
			for i, tile := range cut {
				switch d.Address() {
				case uintptr(unsafe.Pointer(&shaders.Rows(p.now, tile)[0])):
					names = append(names, fmt.Sprint(d.Kind(), " now", i))
				case uintptr(unsafe.Pointer(&shaders.Rows(p.next, tile)[0])):
					names = append(names, fmt.Sprint(d.Kind(), " next", i))
				}
			}
		}
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("band %d depends on %q, want %q", band, got, want)
		}
	}
}

func TestPlateIsHotAboveAndInTheMiddle(t *testing.T) {
	p := newPlate(vkomp.Kernel{}, 7)
	want := "" +
		"#######" +
		"......." +
		"...#..." +
		"..###.." +
		"...#..." +
		"......." +
		"......."
	for i, cell := range want {
		if hot := p.now[i] == 1; hot != (cell == '#') {
			t.Errorf("cell (%d, %d) is %v", i%7, i/7, p.now[i])
		}
	}
}

func TestWrongHeatIsReportedWithItsCell(t *testing.T) {
	rt := vktest.Open(t)
	s := &session{rt: rt}
	p := newTestPlate(t, rt, 5)
	if _, err := p.compareWithHost(t.Context(), s, 0); err != nil {
		t.Fatal(err)
	}
	p.now[11] += 1e-3
	if _, err := p.compareWithHost(t.Context(), s, 0); err == nil || !strings.Contains(err.Error(), "cell (1, 2)") {
		t.Errorf("error %v, want cell (1, 2) named", err)
	}
}
