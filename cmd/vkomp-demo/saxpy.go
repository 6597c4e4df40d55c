package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

type saxpyCommand struct {
	N *int `name:"n" short:"n" placeholder:"N" help:"Elements, 0 to 268435456 (default 1048576)."`
	sampleFlags
}

const (
	saxpyDefault = 1 << 20
	saxpyMost    = 1 << 28
	// saxpyPiece is the number of elements of a task; saxpyWindow is the number of tasks
	// between two waits, which bounds the device memory in use.
	saxpyPiece  = 1 << 20
	saxpyWindow = 16
	saxpyA      = 2
)

// Run computes y = 2x + y.
func (c *saxpyCommand) Run(sh *shell) error {
	n := chosen(c.N, saxpyDefault)
	if err := limit("n", n, 0, saxpyMost); err != nil {
		return err
	}
	return c.with(sh, func(s *session) error {
		x, y := make([]float32, n), make([]float32, n)
		_ = s.inPieces("fill", n, func(i int) error {
			x[i], y[i] = saxpyInput(i)
			return nil
		})
		result, err := s.measure(func() error { return saxpy(sh.ctx, s, x, y) })
		if err != nil {
			return err
		}
		result.work = [2]string{"saxpy", fmt.Sprintf("%d elements", n)}
		if err := result.print(sh.stdout); err != nil {
			return err
		}
		return c.verify(sh, s, &result, func() (string, error) {
			err := s.inPieces("verify", n, func(i int) error { return checkSaxpy(i, y[i]) })
			return fmt.Sprintf("all %d elements exact", n), err
		})
	})
}

// saxpyInput returns element i of x and y: small integers, so that 2x + y is exact in float32
// however the device rounds.
func saxpyInput(i int) (x, y float32) { return float32(i % 1021), float32(i % 509) }

// checkSaxpy compares element i of y with integer arithmetic.
func checkSaxpy(i int, got float32) error {
	if want := float32(saxpyA*(i%1021) + i%509); got != want {
		return fmt.Errorf("verify: y[%d] is %v, not %v", i, got, want)
	}
	return nil
}

// inPieces calls f for 0 to n-1 and shows a progress bar; it stops at the first error.
func (s *session) inPieces(what string, n int, f func(i int) error) error {
	s.progress.begin(what, n)
	defer s.progress.end()
	for first := 0; first < n; first += saxpyPiece {
		end := min(first+saxpyPiece, n)
		for i := first; i < end; i++ {
			if err := f(i); err != nil {
				return err
			}
		}
		s.progress.advance(end - first)
	}
	return nil
}

// saxpy adds 2x to y, with a task for each part of the slices. The parts are independent, so no
// task waits for another.
func saxpy(ctx context.Context, s *session, x, y []float32) error {
	kernel, err := s.rt.NewKernel(shaders.Saxpy)
	if err != nil {
		return err
	}
	s.progress.begin("saxpy", len(y))
	for first := 0; first < len(y); first += saxpyPiece * saxpyWindow {
		window := min(first+saxpyPiece*saxpyWindow, len(y))
		err := saxpyPieces(ctx, s, kernel, x[first:window], y[first:window])
		if err := errors.Join(err, s.rt.Taskwait(ctx)); err != nil {
			return err
		}
		s.progress.advance(window - first)
	}
	return nil
}

func saxpyPieces(ctx context.Context, s *session, kernel vkomp.Kernel, x, y []float32) error {
	for first := 0; first < len(y); first += saxpyPiece {
		end := min(first+saxpyPiece, len(y))
		region, err := shaders.SaxpyTarget(kernel, saxpyA, x[first:end], y[first:end])
		if err != nil {
			return err
		}
		region.Device, region.NoWait = s.device, true
		if err := s.rt.Target(ctx, region); err != nil {
			return err
		}
	}
	return nil
}
