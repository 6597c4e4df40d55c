package vk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// familiesOf parses families such as "GCT16 T2 CT8": capabilities (graphics, compute,
// transfer, sparse binding, video decoding), then the number of queues.
func familiesOf(t *testing.T, text string) (families []QueueFamily) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		var f QueueFamily
		digits := strings.IndexFunc(word, unicode.IsDigit)
		for _, letter := range word[:digits] {
			f.Flags |= map[rune]QueueFlags{'G': QueueGraphics, 'C': QueueCompute, 'T': QueueTransfer,
				'S': QueueSparseBinding, 'V': 1 << 5}[letter]
		}
		if _, err := fmt.Sscan(word[digits:], &f.Count); err != nil {
			t.Fatal(err)
		}
		families = append(families, f)
	}
	return families
}

func TestQueuesOfKnownDevices(t *testing.T) {
	const (
		nvidia = "GCTS16 TS2 CTS8 TSV1 TV1"
		old    = "GCTS16 TS1" // no compute family without graphics
		amd    = "GCTS1 CTS4 TS1"
		intel  = "GCT1"
		arc    = "GCTS1 TS1 CTS4 V1"
	)
	for _, c := range []struct {
		families          string
		compute, transfer int
		want              string // families of the queues
	}{
		{intel, 8, 2, "0"}, // also lavapipe and SwiftShader
		{intel, 1, -1, "0"},
		{nvidia, 8, 2, "0 0 0 0 0 0 0 2 1 1"},
		{nvidia, 1, 2, "0 1 1"},
		{nvidia, 2, 1, "0 2 1"},
		{nvidia, 17, 0, strings.Repeat("0 ", 16) + "2"},
		{nvidia, 20, -1, strings.Repeat("0 ", 16) + "2 2 2 2"},
		{nvidia, 99, 99, strings.Repeat("0 ", 16) + strings.Repeat("2 ", 8) + "1 1 3 4"},
		{nvidia, 3, 3, "0 0 2 1 1 3"},
		{old, 8, 2, "0 0 0 0 0 0 0 0 1"},
		{amd, 8, 2, "0 1 1 1 1 2"},
		{amd, 2, 2, "0 1 2"},
		{amd, 1, -1, "0"},
		{arc, 8, 2, "0 2 2 2 2 1"},
		// The many-queue layer.
		{"GCT3 CT2 T2", 8, 2, "0 0 0 1 1 2 2"},
		{"GCT3 CT2 T2", 3, 2, "0 0 1 2 2"},
		// The main family is the first one with compute, whatever else it supports.
		{"T2 CT2 GCT4", 8, 2, "1 1 2 2 2 2 0 0"},
		{"CT4 GCT16", 4, 0, "0 0 0 0"},
		{"CT4 CT8 GCT1", 5, 0, "0 0 0 0 1"},
		{"CT4 CT8 GCT1", 4, 0, "0 0 0 0"},
		{"G4 GCT2 CT1 GC1", 8, 2, "1 1 2 3"},
		{"GC2 C1", 2, 2, "0 1"}, // transfer is implied
		{"GCT2 CT1 CT1 CT1", 3, 2, "0 0 1"},
		{"GCT0 CT0 GCT1 T0 T1", 8, 2, "2 4"}, // families without queues
		// Families with video decoding or graphics are not used for transfers first.
		{"GCT1 TV1 T1", 8, 1, "0 2"},
		{"GCT1 TV1 T1", 8, 2, "0 2 1"},
		{"GCT1 GT1 V1 S1", 8, 2, "0"},
		{"GT4 T2 V1", 8, 2, ""}, // nothing computes
		{"", 8, 2, ""},
	} {
		got := strings.Trim(fmt.Sprint(planQueues(familiesOf(t, c.families), c.compute, c.transfer)), "[]")
		if want := strings.TrimSpace(c.want); got != want {
			t.Errorf("%s, %d and %d: queues of families %s; want %s", c.families, c.compute, c.transfer, got, want)
		}
	}
}

func TestInteropQueuesOfKnownDevices(t *testing.T) {
	const (
		nvidia = "GCTS16 TS2 CTS8 TSV1 TV1"
		amd    = "GCTS1 CTS4 TS1"
	)
	for _, c := range []struct {
		families                   string
		compute, transfer, interop int
		want                       string // families of the queues, then those of the interop queues after "+"
	}{
		{"GCT1", 8, 2, 1, "0 +"}, // also lavapipe and SwiftShader
		{"GCT2", 8, 2, 1, "0 + 0"},
		{"GCT3", 8, 2, 3, "0 0 + 0"},
		{nvidia, 8, 2, 1, "0 0 0 0 0 0 0 2 1 1 + 0"},
		{nvidia, 8, 2, 3, "0 0 0 0 0 0 0 2 1 1 + 0 0 0"},
		{nvidia, 8, 2, -1, "0 0 0 0 0 0 0 2 1 1 +"},
		{nvidia, 16, 0, 3, strings.Repeat("0 ", 15) + "2 + 0"},
		{nvidia, 99, 0, 3, strings.Repeat("0 ", 15) + strings.Repeat("2 ", 8) + "+ 0"},
		// The scheduler keeps the main family's only queue.
		{amd, 8, 2, 1, "0 1 1 1 2 + 1"},
		{amd, 3, 2, 3, "0 1 1 2 + 1 1"},
		{amd, 1, -1, 1, "0 + 1"},
		{"GCT1 CT1", 8, 2, 1, "0 1 +"},
		{"GCT1 CT1", 1, 2, 1, "0 + 1"},
		{"GCT1 CT1 GC3", 8, 2, 1, "0 1 2 2 + 2"},
		// A queue given up for interop is replaced by another if possible.
		{"GCT3 CT2 T2", 4, 2, 1, "0 0 1 1 2 2 + 0"},
		{"GCT3 CT2 T2", 8, 2, 1, "0 0 1 1 2 2 + 0"},
		{"GCT4 CT2", 5, 0, 2, "0 0 0 1 1 + 0"},
		{"GT4 T2", 8, 2, 1, "+"}, // nothing computes
		{"", 8, 2, 1, "+"},
	} {
		queues, interop := planDevice(familiesOf(t, c.families), c.compute, c.transfer, c.interop)
		got := strings.Trim(fmt.Sprint(queues), "[]") + " + " + strings.Trim(fmt.Sprint(interop), "[]")
		if got := strings.TrimSpace(got); got != c.want {
			t.Errorf("%s, %d, %d and %d: queues of families %s; want %s", c.families, c.compute, c.transfer, c.interop, got, c.want)
		}
	}
}

// forEachFamilies calls do with every list of up to four families from kinds.
func forEachFamilies(kinds []QueueFamily, do func([]QueueFamily)) {
	var grow func(list []QueueFamily)
	grow = func(list []QueueFamily) {
		do(list)
		if len(list) == 4 {
			return
		}
		for _, k := range kinds {
			grow(append(list[:len(list):len(list)], k))
		}
	}
	grow(nil)
}

func TestQueuesOfAllSmallDevices(t *testing.T) {
	var kinds []QueueFamily
	for _, flags := range []QueueFlags{
		QueueGraphics | QueueCompute | QueueTransfer, QueueCompute | QueueTransfer, QueueCompute,
		QueueTransfer, QueueGraphics | QueueTransfer, QueueTransfer | 1<<5,
	} {
		for _, count := range []int{0, 1, 3} {
			kinds = append(kinds, QueueFamily{Flags: flags, Count: count})
		}
	}
	lists := 0
	forEachFamilies(kinds, func(families []QueueFamily) {
		lists++
		for _, most := range [][2]int{{1, -1}, {1, 0}, {2, 1}, {3, 2}, {8, 2}, {99, 99}} {
			plan := planQueues(families, most[0], most[1])
			if why := wrongPlan(families, most[0], most[1], plan); why != "" {
				t.Fatalf("%v, at most %v: plan %v: %s", families, most, plan, why)
			}
			for _, mostInterop := range []int{-1, 1, 2} {
				queues, interop := planDevice(families, most[0], most[1], mostInterop)
				if why := wrongInterop(families, most[0], most[1], mostInterop, plan, queues, interop); why != "" {
					t.Fatalf("%v, at most %v: plan %v, with at most %d for interop %v and %v: %s",
						families, most, plan, mostInterop, queues, interop, why)
				}
			}
		}
	})
	if n := len(kinds); lists != 1+n+n*n+n*n*n+n*n*n*n {
		t.Errorf("%d lists of families", lists)
	}
}

// wrongPlan returns what is wrong with a plan, or "".
func wrongPlan(families []QueueFamily, mostCompute, mostTransfer int, plan []int) string {
	main := -1
	haveCompute, haveTransfer, haveAsync := 0, 0, false
	for k, f := range families {
		if f.Count == 0 {
			continue
		}
		if f.Flags&QueueCompute != 0 {
			haveCompute += f.Count
			haveAsync = haveAsync || f.Flags&QueueGraphics == 0
			if main < 0 {
				main = k
			}
		} else if f.Flags&QueueGraphics == 0 && f.Flags&QueueTransfer != 0 {
			haveTransfer += f.Count
		}
	}
	if main < 0 {
		if len(plan) != 0 {
			return "queues of a device that cannot compute"
		}
		return ""
	}
	if len(plan) == 0 || plan[0] != main {
		return "the first queue is not the main family's"
	}
	used := map[int]int{}
	compute, transfer := 0, 0
	async, drawn, special := false, false, false
	for k, f := range plan {
		used[f]++
		if k > 0 && plan[k-1] != f && used[f] > 1 {
			return "a family's queues are not together"
		}
		if families[f].Flags&QueueCompute != 0 {
			compute++
			async = async || families[f].Flags&QueueGraphics == 0
			if transfer > 0 {
				return "a queue that computes comes after one that does not"
			}
			// Apart from the main family, families with graphics come last.
			draws := f != main && families[f].Flags&QueueGraphics != 0
			if drawn && !draws {
				return "a family that draws comes before one that does not"
			}
			drawn = draws
		} else {
			transfer++
			if families[f].Flags&QueueGraphics != 0 || families[f].Flags&QueueTransfer == 0 {
				return "a queue that neither computes nor only transfers"
			}
			other := families[f].Flags != QueueTransfer
			if special && !other {
				return "a family of another purpose comes before one for transfers"
			}
			special = other
		}
	}
	for f, n := range used {
		if n > families[f].Count {
			return fmt.Sprintf("%d queues of family %d", n, f)
		}
	}
	if want := min(haveCompute, mostCompute); compute != want {
		return fmt.Sprintf("%d queues that compute, not %d", compute, want)
	}
	if want := min(haveTransfer, max(0, mostTransfer)); transfer != want {
		return fmt.Sprintf("%d queues that transfer, not %d", transfer, want)
	}
	if mostCompute > 1 && haveAsync && !async {
		return "no queue of a family that computes and does not draw"
	}
	kept := 0
	if families[main].Flags&QueueGraphics != 0 && async {
		kept = 1
	}
	if used[main] < families[main].Count && compute-used[main] > kept {
		return "the main family has queues left that others took the place of"
	}
	return ""
}

// wrongInterop returns what is wrong with the plan of a device with interop queues, given
// the plan without them, or "".
func wrongInterop(families []QueueFamily, mostCompute, mostTransfer, most int, plan, queues, interop []int) string {
	if len(interop) > max(0, most) {
		return "too many"
	}
	used := func(queues []int, family int) (n int) {
		for _, f := range queues {
			if f == family {
				n++
			}
		}
		return n
	}
	// From the main family if it can spare one, else from any compute family.
	spares := func(f int) bool { return families[f].Count > used(plan, f) || used(plan, f) > 1 }
	can := false
	for k, f := range families {
		can = can || len(plan) > 0 && f.Flags&QueueCompute != 0 && spares(k)
	}
	if (len(interop) > 0) != (can && most > 0) {
		return "there is one that could be spared, or none"
	}
	if len(interop) == 0 {
		if !slices.Equal(queues, plan) {
			return "without interop the plan differs"
		}
		return ""
	}
	taken := interop[0]
	if families[taken].Flags&QueueCompute == 0 || used(interop, taken) != len(interop) {
		return "not of one family that computes"
	}
	if spares(plan[0]) && taken != plan[0] {
		return "the main family could have spared it"
	}
	left := families[taken].Count - used(plan, taken)
	if left > 0 {
		if !slices.Equal(queues, plan) || len(interop) != min(left, most) {
			return "queues were left, and others are taken"
		}
		return ""
	}
	without := slices.Clone(families)
	without[taken].Count--
	if len(interop) != 1 || used(queues, taken) != used(plan, taken)-1 {
		return "not one given up"
	}
	for k := range families {
		if used(plan, k) > 0 && used(queues, k) == 0 {
			return "a family's last queue is given up"
		}
	}
	return wrongPlan(without, mostCompute, mostTransfer, queues)
}
