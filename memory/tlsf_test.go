package memory

import (
	"testing"

	"github.com/vkomp/vkomp/timeline"
	"pgregory.net/rapid"
)

const modelQueues = 3

// clock is the naive model of a frontier: a value for each queue.
type clock [modelQueues]uint64

func drawFrontier(t *rapid.T) timeline.Frontier {
	var f timeline.Frontier
	for range rapid.IntRange(0, modelQueues).Draw(t, "points") {
		f.Add(timeline.Point{
			Queue: timeline.Queue(rapid.IntRange(0, modelQueues-1).Draw(t, "queue")),
			Value: rapid.Uint64Range(1, 1000).Draw(t, "value"),
		})
	}
	return f
}

func (c *clock) join(f timeline.Frontier) {
	for q := range c {
		c[q] = max(c[q], f.Value(timeline.Queue(q)))
	}
}

func (c clock) coveredBy(f timeline.Frontier) bool {
	for q, v := range c {
		if !f.Covers(timeline.Point{Queue: timeline.Queue(q), Value: v}) {
			return false
		}
	}
	return true
}

// granule is the naive model of one granule of a region.
type granule struct {
	user *chunk
	used clock // joined from all frees of this granule
}

// tlsfMachine runs a tlsf over several regions beside a model that knows every
// granule.
type tlsfMachine struct {
	index   tlsf
	regions []*region
	model   [][]granule
	live    []*chunk
}

func (m *tlsfMachine) regionOf(c *chunk) int {
	for i, r := range m.regions {
		if c.region == r {
			return i
		}
	}
	return -1
}

// largestRun is the longest run of granules without a user.
func (m *tlsfMachine) largestRun() int {
	largest := 0
	for _, granules := range m.model {
		run := 0
		for _, g := range granules {
			if g.user != nil {
				run = 0
				continue
			}
			run++
			largest = max(largest, run)
		}
	}
	return largest
}

func (m *tlsfMachine) take(t *rapid.T) {
	size := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, 700)).Draw(t, "size")
	exhaustive := rapid.Bool().Draw(t, "exhaustive")
	c := m.index.find(uint64(size), exhaustive)
	if c == nil {
		if run := m.largestRun(); exhaustive && run >= size {
			t.Fatalf("no chunk of %d granules is found where %d are free in a row", size, run)
		}
		return
	}
	m.index.take(c, uint64(size))
	r := m.regionOf(c)
	if c.size != uint64(size) || c.offset+c.size > uint64(len(m.model[r])) {
		t.Fatalf("took [%d,+%d) of %d granules where %d were asked", c.offset, c.size, len(m.model[r]), size)
	}
	for i := c.offset; i < c.offset+c.size; i++ {
		g := &m.model[r][i]
		if g.user != nil {
			t.Fatalf("granule %d of region %d has two users", i, r)
		}
		if !g.used.coveredBy(c.lastUse) {
			t.Fatalf("granule %d was last used at %v, which %v does not cover", i, g.used, c.lastUse)
		}
		g.user = c
	}
	m.live = append(m.live, c)
}

func (m *tlsfMachine) give(t *rapid.T) {
	if len(m.live) == 0 {
		t.Skip("nothing to free")
	}
	m.giveAt(rapid.IntRange(0, len(m.live)-1).Draw(t, "index"), drawFrontier(t))
}

func (m *tlsfMachine) giveAt(i int, lastUse timeline.Frontier) {
	c := m.live[i]
	m.live[i] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	r := m.regionOf(c)
	for i := range m.model[r] {
		if g := &m.model[r][i]; g.user == c {
			g.user = nil
			g.used.join(lastUse)
		}
	}
	m.index.give(c, lastUse)
}

func (m *tlsfMachine) check(t *rapid.T) {
	if err := m.index.validate(m.regions); err != nil {
		t.Fatal(err)
	}
	if got, want := m.index.largest(), uint64(m.largestRun()); got != want {
		t.Fatalf("the largest free chunk is %d granules, want %d", got, want)
	}
}

func TestTLSFAgreesWithGranuleModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &tlsfMachine{}
		for range rapid.IntRange(1, 3).Draw(t, "regions") {
			size := rapid.IntRange(1, 1500).Draw(t, "granules")
			r := &region{}
			m.index.initRegion(r, uint64(size))
			m.index.link(r.first)
			m.regions = append(m.regions, r)
			m.model = append(m.model, make([]granule, size))
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": m.take,
			"tak2": m.take, // so that regions fill up
			"give": m.give,
			"":     m.check,
		})
		for len(m.live) > 0 {
			m.giveAt(len(m.live)-1, timeline.Frontier{})
			m.check(t)
		}
		for i, r := range m.regions {
			if c := r.first; !c.free || c.next != nil || c.size != r.size {
				t.Fatalf("region %d is not one free chunk once all is freed", i)
			}
			m.index.retireRegion(r, true)
		}
		if m.index.firstLevel != 0 {
			t.Fatalf("an index without regions has classes %b", m.index.firstLevel)
		}
	})
}

// A class holds exactly the sizes between its bound and the next one's, and
// every chunk of the class above a size can hold it.
func TestSizeClassesPartitionAllSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Uniform in magnitude, not in value.
		size := rapid.Uint64Range(1, 1<<rapid.IntRange(1, 63).Draw(t, "bits")).Draw(t, "size")
		if rapid.Bool().Draw(t, "high") {
			size = -size
		}
		i, j := classOf(size)
		if i >= firstLevels || j >= secondLevels {
			t.Fatalf("size %d has class %d,%d", size, i, j)
		}
		if ni, nj := classOf(size + 1); size+1 != 0 && (ni < i || ni == i && nj < j) {
			t.Fatalf("size %d has class %d,%d and the size above has %d,%d", size, i, j, ni, nj)
		}
		ai, aj, ok := classAbove(size)
		if !ok {
			if i != firstLevels-1 || j != secondLevels-1 {
				t.Fatalf("size %d of class %d,%d has no class above", size, i, j)
			}
			return
		}
		if low := classStart(ai, aj); low < size {
			t.Fatalf("class %d,%d above size %d starts at %d", ai, aj, size, low)
		}
		if low := classStart(i, j); low > size {
			t.Fatalf("class %d,%d of size %d starts at %d", i, j, size, low)
		}
	})
}

// classStart is the smallest size of a class.
func classStart(first, second int) uint64 {
	if first == 0 {
		return uint64(second)
	}
	return uint64(secondLevels+second) << (first - 1)
}

func TestFreeingBetweenNeighboursLeavesOneChunk(t *testing.T) {
	for name, order := range map[string][]int{
		"ascending": {0, 1, 2}, "descending": {2, 1, 0}, "middle last": {0, 2, 1}, "middle first": {1, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var index tlsf
			r := &region{}
			index.initRegion(r, 30)
			index.link(r.first)
			var chunks [3]*chunk
			for i := range chunks {
				chunks[i] = index.find(10, false)
				index.take(chunks[i], 10)
			}
			if c := index.find(1, true); c != nil {
				t.Fatalf("a full region has a free chunk at %d", c.offset)
			}
			for q, i := range order {
				index.give(chunks[i], timeline.NewFrontier(timeline.Point{Queue: timeline.Queue(q), Value: 7}))
				if err := index.validate([]*region{r}); err != nil {
					t.Fatal(err)
				}
			}
			c := index.find(30, false)
			if c == nil || c != r.first || c.next != nil {
				t.Fatal("the region is not one free chunk")
			}
			for q := range timeline.Queue(3) {
				if !c.lastUse.Covers(timeline.Point{Queue: q, Value: 7}) {
					t.Errorf("the merged chunk's frontier %v lacks queue %d", c.lastUse, q)
				}
			}
		})
	}
}

// The request's own class is tried first: a freed chunk serves its own size
// again without cutting a larger one.
func TestFreedChunkServesSameSizeAgain(t *testing.T) {
	var index tlsf
	r := &region{}
	index.initRegion(r, 1<<20)
	index.link(r.first)
	a := index.find(1001, false)
	index.take(a, 1001)
	fence := index.find(1, false)
	index.take(fence, 1)
	offset := a.offset
	index.give(a, timeline.Frontier{})
	if b := index.find(1001, false); b == nil || b.offset != offset {
		t.Errorf("the freed chunk at %d was not found again", offset)
	}
}
