package memory

import (
	"cmp"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// reportedSites bounds how many allocation sites a leak report names.
const reportedSites = 10

// site is the call stack above Allocate.
type site [24]uintptr

func callSite() *site {
	s := new(site)
	runtime.Callers(3, s[:]) // 3: above Callers, callSite and Allocate
	return s
}

// internal are the beginnings of the functions between an allocation and who
// asked for it: those of this package and of the scheduler beside it.
var internal = func() [2]string {
	own := reflect.TypeFor[Allocator]().PkgPath()
	return [...]string{own + ".", path.Dir(own) + "/sched."}
}()

// String writes the site's frames, the innermost first, from the first one that
// is not internal on; all of them when the scheduler allocated for itself.
func (s *site) String() string {
	n := 0
	for n < len(s) && s[n] != 0 {
		n++
	}
	var all []runtime.Frame
	frames := runtime.CallersFrames(s[:n])
	for more := n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		all = append(all, f)
	}
	var b strings.Builder
	for _, f := range fromCaller(all) {
		fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
	}
	return b.String()
}

// fromCaller returns the frames from the innermost one on that is not internal,
// or all when only the goroutine's own remain.
func fromCaller(frames []runtime.Frame) []runtime.Frame {
	caller := slices.IndexFunc(frames, func(f runtime.Frame) bool { return !isInternal(f) })
	if caller < 0 || strings.HasPrefix(frames[caller].Function, "runtime.") {
		return frames
	}
	return frames[caller:]
}

// isInternal reports whether the frame is internal. A test of an internal
// package is a caller like any other.
func isInternal(f runtime.Frame) bool {
	if strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	return slices.ContainsFunc(internal[:], func(prefix string) bool { return strings.HasPrefix(f.Function, prefix) })
}

// leaks returns an error that counts the storage still allocated, by site
// where sites are recorded; nil when there is none.
func (a *Allocator) leaks() error {
	if a.allocations == 0 {
		return nil
	}
	type leak struct {
		frames      string
		allocations int
		bytes       uint64
	}
	frames := map[site]string{}
	bySite := map[string]*leak{} // by frames: internal ones tell no callers apart
	var bytes uint64
	for _, b := range a.blocks {
		for c := b.first; c != nil; c = c.next {
			if c.free {
				continue
			}
			bytes += c.asked
			if c.site == nil {
				continue
			}
			at, ok := frames[*c.site]
			if !ok {
				at = c.site.String()
				frames[*c.site] = at
			}
			l := bySite[at]
			if l == nil {
				l = &leak{frames: at}
				bySite[at] = l
			}
			l.allocations++
			l.bytes += c.asked
		}
	}
	leaks := make([]*leak, 0, len(bySite))
	for _, l := range bySite {
		leaks = append(leaks, l)
	}
	slices.SortFunc(leaks, func(x, y *leak) int {
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.frames, y.frames))
	})
	var report strings.Builder
	for _, l := range leaks[:min(len(leaks), reportedSites)] {
		fmt.Fprintf(&report, "\n%d allocations of %d bytes at%s", l.allocations, l.bytes, l.frames)
	}
	if more := len(leaks) - reportedSites; more > 0 {
		fmt.Fprintf(&report, "\nand %d more sites", more)
	}
	return fmt.Errorf("memory: close: %w: %d allocations, %d bytes%s", ErrLeaked, a.allocations, bytes, report.String())
}
