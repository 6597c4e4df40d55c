package vkomp

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/vkomp/vkomp/internal/layered"
)

// Sizes in the picture, in pixels. The font has a fixed width, so that the width of a
// caption is known.
const (
	svgFontSize   = 12
	svgLine       = 15 // height of a line of text
	svgNodePad    = 8  // between the caption of a node and its outline, on each side
	svgColumnGap  = 56 // between nodes of neighbouring columns, where edges turn
	svgRowGap     = 14 // between nodes of neighbouring rows, where long edges run
	svgFramePad   = 14
	svgFramesGap  = 20
	svgLeastWidth = 1200 // smallest width of a row of frames
)

// svgBlock is the drawing of a family: a grid of nodes in a frame.
type svgBlock struct {
	family
	title []string
	at    []layered.Position // grid position of each task
	// left and top are the coordinates of columns and rows; the last entry is the end of
	// the last one.
	left, top     []int
	x, y          int // of the grid in the picture
	width, height int // of the grid
}

// svgNode is the position of a task's node.
type svgNode struct {
	block         *svgBlock
	index         int
	x, y          int
	width, height int
}

// WriteSVG writes the graph as a picture for browsers, with the nodes, frames, edges and
// tooltips of WriteDOT; a target task is a box, a host task has round ends. Edges lead from
// left to right; those that pass a column run between the rows.
//
// Order, edges and labels follow the rules of WriteDOT. The picture has no scripts and no
// references. The time to write and to show it is roughly linear in the graph's size; some
// thousands of tasks are no problem.
func (g Graph) WriteSVG(w io.Writer) error {
	edges := g.drawnEdges()
	blocks := g.svgBlocks(edges)
	width, height := arrange(blocks)
	nodes := make(map[uint64]svgNode, len(g.Tasks))
	for i := range blocks {
		b := &blocks[i]
		for k := range b.tasks {
			nodes[b.tasks[k].ID] = b.node(k)
		}
	}
	// The writer keeps its first error until Flush.
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="monospace" font-size="%d">
<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="#404040"/></marker></defs>
<rect width="100%%" height="100%%" fill="#ffffff"/>
`, width, height, svgFontSize)
	for i := range blocks {
		blocks[i].writeFrame(out)
	}
	for _, e := range edges {
		e.writeSVG(out, nodes[e.From], nodes[e.To])
	}
	for i := range blocks {
		for k := range blocks[i].tasks {
			blocks[i].tasks[k].writeSVG(out, blocks[i].node(k))
		}
	}
	out.WriteString("</svg>\n")
	return out.Flush()
}

// svgBlocks lays out each family by itself, without a position in the picture.
func (g Graph) svgBlocks(edges []GraphEdge) []svgBlock {
	families := g.families()
	type place struct{ family, index int }
	places := make(map[uint64]place, len(g.Tasks))
	adjacent := make([][][]int32, len(families))
	for i, f := range families {
		adjacent[i] = make([][]int32, len(f.tasks))
		for k := range f.tasks {
			places[f.tasks[k].ID] = place{i, k}
		}
	}
	for _, e := range edges {
		if from, to := places[e.From], places[e.To]; from.family == to.family && from != to {
			adjacent[from.family][from.index] = append(adjacent[from.family][from.index], int32(to.index))
		}
	}
	blocks := make([]svgBlock, len(families))
	for i, f := range families {
		b := &blocks[i]
		*b = svgBlock{family: f, at: layered.Place(adjacent[i])}
		var widths, heights []int
		for k, at := range b.at {
			w, h := svgSize(f.tasks[k].caption())
			grow(&widths, at.Column, w)
			grow(&heights, at.Row, h)
		}
		b.left, b.top = sums(widths, svgColumnGap), sums(heights, svgRowGap)
		b.width, b.height = b.left[len(widths)]-svgColumnGap, b.top[len(heights)]-svgRowGap
		if f.parent != 0 {
			b.title = strings.Split(visible(f.title), "\n")
			w, _ := svgSize(f.title)
			b.width = max(b.width, w)
		}
	}
	return blocks
}

// grow makes the i-th size at least size.
func grow(sizes *[]int, i, size int) {
	for len(*sizes) <= i {
		*sizes = append(*sizes, 0)
	}
	(*sizes)[i] = max((*sizes)[i], size)
}

// sums returns where each of a row of sizes begins, with a gap after each, and where the row
// ends.
func sums(sizes []int, gap int) []int {
	at := make([]int, len(sizes)+1)
	for i, size := range sizes {
		at[i+1] = at[i] + size + gap
	}
	return at
}

// arrange gives each block its position: the initial task's children at the top, the frames
// in rows below. It returns the size of the picture.
func arrange(blocks []svgBlock) (width, height int) {
	most := svgLeastWidth
	if len(blocks) > 0 {
		most = max(most, blocks[0].width+2*svgFramePad)
	}
	x, y, shelf := svgFramesGap, svgFramesGap, 0
	for i := range blocks {
		b := &blocks[i]
		above := svgFramePad + svgLine*len(b.title)
		w, h := b.width+2*svgFramePad, above+b.height+svgFramePad
		if shelf > 0 && (x+w > svgFramesGap+most || blocks[i-1].parent == 0) {
			x, y, shelf = svgFramesGap, y+shelf+svgFramesGap, 0
		}
		b.x, b.y = x+svgFramePad, y+above
		width, height = max(width, x+w+svgFramesGap), max(height, y+h+svgFramesGap)
		x, shelf = x+w+svgFramesGap, max(shelf, h)
	}
	return max(width, 2*svgFramesGap), max(height, 2*svgFramesGap)
}

// node returns the position of the k-th node of the block, centred in its cell.
func (b *svgBlock) node(k int) svgNode {
	at := b.at[k]
	w, h := svgSize(b.tasks[k].caption())
	return svgNode{
		block: b, index: k, width: w, height: h,
		x: b.x + b.left[at.Column] + (b.left[at.Column+1]-svgColumnGap-b.left[at.Column]-w)/2,
		y: b.y + b.top[at.Row] + (b.top[at.Row+1]-svgRowGap-b.top[at.Row]-h)/2,
	}
}

// svgSize returns the size of a node with that caption. Both are even.
func svgSize(caption string) (width, height int) {
	cells, lines := 0, 0
	for line := range strings.SplitSeq(visible(caption), "\n") {
		n := 0
		for _, r := range line {
			n++
			if r >= 0x1100 {
				n++ // such as Chinese characters, two cells wide in most fonts
			}
		}
		cells, lines = max(cells, n), lines+1
	}
	return (cells*svgFontSize*3/5+1)&^1 + 2*svgNodePad, (lines*svgLine+1)&^1 + svgNodePad
}

// writeFrame writes the frame of the block and its title.
func (b *svgBlock) writeFrame(out *bufio.Writer) {
	if b.parent == 0 {
		return
	}
	above := svgFramePad + svgLine*len(b.title)
	fmt.Fprintf(out, `<g class="cluster"><rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="none" stroke="#808080"/>`,
		b.x-svgFramePad, b.y-above, b.width+2*svgFramePad, above+b.height+svgFramePad)
	writeLines(out, b.title, b.x+b.width/2, b.y-above+svgLine)
	out.WriteString("</g>\n")
}

// writeSVG writes the task's node.
func (t *GraphTask) writeSVG(out *bufio.Writer, n svgNode) {
	fill, outline := t.colours()
	rounded := 0
	if t.Device == InitialDeviceNumber {
		rounded = n.height / 2
	}
	fmt.Fprintf(out, `<g class="node"><title>%s</title><rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s"`,
		html.EscapeString(visible(t.describe())), n.x, n.y, n.width, n.height, rounded, cmp.Or(fill, "#d3d3d3"), cmp.Or(outline, "#000000"))
	if t.Included {
		out.WriteString(` stroke-width="2.5"`)
	}
	if t.notRun() {
		out.WriteString(` stroke-dasharray="5 3"`)
	}
	out.WriteString("/>")
	lines := strings.Split(visible(t.caption()), "\n")
	writeLines(out, lines, n.x+n.width/2, n.y+n.height/2-(len(lines)-1)*svgLine/2+svgFontSize/3)
	out.WriteString("</g>\n")
}

// writeLines writes lines of text around x, the first on the baseline y.
func writeLines(out *bufio.Writer, lines []string, x, y int) {
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(out, `<text xml:space="preserve" text-anchor="middle" x="%d" y="%d">%s</text>`, x, y+i*svgLine, html.EscapeString(line))
		}
	}
}

// writeSVG writes the edge between two nodes: a curve or, if there are columns in between, a
// line in the space between two rows with a curve at each end.
func (e GraphEdge) writeSVG(out *bufio.Writer, from, to svgNode) {
	x1, y1, x2, y2 := from.x+from.width, from.y+from.height/2, to.x, to.y+to.height/2
	out.WriteString(`<g class="edge">`)
	style := ` marker-end="url(#head)"`
	if e.Exclusion {
		out.WriteString("<title>mutually exclusive</title>")
		style = ` stroke-dasharray="5 3"`
	}
	fmt.Fprintf(out, `<path fill="none" stroke="#404040"%s d="M%d %d`, style, x1, y1)
	if b := from.block; b == to.block && b.at[to.index].Column > b.at[from.index].Column+1 {
		start, end := b.at[from.index], b.at[to.index]
		// Edges that come from above use the space above the target's row.
		channel := b.top[end.Row]
		if start.Row >= end.Row {
			channel = b.top[end.Row+1]
		}
		// Edges of several tasks run side by side.
		channel += b.y - svgRowGap/2 + 2*(from.index%5) - 4
		enter, leave := b.x+b.left[start.Column+1], b.x+b.left[end.Column]-svgColumnGap
		writeCurve(out, x1, y1, enter, channel)
		fmt.Fprintf(out, "H%d", leave)
		x1, y1 = leave, channel
	}
	writeCurve(out, x1, y1, x2, y2)
	out.WriteString("\"/></g>\n")
}

// writeCurve continues a path from one point to another; it is horizontal at both.
func writeCurve(out *bufio.Writer, x1, y1, x2, y2 int) {
	bend := max((x2-x1)/2, svgColumnGap/2)
	fmt.Fprintf(out, "C%d %d %d %d %d %d", x1+bend, y1, x2-bend, y2, x2, y2)
}
