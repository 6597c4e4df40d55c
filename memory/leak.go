package memory

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// reportedSites bounds how many allocation sites a leak report names.
const reportedSites = 10

// site is where storage was allocated: the call stack above Allocate.
type site [12]uintptr

func callSite() *site {
	s := new(site)
	runtime.Callers(3, s[:]) // 3: above Callers, callSite and Allocate
	return s
}

// String writes the site's frames, the innermost first.
func (s *site) String() string {
	var b strings.Builder
	n := 0
	for n < len(s) && s[n] != 0 {
		n++
	}
	frames := runtime.CallersFrames(s[:n])
	for more := n > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		fmt.Fprintf(&b, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
	}
	return b.String()
}

// leaks returns an error that counts the storage still allocated, by site
// where sites are recorded; nil when there is none.
func (a *Allocator) leaks() error {
	if a.allocations == 0 {
		return nil
	}
	type leak struct {
		site        *site
		allocations int
		bytes       uint64
	}
	bySite := map[site]*leak{}
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
			l := bySite[*c.site]
			if l == nil {
				l = &leak{site: c.site}
				bySite[*c.site] = l
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
		return cmp.Or(cmp.Compare(y.bytes, x.bytes), slices.Compare(x.site[:], y.site[:]))
	})
	var report strings.Builder
	for _, l := range leaks[:min(len(leaks), reportedSites)] {
		fmt.Fprintf(&report, "\n%d allocations of %d bytes at%s", l.allocations, l.bytes, l.site)
	}
	if more := len(leaks) - reportedSites; more > 0 {
		fmt.Fprintf(&report, "\nand %d more sites", more)
	}
	return fmt.Errorf("memory: close: %w: %d allocations, %d bytes%s", ErrLeaked, a.allocations, bytes, report.String())
}
