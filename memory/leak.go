package memory

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// reportedLines is the largest number of lines in a leak report.
const reportedLines = 10

// Site is the call stack above a request for storage.
type Site struct{ frames [24]uintptr }

// CallSite returns the site of its caller. It costs about a microsecond, and an
// object.
func CallSite() *Site {
	s := new(Site)
	runtime.Callers(2, s.frames[:]) // 2: above Callers and CallSite
	return s
}

// internal holds the prefixes of function names that a report leaves out, so that
// it starts at the caller who asked for storage: those of this package, of the
// scheduler and its sub-packages, of the listeners, and of the API.
var internal = func() [5]string {
	own := reflect.TypeFor[Allocator]().PkgPath()
	return [...]string{own + ".", path.Dir(own) + "/sched.", path.Dir(own) + "/sched/", path.Dir(own) + "/internal/", path.Dir(own) + "."}
}()

// Caller writes the innermost frame that is not internal, or the innermost one if
// all are, as " file:line (function)".
func (s *Site) Caller() string {
	frames := fromCaller(s.all())
	if len(frames) == 0 {
		return ""
	}
	return fmt.Sprintf(" %s:%d (%s)", frames[0].File, frames[0].Line, frames[0].Function)
}

// all returns the site's frames, the innermost first.
func (s *Site) all() []runtime.Frame {
	n := slices.Index(s.frames[:], 0)
	if n < 0 {
		n = len(s.frames)
	}
	var all []runtime.Frame
	frames := runtime.CallersFrames(s.frames[:n])
	for more := n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		all = append(all, f)
	}
	return all
}

// fromCaller returns the frames starting at the innermost one that is not
// internal, or all frames if only those of the Go runtime remain.
func fromCaller(frames []runtime.Frame) []runtime.Frame {
	caller := slices.IndexFunc(frames, func(f runtime.Frame) bool { return !isInternal(f) })
	if caller < 0 || strings.HasPrefix(frames[caller].Function, "runtime.") {
		return frames
	}
	return frames[caller:]
}

// isInternal reports whether the frame is internal. A test of an internal package
// counts as a caller.
func isInternal(f runtime.Frame) bool {
	if strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	return slices.ContainsFunc(internal[:], func(prefix string) bool { return strings.HasPrefix(f.Function, prefix) })
}

// Leaks sums up storage that was not given back. The zero Leaks is empty.
type Leaks struct {
	all map[leak]Tally
}

// Tally is a number of things and their size.
type Tally struct {
	Count int    // number of things
	Bytes uint64 // total size in bytes
}

// Add counts one more of so many bytes.
func (t *Tally) Add(bytes uint64) {
	t.Count++
	t.Bytes += bytes
}

// Remove is the opposite of Add.
func (t *Tally) Remove(bytes uint64) {
	t.Count--
	t.Bytes -= bytes
}

// leak is the key of a line of the report.
type leak struct {
	kind, label string
	site        Site // the zero Site where none was recorded
}

// Add adds one piece of storage of a kind, such as "allocations". label is empty
// and site nil if they are not known.
func (l *Leaks) Add(kind, label string, site *Site, bytes uint64) {
	if l.all == nil {
		l.all = make(map[leak]Tally)
	}
	of := leak{kind: kind, label: label}
	if site != nil {
		of.site = *site
	}
	t := l.all[of]
	t.Add(bytes)
	l.all[of] = t
}

// Report writes a line for each kind, label and site's caller, the line with the most
// bytes first, and at most ten. Storage with neither label nor site is left out.
func (l *Leaks) Report() string {
	type line struct {
		kind, at string
		Tally
	}
	byText := map[[2]string]*line{} // by kind and text: different sites may format alike
	var lines []*line
	for of, t := range l.all {
		at := ""
		if of.label != "" {
			at = fmt.Sprintf(" (%s)", printable(of.label))
		}
		if of.site != (Site{}) {
			at += " at" + of.site.Caller()
		}
		if at == "" {
			continue
		}
		key := [2]string{of.kind, at}
		if byText[key] == nil {
			byText[key] = &line{kind: of.kind, at: at}
			lines = append(lines, byText[key])
		}
		byText[key].Count += t.Count
		byText[key].Bytes += t.Bytes
	}
	slices.SortFunc(lines, func(x, y *line) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.kind, y.kind), cmp.Compare(x.at, y.at))
	})
	var report strings.Builder
	for _, l := range lines[:min(len(lines), reportedLines)] {
		fmt.Fprintf(&report, "\n%d %s of %d bytes%s", l.Count, l.kind, l.Bytes, l.at)
	}
	if rest := lines[min(len(lines), reportedLines):]; len(rest) > 0 {
		var more Tally
		for _, l := range rest {
			more.Count += l.Count
			more.Bytes += l.Bytes
		}
		fmt.Fprintf(&report, "\nand %d of %d bytes at %d more sites", more.Count, more.Bytes, len(rest))
	}
	return report.String()
}

// leaks returns an error that counts the storage still allocated; nil when there is
// none.
func (a *Allocator) leaks() error {
	if a.allocations == 0 {
		return nil
	}
	var bytes uint64
	for _, b := range a.blocks {
		for c := b.first; c != nil; c = c.next {
			if !c.free {
				bytes += c.asked
			}
		}
	}
	return fmt.Errorf("memory: close: %w: %d allocations, %d bytes", ErrLeaked, a.allocations, bytes)
}

// printable returns a label as it is, or quoted if it has characters that Go escapes, such as the end of a line.
func printable(label string) string {
	if quoted := strconv.Quote(label); quoted[1:len(quoted)-1] != label {
		return quoted
	}
	return label
}
