package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/shaders"
	"github.com/vkomp/vkomp/tests/foreign"
)

type interopCommand struct {
	Rounds   *int   `name:"rounds" placeholder:"N" help:"Rounds with each protocol, 1 to 5000 (default 1000)."`
	Protocol string `name:"protocol" placeholder:"P" default:"both" help:"How foreign work is ordered: explicit (by values of a semaphore), implicit (by its place on a queue) or both."`
	Device   string `name:"device" placeholder:"D" help:"Device to run on: its number, its UUID or part of its name. By default the best there is."`
}

const (
	// interopRounds is the largest number of rounds whose sum float32 represents exactly.
	interopRounds = 5000
	// interopWords is the size of the slices, so small that a foreign copy is short.
	interopWords = 1 << 10
	// interopLoad is the size of a slice that keeps the device busy: interopLoads targets
	// use it before every interopWindow rounds. Before these the host waits, so that an
	// interrupt does not have to wait for more of them.
	interopLoad   = 1 << 22
	interopLoads  = 8
	interopWindow = 250
)

// Run lets foreign Vulkan code work between target tasks.
func (c *interopCommand) Run(sh *shell) error {
	rounds := chosen(c.Rounds, 1000)
	if err := limit("rounds", rounds, 1, interopRounds); err != nil {
		return err
	}
	protocols := []string{"explicit", "implicit"}
	if c.Protocol != "both" {
		if !slices.Contains(protocols, c.Protocol) {
			return fmt.Errorf("-protocol %s: the protocols are explicit, implicit and both", c.Protocol)
		}
		protocols = []string{c.Protocol}
	}
	flags := sampleFlags{Device: c.Device}
	return flags.with(sh, func(s *session) error {
		if s.device.IsInitial() {
			return errors.New("interop needs a Vulkan device, the host has no foreign runtime")
		}
		table := tabwriter.NewWriter(sh.stdout, 0, 0, 2, ' ', 0)
		info := s.device.Info()
		fmt.Fprintf(table, "device\t%d: %s (%s)\n", info.Number, info.Name, info.Type)
		fmt.Fprintf(table, "a round\ttarget x ← x + 1; foreign vkCmdCopyBuffer y ← x; target sum ← sum + y\n")
		for _, protocol := range protocols {
			r, err := newRelay(sh.ctx, s)
			if err != nil {
				return err
			}
			s.progress.begin(protocol, rounds)
			err = r.run(sh.ctx, rounds, protocol)
			s.progress.end()
			if err = errors.Join(err, r.end(sh.ctx)); err != nil {
				return err
			}
			r.print(table, protocol, rounds)
			if err := r.check(rounds); err != nil {
				return errors.Join(table.Flush(), fmt.Errorf("%s: %w", protocol, err))
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(sh.stdout, "verified: all %d rounds in order\n", rounds*len(protocols))
		return err
	})
}

// relay runs target tasks and foreign work in turns.
type relay struct {
	s               *session
	saxpy           vkomp.Kernel
	x, y, sum, ones []float32
	load, loadOnes  []float32
	object          interop.Object
	name            string
	queue           interop.ForeignQueue
	code            *foreign.Code
	copying         foreign.Commands
	// constructs holds the durations of the interop constructs, waits the number of waits of
	// the host during the rounds.
	constructs []time.Duration
	took       time.Duration
	waits      uint64
	// last holds the semaphore values of the last round's foreign work, with the explicit
	// protocol.
	last [2]uint64
}

func filled(n int, v float32) []float32 { return slices.Repeat([]float32{v}, n) }

func newRelay(ctx context.Context, s *session) (_ *relay, err error) {
	r := &relay{s: s, x: make([]float32, interopWords), y: make([]float32, interopWords), sum: make([]float32, interopWords),
		ones: filled(interopWords, 1), load: make([]float32, interopLoad), loadOnes: filled(interopLoad, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.end(ctx))
		}
	}()
	if r.saxpy, err = s.rt.NewKernel(shaders.Saxpy); err != nil {
		return nil, err
	}
	err = s.rt.TargetEnterData(ctx, vkomp.TargetEnterData{Device: s.device, Maps: []vkomp.Arg{vkomp.To(r.x), vkomp.To(r.y), vkomp.To(r.sum), vkomp.To(r.ones), vkomp.To(r.load), vkomp.To(r.loadOnes)}})
	if err != nil {
		return nil, err
	}
	err = s.rt.Interop(ctx, vkomp.Interop{Device: s.device, Init: []vkomp.InteropInit{{Object: &r.object, Types: interop.TypeTarget | interop.TypeTargetSync}}})
	if err != nil {
		return nil, err
	}
	r.name = r.object.String()
	r.queue, _ = r.object.Queue()
	if r.code, err = foreign.Open(r.object); err != nil {
		return nil, err
	}
	from, err := s.rt.InteropBuffer(r.object, vkomp.HostPtr(r.x), 0)
	if err != nil {
		return nil, err
	}
	to, err := s.rt.InteropBuffer(r.object, vkomp.HostPtr(r.y), 0)
	if err != nil {
		return nil, err
	}
	r.copying, err = r.code.Copy(from, to)
	return r, err
}

// target adds a·x to y.
func (r *relay) target(ctx context.Context, a float32, x, y []float32, depend ...vkomp.Depend) error {
	t, err := shaders.SaxpyTarget(r.saxpy, a, x, y)
	if err != nil {
		return err
	}
	t.Device, t.NoWait, t.Depend = r.s.device, true, depend
	return r.s.rt.Target(ctx, t)
}

// use is the interop construct between vkomp's work and foreign work.
func (r *relay) use(ctx context.Context) error {
	start := time.Now()
	err := r.s.rt.Interop(ctx, vkomp.Interop{Use: []interop.Object{r.object}, NoWait: true, Depend: []vkomp.Depend{vkomp.InOut(r.x), vkomp.InOut(r.y)}})
	r.constructs = append(r.constructs, time.Since(start))
	return err
}

// run runs the rounds.
func (r *relay) run(ctx context.Context, rounds int, protocol string) error {
	start, before := time.Now(), r.s.rt.Stats().HostWaits
	announced, ended := make(chan [2]uint64, rounds), make(chan error, 1)
	go func() { ended <- r.submit(ctx, announced) }()
	err := r.rounds(ctx, rounds, protocol, announced)
	close(announced)
	err = errors.Join(err, <-ended, r.s.rt.Taskwait(ctx))
	r.took, r.waits = time.Since(start), r.s.rt.Stats().HostWaits-before
	return err
}

func (r *relay) rounds(ctx context.Context, rounds int, protocol string, announced chan<- [2]uint64) error {
	for i := range rounds {
		if i%interopWindow == 0 {
			if err := r.s.rt.Taskwait(ctx); err != nil {
				return err
			}
			for range interopLoads {
				if err := r.target(ctx, 1, r.loadOnes, r.load, vkomp.InOut(r.load)); err != nil {
					return err
				}
			}
		}
		err := r.target(ctx, 1, r.ones, r.x, vkomp.In(r.load), vkomp.InOut(r.x))
		if err == nil {
			err = r.use(ctx)
		}
		switch {
		case err != nil:
			return err
		case protocol == "explicit":
			if r.last[0], r.last[1], err = r.object.Next(); err == nil {
				announced <- r.last
			}
		default:
			err = r.object.Submit(ctx, func(queue uintptr) error { return r.code.Submit(queue, r.copying) })
		}
		if err == nil {
			err = r.use(ctx)
		}
		if err == nil {
			err = r.target(ctx, 1, r.y, r.sum, vkomp.In(r.y), vkomp.InOut(r.sum))
		}
		if err != nil {
			return err
		}
		r.s.progress.advance(1)
	}
	return nil
}

// submit submits the foreign work of the explicit protocol, on a goroutine of its own.
func (r *relay) submit(ctx context.Context, announced <-chan [2]uint64) error {
	var errs []error
	for v := range announced {
		wait, signal := v[0], v[1]
		err := r.object.Ready(ctx, wait)
		if err == nil {
			r.queue.Lock.Lock()
			err = r.code.SubmitBetween(r.queue.Handle, r.copying, r.object, wait, signal)
			r.queue.Lock.Unlock()
		}
		if err != nil {
			errs = append(errs, err, r.object.Withdraw(signal))
			continue
		}
		errs = append(errs, r.object.Submitted(signal))
	}
	return errors.Join(errs...)
}

// end frees the resources of the relay, whatever has failed. The foreign code's commands belong
// to the device and are freed before it.
func (r *relay) end(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	rt := r.s.rt
	var errs []error
	if r.object != interop.None {
		// What was submitted is complete before the construct's task.
		errs = append(errs, r.use(ctx))
	}
	errs = append(errs, rt.Taskwait(ctx))
	if r.code != nil {
		r.code.Close()
	}
	if r.object != interop.None {
		errs = append(errs, rt.Interop(ctx, vkomp.Interop{Destroy: []*interop.Object{&r.object}}))
	}
	maps := []vkomp.Arg{vkomp.From(r.x), vkomp.From(r.y), vkomp.From(r.sum), vkomp.Release(r.ones), vkomp.Release(r.load), vkomp.Release(r.loadOnes)}
	errs = append(errs, rt.TargetExitData(ctx, vkomp.TargetExitData{Device: r.s.device, Maps: maps}))
	return errors.Join(errs...)
}

func (r *relay) print(w io.Writer, protocol string, rounds int) {
	how := "shared with vkomp"
	if r.queue.Implicit {
		how = "its own"
	}
	if protocol == "explicit" {
		how = fmt.Sprintf("the last copy waited for %d of its semaphore and signalled %d, on a queue of family %d", r.last[0], r.last[1], r.queue.Family)
	} else {
		how = fmt.Sprintf("by place on a queue of family %d, %s", r.queue.Family, how)
	}
	slices.Sort(r.constructs)
	n := len(r.constructs)
	fmt.Fprintf(w, "%s\t%s: %s\n", protocol, r.name, how)
	fmt.Fprintf(w, "\t%d rounds in %s; the host waited %d times\n", rounds, r.took.Round(10*time.Microsecond), r.waits)
	fmt.Fprintf(w, "\tan interop construct: half within %s, 99 %% within %s, all within %s\n",
		r.constructs[n/2].Round(100*time.Nanosecond), r.constructs[n*99/100].Round(100*time.Nanosecond), r.constructs[n-1].Round(100*time.Nanosecond))
}

// check compares the result with that of the rounds in order. Any other order gives another
// result, because each copy brings the number of its round exactly once.
func (r *relay) check(rounds int) error {
	sum := float32(0)
	for i := range rounds {
		sum += float32(i + 1)
	}
	for i := range r.x {
		if x, y := float32(rounds), float32(rounds); r.x[i] != x || r.y[i] != y || r.sum[i] != sum {
			return fmt.Errorf("element %d: x, y and sum are %v, %v and %v; in order they are %v, %v and %v", i, r.x[i], r.y[i], r.sum[i], x, y, sum)
		}
	}
	return nil
}
