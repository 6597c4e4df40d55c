package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/shaders"
)

// reference computes the frames on the host.
func (f *film) reference(ctx context.Context, rt *vkomp.Runtime) ([]byte, error) {
	kernel, err := rt.NewKernel(shaders.Heat)
	if err != nil {
		return nil, err
	}
	now, next := f.plate(), make([]float32, f.width*f.height)
	whole := shaders.Whole(f.width, f.height)
	frames := make([]byte, 0, f.frames*f.frameSize())
	for range f.frames {
		for range f.steps {
			step, err := shaders.HeatTarget(kernel, whole, heatAlpha, now, next)
			if err != nil {
				return nil, err
			}
			step.Device = rt.InitialDevice()
			if err := rt.Target(ctx, step); err != nil {
				return nil, err
			}
			now, next = next, now
		}
		for _, heat := range now {
			// The fragment shader frame.frag computes the same.
			thirds := 3 * int(min(max(heat, 0), 1)*255)
			channel := func(from int) byte { return byte(min(max(thirds-from, 0), 255)) }
			frames = append(frames, channel(0), channel(255), channel(510), 255)
		}
	}
	return frames, nil
}

// compare names the first pixel that differs.
func (f *film) compare(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			pixel := i % f.frameSize() / 4
			at := i &^ 3
			return fmt.Errorf("frame %d, pixel (%d, %d) is %v, on the host %v",
				i/f.frameSize(), pixel%f.width, pixel/f.width, got[at:min(at+4, len(got))], want[at:at+4])
		}
	}
	return fmt.Errorf("%d bytes of frames: want %d", len(got), len(want))
}
