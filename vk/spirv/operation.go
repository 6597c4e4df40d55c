package spirv

import (
	"slices"
	"strconv"
	"strings"
)

// operation describes an instruction.
type operation struct {
	name string

	// shape has a letter for each operand:
	//
	//	t  id of the result type
	//	r  id of the result
	//	i  id
	//	?  id that may be absent
	//	*  ids to the end
	//	l  literal word
	//	s  literal string
	//	-  literals to the end, possibly with ids that are never pointers
	//	~  words to the end, parsed by rules of the instruction
	shape string
}

// lookup returns the description of an opcode; ok is false for an unknown one.
func lookup(opcode uint16) (o operation, ok bool) {
	if int(opcode) < len(coreOperations) {
		o = coreOperations[opcode]
		return o, o.name != ""
	}
	o, ok = extensionOperations[opcode]
	return o, ok
}

// operationName returns the name of an opcode, or "Op(number)".
func operationName(opcode uint16) string {
	if o, ok := lookup(opcode); ok {
		return o.name
	}
	return "Op(" + strconv.Itoa(int(opcode)) + ")"
}

// isType reports whether an opcode declares a type.
func (o operation) isType() bool { return strings.HasPrefix(o.name, "OpType") }

// mayReferForward reports whether an instruction may refer to ids that the module defines
// later: labels, functions, the incoming values of OpPhi, and everything before the types
// in a module's layout.
func mayReferForward(opcode uint16) bool {
	switch opcode {
	case opEntryPoint, opExecutionMode, opExecutionModeID,
		opPhi, opFunctionCall,
		opLoopMerge, opSelectionMerge, opBranch, opBranchConditional, opSwitch,
		opTypeForwardPointer:
		return true
	}
	return false
}

// isAnnotation reports whether an instruction only describes an id, which then need not
// exist.
func isAnnotation(opcode uint16) bool {
	switch opcode {
	case opName, opMemberName, opDecorate, opDecorateID, opDecorateString,
		opMemberDecorate, opMemberDecorateString, opGroupDecorate, opGroupMemberDecorate:
		return true
	}
	return false
}

// ids yields the operands of an instruction that may be ids of pointers or functions: the ids apart from those of the
// result and its type, and of an unknown instruction all words.
func (in instruction) ids(yield func(uint32) bool) {
	operation, known := lookup(in.opcode)
	if !known {
		slices.Values(in.operands)(yield)
		return
	}
	i := 0
	for _, letter := range []byte(operation.shape) {
		switch {
		case i >= len(in.operands), letter == '-', letter == '~' && !holdsIDs(in.opcode):
			return
		case letter == '*' || letter == '~':
			slices.Values(in.operands[i:])(yield)
			return
		case letter == 's':
			i += literalStringWords(in.operands[i:])
			continue
		case letter == 'i' || letter == '?':
			if !yield(in.operands[i]) {
				return
			}
		}
		i++
	}
}

// holdsIDs reports whether all trailing operands of an instruction may be ids, rather than
// a mask and its operands.
func holdsIDs(opcode uint16) bool {
	return opcode == opExtInst || opcode == opExtInstWithForwardRefsKHR || opcode == opSpecConstantOp
}
