package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/cmd/vkomp-demo/rawvulkan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first interrupt asks for the end, the second one ends the process.
	context.AfterFunc(ctx, stop)
	status := run(shell{ctx: ctx, stdout: os.Stdout, stderr: os.Stderr, open: vkomp.Open, openRaw: rawvulkan.Open}, os.Args[1:])
	stop()
	os.Exit(status)
}

// shell is the environment of a sub-command.
type shell struct {
	ctx            context.Context
	stdout, stderr io.Writer
	// args are the arguments of the command line.
	args []string
	// open opens the runtime, openRaw the device of plain Vulkan; tests replace them.
	open    func(vkomp.Options) (*vkomp.Runtime, error)
	openRaw func(rawvulkan.Options) (*rawvulkan.Device, error)
}

// runtime opens a runtime that writes the output of OMP_DISPLAY_ENV to stderr.
func (sh *shell) runtime(o vkomp.Options) (*vkomp.Runtime, error) {
	o.DisplayEnv = sh.stderr
	return sh.open(o)
}

// runtimeOrReasons is runtime, and writes to stderr why there is no Vulkan device if there is none.
func (sh *shell) runtimeOrReasons(o vkomp.Options) (*vkomp.Runtime, error) {
	var warnings bytes.Buffer
	o.Logger = warningsTo(&warnings)
	rt, err := sh.runtime(o)
	if err != nil || rt.NumDevices() > 0 {
		return rt, err
	}
	if _, err := warnings.WriteTo(sh.stderr); err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	return rt, nil
}

type commands struct {
	Help helpFlag `short:"h" help:"Say how a command is used."`

	Devices devicesCommand `cmd:"" help:"List the devices that target regions can run on."`
	Memory  memoryCommand  `cmd:"" help:"Fill devices with slices and allocations, and show what their memory is used for."`
	Stress  stressCommand  `cmd:"" help:"Run graphs of many small tasks that assert what they read."`
	Cost    costCommand    `cmd:"" help:"Say what a recorded run would cost on a device that is not there."`
	Bench   benchCommand   `cmd:"" help:"Measure vkomp beside plain Vulkan, row by row."`
	Replay  replayCommand  `cmd:"" help:"Run a taskgraph that a program has saved, and compare what it leaves."`
	Interop interopCommand `cmd:"" help:"Have Vulkan code that is not vkomp's work between target tasks."`
	Run     struct {
		Saxpy saxpyCommand `cmd:"" help:"Compute y = 2x + y in pieces."`
		Heat  heatCommand  `cmd:"" help:"Let heat spread over a plate, and draw it."`
		Image imageCommand `cmd:"" help:"Blur a picture, find its edges, and blend both with it."`
	} `cmd:"" help:"Run a sample."`
}

// samples lists the samples, for the error about an unknown one.
const samples = "heat, image, saxpy"

// run is the whole program. It returns the exit status.
func run(sh shell, args []string) int {
	stdout := &resultWriter{w: sh.stdout}
	sh.stdout = stdout
	err := execute(sh, args)
	if !errors.Is(err, stdout.err) {
		err = errors.Join(err, stdout.err)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(sh.stderr, "vkomp-demo: %s\n", once(err.Error()))
	return 1
}

// once returns a text without the lines that repeat others: several calls of a command can end for one
// reason, such as an interrupt.
func once(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// resultWriter is the standard output. It keeps the first error, and writes nothing after that, so
// that commands need not look at the error of each write.
type resultWriter struct {
	w   io.Writer
	err error
}

func (r *resultWriter) Write(b []byte) (n int, err error) {
	if r.err == nil {
		n, r.err = r.w.Write(b)
	}
	return n, r.err
}

func execute(sh shell, args []string) error {
	sh.args = args
	var cli commands
	parser, err := kong.New(&cli,
		kong.Name("vkomp-demo"),
		kong.Description("OpenMP's target tasks on Vulkan devices, in samples."),
		kong.Writers(sh.stdout, sh.stderr),
		kong.NoDefaultHelp(),
		// -device -1 is the initial device.
		kong.WithHyphenPrefixedParameters(true),
		kong.PostBuild(requireValues),
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(longFlags(args))
	if errors.Is(err, errHelpShown) {
		return nil
	}
	if err != nil {
		return unknownSample(err)
	}
	return command.Run(&sh)
}

// requireValues makes it an error that a flag at the end of the line has no value. Kong itself takes that for an empty one.
func requireValues(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && !flag.IsBool() {
			flag.Mapper = requiredValue{flag.Mapper}
		}
		return next(nil)
	})
}

// requiredValue decodes values of a flag.
type requiredValue struct{ kong.Mapper }

// Decode is called by kong when the flag is parsed.
func (r requiredValue) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().IsEOL() {
		return errors.New("missing value")
	}
	return r.Mapper.Decode(ctx, target)
}

// helpFlag prints the usage of the command before it. Kong's own flag would end the process.
type helpFlag bool

var errHelpShown = errors.New("help shown")

// BeforeReset is called by kong when the flag is parsed, before missing arguments are
// reported.
func (helpFlag) BeforeReset(command *kong.Context) error {
	if err := command.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}

// unknownSample turns kong's error about an unexpected argument of run into one that lists the
// samples.
func unknownSample(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || parse.Context == nil {
		return err
	}
	command := ""
	for _, step := range parse.Context.Path {
		if step.Command != nil {
			command = step.Command.Name
		}
	}
	word, stray := strings.CutPrefix(err.Error(), "unexpected argument ")
	if command != "run" || !stray {
		return err
	}
	word, _, _ = strings.Cut(word, ", did you mean")
	return fmt.Errorf("unknown sample %s: the samples are %s", word, samples)
}
