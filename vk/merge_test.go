//go:build cgo

package vk

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/vkomp/vkomp/vk/spirv"
)

// merge gives a pipeline that newPipeline has made of the same options one that does several dispatches
// of it at once, which bind the same or what is their own, and returns the largest number of these.
func merge(t *testing.T, d *Device, p *Pipeline, name string, o PipelineOptions, bindings spirv.MergedBindings) (launches int) {
	t.Helper()
	if bindings == spirv.OwnBindings && !d.Properties().Supports(spirv.CapabilityStorageBufferArrayDynamicIndexing) {
		t.Skipf("device %q cannot index arrays of descriptors", d.Properties().Name)
	}
	o = merged(t, d, *p, name, o, bindings)
	v, err := d.CreatePipeline(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroyPipeline(v) })
	p.Merging = v.Merging
	return int(o.Launches)
}

// merged returns the options of a pipeline that merges dispatches of p.
func merged(t *testing.T, d *Device, p Pipeline, name string, o PipelineOptions, bindings spirv.MergedBindings) PipelineOptions {
	t.Helper()
	var code []byte
	for _, w := range shader(t, name) {
		code = binary.NativeEndian.AppendUint32(code, w)
	}
	m, err := spirv.Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	v, err := spirv.Merge(m, "main", spirv.MergeOptions{
		Bindings: bindings, Launches: MaxMergedLaunches,
		Descriptors: min(MaxBindings, d.Properties().Limits.MaxPerStageDescriptorStorageBuffers),
		PushBytes:   min(MaxMergedPush, d.Properties().Limits.MaxPushConstantsSize),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Code, o.Entry, o.Label = v.Words, "main", name+", merged"
	o.Merges, o.Launches, o.Base, o.Stride, o.LaunchBindings, o.Elements = p, v.Launches, v.Base, v.Stride, bindings, v.Elements
	o.PushConstants = v.Base + v.Launches*v.Stride
	return o
}

// Random streams do the same with merged dispatches as without. Between two barriers each dispatch
// writes words of its own, and reads a part that nothing writes.
func TestMergedDispatchesDoTheSame(t *testing.T) {
	for name, all := range map[string][]spirv.MergedBindings{
		"own": {spirv.OwnBindings}, "shared": {spirv.SharedBindings}, "spaced": {spirv.SpacedBindings},
		"own and shared": {spirv.OwnBindings, spirv.SharedBindings},
		"all":            {spirv.SpacedBindings, spirv.SharedBindings, spirv.OwnBindings},
	} {
		t.Run(name, func(t *testing.T) {
			withBothBindings(t, func(t *testing.T, d *Device) { checkMergedDispatches(t, d, all) })
		})
	}
}

// checkMergedDispatches has pipelines merge dispatches that bind the same, their own, or both.
func checkMergedDispatches(t *testing.T, d *Device, all []spirv.MergedBindings) {
	kernels := []struct {
		name string
		o    PipelineOptions
	}{
		{"add", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8}},
		{"group", PipelineOptions{Bindings: []uint32{0}, PushConstants: 8}},
		{"gaps", PipelineOptions{Bindings: []uint32{1, 4, 31}}},
		{"lengths", PipelineOptions{Bindings: []uint32{0, 1, 2}}},
		{"place", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 8}},
		{"parts", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 4}},
		{"steps", PipelineOptions{Bindings: []uint32{0, 1}, PushConstants: 4}},
	}
	var alone, together []Pipeline
	for _, k := range kernels {
		p := newPipeline(t, d, k.name, k.o)
		alone = append(alone, p)
		for _, s := range all {
			if k.name == "lengths" && s == spirv.SpacedBindings {
				continue // a buffer of it has more than an array
			}
			if n := merge(t, d, &p, k.name, k.o, s); n < 2 {
				t.Fatalf("%s: only %d launches", k.name, n)
			}
		}
		together = append(together, p)
	}
	const parts, words, row = 96, 64, 40 // a row has parts that stand side by side
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for round := range 40 {
		var want []uint32
		for _, pipelines := range [][]Pipeline{alone, together} {
			random := rand.New(rand.NewPCG(seed, uint64(round)))
			b, data := newBlock(t, d, 2*(parts+row)*words)
			for k := range data {
				data[k] = uint32(k%7 + 1)
			}
			part := func(k int) BufferRange {
				return BufferRange{b.Buffer, uint64(k * words * 4), words * 4}
			}
			var s, unordered Stream
			for level := range 3 {
				from, to := level%2*(parts+row), (1-level%2)*(parts+row)
				unordered.Reset()
				free, rows := random.Perm(parts), row
				for len(free) >= 3 && random.IntN(12) > 0 {
					kind, count := random.IntN(len(pipelines)), 1+random.IntN(40)
					groups := [3]uint32{1 + random.Uint32N(2), 1, 1}
					if kind == 4 {
						places(&unordered, pipelines[4], random, count, part(from+random.IntN(parts)), part(to+free[0]), part(to+free[1]))
						free = free[2:]
						continue
					}
					if kind >= 5 {
						count = min(count, rows)
						rows -= count
						wild := int32(0)
						if d.Properties().Features.RobustBufferAccess2 {
							wild = random.Int32N(9) - 4
						}
						half := max(words*4/2, uint64(d.Properties().Limits.MinStorageBufferOffsetAlignment))
						step := []uint64{0, half, words * 4, 2 * words * 4}[random.IntN(4)]
						inRow(&unordered, pipelines[kind], random, count, part(from), step, part(to+parts+rows), wild)
						continue
					}
					for ; count > 0 && len(free) >= 3; count-- {
						into := part(to + free[0])
						switch kind {
						case 0:
							unordered.Dispatch(pipelines[0], []BufferRange{part(from + random.IntN(parts)), into}, push(1+random.Uint32N(words), random.Uint32N(9)), [3]uint32{}, [3]uint32{groups[0], 1, 1})
							free = free[1:]
						case 1:
							unordered.Dispatch(pipelines[1], []BufferRange{into}, push(2+random.Uint32N(9), 1+random.Uint32N(9)), [3]uint32{}, groups)
							free = free[1:]
						case 2:
							unordered.Dispatch(pipelines[2], []BufferRange{into, part(to + free[1]), part(to + free[2])}, nil, [3]uint32{}, [3]uint32{1, 1, 1})
							free = free[3:]
						default:
							read, also := part(from+random.IntN(parts)), part(from+random.IntN(parts))
							read.Size -= uint64(random.IntN(3)) * 4
							into.Size -= uint64(random.IntN(3)) * 8
							unordered.Dispatch(pipelines[3], []BufferRange{read, into, also}, nil, [3]uint32{}, [3]uint32{1, 1, 1})
							free = free[1:]
						}
						if random.IntN(30) == 0 {
							groups[1] = 3 - groups[1] // another number of workgroups
						}
					}
				}
				s.AppendUnordered(&unordered)
				s.Barrier(between)
			}
			s.Barrier(toHost)
			completed, err := d.Queues()[0].Completed()
			if err != nil {
				t.Fatal(err)
			}
			run(t, d, &s, completed+1)
			if want == nil {
				want = data
				continue
			}
			for k := range data {
				if data[k] != want[k] {
					t.Fatalf("round %d: word %d of part %d is %d, and %d without merging", round, k%words, k/words, data[k], want[k])
				}
			}
		}
	}
}

// inRow appends dispatches of the kernel parts or steps, which write one part each, side by side but for some exceptions, and read parts with
// step bytes from one to the next.
func inRow(s *Stream, p Pipeline, random *rand.Rand, count int, read BufferRange, step uint64, into BufferRange, wild int32) {
	less := []uint64{0, 0, 0, 4, 8}[random.IntN(5)]
	exceptions := 1 << (1 + 3*random.IntN(4))
	for k := range count {
		from, to := read, into
		from.Offset += uint64(k) * step
		to.Offset += uint64(k) * into.Size
		from.Size -= less
		to.Size -= 2 * less
		if random.IntN(exceptions) == 0 {
			from.Offset = read.Offset
		}
		if random.IntN(exceptions) == 0 {
			to.Size -= 8
		}
		s.Dispatch(p, []BufferRange{from, to}, push(uint32(wild), 0)[:4], [3]uint32{}, [3]uint32{1 + uint32(less)/4, 1, 1})
	}
}

// places appends dispatches of the kernel place, which write different words of a part, and now and then of
// another one.
func places(s *Stream, p Pipeline, random *rand.Rand, count int, read, into, other BufferRange) {
	const words = 2 // of a dispatch
	often := 1 << (2 * random.IntN(4))
	at := [2]uint32{}
	for range min(count, int(into.Size/4/words)) {
		which, bound := 0, into
		if random.IntN(often) == 1 {
			which, bound = 1, other
		}
		s.Dispatch(p, []BufferRange{read, bound}, push(at[which], random.Uint32N(9)), [3]uint32{}, [3]uint32{words, 1, 1})
		at[which] += words
	}
}

// Dispatches that stand side by side and are alike are recorded as one. What stands here for the variant
// has no arrays: it adds what its z is worth to the first dispatch's part of the buffer, so that the result
// shows which dispatches were merged.
func TestDispatchesSideBySideAreMerged(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	o := PipelineOptions{Bindings: []uint32{0}, PushConstants: 8}
	p := newPipeline(t, d, "group", o)
	other := newPipeline(t, d, "group", o)
	o.Code, o.Entry, o.Label = shader(t, "group"), "main", "counter"
	o.Merges, o.Launches, o.Stride, o.PushConstants = p, 3, 8, 24
	counter, err := d.CreatePipeline(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroyPipeline(counter) })
	p.Merging = counter.Merging
	const words, parts = 512, 4
	b, data := newBlock(t, d, words*parts)
	one, none := [3]uint32{1, 1, 1}, [3]uint32{}
	type launch struct {
		p           Pipeline
		base, count [3]uint32
		push        []byte
	}
	usual := launch{p, none, one, push(1, 1)}
	with := func(change func(*launch)) launch {
		l := usual
		change(&l)
		return l
	}
	alone, together, no := [2]uint32{1}, [2]uint32{1, 10001}, [2]uint32{}
	for name, test := range map[string]struct {
		launches []launch // those without a count are barriers
		want     [parts][2]uint32
	}{
		"one":                           {[]launch{usual}, [parts][2]uint32{alone}},
		"two":                           {[]launch{usual, usual}, [parts][2]uint32{together}},
		"three":                         {[]launch{usual, usual, usual}, [parts][2]uint32{together}},
		"one more than a dispatch does": {[]launch{usual, usual, usual, usual}, [parts][2]uint32{together, no, no, alone}},
		"barrier":                       {[]launch{usual, {}, usual}, [parts][2]uint32{alone, alone}},
		"another pipeline":              {[]launch{usual, with(func(l *launch) { l.p = other }), usual}, [parts][2]uint32{alone, alone, alone}},
		"two of another":                {[]launch{usual, with(func(l *launch) { l.p = other }), usual, usual}, [parts][2]uint32{alone, alone, together}},
		"not to be merged": {[]launch{with(func(l *launch) { l.p.Merging = 0 }), with(func(l *launch) { l.p.Merging = 0 })},
			[parts][2]uint32{alone, alone}},
		"the next one not to be merged": {[]launch{usual, with(func(l *launch) { l.p.Merging = 0 })}, [parts][2]uint32{alone, alone}},
		"fewer push constants":          {[]launch{usual, with(func(l *launch) { l.push = l.push[:4] })}, [parts][2]uint32{alone, alone}},
		"along z": {[]launch{with(func(l *launch) { l.count[2] = 2 }), with(func(l *launch) { l.count[2] = 2 })},
			[parts][2]uint32{{1, 10001}, {1, 10001}}},
		"with a base": {[]launch{with(func(l *launch) { l.base[0] = 1 }), with(func(l *launch) { l.base[0] = 1 })},
			[parts][2]uint32{{0, 2}, {0, 2}}},
		"too many workgroups": {[]launch{with(func(l *launch) { l.count[0] = MaxMergedGroups + 1 }), with(func(l *launch) { l.count[0] = MaxMergedGroups + 1 })},
			[parts][2]uint32{{1, 2}, {1, 2}}},
		"another number of workgroups": {[]launch{usual, with(func(l *launch) { l.count[1] = 2 })}, [parts][2]uint32{alone, {1, 101}}},
	} {
		t.Run(name, func(t *testing.T) {
			clear(data)
			var s Stream
			part := uint64(0)
			for _, l := range test.launches {
				if l.count == none {
					s.Barrier(between)
					continue
				}
				s.Dispatch(l.p, []BufferRange{{b.Buffer, part * words * 4, words * 4}}, l.push, l.base, l.count)
				part++
			}
			s.Barrier(toHost)
			completed, err := d.Queues()[0].Completed()
			if err != nil {
				t.Fatal(err)
			}
			run(t, d, &s, completed+1)
			var got [parts][2]uint32
			for k := range got {
				got[k] = [2]uint32(data[k*words:])
			}
			if got != test.want {
				t.Errorf("the dispatches have added %v, want %v", got, test.want)
			}
		})
	}
}

func TestRepeatsFindsDispatchesThatCanBeMerged(t *testing.T) {
	p, one := Pipeline{Handle: 1, Layout: 1, SetLayout: 1, Bindings: 1, BindingMask: 1, PushConstants: 8}, [3]uint32{1, 1, 1}
	b := []BufferRange{{1, 0, 4}}
	other := p
	other.Handle = 2
	var s, appended Stream
	const no, own, shared, spaced = NoRepeat, RepeatOwnBindings, RepeatSharedBindings, RepeatSpacedBindings
	step := func(want Repeat, f func()) {
		t.Helper()
		f()
		if s.Repeats() != want {
			t.Errorf("after %d operations: %v", s.Len(), s.Repeats())
		}
	}
	step(no, func() { s.Dispatch(p, b, push(1, 2), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, []BufferRange{{1, 256, 8}}, push(3, 4), [3]uint32{}, one) })
	step(no, func() { s.Dispatch(other, b, push(1, 2), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, b, push(1, 2), [3]uint32{}, one) })
	step(shared, func() { s.Dispatch(p, b, push(1, 3), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, []BufferRange{{1, 0, 8}}, push(1, 3), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, b, push(1, 3), [3]uint32{}, one) })
	step(spaced, func() { s.Dispatch(p, []BufferRange{{1, 4, 4}}, push(1, 3), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, []BufferRange{{1, 16, 4}}, push(1, 3), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, []BufferRange{{1, 12, 4}}, push(1, 3), [3]uint32{}, one) })
	step(own, func() { s.Dispatch(p, []BufferRange{{2, 12, 4}}, push(1, 3), [3]uint32{}, one) })
	step(no, func() { s.Dispatch(other, b, push(1, 2)[:4], [3]uint32{}, one) })
	step(no, func() { s.Dispatch(other, b, push(1, 2)[:4], [3]uint32{}, [3]uint32{2, 1, 1}) })
	step(shared, func() { s.Dispatch(other, b, push(1, 2)[:4], [3]uint32{}, [3]uint32{2, 1, 1}) })
	for _, other := range []func(){
		func() { s.Barrier(between) },
		func() { s.Fill(1, 0, 4, 0) },
		func() { s.Append(&appended) },
	} {
		// Dispatches before another operation and behind it do not stand side by side.
		step(no, other)
		step(no, func() { s.Dispatch(p, b, nil, [3]uint32{}, one) })
		step(shared, func() { s.Dispatch(p, b, nil, [3]uint32{}, one) })
	}
	step(no, s.Reset)
	for range 2 {
		step(no, func() { s.Dispatch(p, b, nil, [3]uint32{}, [3]uint32{1, 1, 2}) })
	}
	for range 2 {
		step(no, func() { s.Dispatch(p, b, nil, [3]uint32{1, 0, 0}, one) })
	}
	for range 2 {
		step(no, func() { s.Dispatch(p, b, nil, [3]uint32{}, [3]uint32{16, MaxMergedGroups/16 + 1, 1}) })
	}
	for range 2 {
		appended.Dispatch(p, b, nil, [3]uint32{}, one)
	}
	step(no, func() { s.Append(&appended) })
	step(no, s.Reset)
	step(no, func() { s.Dispatch(p, b, nil, [3]uint32{}, one) })
}

// AppendUnordered keeps every operation, those of a kind in their order, and has each kind side by side
// if there are dispatches of a few kinds only.
func TestUnorderedDispatchesAreAppendedByKind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var from, to Stream
		pipelines := rapid.IntRange(1, mostKinds+2).Draw(t, "pipelines")
		others := rapid.Bool().Draw(t, "others")
		to.Barrier(between)
		for i := range rapid.IntRange(0, 30).Draw(t, "operations") {
			if others && rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
				from.Fill(1, uint64(4*i), 4, 0)
				continue
			}
			handle := rapid.IntRange(1, pipelines).Draw(t, "pipeline")
			p := Pipeline{Handle: uint64(handle), Layout: 1, SetLayout: 1, Bindings: 1, BindingMask: 1}
			from.Dispatch(p, []BufferRange{{1, uint64(256 * i), 4}}, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		}
		before := slices.Clone(from.words)
		to.AppendUnordered(&from)
		if !slices.Equal(from.words, before) || to.Len() != from.Len()+1 {
			t.Fatalf("%d operations of %d", to.Len()-1, from.Len())
		}
		want := slices.Collect(from.Ops())
		distinct := map[uint64]bool{}
		for _, op := range want {
			distinct[op.Pipeline.Handle] = true
		}
		if len(distinct) <= mostKinds && !distinct[0] {
			var first []uint64
			for _, op := range want {
				if !slices.Contains(first, op.Pipeline.Handle) {
					first = append(first, op.Pipeline.Handle)
				}
			}
			slices.SortStableFunc(want, func(a, b Op) int {
				return cmp.Compare(slices.Index(first, a.Pipeline.Handle), slices.Index(first, b.Pipeline.Handle))
			})
		}
		if got := slices.Collect(to.Ops())[1:]; !slices.EqualFunc(got, want, func(a, b Op) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// A stream notes where dispatches of a kind are only in its first words. The others are kept all the same.
func TestLongStreamsKeepTheirDispatches(t *testing.T) {
	const count = 5463 // the last one, of 12 words like each, is the only one that begins behind word 65,535
	for name, kind := range map[string]func(i int) uint64{
		"two kinds":                 func(i int) uint64 { return 1 + uint64(i%2) },
		"a kind far behind another": func(i int) uint64 { return 1 + uint64(i/(count-1)) },
		"a third kind far behind":   func(i int) uint64 { return 1 + uint64(i%2) + 2*uint64(i/(count-1)) },
	} {
		var from, to Stream
		for i := range count {
			p := Pipeline{Handle: kind(i), Layout: 1, SetLayout: 1, Bindings: 1, BindingMask: 1}
			from.Dispatch(p, []BufferRange{{1, uint64(256 * i), 4}}, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		}
		to.AppendUnordered(&from)
		seen := make([]int, count)
		for op := range to.Ops() {
			if i := int(op.Bindings[0].Offset / 256); op.Pipeline.Handle == kind(i) {
				seen[i]++
			}
		}
		if i := slices.IndexFunc(seen, func(n int) bool { return n != 1 }); i >= 0 || to.Len() != count || len(to.words) != len(from.words) {
			t.Errorf("%s: dispatch %d is there %d times, of %d", name, i, seen[max(i, 0)], to.Len())
		}
	}
}

// A pool has to have what the dispatches take as they are recorded: one that does several binds all
// descriptors of its arrays, if it has arrays. The drivers of the tests do not notice a pool that is too small.
func TestStreamDemandsWhatItsDispatchesBind(t *testing.T) {
	d := openDevice(t, DeviceOptions{NoPushDescriptors: true})
	o := PipelineOptions{Bindings: []uint32{1, 4, 31}}
	alone := newPipeline(t, d, "gaps", o)
	own, shared := alone, alone
	launches, most := merge(t, d, &own, "gaps", o, spirv.OwnBindings), merge(t, d, &shared, "gaps", o, spirv.SharedBindings)
	both := own
	if n := merge(t, d, &both, "gaps", o, spirv.SharedBindings); n != most || n < 2*launches {
		t.Fatalf("%d and %d launches, %d with arrays", n, most, launches)
	}
	b, _ := newBlock(t, d, 256)
	binds := map[rune][]BufferRange{'A': {all(b), all(b), all(b)}, 'B': {all(b), all(b), {b.Buffer, 0, 4}}}
	as := func(n int) string { return strings.Repeat("A", n) }
	for i, k := range "pqrs" {
		part := BufferRange{b.Buffer, uint64(256 * i), 256}
		binds[k] = []BufferRange{part, part, part}
	}
	spaced := alone
	if n := merge(t, d, &spaced, "gaps", o, spirv.SpacedBindings); n < 4 {
		t.Fatalf("%d launches", n)
	}
	// Parts in another buffer, of no whole number of elements, and of half of the longest range.
	limit := uint64(d.Properties().Limits.MaxStorageBufferRange) / 2 &^ 255
	for k, r := range map[rune]BufferRange{'Q': {b.Buffer + 1, 256, 256}, 'z': {b.Buffer, 0, 254}, '0': {b.Buffer, 0, limit}, '1': {b.Buffer, limit, limit}, '2': {b.Buffer, 2 * limit, limit}} {
		binds[k] = []BufferRange{r, r, r}
	}
	wide := merged(t, d, alone, "gaps", o, spirv.SpacedBindings)
	wide.Elements = []uint32{4, 24, 4}
	wideOnes, err := d.CreatePipeline(wide)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroyPipeline(wideOnes) })
	elements := alone
	elements.Merging = wideOnes.Merging
	binds['u'], binds['v'] = []BufferRange{{b.Buffer, 0, 264}, {b.Buffer, 0, 264}, {b.Buffer, 0, 264}}, []BufferRange{{b.Buffer, 0, 264}, {b.Buffer, 256, 264}, {b.Buffer, 0, 264}}
	each := both
	merge(t, d, &each, "gaps", o, spirv.SpacedBindings)
	type demand struct{ alone, arrays, shared int } // dispatches; what spaced ones bind is as much as shared ones do
	for _, c := range []struct {
		name     string
		p        Pipeline
		bindings string
		want     demand
	}{
		{"alone", alone, as(3), demand{alone: 3}},
		{"own", own, "A", demand{alone: 1}},
		{"own", own, "AA", demand{arrays: 1}},
		{"own", own, as(launches), demand{arrays: 1}},
		{"own", own, as(launches + 1), demand{arrays: 1, alone: 1}},
		{"own", own, as(3*launches + 2), demand{arrays: 4}},
		{"own", own, "ABAB", demand{arrays: 1}},
		{"shared", shared, "A", demand{alone: 1}},
		{"shared", shared, "AA", demand{shared: 1}},
		{"shared", shared, as(most), demand{shared: 1}},
		{"shared", shared, as(most + 1), demand{shared: 1, alone: 1}},
		{"shared", shared, as(2*most + 2), demand{shared: 3}},
		{"shared", shared, "ABAB", demand{alone: 4}},
		{"shared", shared, "AABBBA", demand{shared: 2, alone: 1}},
		{"both", both, "A", demand{alone: 1}},
		{"both", both, "AA", demand{shared: 1}},
		{"both", both, "AB", demand{arrays: 1}},
		{"both", both, "AAB", demand{arrays: 1}},
		{"both", both, as(launches) + "B", demand{shared: 1, alone: 1}},
		{"both", both, "B" + as(launches-1), demand{arrays: 1}},
		{"both", both, "B" + as(launches), demand{alone: 1, shared: 1}},
		{"both", both, as(most) + "BB", demand{shared: 2}},
		{"both", both, "AB" + as(launches+4), demand{arrays: 1, shared: 1}},
		{"spaced", spaced, "p", demand{alone: 1}},
		{"spaced", spaced, "pqrs", demand{shared: 1}},
		{"spaced", spaced, "ppp", demand{shared: 1}},
		{"spaced", spaced, "pqs", demand{shared: 1, alone: 1}},
		{"spaced", spaced, "prs", demand{alone: 1, shared: 1}},
		{"spaced", spaced, "srqp", demand{alone: 4}},
		{"spaced", spaced, "pqqr", demand{shared: 2}},
		{"spaced", spaced, "ApqA", demand{alone: 2, shared: 1}},
		{"spaced", spaced, "pQ", demand{alone: 2}},
		{"spaced", spaced, "zz", demand{alone: 2}},
		{"spaced", spaced, "012", demand{shared: 1, alone: 1}},
		{"elements of 24 bytes", elements, "uu", demand{shared: 1}},
		{"elements of 24 bytes", elements, "uv", demand{alone: 2}},
		{"all", each, "pqrs", demand{shared: 1}},
		{"all", each, "pp", demand{shared: 1}},
		{"all", each, "pqrp", demand{arrays: 1}},
		{"all", each, "sr", demand{arrays: 1}},
		{"all", each, "spqrs", demand{arrays: 1}},
		{"all", each, "sqpqrsAA", demand{arrays: 1}},
		{"all", each, "sq" + as(launches), demand{arrays: 1, shared: 1}},
		{"all", each, "sqsq" + as(launches-3), demand{arrays: 1, shared: 1}},
		{"all", each, "sqsq" + as(launches-4), demand{arrays: 1}},
	} {
		var s Stream
		add := func(p Pipeline, bindings string) {
			for _, k := range bindings {
				s.Dispatch(p, binds[k], nil, [3]uint32{}, [3]uint32{1, 1, 1})
			}
		}
		add(c.p, c.bindings)
		s.Barrier(between)
		add(alone, as(3))
		s.Fill(b.Buffer, 0, 4, 0)
		add(c.p, "A")
		sets, descriptors, err := d.Queues()[0].scan(&s)
		if err != nil {
			t.Fatal(err)
		}
		const others = 3 + 1 // dispatches that are recorded alone
		wantSets := others + c.want.alone + c.want.arrays + c.want.shared
		want := len(o.Bindings) * (others + c.want.alone + launches*c.want.arrays + c.want.shared)
		if sets != uint64(wantSets) || descriptors != uint64(want) {
			t.Errorf("%s, %s: %d sets and %d descriptors, want %d and %d", c.name, c.bindings, sets, descriptors, wantSets, want)
		}
	}
}

func TestPipelinesThatCannotMergeAreRefused(t *testing.T) {
	d := openDevice(t, DeviceOptions{})
	o := PipelineOptions{Bindings: []uint32{0}, PushConstants: 8}
	p := newPipeline(t, d, "group", o)
	good := merged(t, d, p, "group", o, spirv.OwnBindings)
	for name, change := range map[string]func(*PipelineOptions){
		"one launch":           func(o *PipelineOptions) { o.Launches = 1; o.PushConstants = o.Stride },
		"too many descriptors": func(o *PipelineOptions) { o.Launches = 33; o.Stride = 0; o.PushConstants = 0 },
		"other bindings":       func(o *PipelineOptions) { o.Bindings = []uint32{1} },
		"a small stride":       func(o *PipelineOptions) { o.Stride = 4; o.PushConstants = o.Launches * 4 },
		"an odd stride":        func(o *PipelineOptions) { o.Stride = 10; o.Launches = 2; o.PushConstants = 20 },
		"other push constants": func(o *PipelineOptions) { o.PushConstants -= 4 },
		"no pipeline":          func(o *PipelineOptions) { o.Merges = Pipeline{} },
		"shared by nothing": func(o *PipelineOptions) {
			o.Merges, o.Launches, o.Stride, o.LaunchBindings = Pipeline{}, 0, 0, spirv.SharedBindings
		},
		"too many launches": func(o *PipelineOptions) {
			o.Launches = MaxMergedLaunches + 1
			o.Stride, o.PushConstants, o.LaunchBindings = 0, 0, spirv.SharedBindings
		},
	} {
		o := good
		change(&o)
		if _, err := d.CreatePipeline(o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	spacedOnes := merged(t, d, p, "group", o, spirv.SpacedBindings)
	for name, change := range map[string]func(*PipelineOptions){
		"elements of no bytes":     func(o *PipelineOptions) { o.Elements = []uint32{0} },
		"elements of no binding":   func(o *PipelineOptions) { o.Elements = nil },
		"elements of two bindings": func(o *PipelineOptions) { o.Elements = []uint32{4, 4} },
		"a small base":             func(o *PipelineOptions) { o.Base -= 12; o.PushConstants -= 12 },
		"an odd base":              func(o *PipelineOptions) { o.Base -= 2; o.PushConstants -= 2 },
		"another base":             func(o *PipelineOptions) { o.Base += 4 },
		"elements of shared ones": func(o *PipelineOptions) {
			o.LaunchBindings = spirv.SharedBindings
			o.PushConstants -= o.Base
			o.Base = 0
		},
		"a base of shared ones": func(o *PipelineOptions) { o.LaunchBindings = spirv.SharedBindings; o.Elements = nil },
		"an unknown kind":       func(o *PipelineOptions) { o.LaunchBindings = spirv.SpacedBindings + 1 },
	} {
		o := spacedOnes
		change(&o)
		if mask, err := o.check(&d.Properties().Limits); !errors.Is(err, ErrInvalid) {
			t.Errorf("spaced bindings, %s: mask %d, %v", name, mask, err)
		}
	}
	if _, err := spacedOnes.check(&d.Properties().Limits); err != nil {
		t.Error(err)
	}
	// A number is used again, and its stream is refused when it names another pipeline's dispatches.
	first, err := d.CreatePipeline(good)
	if err != nil {
		t.Fatal(err)
	}
	d.DestroyPipeline(first)
	second, err := d.CreatePipeline(good)
	if err != nil {
		t.Fatal(err)
	}
	if first.Merging == 0 || second.Merging != first.Merging {
		t.Errorf("the numbers are %d and %d", first.Merging, second.Merging)
	}
	// A number stands for one pipeline of each kind, of the pipeline that it names.
	numbered := good
	numbered.Merges.Merging = second.Merging
	if _, err := d.CreatePipeline(numbered); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second one with arrays: %v", err)
	}
	numbered = merged(t, d, newPipeline(t, d, "group", o), "group", o, spirv.SharedBindings)
	numbered.Merges.Merging = second.Merging
	if _, err := d.CreatePipeline(numbered); !errors.Is(err, ErrInvalid) {
		t.Errorf("one of another pipeline: %v", err)
	}
	b, _ := newBlock(t, d, 64)
	for name, p := range map[string]Pipeline{
		"of another pipeline": func() Pipeline {
			p := newPipeline(t, d, "group", o)
			p.Merging = second.Merging
			return p
		}(),
		"of other bindings": func() Pipeline { p := p; p.Merging, p.BindingMask = second.Merging, 2; return p }(),
		"that is not there": func() Pipeline { p := p; p.Merging = second.Merging + 1; return p }(),
		"in no table":       func() Pipeline { p := p; p.Merging = 1<<24 - 1; return p }(),
	} {
		var s Stream
		s.Dispatch(p, []BufferRange{all(b)}, push(1, 1), [3]uint32{}, [3]uint32{1, 1, 1})
		if err := d.Queues()[0].Submit(&s, nil, nil, 1); !errors.Is(err, ErrInvalid) {
			t.Errorf("a number %s: %v", name, err)
		}
	}
	// A launch has no more push constants than its place among those of the dispatch takes.
	shared, spaced := p, p
	merge(t, d, &shared, "group", o, spirv.SharedBindings)
	merge(t, d, &spaced, "group", o, spirv.SpacedBindings)
	own := p
	own.Merging = second.Merging
	for name, p := range map[string]Pipeline{"own": own, "shared": shared, "spaced": spaced} {
		p.PushConstants = 16 // what the stream says
		var s Stream
		for range 2 {
			s.Dispatch(p, []BufferRange{all(b)}, append(push(1, 1), push(1, 1)...), [3]uint32{}, [3]uint32{1, 1, 1})
		}
		if _, _, err := d.Queues()[0].scan(&s); !errors.Is(err, ErrInvalid) {
			t.Errorf("too many push constants, %s bindings: %v", name, err)
		}
	}
	d.DestroyPipeline(second)
}
