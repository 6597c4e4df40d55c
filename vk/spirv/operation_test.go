package spirv

import (
	"strings"
	"testing"
)

func TestShapesAreWellFormed(t *testing.T) {
	seen := make(map[string]uint16)
	known := 0
	for opcode := range 1 << 16 {
		o, ok := lookup(uint16(opcode))
		if !ok {
			continue
		}
		known++
		if first, again := seen[o.name]; again {
			t.Errorf("%s is %d and %d", o.name, first, opcode)
		}
		seen[o.name] = uint16(opcode)
		if !strings.HasPrefix(o.name, "Op") {
			t.Errorf("%d is named %q", opcode, o.name)
		}
		if rest := strings.Trim(o.shape, "tri?*ls-~"); rest != "" {
			t.Errorf("%s has %q in its shape", o.name, rest)
		}
		if end := strings.IndexAny(o.shape, "*-~"); end >= 0 && end != len(o.shape)-1 {
			t.Errorf("%s goes on after the end: %q", o.name, o.shape)
		}
		if strings.Contains(o.shape, "t") && !strings.HasPrefix(o.shape, "tr") {
			t.Errorf("%s has a result type that does not come first: %q", o.name, o.shape)
		}
		if o.isType() && opcode != opTypeForwardPointer && !strings.HasPrefix(o.shape, "r") {
			t.Errorf("%s declares nothing: %q", o.name, o.shape)
		}
	}
	if known < 350 {
		t.Errorf("only %d instructions are known", known)
	}
}

func TestInstructionsNamedInCodeAreInTheTable(t *testing.T) {
	for name, opcode := range map[string]uint16{
		"OpName": opName, "OpEntryPoint": opEntryPoint, "OpTypeStruct": opTypeStruct, "OpTypePointer": opTypePointer,
		"OpConstant": opConstant, "OpSpecConstantOp": opSpecConstantOp, "OpFunctionCall": opFunctionCall,
		"OpVariable": opVariable, "OpLoad": opLoad, "OpStore": opStore, "OpAccessChain": opAccessChain,
		"OpDecorate": opDecorate, "OpGroupDecorate": opGroupDecorate, "OpImageRead": opImageRead, "OpImageWrite": opImageWrite,
		"OpAtomicLoad": opAtomicLoad, "OpAtomicStore": opAtomicStore, "OpPhi": opPhi, "OpExecutionModeId": opExecutionModeID,
		"OpPtrEqual": opPtrEqual, "OpPtrNotEqual": opPtrNotEqual, "OpPtrDiff": opPtrDiff,
		"OpUntypedVariableKHR": opUntypedVariableKHR, "OpTypeUntypedPointerKHR": opTypeUntypedPointerKHR, "OpCooperativeMatrixStoreKHR": opCooperativeMatrixStoreKHR,
	} {
		if got := operationName(opcode); got != name {
			t.Errorf("%d is %s in the table, %s in code", opcode, got, name)
		}
	}
}
