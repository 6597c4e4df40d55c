package vk

import "math"

// Dispatches of one kind differ at most in what they bind and push: one dispatch can do several of them
// (see PipelineOptions.Merges). kinds are those of a stream.
type kinds struct {
	// last has the number of words before the last dispatch of each kind behind the last other operation, of
	// which there are count. It takes little memory, because a batch has a stream for each level.
	last  [mostKinds]uint16
	count int8
	// others says that the stream has other operations too, or dispatches of more kinds.
	others bool
	// repeats is what Stream.Repeats returns.
	repeats Repeat
}

// mostKinds is the largest number of kinds that are told apart.
const mostKinds = 6

// Repeat says whether one dispatch can do another one together with an earlier one: see
// PipelineOptions.Merges.
type Repeat uint8

const (
	// NoRepeat: no.
	NoRepeat Repeat = iota
	// RepeatOwnBindings: yes, and it binds something else.
	RepeatOwnBindings
	// RepeatSharedBindings: yes, and both bind the same.
	RepeatSharedBindings
	// RepeatSpacedBindings: yes, and each buffer of this one begins where that of the earlier one does, in it or at its
	// end, and is as large.
	RepeatSpacedBindings
)

// dispatch notes a dispatch, the words from at on. small says that it could be merged with others.
func (k *kinds) dispatch(words []uint64, at int, small bool) {
	k.repeats = NoRepeat
	for i, last := range k.last[:k.count] {
		earlier := words[last:]
		if !alike(earlier, words[at:]) {
			continue
		}
		if small {
			k.repeats = repeat(earlier, words[at:])
		}
		if at <= math.MaxUint16 {
			k.last[i] = uint16(at)
		}
		return
	}
	if k.count == mostKinds || at > math.MaxUint16 {
		k.others = true
		return
	}
	k.last[k.count] = uint16(at)
	k.count++
}

// repeat says how a dispatch repeats an earlier one of its kind.
func repeat(earlier, d []uint64) Repeat {
	r := RepeatSharedBindings
	end := dispatchWords + rangeWords*int(d[0]>>headerBindingsShift&(1<<24-1))
	for i := dispatchWords; i < end; i += rangeWords {
		switch distance := d[i+1] - earlier[i+1]; {
		case d[i] != earlier[i] || d[i+2] != earlier[i+2] || distance > d[i+2]:
			return RepeatOwnBindings
		case distance != 0:
			r = RepeatSpacedBindings
		}
	}
	return r
}

// other notes an operation that is no dispatch, or several operations. No dispatch behind it is merged with one before it.
func (k *kinds) other() { k.count, k.others, k.repeats = 0, true, NoRepeat }

// alike reports whether two dispatches, each at the beginning of words, are of one kind.
func alike(a, b []uint64) bool {
	return a[1] == b[1] && a[0] == b[0] && a[5] == b[5] && a[6] == b[6] && a[7] == b[7] && a[8] == b[8]
}

// Repeats says of the last operation whether it is a dispatch that one dispatch could do together with an
// earlier one, and compares with the last of these what it binds.
func (s *Stream) Repeats() Repeat { return s.kinds.repeats }

// AppendUnordered appends the operations of t, none of which is ordered before another one, in an order
// in which dispatches that can be merged stand side by side. t is unchanged.
func (s *Stream) AppendUnordered(t *Stream) {
	k := &t.kinds
	if k.count < 2 || k.others {
		s.Append(t)
		return
	}
	for _, last := range k.last[:k.count] {
		for rest := t.words; len(rest) > 0; {
			words := rest[:rest[0]>>headerWordsShift]
			if rest = rest[len(words):]; alike(words, t.words[last:]) {
				s.words = append(s.words, words...)
			}
		}
	}
	s.ops += t.ops
	s.kinds.other()
}
