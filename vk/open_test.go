//go:build cgo

package vk

import (
	"context"
	"encoding/binary"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// recorder is a slog handler that keeps its records.
type recorder struct {
	mu sync.Mutex
	at []slog.Record
}

func (r *recorder) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r *recorder) WithGroup(string) slog.Handler                { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = append(r.at, rec.Clone())
	return nil
}

// find returns the first record whose text or attributes contain s.
func (r *recorder) find(s string) (slog.Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.at {
		found := strings.Contains(rec.Message, s)
		rec.Attrs(func(a slog.Attr) bool {
			found = found || strings.Contains(a.Value.String(), s)
			return !found
		})
		if found {
			return rec, true
		}
	}
	return slog.Record{}, false
}

// openInstance opens a validated instance. It is closed at the end of the test, which
// fails if validation reported anything.
func openInstance(t *testing.T) *Instance {
	t.Helper()
	log := &recorder{}
	i, err := Open(InstanceOptions{ApplicationName: t.Name(), Validation: true, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
		if i.Messages() != 0 {
			for _, rec := range log.at {
				t.Errorf("validation: %s", rec.Message)
			}
		}
	})
	return i
}

// usable returns the first device of the instance that can be opened.
func usable(t *testing.T, i *Instance) *PhysicalDevice {
	t.Helper()
	var why []string
	for _, p := range i.PhysicalDevices() {
		if len(p.Missing()) == 0 {
			return p
		}
		why = append(why, p.Properties().Name+" lacks "+strings.Join(p.Missing(), ", "))
	}
	t.Fatalf("no usable device: %s", strings.Join(why, "; "))
	return nil
}

// openDevice opens a validated device, which must have no live objects when the test ends.
func openDevice(t *testing.T, o DeviceOptions) *Device {
	t.Helper()
	d, err := usable(t, openInstance(t)).Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if live := d.Live(); len(live) != 0 {
			t.Errorf("left when the test ended: %v", live)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// withBothBindings runs a test with push descriptors, if the device has them, and with
// descriptor pools.
func withBothBindings(t *testing.T, test func(t *testing.T, d *Device)) {
	for name, o := range map[string]DeviceOptions{"default": {}, "pools": {NoPushDescriptors: true}} {
		t.Run(name, func(t *testing.T) { test(t, openDevice(t, o)) })
	}
}

// newBlock creates a zeroed block in host-visible memory.
func newBlock(t *testing.T, d *Device, words int) (Block, []uint32) {
	t.Helper()
	size := uint64(words) * 4
	bits, err := d.BlockMemoryTypes(size)
	if err != nil {
		t.Fatal(err)
	}
	want := MemoryHostVisible | MemoryHostCoherent
	for k, mt := range d.Properties().MemoryTypes {
		if bits>>k&1 == 0 || mt.Flags&want != want {
			continue
		}
		b, err := d.CreateBlock(size, k)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.DestroyBlock(b) })
		data := unsafe.Slice((*uint32)(b.Host), words)
		clear(data)
		return b, data
	}
	t.Fatal("no memory type is host visible and coherent")
	return Block{}, nil
}

// all returns the whole block as one range.
func all(b Block) BufferRange { return BufferRange{Buffer: b.Buffer, Size: b.Size} }

// newPipeline creates a pipeline from a shader in testdata.
func newPipeline(t *testing.T, d *Device, name string, o PipelineOptions) Pipeline {
	t.Helper()
	o.Code, o.Entry, o.Label = shader(t, name), "main", name
	p, err := d.CreatePipeline(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.DestroyPipeline(p) })
	return p
}

// push encodes two words as push constants.
func push(a, b uint32) []byte {
	return binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, a), b)
}

// run submits the stream with the given timeline value and waits for it.
func run(t *testing.T, d *Device, s *Stream, value uint64) {
	t.Helper()
	q := d.Queues()[0]
	if err := q.Submit(s, nil, nil, value); err != nil {
		t.Fatal(err)
	}
	wait(t, q, value)
}

func wait(t *testing.T, q *Queue, value uint64) {
	t.Helper()
	done, err := q.Wait(value, time.Minute)
	if err != nil || !done {
		t.Fatalf("wait for %d: done %v, error %v", value, done, err)
	}
}

// Barriers that the tests use.
var (
	toHost = Barrier{StageAllCommands, StageHost,
		AccessShaderWrite | AccessTransferWrite, AccessHostRead}
	between = Barrier{StageCompute | StageTransfer, StageCompute | StageTransfer,
		AccessShaderWrite | AccessTransferWrite,
		AccessShaderRead | AccessShaderWrite | AccessTransferRead | AccessTransferWrite}
)

// long is called first by tests that take seconds; go test -short skips them.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
}
