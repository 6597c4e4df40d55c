package vkomp

import (
	"errors"
	"fmt"
	"math"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// check returns an error unless all that the graph refers to is there.
func (g *savedGraph) check() error {
	for i := range g.Storage {
		if g.Storage[i].Align >= savedAlign {
			return fmt.Errorf("storage %d: its alignment is not less than %d", i, savedAlign)
		}
	}
	for i := range g.Present {
		b := &g.Present[i]
		if !in(b.Device, len(g.Devices)) || !g.has(&b.savedPlace) || b.Size == 0 || b.Count > savedCounts || b.Infinite && b.Count > 0 || b.absent() && b.Gone {
			return fmt.Errorf("present block %d is not valid", i)
		}
	}
	for i := range g.Memory {
		if m := &g.Memory[i]; !in(m.Device, len(g.Devices)) || m.Size == 0 {
			return fmt.Errorf("memory %d is not valid", i)
		}
	}
	for i := range g.Constructs {
		if err := g.checkConstruct(&g.Constructs[i]); err != nil {
			return fmt.Errorf("construct %d: %w", i, err)
		}
	}
	return nil
}

// checkConstruct returns an error unless all that the construct refers to is in the graph. What it asks
// for can still be wrong, as in a program: then the construct returns an error when it is run.
func (g *savedGraph) checkConstruct(c *savedConstruct) error {
	switch c.Kind {
	case savedTarget, savedEnter, savedExit, savedUpdate:
		if !in(c.Device, len(g.Devices)) || c.Kind == savedTarget && !in(c.Kernel, len(g.Kernels)) {
			return errors.New("there is no such device or kernel")
		}
	case savedMemset, savedMemcpy:
		if c.Bytes == 0 || c.Bytes > math.MaxInt || !g.ends(c.Dst, c.Bytes) || c.Kind == savedMemcpy && !g.ends(c.Src, c.Bytes) {
			return errors.New("it has an end that is not in the storage")
		}
	case savedTaskwait:
	default:
		return fmt.Errorf("there is no construct %q", c.Kind)
	}
	for _, n := range c.Range {
		if n > math.MaxInt {
			return fmt.Errorf("its range is %d", c.Range)
		}
	}
	for i := range c.Items {
		if !g.valid(&c.Items[i]) {
			return fmt.Errorf("item %d is not valid", i)
		}
	}
	for i := range c.Values {
		v := &c.Values[i]
		if v.Host != nil && !g.has(v.Host) || v.Memory != nil && !g.points(v.Memory) {
			return fmt.Errorf("value %d is not in the storage", i)
		}
	}
	for i := range c.Depend {
		d := &c.Depend[i]
		if !in(d.Kind, 256) || !g.has(&d.savedPlace) || tasks.CheckDepend(tasks.Depend{Kind: tasks.DependKind(d.Kind)}) != nil {
			return fmt.Errorf("depend item %d is not valid", i)
		}
	}
	return nil
}

// ends reports whether so many bytes at e are in the graph's storage or memory.
func (g *savedGraph) ends(e *savedEnd, size uint64) bool {
	switch {
	case e == nil, (e.Host == nil) == (e.Memory == nil):
		return false
	case e.Host != nil:
		return g.has(e.Host) && e.Host.Size == size
	}
	return g.points(e.Memory) && size <= g.Memory[e.Memory.Memory].Size-e.Memory.Offset
}

// valid reports whether the item is one that a construct can have.
func (g *savedGraph) valid(i *savedItem) bool {
	if i.Memory != nil {
		return g.points(i.Memory) && i.Size <= math.MaxInt
	}
	return g.has(&i.savedPlace) && in(i.Type, int(memory.MapDelete)+1) && in(i.Presence, int(memory.IfPresent)+1)
}

// savedCounts is the largest reference count that a file can have.
const savedCounts = 1024

func in(i, n int) bool { return i >= 0 && i < n }

// has reports whether the place is in the graph's storage.
func (g *savedGraph) has(p *savedPlace) bool {
	if p.Storage == -1 {
		return p.Offset == 0 && p.Size == 0
	}
	if !in(p.Storage, len(g.Storage)) {
		return false
	}
	all := g.Storage[p.Storage].Size
	return p.Offset <= all && p.Size <= all-p.Offset
}

// points reports whether the pointer is one into the graph's memory.
func (g *savedGraph) points(p *savedPointer) bool {
	return in(p.Memory, len(g.Memory)) && p.Offset <= g.Memory[p.Memory].Size
}
