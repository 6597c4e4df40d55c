package vk

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawOp draws an operation, with every field of it anywhere in its range.
func drawOp(t *rapid.T) Op {
	u32 := func(name string) uint32 { return rapid.Uint32().Draw(t, name) }
	u64 := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
	vec := func(name string) [3]uint32 { return [3]uint32{u32(name), u32(name), u32(name)} }
	op := Op{Code: OpCode(rapid.IntRange(int(OpBarrier), int(OpFill)).Draw(t, "code"))}
	switch op.Code {
	case OpBarrier:
		op.Barrier = Barrier{Stage(u32("src")), Stage(u32("dst")), Access(u32("src")), Access(u32("dst"))}
	case OpDispatch:
		op.Pipeline = Pipeline{u64("pipeline"), u64("layout"), u64("set"), u32("bindings"), u32("mask"), u32("push")}
		for range rapid.IntRange(0, 40).Draw(t, "ranges") {
			op.Bindings = append(op.Bindings, BufferRange{Buffer(u64("buffer")), u64("offset"), u64("size")})
		}
		op.Push = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
		if len(op.Push) == 0 {
			op.Push = nil
		}
		op.Base, op.Count = vec("base"), vec("count")
	case OpCopy:
		size := u64("size")
		op.Src = BufferRange{Buffer(u64("src")), u64("offset"), size}
		op.Dst = BufferRange{Buffer(u64("dst")), u64("offset"), size}
	case OpFill:
		op.Dst = BufferRange{Buffer(u64("dst")), u64("offset"), u64("size")}
		op.Value = u32("value")
	}
	return op
}

// add appends a decoded operation.
func (s *Stream) add(op Op) {
	switch op.Code {
	case OpBarrier:
		s.Barrier(op.Barrier)
	case OpDispatch:
		s.Dispatch(op.Pipeline, op.Bindings, op.Push, op.Base, op.Count)
	case OpCopy:
		s.Copy(op.Src.Buffer, op.Dst.Buffer, op.Src.Offset, op.Dst.Offset, op.Src.Size)
	case OpFill:
		s.Fill(op.Dst.Buffer, op.Dst.Offset, op.Dst.Size, op.Value)
	}
}

func TestOpsYieldsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stream
		// A stream that was used before and reset behaves like a new one.
		for range 2 {
			ops := rapid.SliceOfN(rapid.Custom(drawOp), 0, 30).Draw(t, "ops")
			s.Reset()
			for _, op := range ops {
				s.add(op)
			}
			if s.Len() != len(ops) {
				t.Fatalf("Len is %d after %d operations", s.Len(), len(ops))
			}
			got := slices.Collect(s.Ops())
			if len(got) == 0 && len(ops) == 0 {
				continue
			}
			if !reflect.DeepEqual(got, ops) {
				t.Fatal(cmp.Diff(ops, got))
			}
		}
	})
}

func TestAppendedArgumentsAreCopied(t *testing.T) {
	bindings := []BufferRange{{1, 2, 3}}
	push := []byte{4, 5, 6, 7}
	var s Stream
	s.Dispatch(Pipeline{Handle: 9}, bindings, push, [3]uint32{}, [3]uint32{1, 1, 1})
	bindings[0], push[0] = BufferRange{}, 0
	for op := range s.Ops() {
		if op.Bindings[0] != (BufferRange{1, 2, 3}) || op.Push[0] != 4 {
			t.Errorf("the stream changed with the caller's slices: %+v", op)
		}
	}
}

func TestOpsStopsWhenAsked(t *testing.T) {
	var s Stream
	for k := range uint32(10) {
		s.Fill(1, 0, 4, k)
	}
	var seen []uint32
	for op := range s.Ops() {
		if seen = append(seen, op.Value); op.Value == 3 {
			break
		}
	}
	if !slices.Equal(seen, []uint32{0, 1, 2, 3}) {
		t.Errorf("saw %v", seen)
	}
}

func TestFillingAndReadingAWarmStreamDoesNotAllocate(t *testing.T) {
	var s Stream
	bindings := []BufferRange{{1, 0, 256}, {2, 0, 256}}
	push := make([]byte, 12)
	total := uint32(0)
	allocations := testing.AllocsPerRun(100, func() {
		s.Reset()
		for range 50 {
			s.Dispatch(Pipeline{Handle: 1, Layout: 2, SetLayout: 3, Bindings: 2}, bindings, push, [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(Barrier{StageCompute, StageCompute, AccessShaderWrite, AccessShaderRead})
		}
		for op := range s.Ops() {
			total += op.Count[0]
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	if total == 0 {
		t.Error("no operation was read")
	}
}

func TestOpCodesHaveNames(t *testing.T) {
	for c, want := range map[OpCode]string{0: "unknown", OpBarrier: "barrier", OpDispatch: "dispatch", OpCopy: "copy", OpFill: "fill", 5: "unknown"} {
		if got := c.String(); got != want {
			t.Errorf("%d is called %q", c, got)
		}
	}
}
