package sched

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp/sched/order"
	"github.com/vkomp/vkomp/timeline"
	"github.com/vkomp/vkomp/vk"
)

// The tests of this file are about the fake device itself: it reports what nothing orders and
// runs it in any order, and it leaves alone what is ordered.

// probe is a fake device with one block, and what the device has reported.
type probe struct {
	*fakeDevice
	t     *testing.T
	block vk.Block
	mix   vk.Pipeline
	// queue is the one that send submits to, and values has what each queue has signalled last.
	queue   int
	values  [len(probeQueues)]uint64
	stream  vk.Stream
	reports []string
}

var probeQueues = [...]order.QueueInfo{{Compute: true}, {Compute: true}, {Family: 1}}

func newProbe(t *testing.T, seed uint64) *probe {
	p := &probe{fakeDevice: newFakeDeviceWith(t, probeQueues[:], unifiedMemory, seed), t: t}
	p.fakeDevice.report = func(what string) { p.reports = append(p.reports, what) }
	var err error
	if p.block, err = p.CreateBlock(1<<16, 0); err != nil {
		t.Fatal(err)
	}
	if p.mix, err = p.CreatePipeline(vk.PipelineOptions{Label: "mix", Bindings: []uint32{0, 1, 2}, PushConstants: 20}); err != nil {
		t.Fatal(err)
	}
	return p
}

// at returns the range of one aligned unit of the probe's block.
func (p *probe) at(unit uint64) vk.BufferRange {
	return vk.BufferRange{Buffer: p.block.Buffer, Offset: 64 * unit, Size: 64}
}

// run appends a dispatch that writes unit out and reads the units a and b.
func (p *probe) run(out, a, b uint64, c uint32) {
	push := make([]byte, 20)
	copy(words(push), []uint32{16, c, 0, 0, 0})
	p.stream.Dispatch(p.mix, []vk.BufferRange{p.at(out), p.at(a), p.at(b)}, push, [3]uint32{}, [3]uint32{4, 1, 1})
}

func (p *probe) copy(from, to uint64) {
	p.stream.Copy(p.block.Buffer, p.block.Buffer, 64*from, 64*to, 64)
}

func (p *probe) send(waits ...timeline.Point) {
	p.t.Helper()
	p.values[p.queue]++
	if err := p.Submit(p.queue, &p.stream, waits, order.Foreign{}, p.values[p.queue]); err != nil {
		p.t.Fatal(err)
	}
	p.stream.Reset()
}

func (p *probe) wait() {
	p.t.Helper()
	if ok, err := p.Wait(p.queue, p.values[p.queue], -1); !ok || err != nil {
		p.t.Fatal(ok, err)
	}
}

// hostWords returns what the host sees of a unit.
func (p *probe) hostWords(unit uint64) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Add(p.block.Host, 64*unit)), 16)
}

func TestOracleReportsWhatNothingOrders(t *testing.T) {
	full := order.LevelBarrier
	narrowed := func(change func(*vk.Barrier)) func(p *probe) {
		b := full
		change(&b)
		return func(p *probe) { p.stream.Barrier(b) }
	}
	barrier := narrowed(func(*vk.Barrier) {})
	write := func(p *probe) { p.run(1, 2, 3, 1) }
	read := func(p *probe) { p.run(4, 1, 3, 1) }
	overwrite := func(p *probe) { p.run(1, 5, 6, 1) }
	copyOut := func(p *probe) { p.copy(1, 7) }
	copyIn := func(p *probe) { p.copy(7, 1) }
	fill := func(p *probe) { p.stream.Fill(p.block.Buffer, 64, 64, 5) }
	send := func(p *probe) { p.send() }
	waited := func(p *probe) { p.send(); p.wait() }
	on := func(queue int) func(*probe) { return func(p *probe) { p.queue = queue } }
	// after returns a step that submits the operations so far, behind a value of a queue.
	after := func(queue timeline.Queue, value uint64) func(*probe) {
		return func(p *probe) { p.send(timeline.Point{Queue: queue, Value: value}) }
	}
	for _, c := range []struct {
		name  string
		want  string // part of the report, "" if there must be none
		steps []func(*probe)
	}{
		{"read after write", "nothing orders", []func(*probe){write, read}},
		{"write after read", "nothing orders", []func(*probe){read, overwrite}},
		{"write after write", "nothing orders", []func(*probe){write, overwrite}},
		{"copy after write", "nothing orders", []func(*probe){write, copyOut}},
		{"write after copy", "nothing orders", []func(*probe){copyOut, write}},
		{"fill after read", "nothing orders", []func(*probe){read, fill}},
		{"read after read", "", []func(*probe){read, func(p *probe) { p.run(9, 1, 3, 1) }}},
		{"disjoint", "", []func(*probe){write, func(p *probe) { p.run(8, 5, 6, 1) }}},
		{"in another submission", "nothing orders", []func(*probe){write, send, read}},

		{"barrier, read after write", "", []func(*probe){write, barrier, read}},
		{"barrier, write after read", "", []func(*probe){read, barrier, overwrite}},
		{"barrier, copy after write", "", []func(*probe){write, barrier, copyOut}},
		{"barrier, read after copy", "", []func(*probe){copyIn, barrier, read}},
		{"barrier, copy after fill", "", []func(*probe){fill, barrier, copyOut}},
		{"barrier in a later submission", "", []func(*probe){write, send, barrier, read}},
		{"barrier in an earlier submission", "", []func(*probe){write, barrier, send, read}},
		{"barrier before both", "nothing orders", []func(*probe){barrier, write, read}},

		{"source stage missing", "nothing orders", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.SrcStage = vk.StageTransfer }), read}},
		{"destination stage missing", "nothing orders", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstStage = vk.StageTransfer }), read}},
		{"source stage missing for a copy", "nothing orders", []func(*probe){copyIn,
			narrowed(func(b *vk.Barrier) { b.SrcStage = vk.StageCompute }), read}},
		{"destination stage missing for a copy", "nothing orders", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstStage = vk.StageCompute }), copyOut}},
		{"source access missing", "not visible", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.SrcAccess = vk.AccessTransferWrite }), read}},
		{"source access of copies missing", "not visible", []func(*probe){copyIn,
			narrowed(func(b *vk.Barrier) { b.SrcAccess = vk.AccessShaderWrite }), read}},
		{"read access missing", "not visible", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstAccess &^= vk.AccessShaderRead }), read}},
		{"write access missing", "not visible", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstAccess &^= vk.AccessShaderWrite }), overwrite}},
		{"copy's read access missing", "not visible", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstAccess &^= vk.AccessTransferRead }), copyOut}},
		{"copy's write access missing", "not visible", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstAccess &^= vk.AccessTransferWrite }), copyIn}},
		{"execution suffices after a read", "", []func(*probe){read,
			narrowed(func(b *vk.Barrier) { b.SrcAccess, b.DstAccess = 0, 0 }), overwrite}},
		{"barrier to the host only", "nothing orders", []func(*probe){write,
			func(p *probe) { p.stream.Barrier(order.HostBarrier) }, read}},
		{"all commands and memory", "", []func(*probe){write,
			narrowed(func(b *vk.Barrier) {
				*b = vk.Barrier{SrcStage: vk.StageAllCommands, DstStage: vk.StageAllCommands,
					SrcAccess: vk.AccessMemoryWrite, DstAccess: vk.AccessMemoryRead | vk.AccessMemoryWrite}
			}), read}},
		{"chain of stages", "", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.SrcStage, b.DstStage = vk.StageCompute, vk.StageTransfer }),
			narrowed(func(b *vk.Barrier) { b.SrcStage, b.DstStage = vk.StageTransfer, vk.StageCompute }), read}},
		{"chain that does not join", "nothing orders", []func(*probe){write,
			narrowed(func(b *vk.Barrier) { b.DstStage = vk.StageTransfer }),
			narrowed(func(b *vk.Barrier) { b.SrcStage = vk.StageHost }), read}},

		{"the host waited between read and write", "", []func(*probe){read, waited, overwrite}},
		{"the host waited between two writes", "", []func(*probe){fill, waited, copyIn}},
		{"the host waited between write and read", "not visible", []func(*probe){write, waited, read}},

		{"on another queue", "nothing orders", []func(*probe){write, send, on(1), read}},
		{"a barrier of another queue", "nothing orders", []func(*probe){write, send, on(1), barrier, read}},
		{"semaphore wait", "", []func(*probe){write, send, on(1), read, after(0, 1)}},
		{"semaphore wait of a copy", "", []func(*probe){write, send, on(2), copyOut, after(0, 1)}},
		{"semaphore wait for an earlier value", "nothing orders", []func(*probe){send, write, send, on(1), read, after(0, 1)}},
		{"semaphore wait of an earlier submission", "", []func(*probe){write, send, on(1), after(0, 1), read, send}},
		{"semaphore wait of a later submission", "nothing orders", []func(*probe){write, send, on(1), read, send, after(0, 1)}},
		{"by way of a third queue", "", []func(*probe){write, send, on(2), after(0, 1), on(1), read, after(2, 1)}},
		{"there and back", "", []func(*probe){write, send, on(1), after(0, 1), on(0), read, after(1, 1)}},
		{"there and back without a wait", "nothing orders", []func(*probe){write, send, on(1), after(0, 1), on(0), read, send}},
		{"a wait that is implied", "implied already", []func(*probe){write, send, on(1), after(0, 1), read, after(0, 1)}},
		{"a wait that another implies", "implied already", []func(*probe){send, on(1), after(0, 1), on(2),
			func(p *probe) { p.send(timeline.Point{Queue: 0, Value: 1}, timeline.Point{Queue: 1, Value: 1}) }}},
		{"a kernel on a queue that transfers", "only transfers", []func(*probe){on(2), write}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProbe(t, 1)
			for _, step := range c.steps {
				step(p)
			}
			if p.stream.Len() > 0 {
				p.send()
			}
			p.wait()
			got := strings.Join(p.reports, "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("reported %q, want %q", got, c.want)
			}
			if c.want == "nothing orders" && strings.Count(got, "command ") != 2 {
				t.Errorf("%q does not name both commands", got)
			}
		})
	}
}

func TestOracleRunsUnorderedCommandsInAnyOrder(t *testing.T) {
	for _, apart := range []bool{false, true} {
		outcomes := make(map[uint32]bool)
		for seed := range uint64(40) {
			p := newProbe(t, seed)
			p.stream.Fill(p.block.Buffer, 64, 64, 1)
			if apart {
				p.send()
			}
			p.stream.Fill(p.block.Buffer, 64, 64, 2)
			p.send()
			p.wait()
			outcomes[words(p.blocks[p.block.Buffer].device[64:128])[0]] = true
		}
		if len(outcomes) != 2 {
			t.Errorf("in different submissions %v: outcomes %v", apart, outcomes)
		}
	}
}

func TestOracleKeepsTheOrderOfBarriers(t *testing.T) {
	for seed := range uint64(40) {
		p := newProbe(t, seed)
		for i := range uint32(20) {
			p.stream.Fill(p.block.Buffer, 64, 64, i)
			if i%5 == 4 {
				p.stream.Barrier(order.LevelBarrier)
				p.send()
			} else {
				p.stream.Barrier(order.LevelBarrier)
			}
		}
		p.wait()
		if got := words(p.blocks[p.block.Buffer].device[64:128])[0]; got != 19 || len(p.reports) > 0 {
			t.Fatalf("the last fill left %d, reports %v", got, p.reports)
		}
	}
}

func TestOracleHostSeesOnlyWhatABarrierAndAWaitBrought(t *testing.T) {
	narrow := order.HostBarrier
	narrow.DstAccess = vk.AccessHostWrite
	for _, c := range []struct {
		name    string
		barrier *vk.Barrier
		wait    bool
		fresh   bool
	}{
		{"neither", nil, false, false},
		{"wait alone", nil, true, false},
		{"barrier alone", &order.HostBarrier, false, false},
		{"both", &order.HostBarrier, true, true},
		{"barrier without HOST_READ", &narrow, true, false},
		{"barrier to the device", &order.LevelBarrier, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProbe(t, 1)
			p.stream.Fill(p.block.Buffer, 64, 64, 7)
			if c.barrier != nil {
				p.stream.Barrier(*c.barrier)
			}
			p.send()
			for p.step() {
			}
			if c.wait {
				p.wait()
			}
			if fresh := p.hostWords(1)[0] == 7; fresh != c.fresh {
				t.Errorf("the host sees the fill: %v, want %v", fresh, c.fresh)
			}
		})
	}
}

func TestOracleReportsHostWritesThatNothingOrders(t *testing.T) {
	t.Run("while the device may read", func(t *testing.T) {
		p := newProbe(t, 1)
		p.copy(1, 2)
		p.send()
		p.hostWords(1)[0] = 9
		p.copy(1, 3)
		p.send()
		if !strings.Contains(strings.Join(p.reports, ""), "could use it") {
			t.Errorf("reports %q", p.reports)
		}
	})
	t.Run("over a device write that was not brought to the host", func(t *testing.T) {
		p := newProbe(t, 1)
		p.stream.Fill(p.block.Buffer, 64, 64, 7)
		p.send()
		p.wait()
		p.hostWords(1)[0] = 9
		p.stream.Barrier(order.LevelBarrier)
		p.copy(1, 3)
		p.send()
		if !strings.Contains(strings.Join(p.reports, ""), "visible to it") {
			t.Errorf("reports %q", p.reports)
		}
	})
	t.Run("in order", func(t *testing.T) {
		p := newProbe(t, 1)
		p.stream.Fill(p.block.Buffer, 64, 64, 7)
		p.stream.Barrier(order.HostBarrier)
		p.send()
		p.wait()
		p.hostWords(1)[0] = 9
		p.stream.Barrier(order.LevelBarrier)
		p.run(4, 1, 1, 0)
		p.send()
		p.stream.Barrier(order.HostBarrier)
		p.send()
		before := 3 * p.hostWords(4)[0]
		p.wait()
		if got := p.hostWords(4); got[0] != before+18 || len(p.reports) > 0 {
			t.Errorf("the device computed %v, reports %q", got, p.reports)
		}
	})
}

func TestOracleReportsAccessesOutsideBlocksAndBadLaunches(t *testing.T) {
	for name, step := range map[string]func(p *probe){
		"copy past the end":              func(p *probe) { p.stream.Copy(p.block.Buffer, p.block.Buffer, 0, 1<<16-32, 64) },
		"unknown buffer":                 func(p *probe) { p.stream.Fill(99, 0, 4, 0) },
		"unaligned binding":              func(p *probe) { p.unaligned() },
		"barrier of no stage":            func(p *probe) { p.stream.Barrier(vk.Barrier{DstStage: vk.StageHost}) },
		"value that was used":            func(p *probe) { p.send(); p.values[0]-- },
		"wait for what is not submitted": func(p *probe) { p.send(timeline.Point{Queue: 1, Value: 1}) },
		"wait for its own queue":         func(p *probe) { p.send(); p.send(timeline.Point{Queue: 0, Value: 1}) },
		"pipeline that is not": func(p *probe) {
			p.stream.Dispatch(vk.Pipeline{Handle: 77}, nil, nil, [3]uint32{}, [3]uint32{1, 1, 1})
		},
		"too many workgroups": func(p *probe) {
			p.stream.Dispatch(p.mix, []vk.BufferRange{p.at(1), p.at(2), p.at(3)}, make([]byte, 20), [3]uint32{1}, [3]uint32{65535, 1, 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProbe(t, 1)
			step(p)
			p.send()
			if len(p.reports) == 0 {
				t.Error("nothing reported")
			}
		})
	}
}

func (p *probe) unaligned() {
	r := p.at(1)
	r.Offset += 4
	p.stream.Dispatch(p.mix, []vk.BufferRange{r, p.at(2), p.at(3)}, make([]byte, 20), [3]uint32{}, [3]uint32{1, 1, 1})
}
