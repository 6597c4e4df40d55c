package order

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/vk/spirv"
)

// mergedSaxpy returns lines that make pipeline 2 of the kernel of pipeline 1 for at least 14 launches in a
// dispatch, with 8 bytes of push constants each. bindings says what they bind.
func mergedSaxpy(t *testing.T, bindings spirv.MergedBindings) string {
	t.Helper()
	code, err := os.ReadFile("../../vk/spirv/testdata/saxpy.spv")
	if err != nil {
		t.Fatal(err)
	}
	m, err := spirv.Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	v, err := spirv.Merge(m, "main", spirv.MergeOptions{Launches: 32, Descriptors: 32, PushBytes: 128, Bindings: bindings})
	if err != nil || v.Launches < 14 || v.Stride != 8 {
		t.Fatalf("%d launches, %d bytes: %v", v.Launches, v.Stride, err)
	}
	var words []byte
	for _, w := range v.Words {
		words = binary.LittleEndian.AppendUint32(words, w)
	}
	return "module 2 0 " + hex.EncodeToString(words) + "\npipeline 2 0 2 main\n"
}

// The launches of a dispatch are checked like dispatches between which there is no barrier.
func TestLaunchesOfADispatchAreCheckedLikeDispatches(t *testing.T) {
	const two = "k 0 0,0,1,0\nd 0 0 0 1 1 2\n" // tasks 0 0 and 1 0
	apart := "p 2\nR 0 0:1:0:8 0:1:8:8 1:2:0:8 1:2:8:8\n" + two
	for _, c := range []struct {
		name, clauses, commands string
		want                    []Kind
		dispatches              uint64
	}{
		{"other bytes", "", apart, nil, 1},
		{"the same bytes written", "", "p 2\nR 0 0:1:0:8 0:1:8:8 1:2:0:8 1:2:4:8\n" + two, []Kind{Unordered, Unordered}, 1},
		{"one reads what the other writes", "", "p 2\nR 0 0:1:0:8 0:2:0:8 1:2:0:8 1:2:8:8\n" + two, []Kind{Unordered}, 1},
		{"what both read", "", "p 2\nR 0 0:1:0:8 0:1:0:8 1:2:0:8 1:2:8:8\n" + two, nil, 1},
		{"an element that no launch has", "", "p 2\nR 0 0:1:0:8 0:1:8:8 0:2:0:8 1:2:0:8 1:2:8:8 1:2:0:8\n" + two, nil, 1},
		{"a launch without a descriptor", "", "p 2\nR 0 0:1:0:8 1:2:0:8 1:2:8:8\n" + two, []Kind{Unknown}, 1},
		{"a dispatch behind, without a barrier", "", apart + "p 1\nR 0 0:1:0:8 1:2:8:8\nd 0 0 0 1 1 1\n", []Kind{Unordered, Unordered}, 2},
		{"a dispatch behind a barrier", "", apart + everything + "p 1\nR 0 0:1:0:8 1:2:8:8\nd 0 0 0 1 1 1\n", nil, 2},
		{"tasks that must be ordered", "task 0 0 out=1\ntask 1 0 in=1\n", apart, []Kind{Dependence}, 1},
		{"tasks that need not be", "task 0 0 in=1\ntask 1 0 in=1\n", apart, nil, 1},
		{"the push constants of the second", "task 0 0 out=1\ntask 2 0 in=1\n", apart, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{}
			if c.clauses != "" {
				o.Clauses = strings.NewReader(c.clauses)
			}
			r := check(t, mergedSaxpy(t, spirv.OwnBindings)+on("1", "", c.commands, "1"), o)
			var got []Kind
			for _, v := range r.Violations {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", r.Violations, c.want)
			}
			dispatches := uint64(0)
			for _, q := range r.Queues {
				dispatches += q.Dispatches
			}
			if dispatches != c.dispatches {
				t.Errorf("%d dispatches, want %d", dispatches, c.dispatches)
			}
		})
	}
}

// checkLaunches checks the kinds of violations of a command buffer with launches of mergedSaxpy.
func checkLaunches(t *testing.T, bindings spirv.MergedBindings, clauses, commands string, want []Kind) {
	t.Helper()
	o := Options{}
	if clauses != "" {
		o.Clauses = strings.NewReader(clauses)
	}
	var got []Kind
	for _, v := range check(t, mergedSaxpy(t, bindings)+on("1", "", commands, "1"), o).Violations {
		got = append(got, v.Kind)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Launches that bind the same all use it.
func TestLaunchesThatBindTheSameAreCheckedLikeDispatches(t *testing.T) {
	const bind = "p 2\nR 0 0:1:0:8 1:2:0:8\nk 0 0,0,1,0\n"
	for _, c := range []struct {
		name, clauses, commands string
		want                    []Kind
	}{
		{"one launch", "", bind + "d 0 0 0 1 1 1\n", nil},
		{"two that write it", "", bind + "d 0 0 0 1 1 2\n", []Kind{Unordered, Unordered}},
		{"two that nothing is bound for", "", "p 2\nR 0 0:1:0:8\nk 0 0,0,1,0\nd 0 0 0 1 1 2\n", []Kind{Unknown, Unknown}},
		{"tasks that must be ordered", "task 0 0 out=1\ntask 1 0 in=1\n", bind + "d 0 0 0 1 1 2\n", []Kind{Dependence, Unordered, Unordered}},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkLaunches(t, spirv.SharedBindings, c.clauses, c.commands, c.want)
		})
	}
}

// Launches whose bindings are parts of one buffer use their parts.
func TestLaunchesWithSpacedBindingsAreCheckedLikeDispatches(t *testing.T) {
	bind := func(size, distance int) string {
		return fmt.Sprintf("p 2\nR 0 0:1:0:%[1]d 1:2:0:%[1]d\nk 0 %[2]x,2,%[2]x,2,0,0,1,0\nd 0 0 0 1 1 2\n", size, distance)
	}
	for _, c := range []struct {
		name, clauses, commands string
		want                    []Kind
	}{
		{"side by side", "", bind(16, 2), nil},
		{"a word in common", "", bind(12, 1), []Kind{Unordered, Unordered}},
		{"the same", "", bind(8, 0), []Kind{Unordered, Unordered}},
		{"more than is bound", "", bind(12, 2), []Kind{Unknown}},
		{"tasks that must be ordered", "task 0 0 out=1\ntask 1 0 in=1\n", bind(16, 2), []Kind{Dependence}},
		{"the push constants of the second", "task 0 0 out=1\ntask 2 0 in=1\n", bind(16, 2), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			checkLaunches(t, spirv.SpacedBindings, c.clauses, c.commands, c.want)
		})
	}
}

// A run counts the launches of a dispatch as one command, and says of each what it uses.
func TestRunHasTheLaunchesOfADispatch(t *testing.T) {
	run, err := Read(strings.NewReader(setting(t, 1).String() + mergedSaxpy(t, spirv.OwnBindings) +
		on("1", "", "p 2\nR 0 0:1:0:8 0:1:8:4 1:2:0:8 1:2:8:4\nk 0 0,0,1,0\nd 0 0 0 5 1 2\n", "1")))
	if err != nil {
		t.Fatal(err)
	}
	var commands CommandCount
	var operations []Operation
	for _, c := range run.Calls {
		commands.Others += c.Commands.Others
		for _, b := range c.Batches {
			operations = append(operations, b.Commands...)
		}
	}
	if commands.Others != 1 || len(operations) != 2 {
		t.Fatalf("%d recorded commands, operations %+v", commands.Others, operations)
	}
	for k, o := range operations {
		if o.Part != (k == 1) || o.Groups != 5 || len(o.Regions) != 2 || o.Regions[1].Bytes != uint64(8-4*k) {
			t.Errorf("launch %d is %+v", k, o)
		}
	}
}
