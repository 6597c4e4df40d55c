package shaders

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// However an image is cut into tiles, the result is bit by bit that of the whole.
func TestTilesMakeWhatTheWholeMakes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	weights, err := GaussianWeights(1.3, 4)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		whole := Whole(1+random.IntN(7), 1+random.IntN(12))
		grid := make([]float32, whole.elements())
		pixels := make([]Pixel, whole.elements())
		for i := range grid {
			grid[i] = random.Float32()
			pixels[i] = Pixel{255 * random.Float32(), 255 * random.Float32(), 255 * random.Float32(), 255}
		}
		run := func(tile Tile, heated []float32, blurred []Pixel, edges []float32) {
			t.Helper()
			near, far := tile.Grow(1), tile.Grow(4)
			for _, err := range []error{
				heat(tile.window(1), 0.2, Rows(grid, near), Rows(heated, tile)),
				blurColumns(tile.window(4), weights, Rows(pixels, far), Rows(blurred, tile)),
				sobel(tile.window(1), Rows(pixels, near), Rows(edges, tile)),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		n := whole.elements()
		heated, heatedTiles := make([]float32, n), make([]float32, n)
		blurred, blurredTiles := make([]Pixel, n), make([]Pixel, n)
		edges, edgesTiles := make([]float32, n), make([]float32, n)
		run(whole, heated, blurred, edges)
		for tile := whole; tile.Y0 < whole.Height; tile.Y0 = tile.Y1 {
			tile.Y1 = tile.Y0 + 1 + random.IntN(whole.Height-tile.Y0)
			run(tile, heatedTiles, blurredTiles, edgesTiles)
		}
		for name, diff := range map[string]string{
			"heat":         cmp.Diff(heated, heatedTiles),
			"blur columns": cmp.Diff(blurred, blurredTiles),
			"sobel":        cmp.Diff(edges, edgesTiles),
		} {
			if diff != "" {
				t.Fatalf("%s on %d×%d:\n%s", name, whole.Width, whole.Height, diff)
			}
		}
	}
}
