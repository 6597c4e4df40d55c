package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/goccy/go-graphviz"
	"github.com/goccy/go-graphviz/gvc"
	"github.com/vkomp/vkomp"
)

// graphExtensions are the kinds of file that -graph writes.
var graphExtensions = []string{".dot", ".svg", ".png"}

// graphMost bounds tasks and edges together of a graph that is laid out here:
// one of that size takes some ten seconds, and the time grows faster than the
// size.
var graphMost = map[string]int{".svg": 10000, ".png": 4000}

// pngInches is the longest side of a PNG picture, of 96 pixels each; a larger
// graph is drawn smaller.
const pngInches = 64

// writeGraph writes the graph of a sample's tasks to path, in the form that its
// extension says.
func writeGraph(ctx context.Context, path string, g vkomp.Graph) error {
	extension := strings.ToLower(filepath.Ext(path))
	if extension == ".dot" {
		return writeFile(path, g.WriteDOT)
	}
	if most := graphMost[extension]; len(g.Tasks)+len(g.Edges) > most {
		return fmt.Errorf("-graph %s: %d tasks and %d edges are too many to lay out, which is done up to %d of both: write %s, for Graphviz's own programs",
			path, len(g.Tasks), len(g.Edges), most, strings.TrimSuffix(path, filepath.Ext(path))+".dot")
	}
	return writeFile(path, func(w io.Writer) error {
		return drawGraph(ctx, w, g, graphviz.Format(extension[1:]))
	})
}

// drawGraph lays the graph out and draws it.
func drawGraph(ctx context.Context, w io.Writer, g vkomp.Graph, format graphviz.Format) (err error) {
	var dot bytes.Buffer
	if err := g.WriteDOT(&dot); err != nil {
		return err
	}
	engine, err := newEngine(ctx)
	if err != nil {
		return fmt.Errorf("graphviz: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	parsed, err := graphviz.ParseBytes(dot.Bytes())
	if err != nil {
		return fmt.Errorf("graphviz: %w", err)
	}
	defer func() { err = errors.Join(err, parsed.Close()) }()
	if format == graphviz.PNG {
		parsed.SetSize(pngInches, pngInches)
	}
	var drawn bytes.Buffer
	if err := engine.Render(ctx, parsed, format, &drawn); err != nil {
		return fmt.Errorf("graphviz: %w", err)
	}
	if drawn.Len() == 0 {
		// It has no other way to say so.
		return fmt.Errorf("graphviz: no picture of %d tasks", len(g.Tasks))
	}
	_, err = drawn.WriteTo(w)
	return err
}

// newEngine returns Graphviz with SVG of its own and PNG of ours.
func newEngine(ctx context.Context) (*graphviz.Graphviz, error) {
	pen, err := gvc.NewRenderPlugin(ctx, "png", outlined{&gvc.ImageRenderer{DefaultRenderEngine: new(gvc.DefaultRenderEngine)}})
	if err != nil {
		return nil, err
	}
	paper, err := gvc.PNGDevicePlugin(ctx)
	if err != nil {
		return nil, err
	}
	return graphviz.NewWithPlugins(ctx, pen, paper)
}

// outlined draws PNG pictures. The library's renderer is told of everything,
// curves included, that it is filled, and leaves out the outline of what is.
type outlined struct{ *gvc.ImageRenderer }

// Ellipse fills and outlines a node.
func (o outlined) Ellipse(ctx context.Context, job *gvc.Job, p []*gvc.PointFloat, _ bool) error {
	return errors.Join(o.ImageRenderer.Ellipse(ctx, job, p, true), o.ImageRenderer.Ellipse(ctx, job, p, false))
}

// Polygon fills and outlines a node, an arrow head, or the page.
func (o outlined) Polygon(ctx context.Context, job *gvc.Job, p []*gvc.PointFloat, _ bool) error {
	return errors.Join(o.ImageRenderer.Polygon(ctx, job, p, true), o.ImageRenderer.Polygon(ctx, job, p, false))
}

// BezierCurve draws an edge, or the outline of a frame.
func (o outlined) BezierCurve(ctx context.Context, job *gvc.Job, p []*gvc.PointFloat, _ bool) error {
	return o.ImageRenderer.BezierCurve(ctx, job, p, false)
}
