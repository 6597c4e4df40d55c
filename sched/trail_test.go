package sched

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// naiveTrail is a trail as a map: the latest mark of each queue.
type naiveTrail map[int32]mark

func (n naiveTrail) add(m mark) {
	if o, ok := n[m.queue]; m.value > 0 && (!ok || o.value < m.value || o.value == m.value && o.level < m.level) {
		n[m.queue] = m
	}
}

func (n naiveTrail) follow(at mark, known clock) {
	maps.DeleteFunc(n, func(q int32, m mark) bool { return q != at.queue && m.value <= known[q] })
	n.add(at)
}

// equal reports whether a trail has the marks of the map, each once.
func (n naiveTrail) equal(r *trail) bool {
	got := make(naiveTrail)
	for i := range r.len() {
		got[r.at(i).queue] = r.at(i)
	}
	return r.len() == len(n) && maps.Equal(got, n)
}

func drawMark(t *rapid.T) mark {
	return mark{
		value: rapid.Uint64Range(0, 5).Draw(t, "value"), level: rapid.Int32Range(0, 3).Draw(t, "level"),
		queue: rapid.Int32Range(0, int32(len(manyQueues))-1).Draw(t, "queue"),
	}
}

func drawClock(t *rapid.T) clock {
	return rapid.SliceOfN(rapid.Uint64Range(0, 6), len(manyQueues), len(manyQueues)).Draw(t, "clock")
}

func TestTrailHasTheLatestMarkOfEachQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trails [2]trail
		naive := [2]naiveTrail{{}, {}}
		which := func() int { return rapid.IntRange(0, 1).Draw(t, "trail") }
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i, m := which(), drawMark(t)
				trails[i].add(m)
				naive[i].add(m)
			},
			"add all": func(t *rapid.T) {
				i := which()
				trails[i].addAll(&trails[1-i])
				for _, m := range naive[1-i] {
					naive[i].add(m)
				}
			},
			"follow": func(t *rapid.T) {
				i, m, known := which(), drawMark(t), drawClock(t)
				m.value++
				trails[i].follow(m, known)
				naive[i].follow(m, known)
			},
			"set": func(t *rapid.T) {
				i, m := which(), drawMark(t)
				if m.value == 0 {
					m = mark{}
				}
				trails[i].set(m)
				naive[i] = naiveTrail{}
				naive[i].add(m)
			},
			"set all": func(t *rapid.T) {
				i := which()
				trails[i].setAll(&trails[1-i])
				naive[i] = maps.Clone(naive[1-i])
			},
			"": func(t *rapid.T) {
				for i := range trails {
					if !naive[i].equal(&trails[i]) {
						t.Fatalf("trail %d is %v, want %v", i, trails[i], naive[i])
					}
					for q := range int32(len(manyQueues)) {
						if got, want := trails[i].on(q), naive[i][q]; got != want {
							t.Fatalf("trail %d has %v on queue %d, want %v", i, got, q, want)
						}
					}
				}
			},
		})
	})
}

func TestClockCoversUpToItsValuesAndNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, o, m := drawClock(t), drawClock(t), drawMark(t)
		joined := append(clock(nil), c...)
		joined.join(o)
		if want := m.value <= c[m.queue] || m.value <= o[m.queue]; joined.covers(m) != want {
			t.Errorf("%v and %v give %v, which covers %v: %v", c, o, joined, m, !want)
		}
	})
}

// on returns the mark of a queue, the zero mark for none.
func (r *trail) on(queue int32) mark {
	for i := range r.len() {
		if m := r.at(i); m.queue == queue {
			return m
		}
	}
	return mark{}
}
