package cost

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// moment is a point of the simulated time, in nanoseconds, and why it is not earlier: from the
// moment cause on, time was spent on a part.
type moment struct {
	at    float64
	cause *moment
	part  int
}

// latest returns the latest of moments, the first one in case of a tie. Those that are nil do not
// count.
func latest(moments ...*moment) *moment {
	var last *moment
	for _, m := range moments {
		if m != nil && (last == nil || m.at > last.at) {
			last = m
		}
	}
	return last
}

// parts adds up what time is spent on.
type parts struct {
	names    map[string]int
	all      []Part
	total    []float64
	critical []float64
}

// part returns the number of a part.
func (p *parts) part(name string) int {
	i, ok := p.names[name]
	if !ok {
		i = len(p.all)
		p.names[name] = i
		p.all = append(p.all, Part{Name: name})
		p.total, p.critical = append(p.total, 0), append(p.critical, 0)
	}
	return i
}

// spend spends nanoseconds on a part from a moment on, and returns the moment after that.
func (p *parts) spend(from *moment, nanoseconds float64, name string) *moment {
	i := p.part(name)
	p.all[i].Count++
	p.total[i] += nanoseconds
	return &moment{from.at + nanoseconds, from, i}
}

// until spends nanoseconds on a part from a moment on, and returns the moment after that. If that is
// not later than now, it returns now, and nothing was spent.
func (p *parts) until(now, from *moment, nanoseconds float64, name string) *moment {
	if from.at+nanoseconds <= now.at {
		return now
	}
	return p.spend(from, nanoseconds, name)
}

// tooLong returns an error if the time up to a moment, or all that was spent, is longer than a
// time.Duration can be.
func (p *parts) tooLong(end *moment) error {
	spent := 0.0
	for _, t := range p.total {
		spent += t
	}
	if most := max(end.at, spent); most >= math.MaxInt64 {
		return fmt.Errorf("%w: it takes %.3g s, of at most %.3g", ErrRun, most/1e9, math.MaxInt64/1e9)
	}
	return nil
}

// report returns the parts, with what each contributes to a moment.
func (p *parts) report(end *moment) []Part {
	for m := end; m.cause != nil; m = m.cause {
		p.critical[m.part] += m.at - m.cause.at
	}
	for i := range p.all {
		p.all[i].Total, p.all[i].Critical = time.Duration(p.total[i]+0.5), time.Duration(p.critical[i]+0.5)
	}
	out := slices.Clone(p.all)
	slices.SortFunc(out, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	return out
}
