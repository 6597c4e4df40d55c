//go:build !race

package order

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// The same work again needs no new batches, however many are in flight and however large they are. Under the race
// detector pools drop memory at random, so there is no such test.
func TestBatchesAreUsedAgain(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a pool has something for each processor
	for _, c := range []struct{ many, links int }{{3, 1}, {3000, 1}, {20, 3000}} {
		o, _ := newStanding(fourQueues[:1])
		q := o.All()[0]
		burst := bursts(t, o, q, c.links)
		burst(c.many)
		burst(c.many)
		for round := range 5 {
			if made := burst(c.many); made > 0 {
				t.Fatalf("%d batches in flight: round %d makes %d new ones", c.many, round, made)
			}
		}
	}
}
