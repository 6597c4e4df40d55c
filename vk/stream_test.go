package vk

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawOp draws an operation with random fields.
func drawOp(t *rapid.T) Op {
	u32 := func(name string) uint32 { return rapid.Uint32().Draw(t, name) }
	u64 := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
	vec := func(name string) [3]uint32 { return [3]uint32{u32(name), u32(name), u32(name)} }
	op := Op{Code: OpCode(rapid.IntRange(int(OpBarrier), int(OpExecute)).Draw(t, "code"))}
	switch op.Code {
	case OpBarrier:
		op.Barrier = Barrier{Stage(u32("src")), Stage(u32("dst")), Access(u32("src")), Access(u32("dst"))}
	case OpDispatch:
		op.Pipeline = Pipeline{u64("pipeline"), u64("layout"), u64("set"), u32("bindings") & 0xff, u32("mask"), u32("push"), u32("merging") & 0xffffff, false}
		for range rapid.IntRange(0, 40).Draw(t, "ranges") {
			op.Bindings = append(op.Bindings, BufferRange{Buffer(u64("buffer")), u64("offset"), u64("size")})
		}
		op.Push = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")
		if len(op.Push) == 0 {
			op.Push = nil
		}
		op.Base, op.Count = vec("base"), vec("count")
	case OpCopy:
		op.From, op.To = Buffer(u64("src")), Buffer(u64("dst"))
		for range rapid.IntRange(0, 40).Draw(t, "regions") {
			op.Regions = append(op.Regions, CopyRegion{u64("offset"), u64("offset"), u64("size")})
		}
	case OpFill:
		op.Dst = BufferRange{Buffer(u64("dst")), u64("offset"), u64("size")}
		op.Value = u32("value")
	case OpTimestamp:
		op.Pool = QueryPool{u64("pool"), u32("queries")}
		op.Query, op.Stage = u32("query"), Stage(u32("stage"))
	case OpExecute:
		op.Recording = Recording(u64("recording"))
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
		if len(op.Regions) == 1 {
			r := op.Regions[0]
			s.Copy(op.From, op.To, r.SrcOffset, r.DstOffset, r.Size)
			return
		}
		s.CopyRegions(op.From, op.To, op.Regions)
	case OpFill:
		s.Fill(op.Dst.Buffer, op.Dst.Offset, op.Dst.Size, op.Value)
	case OpTimestamp:
		s.Timestamp(op.Pool, op.Query, op.Stage)
	case OpExecute:
		s.Execute(op.Recording)
	}
}

func TestOpsYieldsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Stream
		// A stream that was used and reset behaves like a new one.
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
	regions := []CopyRegion{{1, 2, 3}, {4, 5, 6}}
	var s Stream
	s.Dispatch(Pipeline{Handle: 9}, bindings, push, [3]uint32{}, [3]uint32{1, 1, 1})
	s.CopyRegions(7, 8, regions)
	bindings[0], push[0], regions[1] = BufferRange{}, 0, CopyRegion{}
	ops := slices.Collect(s.Ops())
	if op := ops[0]; op.Bindings[0] != (BufferRange{1, 2, 3}) || op.Push[0] != 4 {
		t.Errorf("the stream changed with the caller's slices: %+v", op)
	}
	if op := ops[1]; !slices.Equal(op.Regions, []CopyRegion{{1, 2, 3}, {4, 5, 6}}) {
		t.Errorf("the stream changed with the caller's regions: %+v", op)
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

func TestOpsEndBeforeWhatIsMalformed(t *testing.T) {
	for name, words := range map[string][]uint64{
		"copy without buffers":       {header(OpCopy, 0, copyWords-1), 1},
		"copy with part of a region": {header(OpCopy, 0, copyWords+2), 1, 2, 0, 0},
		"copy with bindings":         {header(OpCopy, 1, copyWords+3), 1, 2, 0, 0, 4},
		"copy cut off":               {header(OpCopy, 0, copyWords+6), 1, 2, 0, 0, 4},
		"timestamp cut off":          {header(OpTimestamp, 0, stampWords), 1, 1 << 32},
		"execution of three words":   {header(OpExecute, 0, 3), 1, 2},
		"execution cut off":          {header(OpExecute, 0, executeWords)},
		"timestamp of three words":   {header(OpTimestamp, 0, 3), 1, 1 << 32},
		"timestamp of a wide stage":  {header(OpTimestamp, 0, stampWords), 1, 1 << 32, 1<<32 | 1},
	} {
		var s Stream
		s.Fill(1, 0, 4, 9)
		s.words = append(s.words, words...)
		if ops := slices.Collect(s.Ops()); len(ops) != 1 || ops[0].Code != OpFill {
			t.Errorf("%s: %+v", name, ops)
		}
	}
}

func TestFillingAndReadingAWarmStreamDoesNotAllocate(t *testing.T) {
	var s Stream
	bindings := []BufferRange{{1, 0, 256}, {2, 0, 256}}
	push := make([]byte, 12)
	regions := make([]CopyRegion, 7)
	total := uint32(0)
	allocations := testing.AllocsPerRun(100, func() {
		s.Reset()
		for range 50 {
			s.Dispatch(Pipeline{Handle: 1, Layout: 2, SetLayout: 3, Bindings: 2}, bindings, push, [3]uint32{}, [3]uint32{1, 1, 1})
			s.Barrier(Barrier{StageCompute, StageCompute, AccessShaderWrite, AccessShaderRead})
			s.CopyRegions(1, 2, regions)
		}
		for op := range s.Ops() {
			total += op.Count[0] + uint32(len(op.Regions))
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
	for c, want := range map[OpCode]string{0: "unknown", OpBarrier: "barrier", OpDispatch: "dispatch", OpCopy: "copy", OpFill: "fill", OpTimestamp: "timestamp", OpExecute: "execute", 7: "unknown"} {
		if got := c.String(); got != want {
			t.Errorf("%d is called %q", c, got)
		}
	}
}
