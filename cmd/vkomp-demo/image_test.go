package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
)

func TestImageRunsAsAGraphOfManyTasksInFewSubmissions(t *testing.T) {
	t.Chdir(t.TempDir())
	// With -graph the runtime also counts edges to tasks that were already complete.
	printed := succeed(t, "run", "image", "-verify", "-graph", "graph.dot")
	tasks, edges := figure(t, printed, "tasks"), figure(t, printed, "edges")
	submissions, barriers := figure(t, printed, "submissions"), figure(t, printed, "barriers")
	if tasks <= 100 {
		t.Errorf("%d tasks, want more than 100", tasks)
	}
	if edges <= tasks {
		t.Errorf("%d edges between %d tasks, want more edges than tasks", edges, tasks)
	}
	if submissions == 0 || submissions >= tasks {
		t.Errorf("%d submissions of %d tasks, want some, and fewer than tasks", submissions, tasks)
	}
	if barriers == 0 {
		t.Error("no barrier")
	}
	if !strings.Contains(printed, "picture written to vkomp-image.png\n") || !strings.Contains(printed, "\nverified: ") {
		t.Errorf("output does not say where the picture is and that it was verified:\n%s", printed)
	}
	got, err := readPicture("vkomp-image.png")
	if err != nil {
		t.Fatal(err)
	}
	if got.width != 512 || got.height != 512 {
		t.Errorf("the picture is %d×%d, want 512×512", got.width, got.height)
	}
}

// noise returns a picture of random pixels.
func noise(width, height int) picture {
	random := rand.New(rand.NewPCG(uint64(width), uint64(height)))
	p := picture{width: width, height: height, pixels: make([]uint32, width*height)}
	for i := range p.pixels {
		p.pixels[i] = random.Uint32()
	}
	return p
}

// Sizes at which bands are higher or lower than halos, and pictures smaller than a workgroup or
// than the number of bands.
func TestImageIsTheSameInAnyNumberOfBands(t *testing.T) {
	for _, c := range []struct{ width, height, count int }{
		{1, 1, 1}, {1, 1, 32}, {1, 40, 7}, {40, 1, 7}, {3, 2, 5}, {33, 21, 21}, {64, 64, 3}, {129, 67, 40}, {128, 67, 40}, {64, 50, 50}, {20, 200, 200},
	} {
		t.Run(fmt.Sprintf("%d×%d in %d", c.width, c.height, c.count), func(t *testing.T) {
			t.Chdir(t.TempDir())
			p := noise(c.width, c.height)
			if err := writeFile("in.png", p.encodePNG); err != nil {
				t.Fatal(err)
			}
			result := demoInBands(t, bands(c.width, c.height, c.count),
				"run", "image", "-in", "in.png", "-out", "out.png", "-verify", "-n", strconv.Itoa(c.count))
			if tasks, want := figure(t, output(t, result), "tasks"), 4*min(c.count, c.height); tasks < want {
				t.Errorf("%d tasks, want at least four a band: %d", tasks, want)
			}
			if _, err := readPicture("out.png"); err != nil {
				t.Error(err)
			}
		})
	}
}

// names returns a task's depend clauses with the names of images and bands.
func (f *filter) names(task vkomp.Target, cut []shaders.Tile) []string {
	var names []string
	for _, d := range task.Depend {
		name := "?"
		for i, tile := range cut {
			for image, start := range map[string]unsafe.Pointer{
				"source":  unsafe.Pointer(unsafe.SliceData(shaders.Rows(f.source.pixels, tile))),
				"across":  unsafe.Pointer(unsafe.SliceData(shaders.Rows(f.across, tile))),
				"blurred": unsafe.Pointer(unsafe.SliceData(shaders.Rows(f.blurred, tile))),
				"edges":   unsafe.Pointer(unsafe.SliceData(shaders.Rows(f.edges, tile))),
				"result":  unsafe.Pointer(unsafe.SliceData(shaders.Rows(f.result.pixels, tile))),
			} {
				if d.Address() == uintptr(start) {
					name = fmt.Sprint(d.Kind(), " ", image, i)
				}
			}
		}
		names = append(names, name)
	}
	return names
}

func TestTasksOfABandDependOnEveryBandTheyRead(t *testing.T) {
	f, err := newFilter(vktest.Open(t), noise(8, 40))
	if err != nil {
		t.Fatal(err)
	}
	// Bands of four rows, so that the blur's radius of six reaches two bands far.
	cut := bands(8, 40, 10)
	for _, c := range []struct {
		name string
		task func() (vkomp.Target, error)
		want string
	}{
		{"rows", func() (vkomp.Target, error) { return f.blurAcross(cut[4]) }, "out across4"},
		{"columns", func() (vkomp.Target, error) { return f.blurDown(cut, cut[4]) }, "in across2, in across3, in across4, in across5, in across6, out blurred4"},
		{"columns at the top", func() (vkomp.Target, error) { return f.blurDown(cut, cut[0]) }, "in across0, in across1, in across2, out blurred0"},
		{"edges", func() (vkomp.Target, error) { return f.findEdges(cut, cut[4]) }, "in blurred3, in blurred4, in blurred5, out edges4"},
		{"edges at the bottom", func() (vkomp.Target, error) { return f.findEdges(cut, cut[9]) }, "in blurred8, in blurred9, out edges9"},
		{"blend", func() (vkomp.Target, error) { return f.mix(cut[4]) }, "in source4, in blurred4, in edges4, out result4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			task, err := c.task()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, strings.Join(f.names(task, cut), ", ")); diff != "" {
				t.Errorf("depend (-want +got):\n%s", diff)
			}
		})
	}
}

// A depend clause orders a task only after earlier ones.
func TestTasksAreCreatedBehindThoseWhoseResultsTheyRead(t *testing.T) {
	rt := vktest.Open(t)
	for _, c := range []struct{ height, count int }{{1, 1}, {40, 10}, {40, 40}, {40, 1}, {41, 3}} {
		t.Run(fmt.Sprintf("%d rows in %d bands", c.height, c.count), func(t *testing.T) {
			f, err := newFilter(rt, noise(8, c.height))
			if err != nil {
				t.Fatal(err)
			}
			cut := bands(8, c.height, c.count)
			written := map[string]bool{}
			created, finished := 0, 0
			err = f.tasks(cut, func(task vkomp.Target) error {
				created++
				for _, name := range f.names(task, cut) {
					kind, band, _ := strings.Cut(name, " ")
					switch {
					case kind == "out" && written[band]:
						t.Errorf("task %d writes %s a second time", created, band)
					case kind == "out":
						written[band] = true
					case !written[band] && !strings.HasPrefix(band, "source"):
						t.Errorf("task %d reads %s before a task writes it", created, band)
					}
				}
				return nil
			}, func() error {
				if band := fmt.Sprint("result", finished); !written[band] {
					t.Errorf("%s is called finished and is not", band)
				}
				finished++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if created != 4*c.count || finished != c.count {
				t.Errorf("%d tasks for %d finished bands, want %d for %d", created, finished, 4*c.count, c.count)
			}
		})
	}
}

func TestImageOnTheInitialDeviceIsThatOfTheDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, device := range []string{"0", "-1"} {
		printed := succeed(t, "run", "image", "-verify", "-device", device, "-out", "on"+device+".png")
		if initial := strings.Contains(printed, "(initial)"); initial != (device == "-1") {
			t.Errorf("-device %s ran on\n%s", device, printed)
		}
	}
	device, err := readPicture("on0.png")
	if err != nil {
		t.Fatal(err)
	}
	host, err := readPicture("on-1.png")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compare(device, host); err != nil {
		t.Error(err)
	}
}

func TestImageWithoutPixelsRunsNothing(t *testing.T) {
	rt := vktest.Open(t)
	s := &session{rt: rt, device: rt.DefaultDevice(context.Background())}
	f, err := newFilter(rt, picture{width: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.run(t.Context(), s, bands(7, 0, 4)); err != nil {
		t.Fatal(err)
	}
	if largest, err := f.compareWithHost(t.Context(), s); err != nil || largest != 0 {
		t.Errorf("difference %d, %v", largest, err)
	}
}

func TestCompareFindsTheLargestDifference(t *testing.T) {
	want := picture{width: 2, height: 2, pixels: []uint32{0x11223344, 0, 0xffffffff, 0x80808080}}
	for _, c := range []struct {
		name    string
		at      int
		pixel   uint32
		largest int
		message string
	}{
		{"equal", 0, 0x11223344, 0, ""},
		{"one step up in red", 0, 0x11223345, 1, ""},
		{"one step down in alpha", 2, 0xfeffffff, 1, ""},
		{"two steps in green", 3, 0x80808280, 2, "pixel (1, 1) differs from the host's result by 2/255: 80808280, not 80808080"},
		{"black for white", 2, 0, 255, "pixel (0, 1) differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := picture{width: 2, height: 2, pixels: append([]uint32(nil), want.pixels...)}
			got.pixels[c.at] = c.pixel
			largest, err := compare(got, want)
			if largest != c.largest {
				t.Errorf("largest difference %d, want %d", largest, c.largest)
			}
			if (err == nil) != (c.message == "") || err != nil && !strings.Contains(err.Error(), c.message) {
				t.Errorf("error %v, want %q in it", err, c.message)
			}
		})
	}
}

func TestUnreadablePictureLeavesNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("broken.png", astronaut[:1000], 0o644); err != nil {
		t.Fatal(err)
	}
	result := demo(t, "run", "image", "-in", "broken.png")
	if result.status != 1 || !strings.Contains(result.stderr, "cannot read the picture broken.png: ") {
		t.Errorf("status %d, stderr %q", result.status, result.stderr)
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{"broken.png"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
