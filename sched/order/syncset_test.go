package order

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// queues is the number of queues in these tests.
const queues = 4

// naiveSet is a sync set as a map, with the latest point of each queue.
type naiveSet map[int32]SyncPoint

func (n naiveSet) add(m SyncPoint) {
	if o, ok := n[m.Queue]; m.Value > 0 && (!ok || o.Value < m.Value || o.Value == m.Value && o.Level < m.Level) {
		n[m.Queue] = m
	}
}

func (n naiveSet) follow(at SyncPoint, known Clock) {
	maps.DeleteFunc(n, func(q int32, m SyncPoint) bool { return q != at.Queue && m.Value <= known[q] })
	n.add(at)
}

// equal reports whether a set has the points of the map, each once.
func (n naiveSet) equal(r *SyncSet) bool {
	got := make(naiveSet)
	for i := range r.Len() {
		got[r.At(i).Queue] = r.At(i)
	}
	return r.Len() == len(n) && maps.Equal(got, n)
}

func drawPoint(t *rapid.T) SyncPoint {
	return SyncPoint{
		Value: rapid.Uint64Range(0, 5).Draw(t, "value"), Level: rapid.Int32Range(0, 3).Draw(t, "level"),
		Queue: rapid.Int32Range(0, queues-1).Draw(t, "queue"),
	}
}

func drawClock(t *rapid.T) Clock {
	return rapid.SliceOfN(rapid.Uint64Range(0, 6), queues, queues).Draw(t, "clock")
}

func TestSyncSetHasTheLatestPointOfEachQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sets [2]SyncSet
		naive := [2]naiveSet{{}, {}}
		which := func() int { return rapid.IntRange(0, 1).Draw(t, "set") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i, m := which(), drawPoint(t)
				sets[i].Add(m)
				naive[i].add(m)
			},
			"add all": func(t *rapid.T) {
				i := which()
				sets[i].AddAll(&sets[1-i])
				for _, m := range naive[1-i] {
					naive[i].add(m)
				}
			},
			"follow": func(t *rapid.T) {
				i, m, known := which(), drawPoint(t), drawClock(t)
				m.Value++
				sets[i].follow(m, known)
				naive[i].follow(m, known)
			},
			"set": func(t *rapid.T) {
				i, m := which(), drawPoint(t)
				if m.Value == 0 {
					m = SyncPoint{}
				}
				sets[i].Set(m)
				naive[i] = naiveSet{}
				naive[i].add(m)
			},
			"set all": func(t *rapid.T) {
				i := which()
				sets[i].SetAll(&sets[1-i])
				naive[i] = maps.Clone(naive[1-i])
			},
			"": func(t *rapid.T) {
				for i := range sets {
					if !naive[i].equal(&sets[i]) {
						t.Fatalf("set %d is %v, want %v", i, sets[i], naive[i])
					}
					for q := range int32(queues) {
						if got, want := sets[i].on(q), naive[i][q]; got != want {
							t.Fatalf("set %d has %v on queue %d, want %v", i, got, q, want)
						}
					}
				}
			},
		})
	})
}

func TestClockCoversUpToItsValuesAndNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, o, m := drawClock(t), drawClock(t), drawPoint(t)
		joined := append(Clock(nil), c...)
		joined.Join(o)
		if want := m.Value <= c[m.Queue] || m.Value <= o[m.Queue]; joined.Covers(m) != want {
			t.Errorf("%v and %v give %v, which covers %v: %v", c, o, joined, m, !want)
		}
	})
}

// on returns the point of a queue, the zero point for none.
func (r *SyncSet) on(queue int32) SyncPoint {
	for i := range r.Len() {
		if m := r.At(i); m.Queue == queue {
			return m
		}
	}
	return SyncPoint{}
}
