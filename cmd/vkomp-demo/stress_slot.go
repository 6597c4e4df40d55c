package main

import "fmt"

// slot is the result of one task, as kernels/slot.glsl lays it out: a record of
// what was wrong, and elements of step, point, graph and value.
type slot []uint32

const (
	// slotLanes is the number of a workgroup's invocations.
	slotLanes = 16
	// slotHeader is the record's size, a violation's slotRecord, of which it has
	// slotRecords; slotElement is an element's. In uint32.
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

// beginning is what a task's values are before its inputs.
func beginning(who [4]uint32) (v laneValues) {
	task := who[0]*0x9e3779b1 ^ who[1]*0x85ebca77 ^ who[2]*0xc2b2ae3d
	for l := range v {
		v[l] = task + uint32(l)*0x27d4eb2f
	}
	return v
}

// take adds the values of the slot of a point.
func (v *laneValues) take(from *laneValues, point uint32) {
	for l := range v {
		v[l] += from[l] * (2*point + 1)
	}
}

// work does a task's rounds of work. Each is an affine map, so that all of them are
// one, which is made by squaring.
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

// lanes returns the slot's values as they are.
func (s slot) lanes() (v laneValues) {
	for l := range v {
		v[l] = s[slotHeader+l*slotElement+3]
	}
	return v
}

// leave writes who has written it throughout the slot.
func (s slot) leave(who [4]uint32, v *laneValues) {
	elements := s.elements()
	for e := 0; e*slotElement < len(elements); e++ {
		copy(elements[e*slotElement:], []uint32{who[0], who[1], who[2], v[e%slotLanes] + uint32(e/slotLanes)})
	}
}

// check calls wrong for each element that is not what leave would have written.
func (s slot) check(who [4]uint32, v *laneValues, wrong func(element int, found []uint32)) {
	elements := s.elements()
	for e := 0; e*slotElement < len(elements); e++ {
		found := elements[e*slotElement:][:slotElement]
		if found[0] != who[0] || found[1] != who[1] || found[2] != who[2] || found[3] != v[e%slotLanes]+uint32(e/slotLanes) {
			wrong(e, found)
		}
	}
}

// record notes a violation in the slot of the task that found it.
func (s slot) record(who [4]uint32, point uint32, element int, found []uint32) {
	if n := int(s[0]); n < slotRecords {
		r := s[(n+1)*slotRecord:][:slotRecord]
		r[0], r[1], r[2], r[3] = who[0], who[1], point, uint32(element)
		copy(r[4:], found)
	}
	s[0]++
}

// violations returns how many were recorded, and the first of them in words. graph
// is that of the slot's tasks, which have read results that are so many steps old.
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

// violation puts an element that is not what was left in words.
func violation(where string, element int, want [4]uint32, found []uint32) string {
	return fmt.Sprintf("%s, element %d: want step %d point %d graph %d, found step %d point %d graph %d value %#x",
		where, element, want[0], want[1], want[2], found[0], found[1], found[2], found[3])
}

// badValue puts one in words whose value may be what is wrong.
func badValue(where string, element int, want [4]uint32, v *laneValues, found []uint32) string {
	return violation(fmt.Sprintf("%s (value %#x)", where, v[element%slotLanes]+uint32(element/slotLanes)), element, want, found)
}
