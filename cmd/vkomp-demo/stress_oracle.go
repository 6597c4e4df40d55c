package main

import "fmt"

// oracle runs the tasks of a graph sequentially.
type oracle struct {
	g *stressGraph
	// values holds the values of each slot, writers the task that wrote it; a writer with graph 0
	// means that none has.
	values  []laneValues
	writers [][4]uint32
	spans   []span
}

// run calls visit, if it is not nil, with each task and its values.
func (o *oracle) run(visit func(step, point int, v *laneValues)) {
	g := o.g
	o.values, o.writers = make([]laneValues, g.rows*g.width), make([][4]uint32, g.rows*g.width)
	for step := range g.steps {
		row := g.row(step)
		for point := row.first; point <= row.last; point++ {
			who := g.who(step, point)
			v := beginning(who)
			o.spans = g.inputs(step, point, o.spans[:0])
			for _, s := range o.spans {
				for from := s.first; from <= s.last; from++ {
					v.take(&o.values[g.index(step-1, from)], uint32(from))
				}
			}
			v.work(who)
			at := g.index(step, point)
			o.values[at], o.writers[at] = v, who
			if visit != nil {
				visit(step, point, &v)
			}
		}
	}
}

// compare calls add for each slot that differs from the oracle's, with the number of different
// elements and messages about them.
func (o *oracle) compare(add func(n int, messages []string)) {
	for at, who := range o.writers {
		if who[2] == 0 {
			continue
		}
		var messages []string
		o.g.slot(at).check(who, &o.values[at], func(element int, found []uint32) {
			messages = append(messages, badValue(fmt.Sprintf("the result of step %d point %d", who[0], who[1]), element, who, &o.values[at], found))
		})
		add(len(messages), messages)
	}
}
