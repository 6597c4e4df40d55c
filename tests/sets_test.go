package tests

import (
	"context"
	"errors"
	"testing"

	"github.com/vkomp/vkomp"
)

// Sets of tasks that are large enough for the runtime to join them: in and inoutset, in turn, on the device and, a few
// of each set, on the host. All are generated before the first can start. Each writer also comes at the end of a chain, short
// or long, so that the device reaches the tasks of a set one after the other: a reader that does not follow the last of
// them finds too little.
func TestLargeSetsComeOneAfterTheOther(t *testing.T) {
	inTaskModes(t, func(t *testing.T, rt *vkomp.Runtime) {
		const size, sets, row = 80, 6, 64
		ctx := t.Context()
		k := newCompiledAffine(t, rt)
		// The tasks of a chain add 1 to a row of z each, a writer adds that and the set's number to a row of x, and a
		// reader sets a row of y to 3·y + x.
		x, y, z := make([]uint32, size*row), make([]uint32, size*row), make([]uint32, size*row)
		at := func(s []uint32, i int) []uint32 { return s[i*row : (i+1)*row] }
		wantX, wantY, wantZ := make([]uint32, size), make([]uint32, size), make([]uint32, size)
		begin := make(chan struct{})
		generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{vkomp.Out(x)}, Body: func(context.Context) error {
			<-begin
			return nil
		}})
		host := make([]int, sets)
		err := rt.TargetData(ctx, vkomp.TargetData{Maps: []vkomp.Arg{vkomp.ToFrom(x), vkomp.ToFrom(y), vkomp.To(z)}}, func(ctx context.Context) error {
			for set := range sets {
				item, writes := vkomp.In(x), set%2 == 0
				if writes {
					item = vkomp.InOutSet(x)
				}
				for i := range size {
					other := size - 1 - i
					target := k.on(at(y, other), at(x, i), 3, 1, 0, item)
					if writes {
						chain := vkomp.InOut(at(z, i))
						for range i % 8 {
							if err := rt.Target(ctx, k.add(at(z, i), 1, chain)); err != nil {
								return err
							}
							wantZ[i]++
						}
						target = k.on(at(x, i), at(z, i), 1, 1, uint32(set+1), item, chain)
						wantX[i] += wantZ[i] + uint32(set+1)
					} else {
						wantY[other] = 3*wantY[other] + wantX[i]
					}
					if err := rt.Target(ctx, target); err != nil {
						return err
					}
				}
				for range 3 {
					generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{item, vkomp.InOut(host[set : set+1])}, Body: func(context.Context) error {
						if set > 0 && host[set-1] != 3 {
							return errors.New("a host task began before the set in front of its own had ended")
						}
						host[set]++
						return nil
					}})
				}
			}
			close(begin)
			return nil
		})
		if err := errors.Join(err, rt.Taskwait(ctx)); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			if x[i] != wantX[i/row] || y[i] != wantY[i/row] {
				t.Fatalf("element %d is %d and %d, want %d and %d", i, x[i], y[i], wantX[i/row], wantY[i/row])
			}
		}
	})
}

// The runtime has no tool, which would be told of each predecessor.
func TestLargeSetsHaveFewEdges(t *testing.T) {
	const size = 200
	rt, err := vkomp.Open(vkomp.Options{})
	succeed(t, err)
	var x [1]int
	begin := make(chan struct{})
	set := func(item vkomp.Depend) {
		for range size {
			generate(t, rt, vkomp.Task{Depend: []vkomp.Depend{item}, Body: func(context.Context) error {
				<-begin
				return nil
			}})
		}
	}
	set(vkomp.InOutSet(x[:]))
	set(vkomp.In(x[:]))
	if s := rt.Stats(); s.Edges > 5*size || s.Tasks != 2*size {
		t.Errorf("%d tasks and %d edges, want %d and at most %d", s.Tasks, s.Edges, 2*size, 5*size)
	}
	close(begin)
	succeed(t, rt.Close())
}
