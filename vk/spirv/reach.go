package spirv

import (
	"iter"
	"slices"
)

// A variant has the functions that its entry point reaches. What others do, such as those of other entry points, does not
// matter to it: they may use bindings and built-ins in ways that cannot be rewritten.

// findReached finds the functions that the variant has. These are all functions of the module if an instruction of the
// variant would name what one of the others defines, as debug information may, or if it is not known of an instruction what
// it names.
func (f *folding) findReached() error {
	root := f.functionIndex.get(f.function)
	if root == 0 {
		return f.entry.errorf("%%%d is no function", f.function)
	}
	f.reached = make([]bool, len(f.functions))
	f.reached[root-1] = true
	for open := []uint32{root - 1}; len(open) > 0; {
		function := &f.functions[open[len(open)-1]]
		open = open[:len(open)-1]
		for _, c := range function.calls {
			if !f.reached[c.function] {
				f.reached[c.function] = true
				open = append(open, c.function)
			}
		}
	}
	f.used = make([]bool, len(f.variables))
	for function := range f.reachedFunctions() {
		for _, u := range function.uses {
			f.used[u.variable] = true
		}
	}
	if f.opaque || slices.Contains(f.reached, false) && f.namesLeft() {
		for i := range f.reached {
			f.reached[i] = true
		}
	}
	return nil
}

// reachedFunctions returns the functions that the variant has.
func (f *folding) reachedFunctions() iter.Seq[*function] {
	return func(yield func(*function) bool) {
		for i := range f.functions {
			if f.reached[i] && !yield(&f.functions[i]) {
				return
			}
		}
	}
}

// behindLeft returns the offset behind a function that the variant does not have, if an instruction begins it, and 0
// otherwise.
func (f *folding) behindLeft(in instruction) int {
	if in.opcode != opFunction {
		return 0
	}
	if i := f.functionIndex.get(in.operands[1]) - 1; !f.reached[i] {
		return f.at(f.functions[i].end).next()
	}
	return 0
}

// isLeft reports whether an id is that of a function which the variant does not have, or is defined in one.
func (f *folding) isLeft(id uint32) bool {
	word := int(f.defs.get(id))
	i, found := slices.BinarySearchFunc(f.functions, word, func(fn function, word int) int { return fn.start - word })
	if !found {
		i--
	}
	return i >= 0 && !f.reached[i]
}

// namesLeft reports whether an instruction of the variant would name an id that it does not have. Annotations of these
// ids are left, too.
func (f *folding) namesLeft() bool {
	for word := headerWords; word < len(f.words); {
		in := f.at(word)
		word = in.next()
		if behind := f.behindLeft(in); behind != 0 {
			word = behind
			continue
		}
		switch in.opcode {
		case opEntryPoint, opExecutionMode, opExecutionModeID:
			continue
		}
		if isAnnotation(in.opcode) {
			continue
		}
		for id := range in.ids {
			if f.isLeft(id) {
				return true
			}
		}
	}
	return false
}
