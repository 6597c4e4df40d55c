package tests

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/tests/foreign"
	"github.com/vkomp/vkomp/tests/vktest"
)

var interopRounds = flag.Int("interop.rounds", 0, "interop: how many rounds with each protocol, in place of some")

// relay runs target tasks and foreign work in turns: a target sets x, foreign code copies x to y,
// and a target adds y to sum. The values of x, y and sum after a round reveal any wrong order.
type relay struct {
	t         testing.TB
	rt        *vkomp.Runtime
	k         affine
	o         interop.Object
	code      *foreign.Code
	copying   foreign.Commands
	x, y, sum []uint32
	// other is a second object, None without one: the copy then goes through z.
	other              interop.Object
	z                  []uint32
	copyingZ, copyingY foreign.Commands
	// sent receives what a foreign thread has to submit; done gets its error at the end.
	sent chan [2]uint64
	done chan error
	// unordered leaves out the construct between a target and the following foreign work.
	unordered bool
}

const relayWords = 256

func newRelay(t testing.TB, rt *vkomp.Runtime) *relay {
	t.Helper()
	r := &relay{t: t, rt: rt, k: newCompiledAffine(t, rt), x: repeated(relayWords, 1), y: repeated(relayWords, 2), sum: repeated(relayWords, 3)}
	succeed(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(r.x), vkomp.To(r.y), vkomp.To(r.sum)}}))
	succeed(t, rt.Interop(t.Context(), vkomp.Interop{Init: []vkomp.InteropInit{{Object: &r.o, Types: interop.TypeTarget | interop.TypeTargetSync}}}))
	var err error
	r.code, err = foreign.Open(r.o)
	succeed(t, err)
	from, err := rt.InteropBuffer(r.o, vkomp.HostPtr(r.x), 0)
	succeed(t, err)
	to, err := rt.InteropBuffer(r.o, vkomp.HostPtr(r.y), 0)
	succeed(t, err)
	r.copying, err = r.code.Copy(from, to)
	succeed(t, err)
	return r
}

// protocol is a way of doing foreign work between two constructs.
type protocol struct {
	name string
	send func(r *relay) error
}

// explicitly announces the work; another thread submits it when its predecessors have been
// submitted.
var explicitly = protocol{"explicit", func(r *relay) error {
	wait, signal, err := r.o.Next()
	if err != nil {
		return err
	}
	r.sent <- [2]uint64{wait, signal}
	return nil
}}

// onOwnQueue submits the work as it is to the object's own queue.
var onOwnQueue = protocol{"implicit, own queue", func(r *relay) error {
	q, ok := r.o.Queue()
	if !ok || !q.Implicit {
		return fmt.Errorf("the queue of %v is %+v, want its own", r.o, q)
	}
	q.Lock.Lock()
	defer q.Lock.Unlock()
	return r.code.Submit(q.Handle, r.copying)
}}

// calledBack gets the object's queue in a callback when it is time to submit.
var calledBack = protocol{"implicit, shared queue", func(r *relay) error {
	return r.o.Submit(r.t.Context(), func(queue uintptr) error { return r.code.Submit(queue, r.copying) })
}}

// handedOn begins the work with foreign code of one object and ends it with that of another.
var handedOn = protocol{"two objects", func(r *relay) error {
	ctx := r.t.Context()
	if r.other == interop.None {
		if err := r.share(); err != nil {
			return err
		}
	}
	submit := func(o interop.Object, c foreign.Commands) error {
		return o.Submit(ctx, func(queue uintptr) error { return r.code.Submit(queue, c) })
	}
	if err := submit(r.o, r.copyingZ); err != nil {
		return err
	}
	if err := r.rt.Interop(ctx, vkomp.Interop{Use: []interop.Object{r.other, r.o}}); err != nil {
		return err
	}
	return submit(r.other, r.copyingY)
}}

// share creates the second object.
func (r *relay) share() error {
	ctx := r.t.Context()
	r.z = repeated(relayWords, 4)
	if err := r.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Maps: []vkomp.Arg{vkomp.To(r.z)}}); err != nil {
		return err
	}
	var at [3]interop.Buffer
	for k, s := range [][]uint32{r.x, r.z, r.y} {
		var err error
		if at[k], err = r.rt.InteropBuffer(r.o, vkomp.HostPtr(s), 0); err != nil {
			return err
		}
	}
	var err, err2 error
	r.copyingZ, err = r.code.Copy(at[0], at[1])
	r.copyingY, err2 = r.code.Copy(at[1], at[2])
	return errors.Join(err, err2, r.rt.Interop(ctx, vkomp.Interop{Init: []vkomp.InteropInit{{Object: &r.other, Types: interop.TypeTarget | interop.TypeTargetSync}}}))
}

// foreignThread submits what explicitly announces.
func (r *relay) foreignThread() {
	r.sent, r.done = make(chan [2]uint64, 64), make(chan error, 1)
	q, _ := r.o.Queue()
	go func() {
		var errs []error
		for v := range r.sent {
			wait, signal := v[0], v[1]
			if err := r.o.Ready(r.t.Context(), wait); err != nil {
				errs = append(errs, err)
			}
			q.Lock.Lock()
			err := r.code.SubmitBetween(q.Handle, r.copying, r.o, wait, signal)
			q.Lock.Unlock()
			errs = append(errs, err, r.o.Submitted(signal))
		}
		r.done <- errors.Join(errs...)
	}()
}

// run runs that many rounds and returns the sum and its expected value.
func (r *relay) run(rounds int, p protocol) (got, want []uint32) {
	t, rt, ctx := r.t, r.rt, r.t.Context()
	r.foreignThread()
	x, y, sum := uint32(1), uint32(2), uint32(3)
	for i := range rounds {
		offload(t, rt, r.k.on(r.x, r.x, 3, 0, uint32(i), vkomp.InOut(r.x)))
		if i%7 == 3 {
			// The host's work comes between two tasks of the device.
			succeed(t, rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }, Depend: []vkomp.Depend{vkomp.InOut(r.x)}}))
		}
		use := vkomp.Interop{Use: []interop.Object{r.o, r.other}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(r.x), vkomp.InOut(r.y)}}
		if !r.unordered {
			succeed(t, rt.Interop(ctx, use))
		}
		succeed(t, p.send(r))
		use.Use[1] = r.other
		succeed(t, rt.Interop(ctx, use))
		offload(t, rt, r.k.on(r.sum, r.y, 5, 1, uint32(i), vkomp.In(r.y), vkomp.InOut(r.sum)))
		x = 3*x + uint32(i)
		y = x
		sum = 5*sum + y + uint32(i)
	}
	close(r.sent)
	succeed(t, <-r.done)
	succeed(t, rt.Taskwait(ctx))
	succeed(t, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&r.o, &r.other}, NoWait: true}))
	if r.z != nil {
		succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.Release(r.z)}}))
	}
	succeed(t, rt.TargetExitData(ctx, vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(r.x), vkomp.From(r.y), vkomp.From(r.sum)}}))
	succeed(t, rt.Taskwait(ctx))
	r.code.Close()
	return append(append(append(got, r.x...), r.y...), r.sum...),
		append(append(append(want, repeated(relayWords, x)...), repeated(relayWords, y)...), repeated(relayWords, sum)...)
}

func wrongAt(got, want []uint32) int {
	for i := range want {
		if got[i] != want[i] {
			return i
		}
	}
	return -1
}

// shared makes objects use a queue of the scheduler.
func shared(o *vkomp.Options) { o.InteropQueues = -1 }

func randomly(seed uint64) func(*vkomp.Options) {
	return vktest.Debug(fmt.Sprintf("placement=random,seed=%d", seed))
}

func quick(o *vkomp.Options) { o.Validation = false }

func TestForeignWorkBetweenTargets(t *testing.T) {
	vktest.LongConcurrent(t)
	rounds := 150
	if *interopRounds > 0 {
		rounds = *interopRounds
	}
	for _, c := range []struct {
		protocol
		layers  []string
		options []func(*vkomp.Options)
	}{
		{explicitly, nil, nil},
		{calledBack, nil, nil},
		{explicitly, []string{"manyqueue"}, nil},
		{explicitly, []string{"manyqueue"}, []func(*vkomp.Options){shared, vktest.Staging}},
		{explicitly, []string{"manyqueue", "shuffle"}, []func(*vkomp.Options){randomly(1)}},
		{onOwnQueue, []string{"manyqueue"}, nil},
		{onOwnQueue, []string{"manyqueue", "shuffle"}, []func(*vkomp.Options){randomly(2)}},
		{calledBack, []string{"manyqueue"}, []func(*vkomp.Options){shared}},
		{calledBack, []string{"manyqueue", "shuffle"}, []func(*vkomp.Options){shared, randomly(3)}},
		{handedOn, nil, nil},
		{handedOn, []string{"manyqueue"}, nil},
		{handedOn, []string{"manyqueue", "shuffle"}, []func(*vkomp.Options){shared, randomly(4)}},
	} {
		t.Run(strings.Join(append([]string{c.name}, c.layers...), ", "), func(t *testing.T) {
			if len(c.layers) > 0 {
				vktest.Layers(t, c.layers...)
				t.Setenv("VKOMP_MANYQUEUE_DELAY_US", "100")
			}
			options := c.options
			if *interopRounds > 0 {
				options = append(options, quick)
			}
			r := newRelay(t, vktest.Open(t, options...))
			got, want := r.run(rounds, c.protocol)
			if i := wrongAt(got, want); i >= 0 {
				t.Errorf("word %d is %d, want %d", i, got[i], want[i])
			}
		})
	}
}

// The recorded calls order every access, including foreign ones.
func TestForeignWorkIsOrderedInTheRecord(t *testing.T) {
	vktest.Long(t)
	for _, c := range []struct {
		protocol
		options []func(*vkomp.Options)
	}{
		{explicitly, nil},
		{onOwnQueue, []func(*vkomp.Options){randomly(1)}},
		{calledBack, []func(*vkomp.Options){shared, randomly(2)}},
		{handedOn, []func(*vkomp.Options){shared, randomly(3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			vktest.Layers(t, "record", "manyqueue")
			log := filepath.Join(t.TempDir(), "log")
			t.Setenv("VKOMP_RECORD", log)
			rt := vktest.Open(t, append(c.options, quick, vktest.Path(vkomp.MemoryNonCoherent))...)
			r := newRelay(t, rt)
			got, want := r.run(100, c.protocol)
			if i := wrongAt(got, want); i >= 0 {
				t.Errorf("word %d is %d, want %d", i, got[i], want[i])
			}
			succeed(t, rt.Close())
			if sum := keptOrderWithForeignWork(t, log).Sum(); sum.Launches < 200 || sum.Copies < 100 {
				t.Errorf("%d launches and %d copies were checked", sum.Launches, sum.Copies)
			}
		})
	}
}

// Without the construct before the foreign work the same program must go wrong, which shows that
// the test above can fail.
func TestForeignWorkThatIsNotOrderedGoesWrong(t *testing.T) {
	vktest.Long(t)
	for _, p := range []protocol{explicitly, onOwnQueue} {
		t.Run(p.name, func(t *testing.T) {
			vktest.Layers(t, "manyqueue")
			wrong := 0
			for seed := range uint64(8) {
				t.Setenv("VKOMP_MANYQUEUE_SEED", fmt.Sprint(seed))
				r := newRelay(t, vktest.Open(t, vktest.NoSynchronizationChecks, randomly(seed)))
				r.unordered = true
				got, want := r.run(20, p)
				if wrongAt(got, want) >= 0 {
					wrong++
				}
			}
			if wrong == 0 {
				t.Error("the values are right in 8 of 8 runs")
			}
		})
	}
}

// A wait says what it waits for and ends with its context; nothing hangs if the foreign side never
// submits.
func TestForeignWorkThatIsNeverSubmitted(t *testing.T) {
	rt := vktest.Open(t)
	r := newRelay(t, rt)
	defer r.code.Close()
	_, signal, err := r.o.Next()
	succeed(t, err)
	succeed(t, rt.Interop(t.Context(), vkomp.Interop{Use: []interop.Object{r.o}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(r.x)}}))
	offload(t, rt, r.k.add(r.x, 1, vkomp.InOut(r.x)))
	// Other work continues.
	offload(t, rt, r.k.add(r.sum, 1, vkomp.InOut(r.sum)))
	succeed(t, rt.Taskwait(t.Context(), vkomp.In(r.sum)))

	says := fmt.Sprintf("%v awaits value %d, which no foreign work was submitted to signal", r.o, signal)
	for _, c := range []struct {
		name string
		wait func(ctx context.Context) error
	}{
		{"Taskwait", func(ctx context.Context) error { return rt.Taskwait(ctx) }},
		{"Ready", func(ctx context.Context) error { return r.o.Ready(ctx, signal) }},
		{"Target", func(ctx context.Context) error { return rt.Target(ctx, now(r.k.add(r.x, 1, vkomp.InOut(r.x)))) }},
		// Its task is dropped, and so are its dependents.
		{"Taskgroup", func(ctx context.Context) error {
			return rt.Taskgroup(ctx, func(ctx context.Context) error {
				return rt.Task(ctx, vkomp.Task{Body: func(context.Context) error { return nil }, Depend: []vkomp.Depend{vkomp.In(r.x)}})
			})
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := c.wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a deadline and %q", c.name, err, says)
		}
		cancel()
	}
	succeed(t, r.o.Withdraw(signal))
	if err := rt.Taskwait(t.Context()); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	succeed(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: []vkomp.Arg{vkomp.From(r.x), vkomp.Release(r.y), vkomp.From(r.sum)}}))
	if r.x[0] != 3 || r.sum[0] != 4 {
		t.Errorf("x is %d, sum is %d; want 3 and 4", r.x[0], r.sum[0])
	}
}
