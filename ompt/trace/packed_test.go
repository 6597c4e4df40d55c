package trace

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestLabelsHaveNumbersOfTheirOwn(t *testing.T) {
	var l labelTable
	// Strings of one length, at addresses that collide, and equal ones at different addresses.
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("label %04d", i))
	}
	long := strings.Clone("label that begins as another")
	all = append(all, "", "x", long, long[:5], strings.Clone("x"))
	for range 2 {
		for _, s := range all {
			if n := l.of(s); l.all[n] != s {
				t.Fatalf("%q has number %d, that of %q", s, n, l.all[n])
			}
		}
	}
	if len(l.all) != 1004 {
		t.Errorf("%d labels", len(l.all))
	}
}

// The garbage collector does not look at what is kept of tasks.
func TestEntriesHaveNoPointers(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[packedTask](), reflect.TypeFor[packedRegion](), reflect.TypeFor[packedOp](), reflect.TypeFor[packedRecord](),
		reflect.TypeFor[run](), reflect.TypeFor[wait](), reflect.TypeFor[edge](),
	} {
		for i := range of.NumField() {
			switch f := of.Field(i); f.Type.Kind() {
			case reflect.String, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Struct:
				t.Errorf("%s.%s is a %v", of.Name(), f.Name, f.Type)
			}
		}
		if n := of.Size(); n > 100 {
			t.Errorf("%s has %d bytes", of.Name(), n)
		}
	}
}

// Nothing is allocated for an event but chunks of entries.
func TestCollectorAllocatesChunks(t *testing.T) {
	allocations := func(p *program) float64 {
		made := make([]madeTask, chunkLength)
		return testing.AllocsPerRun(5, func() {
			for i := range made {
				task12(p, &made[i])
			}
		})
	}
	// A task has at most two entries of a kind, and now and then the list of chunks grows.
	n := allocations(with(New(Options{}).Callbacks())) - allocations(with(new(Counters).Callbacks()))
	if n > 2*10 {
		t.Errorf("%v allocations for %d tasks", n, chunkLength)
	}
}
