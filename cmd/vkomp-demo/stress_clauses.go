package main

import (
	"bufio"
	"io"
	"strconv"
)

// clauseWriter writes the depend clauses of every kernel's task, in the order of creation, for
// the order checker in tests/order:
//
//	graph 1
//	task 0 2 out=2
//	task 1 0 in=0,1 out=8
//
//	task 1 1 host in=1 out=9
//
// A task is identified by its step and point, a graph by its number; these are the first push
// constants of the task's kernel. A task without a kernel is marked host. Keys are numbers of
// slots. A nil writer writes nothing.
type clauseWriter struct {
	w    *bufio.Writer
	line []byte
	keys []int
}

func newClauseWriter(w io.Writer) *clauseWriter { return &clauseWriter{w: bufio.NewWriter(w)} }

// graph begins a graph. flush returns write errors.
func (c *clauseWriter) graph(number uint32) {
	if c == nil {
		return
	}
	c.line = strconv.AppendUint(append(c.line[:0], "graph "...), uint64(number), 10)
	_, _ = c.w.Write(append(c.line, '\n'))
}

// task writes a task that reads and writes the objects with those keys; a negative out means that
// it writes none.
func (c *clauseWriter) task(step, point int, host bool, in []int, out int) {
	if c == nil {
		return
	}
	c.line = strconv.AppendInt(append(c.line[:0], "task "...), int64(step), 10)
	c.line = strconv.AppendInt(append(c.line, ' '), int64(point), 10)
	if host {
		c.line = append(c.line, " host"...)
	}
	for i, key := range in {
		if i == 0 {
			c.line = append(c.line, " in="...)
		} else {
			c.line = append(c.line, ',')
		}
		c.line = strconv.AppendInt(c.line, int64(key), 10)
	}
	if out >= 0 {
		c.line = strconv.AppendInt(append(c.line, " out="...), int64(out), 10)
	}
	_, _ = c.w.Write(append(c.line, '\n'))
}

func (c *clauseWriter) flush() error {
	if c == nil {
		return nil
	}
	return c.w.Flush()
}

// keysOfInputs returns the keys of the inputs of a task of that step; they are valid until the next
// call.
func (g *stressGraph) keysOfInputs(step int) []int {
	c := g.clauses
	if c == nil {
		return nil
	}
	c.keys = c.keys[:0]
	for _, s := range g.spans {
		for i := s.first; i <= s.last; i++ {
			c.keys = append(c.keys, g.index(step-1, i))
		}
	}
	return c.keys
}
