package vk

import (
	"cmp"
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

// times repeats families of queues, each followed by a space.
func times(n int, families string) string { return strings.Repeat(families+" ", n) }

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
		compute, transfer int    // no number of compute queues is 0
		want              string // families of the queues
	}{
		{intel, 0, 2, "0"}, // also lavapipe and SwiftShader
		{intel, 1, -1, "0"},
		{nvidia, 0, 2, times(8, "2") + "0 1 1"},
		{nvidia, 8, 2, times(8, "2") + "1 1"},
		{nvidia, 1, 2, "2 1 1"},
		{nvidia, 2, 1, "2 2 1"},
		{nvidia, 9, 0, times(8, "2") + "0"},
		{nvidia, 20, -1, times(8, "2") + times(12, "0")},
		{nvidia, 99, 99, times(8, "2") + times(16, "0") + "1 1 3 4"},
		{nvidia, 3, 3, "2 2 2 1 1 3"},
		{old, 0, 2, times(8, "0") + "1"},
		{old, 12, 2, times(12, "0") + "1"},
		{amd, 0, 2, "1 1 1 1 0 2"},
		{amd, 2, 2, "1 1 2"},
		{amd, 5, 2, "1 1 1 1 0 2"},
		{amd, 1, -1, "1"},
		{arc, 0, 2, "2 2 2 2 0 1"},
		// The many-queue layer.
		{"GCT2 CT4 T2", 0, 2, "1 1 1 1 0 2 2"},
		{"GCT2 CT4 T2", 3, 2, "1 1 1 2 2"},
		{"GCT2 CT4 T2", 99, 2, "1 1 1 1 0 0 2 2"},
		// By default there is one queue of each family that draws.
		{"T2 CT2 GCT4", 0, 2, "1 1 2 0 0"},
		{"G4 GCT2 CT1 GC1", 0, 2, "2 1 3"},
		{"G4 GCT2 CT1 GC1", 8, 2, "2 1 1 3"},
		{"CT4 GCT16", 4, 0, "0 0 0 0"},
		{"CT4 CT8 GCT1", 0, 0, times(4, "0") + times(4, "1") + "2"},
		{"CT4 CT8 GCT1", 5, 0, "0 0 0 0 1"},
		{"CT12", 0, 2, times(8, "0")},
		{"GCT4 GC6", 0, 2, times(4, "0") + times(4, "1")},
		{"GC2 C1", 2, 2, "1 0"}, // transfer is implied
		{"GCT2 CT1 CT1 CT1", 3, 2, "1 2 3"},
		{"GCT0 CT0 GCT1 T0 T1", 8, 2, "2 4"}, // families without queues
		// Families with video decoding or graphics are not used for transfers first.
		{"GCT1 TV1 T1", 8, 1, "0 2"},
		{"GCT1 TV1 T1", 8, 2, "0 2 1"},
		{"GCT1 GT1 V1 S1", 8, 2, "0"},
		{"GT4 T2 V1", 8, 2, ""}, // nothing computes
		{"GT4 T2 V1", 0, 2, ""},
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
		{"GCT1", 0, 2, 1, "0 +"}, // also lavapipe and SwiftShader
		{"GCT2", 0, 2, 1, "0 + 0"},
		{"GCT3", 0, 2, 3, "0 0 + 0"},
		{nvidia, 0, 2, 1, times(8, "2") + "0 1 1 + 0"},
		{nvidia, 0, 2, 3, times(8, "2") + "0 1 1 + 0 0 0"},
		{nvidia, 0, 2, -1, times(8, "2") + "0 1 1 +"},
		{nvidia, 1, -1, 1, "2 + 0"},
		{nvidia, 99, 0, 3, times(8, "2") + times(15, "0") + "+ 0"},
		// The scheduler keeps the only queue of a family.
		{amd, 0, 2, 1, "1 1 1 0 2 + 1"},
		{amd, 3, 2, 3, "1 1 1 2 + 0"},
		{amd, 1, -1, 1, "1 + 0"},
		{"GCT1 CT1", 0, 2, 1, "1 0 +"},
		{"GCT1 CT1", 1, 2, 1, "1 + 0"},
		{"GCT1 CT1 GC3", 0, 2, 1, "1 0 2 + 2"},
		{"CT4", 0, 2, 1, "0 0 0 + 0"},
		{"CT4", 2, 2, 3, "0 0 + 0 0"},
		// All queues of a family are interop's that the scheduler does not use.
		{"GCT1 CT8 T2", 2, 2, 1, "1 1 2 2 + 0"},
		// A queue given up for interop is replaced by another if possible.
		{"GCT2 CT4 T2", 0, 2, 1, "1 1 1 1 0 2 2 + 0"},
		{"GCT2 CT4 T2", 6, 2, 1, "1 1 1 1 0 2 2 + 0"},
		{"CT9", 9, 2, 1, times(8, "0") + "+ 0"},
		{"GCT8 GCT4", 0, 2, 1, times(7, "0") + "1 + 0"},
		{"GT4 T2", 0, 2, 1, "+"}, // nothing computes
		{"", 0, 2, 1, "+"},
	} {
		queues, interop := planDevice(familiesOf(t, c.families), c.compute, c.transfer, c.interop)
		got := strings.Trim(fmt.Sprint(queues), "[]") + " + " + strings.Trim(fmt.Sprint(interop), "[]")
		if got := strings.TrimSpace(got); got != c.want {
			t.Errorf("%s, %d, %d and %d: queues of families %s; want %s", c.families, c.compute, c.transfer, c.interop, got, c.want)
		}
	}
}

// Interop objects have the first queues of a drawing family where tasks run on queues of another one.
func TestIndicesOfQueues(t *testing.T) {
	for _, c := range []struct {
		families        string
		queues, interop []int
		want            []int
	}{
		{"GCT16 T2 CT8", []int{2, 2, 0, 1, 1}, []int{0, 0}, []int{0, 1, 2, 0, 1, 0, 1}},
		{"GCT16 T2 CT8", []int{2, 2, 0, 1, 1}, nil, []int{0, 1, 0, 0, 1}},
		{"GCT1 CT4", []int{1, 1, 1, 0}, []int{1}, []int{0, 1, 2, 0, 3}},
		{"GCT1 CT8 T2", []int{1, 1, 2, 2}, []int{0}, []int{0, 1, 0, 1, 0}},
		{"GCT4", []int{0, 0, 0}, []int{0}, []int{0, 1, 2, 3}},
		{"CT4", []int{0, 0, 0}, []int{0}, []int{0, 1, 2, 3}},
	} {
		first := interopFirst(familiesOf(t, c.families), c.queues, c.interop)
		if got := queueIndices(c.queues, c.interop, first); !slices.Equal(got, c.want) {
			t.Errorf("%s, queues of families %v and %v for interop: indices %v; want %v", c.families, c.queues, c.interop, got, c.want)
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
		for _, most := range [][2]int{{0, -1}, {0, 2}, {1, -1}, {1, 0}, {2, 1}, {3, 2}, {8, 2}, {99, 99}} {
			plan := planQueues(families, most[0], most[1])
			if why := wrongPlan(families, most[0], most[1], plan); why != "" {
				t.Fatalf("%v, at most %v: plan %v: %s", families, most, plan, why)
			}
			for _, mostInterop := range []int{-1, 1, 2} {
				queues, interop := planDevice(families, most[0], most[1], mostInterop)
				why := wrongInterop(families, most[0], most[1], mostInterop, plan, queues, interop)
				if why = cmp.Or(why, wrongIndices(families, queues, interop)); why != "" {
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

// wrongIndices returns what is wrong with the indices of planned queues, or "".
func wrongIndices(families []QueueFamily, queues, interop []int) string {
	seen := make([]uint64, len(families))
	for k, index := range queueIndices(queues, interop, interopFirst(families, queues, interop)) {
		f := slices.Concat(queues, interop)[k]
		if index >= families[f].Count || seen[f]&(1<<index) != 0 {
			return fmt.Sprintf("queue %d has index %d of family %d, as another has or none", k, index, f)
		}
		seen[f] |= 1 << index
	}
	return ""
}

// wrongPlan returns what is wrong with a plan, or "".
func wrongPlan(families []QueueFamily, mostCompute, mostTransfer int, plan []int) string {
	const async, drawing, transfer, special, none = 0, 1, 2, 3, 4
	kind := func(f int) int {
		switch flags := families[f].Flags; {
		case flags&QueueCompute != 0 && flags&QueueGraphics == 0:
			return async
		case flags&QueueCompute != 0:
			return drawing
		case flags == QueueTransfer:
			return transfer
		case flags&QueueTransfer != 0 && flags&QueueGraphics == 0:
			return special
		}
		return none
	}
	// have has the queues that there are of each kind, and kinds how many families.
	var have, kinds, got [5]int
	for f := range families {
		if n := families[f].Count; n > 0 {
			have[kind(f)] += n
			kinds[kind(f)]++
		}
	}
	if have[async]+have[drawing] == 0 {
		if len(plan) != 0 {
			return "queues of a device that cannot compute"
		}
		return ""
	}
	used := map[int]int{}
	for k, f := range plan {
		used[f]++
		got[kind(f)]++
		if used[f] > families[f].Count {
			return fmt.Sprintf("%d queues of family %d", used[f], f)
		}
		if k == 0 || plan[k-1] == f {
			continue
		}
		before := plan[k-1]
		switch {
		case used[f] > 1:
			return "a family's queues are not together"
		case kind(before) > kind(f):
			return "the kinds of families are not in their order"
		case kind(before) == kind(f) && before > f:
			return "families of a kind are not in the order of their indices"
		case kind(before) == kind(f) && used[before] < families[before].Count && !(mostCompute == 0 && kind(f) == drawing && have[async] > 0):
			return "a family has queues left that another took the place of"
		}
	}
	var want [5]int
	switch {
	case mostCompute > 0:
		want[async] = min(have[async], mostCompute)
		want[drawing] = min(have[drawing], mostCompute-want[async])
	case have[async] > 0:
		want[async], want[drawing] = min(have[async], 8), kinds[drawing]
	default:
		want[drawing] = min(have[drawing], 8)
	}
	want[transfer] = min(have[transfer], max(0, mostTransfer))
	want[special] = min(have[special], max(0, mostTransfer)-want[transfer])
	if got != want {
		return fmt.Sprintf("numbers by kind %v, want %v", got, want)
	}
	if mostCompute == 0 && have[async] > 0 && len(used) < kinds[drawing] {
		return "a family that draws has no queue"
	}
	for f, n := range used {
		if mostCompute == 0 && have[async] > 0 && kind(f) == drawing && n != 1 {
			return fmt.Sprintf("%d queues of family %d, which draws", n, f)
		}
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
	// From a family that draws if one can spare it, else from any compute family.
	spares := func(f int) bool {
		return len(plan) > 0 && families[f].Flags&QueueCompute != 0 && (families[f].Count > used(plan, f) || used(plan, f) > 1)
	}
	first := -1
	for k, f := range families {
		if spares(k) && (first < 0 || f.Flags&QueueGraphics > families[first].Flags&QueueGraphics) {
			first = k
		}
	}
	if (len(interop) > 0) != (first >= 0 && most > 0) {
		return "there is one that could be spared, or none"
	}
	if len(interop) == 0 {
		if !slices.Equal(queues, plan) {
			return "without interop the plan differs"
		}
		return ""
	}
	taken := interop[0]
	if taken != first || used(interop, taken) != len(interop) {
		return fmt.Sprintf("not of family %d alone", first)
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
