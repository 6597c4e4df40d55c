package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

type imageCommand struct {
	N   *int   `name:"n" short:"n" placeholder:"N" help:"Bands to cut the picture into, 1 to 65536; by default of sixteen rows each."`
	In  string `name:"in" placeholder:"FILE" help:"Picture to read, PNG or JPEG; by default a photograph that the program carries."`
	Out string `name:"out" placeholder:"FILE" default:"vkomp-image.png" help:"Picture to write, PNG (default vkomp-image.png)."`
	sampleFlags
}

const (
	bandsMost = 1 << 16
	// bandRows is the default height of a band: a multiple of the kernels' workgroups that
	// gives a photograph of 512 rows more than a hundred tasks.
	bandRows = 16
	// imageWindow is the number of bands between two waits.
	imageWindow = 64

	blurSigma  = 2.0 // pixels
	blurRadius = 6   // pixels; three sigmas
)

// look draws dark edges on a softened picture.
var look = shaders.Mix{Original: 0.4, Blurred: 0.6, Edges: -0.4}

// Run filters the picture and writes the result.
func (c *imageCommand) Run(sh *shell) error {
	if c.N != nil {
		if err := limit("n", *c.N, 1, bandsMost); err != nil {
			return err
		}
	}
	if err := checkOutput("out", c.Out, ".png"); err != nil {
		return err
	}
	source, err := readPicture(c.In)
	if err != nil {
		return err
	}
	return c.with(sh, func(s *session) error {
		cut := bands(source.width, source.height, chosen(c.N, (source.height+bandRows-1)/bandRows))
		f, err := newFilter(s.rt, source)
		if err != nil {
			return err
		}
		result, err := s.measure(func() error { return f.run(sh.ctx, s, cut) })
		if err != nil {
			return err
		}
		result.work = [2]string{"image", fmt.Sprintf("%d×%d in %d bands", source.width, source.height, len(cut))}
		if err := result.print(sh.stdout); err != nil {
			return err
		}
		if err := writeFile(c.Out, f.result.encodePNG); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(sh.stdout, "picture written to %s\n", c.Out); err != nil {
			return err
		}
		return c.verify(sh, s, &result, func() (string, error) {
			largest, err := f.compareWithHost(sh.ctx, s)
			return fmt.Sprintf("largest difference from the host's result %d/255", largest), err
		})
	})
}

// filter is the chain of kernels that filters a picture,
//
//	source ─ blur rows ─► across ─ blur columns ─► blurred ─ Sobel ─► edges
//	   │                                              │                 │
//	   └──────────────────────► blend ◄───────────────┴─────────────────┘
//
// together with the images between them.
type filter struct {
	blurRows, blurColumns, sobel, blend vkomp.Kernel

	source, result  picture
	weights         []float32
	across, blurred []shaders.Pixel
	edges           []float32
}

func newFilter(rt *vkomp.Runtime, source picture) (*filter, error) {
	weights, err := shaders.GaussianWeights(blurSigma, blurRadius)
	if err != nil {
		return nil, err
	}
	n := len(source.pixels)
	f := &filter{
		source:  source,
		result:  picture{width: source.width, height: source.height, pixels: make([]uint32, n)},
		weights: weights,
		across:  make([]shaders.Pixel, n),
		blurred: make([]shaders.Pixel, n),
		edges:   make([]float32, n),
	}
	for _, k := range []struct {
		kernel *vkomp.Kernel
		source vkomp.KernelSource
	}{
		{&f.blurRows, shaders.BlurRows},
		{&f.blurColumns, shaders.BlurColumns},
		{&f.sobel, shaders.Sobel},
		{&f.blend, shaders.Blend},
	} {
		if *k.kernel, err = rt.NewKernel(k.source); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// run filters the picture band by band in one data region, so that intermediate images never
// leave the device.
func (f *filter) run(ctx context.Context, s *session, cut []shaders.Tile) error {
	region := vkomp.TargetData{
		Device: s.device,
		Label:  "image",
		Maps: []vkomp.Arg{
			vkomp.To(f.weights), vkomp.To(f.source.pixels), vkomp.From(f.result.pixels),
			vkomp.Alloc(f.across), vkomp.Alloc(f.blurred), vkomp.Alloc(f.edges),
		},
	}
	s.progress.begin("image", len(cut))
	return s.rt.TargetData(ctx, region, func(ctx context.Context) error {
		waiting := 0
		err := f.tasks(cut, func(task vkomp.Target) error {
			task.Device, task.NoWait = s.device, true
			return s.rt.Target(ctx, task)
		}, func() error {
			if waiting++; waiting < imageWindow {
				return nil
			}
			err := s.rt.Taskwait(ctx)
			s.progress.advance(waiting)
			waiting = 0
			return err
		})
		return errors.Join(err, s.rt.Taskwait(ctx))
	})
}

// tasks creates the tasks. A depend clause refers only to earlier tasks, so each is created after
// those whose results it reads: a task that reads rows around its band comes later than the tasks
// that compute these rows. tasks calls finished after the last task of each band.
func (f *filter) tasks(cut []shaders.Tile, create func(vkomp.Target) error, finished func() error) error {
	add := func(task vkomp.Target, err error) error {
		if err != nil {
			return err
		}
		return create(task)
	}
	// The number of bands that have been blurred along rows, and along columns.
	var across, blurred int
	for _, tile := range cut {
		halo := tile.Grow(1)
		for ; blurred < len(cut) && cut[blurred].Y0 < halo.Y1; blurred++ {
			wide := cut[blurred].Grow(blurRadius)
			for ; across < len(cut) && cut[across].Y0 < wide.Y1; across++ {
				if err := add(f.blurAcross(cut[across])); err != nil {
					return err
				}
			}
			if err := add(f.blurDown(cut, cut[blurred])); err != nil {
				return err
			}
		}
		if err := add(f.findEdges(cut, tile)); err != nil {
			return err
		}
		if err := add(f.mix(tile)); err != nil {
			return err
		}
		if err := finished(); err != nil {
			return err
		}
	}
	return nil
}

func (f *filter) blurAcross(tile shaders.Tile) (vkomp.Target, error) {
	destination := shaders.Rows(f.across, tile)
	region, err := shaders.BlurRowsTarget(f.blurRows, tile, f.weights, shaders.Rows(f.source.pixels, tile), destination)
	region.Depend = []vkomp.Depend{vkomp.Out(destination)}
	return region, err
}

func (f *filter) blurDown(cut []shaders.Tile, tile shaders.Tile) (vkomp.Target, error) {
	halo := tile.Grow(blurRadius)
	destination := shaders.Rows(f.blurred, tile)
	region, err := shaders.BlurColumnsTarget(f.blurColumns, tile, f.weights, shaders.Rows(f.across, halo), destination)
	region.Depend = append(reads(f.across, touching(cut, halo)), vkomp.Out(destination))
	return region, err
}

func (f *filter) findEdges(cut []shaders.Tile, tile shaders.Tile) (vkomp.Target, error) {
	halo := tile.Grow(1)
	destination := shaders.Rows(f.edges, tile)
	region, err := shaders.SobelTarget(f.sobel, tile, shaders.Rows(f.blurred, halo), destination)
	region.Depend = append(reads(f.blurred, touching(cut, halo)), vkomp.Out(destination))
	return region, err
}

func (f *filter) mix(tile shaders.Tile) (vkomp.Target, error) {
	source, destination := shaders.Rows(f.source.pixels, tile), shaders.Rows(f.result.pixels, tile)
	blurred, edges := shaders.Rows(f.blurred, tile), shaders.Rows(f.edges, tile)
	region, err := shaders.BlendTarget(f.blend, look, source, blurred, edges, destination)
	region.Depend = []vkomp.Depend{vkomp.In(source), vkomp.In(blurred), vkomp.In(edges), vkomp.Out(destination)}
	return region, err
}

// reads returns an in clause for each band of an image. Depend clauses match by storage: each
// clause names a whole band, like the band's writer, even if only a part is read.
func reads[T any](image []T, cut []shaders.Tile) []vkomp.Depend {
	depend := make([]vkomp.Depend, 0, len(cut)+1)
	for _, tile := range cut {
		depend = append(depend, vkomp.In(shaders.Rows(image, tile)))
	}
	return depend
}

// compareWithHost filters the picture on the initial device without bands, one kernel after the
// other, so that the result does not depend on bands, halos or order. It returns the largest
// difference of a colour or alpha, in steps of 1/255; more than one step is an error with its
// position.
func (f *filter) compareWithHost(ctx context.Context, s *session) (int, error) {
	host, err := newFilter(s.rt, f.source)
	if err != nil {
		return 0, err
	}
	const kernels = 4
	s.progress.begin("verify", kernels)
	defer s.progress.end()
	for _, whole := range bands(f.source.width, f.source.height, 1) {
		one := []shaders.Tile{whole}
		for _, step := range []func() (vkomp.Target, error){
			func() (vkomp.Target, error) { return host.blurAcross(whole) },
			func() (vkomp.Target, error) { return host.blurDown(one, whole) },
			func() (vkomp.Target, error) { return host.findEdges(one, whole) },
			func() (vkomp.Target, error) { return host.mix(whole) },
		} {
			region, err := step()
			if err != nil {
				return 0, err
			}
			region.Device = s.rt.InitialDevice()
			if err := s.rt.Target(ctx, region); err != nil {
				return 0, err
			}
			s.progress.advance(1)
		}
	}
	return compare(f.result, host.result)
}

// compare returns the largest difference between two pictures of one size, in steps of 1/255. A
// difference of more than one is an error with its position.
func compare(got, want picture) (int, error) {
	largest, at := 0, 0
	for i, w := range want.pixels {
		for shift := 0; shift < 32; shift += 8 {
			difference := int(got.pixels[i]>>shift&0xff) - int(w>>shift&0xff)
			if d := max(difference, -difference); d > largest {
				largest, at = d, i
			}
		}
	}
	if largest > 1 {
		return largest, fmt.Errorf("verify: pixel (%d, %d) differs from the host's result by %d/255: %08x, not %08x",
			at%got.width, at/got.width, largest, got.pixels[at], want.pixels[at])
	}
	return largest, nil
}
