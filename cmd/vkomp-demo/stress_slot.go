package main

import "fmt"

// slot is the result of one task, with the layout of kernels/slot.glsl: a record of violations, and
// elements of step, point, graph and value.
type slot []uint32

const (
	// slotLanes is the number of invocations of a workgroup.
	slotLanes = 16
	// slotHeader is the size of the record, slotRecord that of a violation in it, and slotRecords
	// the number of these; slotElement is the size of an element. All are in uint32.
	slotHeader  = 64
	slotRecord  = 8
	slotRecords = slotHeader/slotRecord - 1
	slotElement = 4
	// carried marks an input that the host has sent to a carrier.
	carried = 0x10000
)

// slotSize returns the size of a slot in uint32.
func slotSize(elements int) int { return slotHeader + elements*slotElement }

// laneValues are the values of the first element of each lane.
type laneValues [slotLanes]uint32

// beginning returns the values of a task before it reads its inputs.
func beginning(who [4]uint32) (v laneValues) {
	task := who[0]*0x9e3779b1 ^ who[1]*0x85ebca77 ^ who[2]*0xc2b2ae3d
	for l := range v {
		v[l] = task + uint32(l)*0x27d4eb2f
	}
	return v
}

// take adds the values of a point's slot.
func (v *laneValues) take(from *laneValues, point uint32) {
	for l := range v {
		v[l] += from[l] * (2*point + 1)
	}
}

// work does the rounds of work of a task. Each round is an affine map, so all of them are one
// affine map, which is computed by squaring.
func (v *laneValues) work(who [4]uint32) {
	factor, addend := uint32(1), uint32(0)
	f, a := 1664525+8*who[2], uint32(1013904223)
	for rounds := who[3]; rounds > 0; rounds >>= 1 {
		if rounds&1 != 0 {
			factor, addend = factor*f, addend*f+a
		}
		f, a = f*f, a*f+a
	}
	for l := range v {
		v[l] = v[l]*factor + addend
	}
}

// elements returns the slot without its record.
func (s slot) elements() []uint32 { return s[slotHeader:] }

// lanes returns the values in the slot.
func (s slot) lanes() (v laneValues) {
	for l := range v {
		v[l] = s[slotHeader+l*slotElement+3]
	}
	return v
}

// leave writes the task and its values to the whole slot.
func (s slot) leave(who [4]uint32, v *laneValues) {
	elements := s.elements()
	for e := 0; e*slotElement < len(elements); e++ {
		copy(elements[e*slotElement:], []uint32{who[0], who[1], who[2], v[e%slotLanes] + uint32(e/slotLanes)})
	}
}

// check calls wrong for each element that differs from what leave would write.
func (s slot) check(who [4]uint32, v *laneValues, wrong func(element int, found []uint32)) {
	elements := s.elements()
	for e := 0; e*slotElement < len(elements); e++ {
		found := elements[e*slotElement:][:slotElement]
		if found[0] != who[0] || found[1] != who[1] || found[2] != who[2] || found[3] != v[e%slotLanes]+uint32(e/slotLanes) {
			wrong(e, found)
		}
	}
}

// record records a violation in the slot of the task that found it.
func (s slot) record(who [4]uint32, point uint32, element int, found []uint32) {
	if n := int(s[0]); n < slotRecords {
		r := s[(n+1)*slotRecord:][:slotRecord]
		r[0], r[1], r[2], r[3] = who[0], who[1], point, uint32(element)
		copy(r[4:], found)
	}
	s[0]++
}

// violations returns the number of recorded violations and describes the first. graph is the
// number of the slot's graph, whose tasks have read results that are age steps old.
func (s slot) violations(graph, age uint32) (n int, first []string) {
	n = int(s[0])
	for k := range min(n, slotRecords) {
		r := s[(k+1)*slotRecord:][:slotRecord]
		from, want := fmt.Sprintf("the result of point %d", r[2]), [4]uint32{r[0] - age, r[2], graph}
		if r[2]&carried != 0 {
			from, want = "what the host sent", [4]uint32{r[0], r[1], graph}
		}
		first = append(first, violation(fmt.Sprintf("step %d point %d read %s", r[0], r[1], from), int(r[3]), want, r[4:]))
	}
	return n, first
}

// violation describes an element that differs from what was written.
func violation(where string, element int, want [4]uint32, found []uint32) string {
	return fmt.Sprintf("%s, element %d: want step %d point %d graph %d, found step %d point %d graph %d value %#x",
		where, element, want[0], want[1], want[2], found[0], found[1], found[2], found[3])
}

// badValue describes an element whose value may be wrong.
func badValue(where string, element int, want [4]uint32, v *laneValues, found []uint32) string {
	return violation(fmt.Sprintf("%s (value %#x)", where, v[element%slotLanes]+uint32(element/slotLanes)), element, want, found)
}
