// Package shaders holds the kernels that ship with vkomp. Each is a compute
// shader beside its embedded SPIR-V, a Host variant in Go for the initial
// device, and a wrapper that fills a [vkomp.Target] with the kernel's range and
// arguments.
//
//	Saxpy        y = a·x + y
//	Reduce       sums, 2048 elements to a partial
//	Heat         one five-point step on a grid
//
//	Grayscale    RGBA8 ─────────────────────────────────────→ RGBA8
//	BlurRows     RGBA8 ──→ Pixel
//	BlurColumns            Pixel ──→ Pixel
//	Sobel                            Pixel ──→ edges
//	Blend        RGBA8 ────────────────┴─────────┴──────────→ RGBA8
//
// The wrapper maps what a kernel reads "to" and what it writes "from". So a
// Target works alone, and inside a data region that maps the slices it copies
// nothing. The caller adds Depend, NoWait, Device and Label. A Target may be
// launched any number of times; making one allocates its arguments.
//
// # Images
//
// An RGBA8 pixel is a uint32 with red in its lowest byte and alpha in its
// highest, 0xAABBGGRR: in memory, the byte order of image.NRGBA and image.RGBA.
// Between kernels a pixel is four float32 ([Pixel]), so that a pipeline rounds
// once, at its end. Every channel is treated by itself, alpha too.
//
// Stencils work on a [Tile] of rows. The destination is the tile's rows; the
// source is those rows and the halo that the stencil reads, as far as it lies in
// the image:
//
//	tile.Y0-radius ┌┄┄┄┄┄┄┄┄┐
//	               ┆  halo  ┆
//	tile.Y0        ├────────┤         ┌────────┐
//	               │ source │ ──────→ │  dest  │
//	tile.Y1        ├────────┤         └────────┘
//	               ┆  halo  ┆
//	tile.Y1+radius └┄┄┄┄┄┄┄┄┘
//
// Both are sub-slices of the images' own slices: [Rows] cuts them. Tiles in
// flight together read each other's rows, so the images must be mapped whole by
// an enclosing data region; the dependences are between the sub-slices.
//
// # Precision
//
// Shaders and Host variants perform the same float32 operations in the same
// order, none of them fused. They differ only where a device does not round to
// nearest even, flushes subnormals, or has a less precise square root. Grayscale
// is exact everywhere.
//
// # Sub-slices on the device
//
// Every shader declares a push-constant member vkomp_offset_<binding> for each
// binding and adds it to each index, since a sub-slice's device address may
// miss the alignment at which a buffer can be bound.
package shaders

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o saxpy.spv saxpy.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o reduce.spv reduce.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o heat.spv heat.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o grayscale.spv grayscale.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o blur_rows.spv blur_rows.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o blur_columns.spv blur_columns.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o sobel.spv sobel.comp
//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o blend.spv blend.comp
