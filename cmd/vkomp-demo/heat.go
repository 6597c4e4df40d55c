package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

type heatCommand struct {
	N     *int   `name:"n" short:"n" placeholder:"N" help:"Side of the plate in cells, 1 to 8192, to 1024 for a GIF (default 256)."`
	Steps *int   `name:"steps" placeholder:"S" help:"Steps in time, 0 to 1000000 (default 1000)."`
	Bands *int   `name:"bands" placeholder:"B" help:"Bands to cut the plate into, 1 to 65536 (default 8)."`
	Out   string `name:"out" placeholder:"FILE" default:"vkomp-heat.gif" help:"Picture to write, animated GIF or PNG (default vkomp-heat.gif)."`
	sampleFlags
}

const (
	sideDefault, sideMost, sideMostGIF = 256, 8192, 1024
	stepsDefault, stepsMost            = 1000, 1000000
	heatBandsDefault                   = 8

	// frames is the number of pictures in an animation, with equal numbers of steps as far
	// as possible; frameDelay is in hundredths of a second.
	frames     = 50
	frameDelay = 6
	// heatWindow and heatCells are the most tasks, and steps of a cell, between two waits: an interrupt ends
	// the sample at the next one.
	heatWindow, heatCells = 1024, 1 << 26

	// heatAlpha is how far a cell moves towards its neighbours in a step.
	heatAlpha = 0.24
	// heatTolerance is the difference between device and host that -verify accepts, in
	// temperature units from 0 to 1.
	heatTolerance = 1e-5
)

// Run computes the spreading of heat and draws it.
func (c *heatCommand) Run(sh *shell) error {
	side, steps, count := chosen(c.N, sideDefault), chosen(c.Steps, stepsDefault), chosen(c.Bands, heatBandsDefault)
	if err := checkOutput("out", c.Out, ".gif", ".png"); err != nil {
		return err
	}
	animated := strings.EqualFold(filepath.Ext(c.Out), ".gif")
	most := sideMost
	if animated {
		most = sideMostGIF
	}
	cells := limit("n", side, 1, most)
	if animated && side > most {
		cells = fmt.Errorf("%w for a GIF, to %d for a PNG (-out)", cells, sideMost)
	}
	if err := errors.Join(cells, limit("steps", steps, 0, stepsMost), limit("bands", count, 1, bandsMost)); err != nil {
		return err
	}
	return c.with(sh, func(s *session) error {
		kernel, err := s.rt.NewKernel(shaders.Heat)
		if err != nil {
			return err
		}
		p := newPlate(kernel, side)
		cut := bands(side, side, count)
		var drawn []*image.Paletted
		result, err := s.measure(func() error {
			s.progress.begin("heat", steps)
			if !animated {
				return p.spread(sh.ctx, s, cut, steps)
			}
			drawn = append(drawn, p.draw())
			for frame := range frames {
				// A frame without steps shows no change.
				part := (frame+1)*steps/frames - frame*steps/frames
				if part == 0 {
					continue
				}
				if err := p.spread(sh.ctx, s, cut, part); err != nil {
					return err
				}
				drawn = append(drawn, p.draw())
			}
			return nil
		})
		if err != nil {
			return err
		}
		result.work = [2]string{"heat", fmt.Sprintf("%d×%d, %d steps in %d bands", side, side, steps, len(cut))}
		if err := result.print(sh.stdout); err != nil {
			return err
		}
		if animated {
			err = writeFile(c.Out, func(w io.Writer) error { return gif.EncodeAll(w, animate(drawn)) })
		} else {
			err = writeFile(c.Out, func(w io.Writer) error { return png.Encode(w, p.draw()) })
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(sh.stdout, "picture written to %s\n", c.Out); err != nil {
			return err
		}
		return c.verify(sh, s, &result, func() (string, error) {
			largest, err := p.compareWithHost(sh.ctx, s, steps)
			return fmt.Sprintf("largest difference from the host's result %g", largest), err
		})
	})
}

// plate is a square of cells, each with a temperature of 0 to 1, and a second square for the
// next step. The cells at its edge keep their temperature.
type plate struct {
	kernel    vkomp.Kernel
	side      int
	now, next []float32
}

// newPlate returns a plate with a hot disc in the middle and a hot upper edge.
func newPlate(kernel vkomp.Kernel, side int) *plate {
	p := &plate{kernel: kernel, side: side, now: make([]float32, side*side), next: make([]float32, side*side)}
	for y := range side {
		for x := range side {
			// Twice the distance from the centre, which is an integer.
			dx, dy := 2*x-(side-1), 2*y-(side-1)
			if y == 0 || 9*(dx*dx+dy*dy) < side*side {
				p.now[y*side+x] = 1
			}
		}
	}
	return p
}

// spread runs steps in one data region; a task is a step of one band. A band is read by the next
// step of itself and of its neighbours, and written again two steps later. The in and out
// clauses ensure both orders.
func (p *plate) spread(ctx context.Context, s *session, cut []shaders.Tile, steps int) error {
	// The two grids change roles at each step.
	maps := []vkomp.Arg{vkomp.ToFrom(p.now), vkomp.Alloc(p.next)}
	if steps%2 == 1 {
		maps = []vkomp.Arg{vkomp.To(p.now), vkomp.From(p.next)}
	}
	region := vkomp.TargetData{Device: s.device, Label: "heat", Maps: maps}
	return s.rt.TargetData(ctx, region, func(ctx context.Context) error {
		return errors.Join(p.enqueue(ctx, s, cut, steps), s.rt.Taskwait(ctx))
	})
}

func (p *plate) enqueue(ctx context.Context, s *session, cut []shaders.Tile, steps int) error {
	window := max(1, min(heatWindow/len(cut), heatCells/len(p.now)))
	for i := range steps {
		for _, tile := range cut {
			region, err := p.step(cut, tile)
			if err != nil {
				return err
			}
			region.Device, region.NoWait = s.device, true
			if err := s.rt.Target(ctx, region); err != nil {
				return err
			}
		}
		p.now, p.next = p.next, p.now
		if (i+1)%window == 0 {
			if err := s.rt.Taskwait(ctx); err != nil {
				return err
			}
		}
		s.progress.advance(1)
	}
	return nil
}

// step returns the task that computes a step of one band.
func (p *plate) step(cut []shaders.Tile, tile shaders.Tile) (vkomp.Target, error) {
	halo := tile.Grow(1)
	destination := shaders.Rows(p.next, tile)
	region, err := shaders.HeatTarget(p.kernel, tile, heatAlpha, shaders.Rows(p.now, halo), destination)
	region.Depend = append(reads(p.now, touching(cut, halo)), vkomp.Out(destination))
	return region, err
}

// compareWithHost computes a new plate on the initial device, without bands, and returns the
// largest difference. A difference above heatTolerance is an error with its position.
func (p *plate) compareWithHost(ctx context.Context, s *session, steps int) (float32, error) {
	s.progress.begin("verify", steps)
	defer s.progress.end()
	host := newPlate(p.kernel, p.side)
	whole := shaders.Whole(p.side, p.side)
	for range steps {
		region, err := host.step([]shaders.Tile{whole}, whole)
		if err != nil {
			return 0, err
		}
		region.Device = s.rt.InitialDevice()
		if err := s.rt.Target(ctx, region); err != nil {
			return 0, err
		}
		host.now, host.next = host.next, host.now
		s.progress.advance(1)
	}
	var largest float32
	for i, want := range host.now {
		difference := p.now[i] - want
		// Written so that NaN fails the comparison.
		if d := max(difference, -difference); !(d <= heatTolerance) {
			return d, fmt.Errorf("verify: cell (%d, %d) is %v on the device, %v on the host", i%p.side, i/p.side, p.now[i], want)
		} else {
			largest = max(largest, d)
		}
	}
	return largest, nil
}

// draw makes a picture of the plate's temperatures.
func (p *plate) draw() *image.Paletted {
	drawn := image.NewPaletted(image.Rect(0, 0, p.side, p.side), heatPalette)
	for i, t := range p.now {
		drawn.Pix[i] = byte(min(max(t, 0), 1) * 255)
	}
	return drawn
}

// animate makes an animation that repeats for ever.
func animate(drawn []*image.Paletted) *gif.GIF {
	animation := &gif.GIF{Image: drawn}
	for range drawn {
		animation.Delay = append(animation.Delay, frameDelay)
	}
	return animation
}

// heatPalette goes from black over red and yellow to white.
var heatPalette = func() color.Palette {
	palette := make(color.Palette, 256)
	for i := range palette {
		third := func(from int) uint8 { return uint8(min(max(3*i-from, 0), 255)) }
		palette[i] = color.RGBA{R: third(0), G: third(255), B: third(510), A: 255}
	}
	return palette
}()
