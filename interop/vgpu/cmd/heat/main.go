// Command heat films heat that spreads over a plate: vkomp simulates it in a mapped slice, and
// vgpu draws that slice's memory on the same device, into a picture for each frame. Nothing is
// copied between the two, and the host waits for neither before it has submitted all frames.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/vkomp/vkomp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "heat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	flags := flag.NewFlagSet("heat", flag.ContinueOnError)
	f := &film{}
	flags.IntVar(&f.width, "width", 320, "width of a frame in pixels, 3 to 4096")
	flags.IntVar(&f.height, "height", 240, "height of a frame in pixels, 3 to 4096")
	flags.IntVar(&f.frames, "frames", 60, "number of frames, 1 to 1000")
	flags.IntVar(&f.steps, "steps", 8, "steps of the simulation from frame to frame, 1 to 1000")
	out := flags.String("out", "vkomp-heat", "folder to write the frames to, as PNG")
	verify := flags.Bool("verify", false, "compare every frame with the host's")
	validation := flags.Bool("validation", false, "load Vulkan's validation layer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, l := range []struct {
		name           string
		is, from, upTo int
	}{{"width", f.width, 3, 4096}, {"height", f.height, 3, 4096}, {"frames", f.frames, 1, 1000}, {"steps", f.steps, 1, 1000}} {
		if l.is < l.from || l.is > l.upTo {
			return fmt.Errorf("-%s %d: want %d to %d", l.name, l.is, l.from, l.upTo)
		}
	}

	rt, err := vkomp.Open(vkomp.Options{Validation: *validation, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	frames, s, err := f.shoot(ctx, rt)
	if err != nil {
		return err
	}
	if err := f.write(*out, frames); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%d frames of %d×%d in %s\n", f.frames, f.width, f.height, *out)
	fmt.Fprintf(stdout, "handed out in %v, finished %v later; %d copies between simulation and drawing\n",
		s.handing.Round(time.Millisecond), s.finishing.Round(time.Millisecond), s.copies)
	if !*verify {
		return nil
	}
	want, err := f.reference(ctx, rt)
	if err != nil {
		return err
	}
	if err := f.compare(frames, want); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	fmt.Fprintln(stdout, "verified: every pixel is the host's")
	return nil
}

// write writes the frames as PNGs.
func (f *film) write(folder string, frames []byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i := range f.frames {
		picture := &image.RGBA{
			Pix: frames[i*f.frameSize():][:f.frameSize()], Stride: 4 * f.width, Rect: image.Rect(0, 0, f.width, f.height),
		}
		if err := writePNG(filepath.Join(folder, fmt.Sprintf("frame-%03d.png", i)), picture); err != nil {
			return err
		}
	}
	return nil
}

func writePNG(name string, picture image.Image) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return png.Encode(file, picture)
}
