package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/vktest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"vkomp-demo": main})
}

// Each script is a group of command lines with their output and exit status. Every line runs in a
// process of its own.
func TestScripts(t *testing.T) {
	initial := vktest.Open(t).NumDevices()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("INITIAL", strconv.Itoa(initial)) // the number of the initial device
			// Scripts use the Vulkan driver of this process.
			for _, variable := range os.Environ() {
				for _, prefix := range []string{"VK_", "LP_", "LD_", "XDG_"} {
					if strings.HasPrefix(variable, prefix) {
						env.Vars = append(env.Vars, variable)
					}
				}
			}
			return nil
		},
	})
}

// outcome is the result of a command line.
type outcome struct {
	status         int
	stdout, stderr string
}

// demo runs a command line in this process under the Khronos validation layer, and fails the test
// on any message of the layer and on any goroutine that is left.
func demo(t *testing.T, args ...string) outcome {
	t.Helper()
	return demoWith(t, func(o *vkomp.Options) {
		o.Validation = true
		o.Logger = slog.New(watch{t: t})
	}, args...)
}

// demoWith is demo with other options.
func demoWith(t *testing.T, change func(*vkomp.Options), args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	sh := shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: func(o vkomp.Options) (*vkomp.Runtime, error) {
		change(&o)
		return vkomp.Open(o)
	}, openRaw: func(o rawvulkan.Options) (*rawvulkan.Device, error) {
		var same vkomp.Options
		change(&same)
		o.Validation, o.Logger = same.Validation, same.Logger
		return rawvulkan.Open(o)
	}}
	leaks := goleak.IgnoreCurrent()
	result := outcome{status: run(sh, args)}
	goleak.VerifyNone(t, leaks)
	result.stdout, result.stderr = stdout.String(), stderr.String()
	return result
}

// demoInBands is demo, but without the validation layer if a band begins at an address without the
// alignment that devices require of a binding (256 bytes at most). The binding then begins in the
// band above. The kernel does not access those bytes, but the layer's synchronization checks assume
// that it accesses everything that is bound, and report two unrelated bands.
func demoInBands(t *testing.T, cut []shaders.Tile, args ...string) outcome {
	t.Helper()
	for _, tile := range cut {
		if tile.Y0*tile.Width*4%256 != 0 {
			return demoWith(t, func(*vkomp.Options) {}, args...)
		}
	}
	return demo(t, args...)
}

// watch is a log handler that fails the test on warnings and errors. It ignores the warning that
// the device is a software driver, the loader's messages about layers named in the environment,
// messages of the validation layer about itself, and the message that the test expects, if any.
type watch struct {
	t        *testing.T
	expected string
}

func (w watch) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (w watch) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w watch) WithGroup(string) slog.Handler                    { return w }

func (w watch) Handle(_ context.Context, record slog.Record) error {
	switch {
	case record.Message == "the default device is a software driver", record.Message == w.expected:
	case strings.Contains(record.Message, "VK_INSTANCE_LAYERS"), strings.Contains(record.Message, vktest.LayersOwn):
	default:
		w.t.Errorf("%s: %s", record.Level, record.Message)
	}
	return nil
}

// succeed runs a command line that must succeed, and returns its output.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, demo(t, args...))
}

// output returns the output of a command line that must have succeeded.
func output(t *testing.T, result outcome) string {
	t.Helper()
	if result.status != 0 || result.stderr != "" {
		t.Fatalf("status %d, stderr %q", result.status, result.stderr)
	}
	return result.stdout
}

// figure returns one of a report's numbers.
func figure(t *testing.T, output, name string) int {
	t.Helper()
	match := regexp.MustCompile(`(?m)^` + name + ` +(\d+)$`).FindStringSubmatch(output)
	if match == nil {
		t.Fatalf("no line of %s in\n%s", name, output)
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestBadCommandLinesAreRefusedByName(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"folder.png", "folder.svg"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, line string
		want       string // a part of the message
	}{
		{"nothing", "", `expected one of "devices"`},
		{"unknown command", "walk", "unexpected argument walk"},
		{"no sample", "run", `expected one of "saxpy", "heat", "image"`},
		{"unknown sample", "run mandelbrot", "unknown sample mandelbrot: the samples are heat, image, saxpy"},
		{"misspelt sample", "run saxpi", "unknown sample saxpi: the samples are heat, image, saxpy"},
		{"stray word", "run saxpy quickly", "unexpected argument quickly"},
		{"unknown flag", "run saxpy -fast", "unknown flag --fast"},
		{"n is no number", "run saxpy -n many", `"many"`},
		{"n below the range", "run saxpy -n -1", "-n -1 is out of range: 0 to 268435456"},
		{"n above the range", "run saxpy -n 268435457", "-n 268435457 is out of range"},
		{"no bands", "run image -n 0", "-n 0 is out of range: 1 to 65536"},
		{"no plate", "run heat -n 0", "-n 0 is out of range: 1 to 1024"},
		{"plate too large for an animation", "run heat -n 1025 -out x.gif", "-n 1025 is out of range: 1 to 1024 for a GIF, to 8192 for a PNG (-out)"},
		{"steps below the range", "run heat -steps -3", "-steps -3 is out of range"},
		{"bands below the range", "run heat -bands 0", "-bands 0 is out of range"},
		{"picture to an unknown kind", "run image -out picture.bmp", "-out picture.bmp: the extension must be .png"},
		{"heat to an unknown kind", "run heat -out heat.jpg", "-out heat.jpg: the extension must be .gif or .png"},
		{"no extension", "run image -out png", "-out png: the extension must be .png"},
		{"no folder", "run image -out " + folder + "/absent/x.png", "no such file or directory"},
		{"a file is no folder", "run image -out main_test.go/x.png", "main_test.go is no folder"},
		{"a folder for a picture", "run image -out " + folder + "/folder.png", "-out " + folder + "/folder.png: it is a folder"},
		{"a folder for a graph", "run saxpy -graph " + folder + "/folder.svg", "-graph " + folder + "/folder.svg: it is a folder"},
		{"a name that is too long", "run heat -out " + folder + "/" + strings.Repeat("x", 300) + ".gif", "file name too long"},
		{"no picture", "run image -in " + folder + "/absent.png", folder + "/absent.png: no such file or directory"},
		{"source code for a picture", "run image -in main.go", "main.go: neither PNG nor JPEG"},
	} {
		t.Run(c.name, func(t *testing.T) {
			result := demo(t, strings.Fields(c.line)...)
			if result.status != 1 {
				t.Errorf("status %d, want 1", result.status)
			}
			if !strings.HasPrefix(result.stderr, "vkomp-demo: ") || !strings.Contains(result.stderr, c.want) {
				t.Errorf("stderr %q, want %q in it", result.stderr, c.want)
			}
			if result.stdout != "" {
				t.Errorf("stdout %q, want none", result.stdout)
			}
		})
	}
}

func TestUnknownDevicesAreRefusedByName(t *testing.T) {
	for _, sample := range []string{"saxpy", "heat", "image"} {
		for _, device := range []string{"99", "-2", "no-such-device"} {
			t.Run(sample+" on "+device, func(t *testing.T) {
				t.Chdir(t.TempDir())
				result := demo(t, "run", sample, "-device", device)
				if result.status != 1 || !strings.Contains(result.stderr, device) || result.stdout != "" {
					t.Errorf("status %d, stdout %q, stderr %q", result.status, result.stdout, result.stderr)
				}
				if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
					t.Errorf("files left behind: %v %v", left, err)
				}
			})
		}
	}
}

func TestHelpIsShownAndIsNoError(t *testing.T) {
	for line, want := range map[string]string{
		"-h":               "run image [flags]",
		"--help":           "run image [flags]",
		"run -help":        "run saxpy [flags]",
		"run image -h":     "photograph",
		"run heat -n 7 -h": "animated GIF",
		"devices -help":    "--json",
	} {
		t.Run(line, func(t *testing.T) {
			if printed := succeed(t, strings.Fields(line)...); !strings.Contains(printed, want) {
				t.Errorf("no %q in\n%s", want, printed)
			}
		})
	}
}

func TestFlagWithoutItsValueIsAnError(t *testing.T) {
	var cli commands
	parser, err := kong.New(&cli, kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			if flag.IsBool() {
				continue
			}
			line := append(strings.Fields(command.Path()), "-"+flag.Name)
			if got := demo(t, line...); got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, "--"+flag.Name+": missing value") {
				t.Errorf("%q: %+v", line, got)
			}
			tried++
		}
	}
	if tried < 20 {
		t.Errorf("%d flags have values", tried)
	}
}

func TestDevicesSaysWhyThereIsNone(t *testing.T) {
	withoutDrivers(t)
	got := demoWith(t, func(*vkomp.Options) {}, "devices")
	if got.status != 0 || !strings.Contains(got.stdout, "host") || !strings.Contains(got.stderr, "Vulkan") {
		t.Errorf("%+v", got)
	}
}

// withoutDrivers leaves the process without a Vulkan driver.
func withoutDrivers(t *testing.T) {
	t.Helper()
	for _, variable := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		t.Setenv(variable, filepath.Join(t.TempDir(), "absent.json"))
	}
}

func TestInterruptEndsTheSampleWithAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	leaks := goleak.IgnoreCurrent()
	status := run(shell{ctx: ctx, stdout: &stdout, stderr: &stderr, open: vkomp.Open}, []string{"run", "image"})
	goleak.VerifyNone(t, leaks)
	if status != 1 || !strings.Contains(stderr.String(), context.Canceled.Error()) {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("files left behind: %v %v", left, err)
	}
}

func TestErrorIsPrintedOnceThoughSeveralCallsEndWithIt(t *testing.T) {
	ended, other := errors.New("ended"), errors.New("other\nlines")
	var stdout, stderr bytes.Buffer
	open := func(vkomp.Options) (*vkomp.Runtime, error) { return nil, errors.Join(ended, other, ended, other) }
	status := run(shell{ctx: t.Context(), stdout: &stdout, stderr: &stderr, open: open}, []string{"run", "image"})
	if status != 1 || stderr.String() != "vkomp-demo: ended\nother\nlines\n" {
		t.Errorf("status %d, stderr %q", status, stderr.String())
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	for _, line := range []string{"-h", "devices -v", "devices -json", "memory -n 1", "cost testdata/cost.log", "bench -rows list", "run saxpy -n 5"} {
		var stderr bytes.Buffer
		sh := shell{ctx: t.Context(), stdout: full{}, stderr: &stderr, open: vkomp.Open}
		if status := run(sh, strings.Fields(line)); status != 1 || strings.Count(stderr.String(), errFull.Error()) != 1 {
			t.Errorf("%s: status %d, stderr %q", line, status, stderr.String())
		}
	}
}

func TestUsageInTheDocumentationIsComplete(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(new(commands), kong.Name("vkomp-demo"), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(true) {
		_, usage, found := strings.Cut(string(doc), "//\t"+command.FullPath()+" ")
		if !found {
			t.Errorf("no %s", command.FullPath())
			continue
		}
		usage, _, _ = strings.Cut(usage, "//\tvkomp-demo ")
		for _, flag := range command.Flags {
			if !strings.Contains(usage, "[-"+flag.Name) {
				t.Errorf("%s: no -%s", command.FullPath(), flag.Name)
			}
		}
	}
}
