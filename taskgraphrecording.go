package vkomp

import (
	"context"
	"fmt"
	"slices"

	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/sched"
	"github.com/vkomp/vkomp/tasks"
)

// recording collects the constructs of a taskgraph region while its block is executed.
type recording struct {
	rt *Runtime
	// bound are the parameters of the region.
	bound *bindings
	// done is closed when the block's context ends. It is nil if it cannot end.
	done <-chan struct{}
	// mu guards the fields below.
	mu         lockrank.Mutex[lockrank.Leaf]
	constructs []recorded
	// derived are contexts of constructs that can end before the block's does.
	derived []context.Context
	// over says that the block has ended: the construct that still has its context is not part of
	// it. spoilt says that no record can be made.
	over, spoilt bool
}

// recorded is a construct in a record.
type recorded interface {
	// replay generates the construct's task again, in c, with the parameters bound. The error is
	// that of the construct's method.
	replay(ctx context.Context, c *current, bound *bindings) error
}

// Reasons for which a construct is not replayable.
const (
	undeferred = "it is undeferred"
	waits      = "it waits for tasks"
)

// records returns what records a construct that c encounters, with that replayable clause, or nil.
func (c *current) records(replayable Cond) *recording {
	if c.recording == nil || replayable.isFalse() || c.recording.ended() {
		return nil
	}
	return c.recording
}

func (r *recording) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// add adds a construct whose task was generated with ctx.
func (r *recording) add(ctx context.Context, construct recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.constructs = append(r.constructs, construct)
	done := ctx.Done()
	if n := len(r.derived); done != nil && done != r.done && (n == 0 || done != r.derived[n-1].Done()) {
		r.derived = append(r.derived, ctx)
	}
}

// spoil makes the block leave no record.
func (r *recording) spoil() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoilt = true
}

// unrecorded is failure for a construct with that replayable clause: if its region is being recorded, the block leaves no
// record, which would have a construct less.
func (rt *Runtime) unrecorded(ctx context.Context, replayable Cond, err error) error {
	if recording := rt.current(ctx).recording; recording != nil && !replayable.isFalse() {
		recording.spoil()
	}
	return rt.failure(ctx, err)
}

// refuse returns the error for a construct that cannot be recorded, after which there is no record.
// The construct's name and label may be left to the caller.
func (r *recording) refuse(construct, label, why string) error {
	r.spoil()
	err := fmt.Errorf("%w: %s", ErrNotReplayable, why)
	if label != "" {
		construct = fmt.Sprintf("%s %q", construct, label)
	}
	if construct != "" {
		err = fmt.Errorf("%s: %w", construct, err)
	}
	return err
}

// end ends the recording and returns the constructs, and whether they are a record, which takes
// a complete block. Tasks whose context has ended may have been dropped. Without any there is none: a
// replay would do nothing, where the block may have generated its tasks with another context by mistake.
func (r *recording) end(complete bool) ([]recorded, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if !complete || r.spoilt || len(r.constructs) == 0 || slices.ContainsFunc(r.derived, func(ctx context.Context) bool { return ctx.Err() != nil }) {
		return nil, false
	}
	r.derived = nil
	return r.constructs, true
}

// here returns the place of the construct in the program, for listeners to its replays.
func (r *recording) here() observe.Site {
	if events := r.rt.events.Load(); events != nil {
		return events.Here()
	}
	return observe.Site{}
}

// take makes clauses those of a record.
func (r *recording) take(passed *clauses) *clauses {
	passed.kept, passed.directive.at = true, r.here()
	if r.rt.options.LeakSites {
		passed.Site = memory.CallSite()
	}
	return passed
}

// returned returns the error with which a construct that c encounters returns, nil without one.
func (c *current) returned(ctx context.Context, err error) error {
	if err != nil {
		return c.rt.failure(ctx, err)
	}
	return nil
}

// regenerate generates the task of a construct whose clauses a record has.
func (c *current) regenerate(ctx context.Context, passed *clauses) error {
	var s *sched.Scheduler
	if passed.device.physical != nil {
		var err error
		if s, err = passed.device.open(); err != nil {
			return err
		}
	}
	err := c.generate(ctx, passed, s)
	passed.Scope, passed.Group, passed.Place, passed.Observer = nil, nil, nil, nil
	return err
}

// recordedClauses are the clauses of a directive in a record.
type recordedClauses struct {
	// passed are the evaluated clauses. It is nil if they have to be evaluated at each replay, from
	// args and depend: those with a place belong to parameters.
	passed     *clauses
	args       []Arg
	depend     []Depend
	argPlaces  []place
	itemPlaces []place
}

// keepClauses returns the clauses of a directive for the record. With anew they are evaluated at each replay in any case.
func (r *recording) keepClauses(passed *clauses, args []Arg, labels *itemLabels, depend []Depend, anew bool) (kept recordedClauses, err error) {
	if kept.argPlaces, err = r.bound.argPlaces(args, labels); err != nil {
		return kept, err
	}
	if r.bound != nil {
		kept.itemPlaces, err = r.bound.dependPlaces(appendItems(nil, depend))
	}
	switch {
	case err != nil:
	case len(kept.argPlaces)+len(kept.itemPlaces) == 0 && !anew:
		kept.passed = r.take(passed)
	default:
		kept.args, kept.depend = append([]Arg(nil), args...), append([]Depend(nil), depend...)
	}
	return kept, err
}

// move makes the items that belong to parameters those of the parameters' values.
func (k *recordedClauses) move(bound *bindings) {
	bound.moveArgs(k.args, k.argPlaces)
	for _, p := range k.itemPlaces {
		k.depend[p.item].item.Ptr = bound.pointerAt(p)
	}
}

// recordedTarget is a target construct in a record.
type recordedTarget struct {
	// target is the directive without its slices, with the device where the region ran.
	target Target
	recordedClauses
	encountered observe.Site
	// plain says that the region only runs a kernel of a device: see recordedCompound.
	plain bool
}

// target returns the record of a target construct, whose clauses have been evaluated. Host
// variants get arguments of their own at each replay, because they may use them at the same time.
func (r *recording) target(passed *clauses, t *Target, args []Arg, depend []Depend) (*recordedTarget, error) {
	// The string of the directive's own label must not get to the heap: see hide.
	copied := *t
	copied.Label, copied.Device, copied.If = passed.Label, Device{passed.device}, condAbsent
	kept, err := r.keepClauses(passed, args, argumentLabels, depend, passed.device.physical == nil)
	if err != nil {
		return nil, r.refuse("target", passed.Label, err.Error())
	}
	return &recordedTarget{target: copied, recordedClauses: kept, encountered: r.here(), plain: passed.Plain()}, nil
}

func (t *recordedTarget) replay(ctx context.Context, c *current, bound *bindings) error {
	if t.passed != nil {
		return c.returned(ctx, c.regenerate(ctx, t.passed))
	}
	t.move(bound)
	return c.returned(ctx, c.rt.targetIn(ctx, c, &t.target, t.args, t.depend, t.encountered))
}

// evaluate returns the clauses of the construct with the parameters as they are bound, and the scheduler of its device, nil for
// the initial device.
func (t *recordedTarget) evaluate(c *current, bound *bindings) (passed *clauses, s *sched.Scheduler, err error) {
	passed = newClauses()
	passed.Label = t.target.Label
	t.move(bound)
	s, err = c.rt.evaluate(c, passed, &t.target, t.args, t.depend)
	return passed, s, err
}

// recordedStandalone is a data directive without a body in a record.
type recordedStandalone struct {
	directive standalone
	recordedClauses
}

func (r *recording) standalone(passed *clauses, d *standalone, items []Arg, depend []Depend) (*recordedStandalone, error) {
	copied := *d
	copied.device, copied.condition, copied.at = Device{passed.device}, condAbsent, r.here()
	if copied.label != "" {
		copied.label = passed.Label
	}
	kept, err := r.keepClauses(passed, items, d.labels(), depend, false)
	if err != nil {
		return nil, r.refuse(d.name(), copied.label, err.Error())
	}
	return &recordedStandalone{directive: copied, recordedClauses: kept}, nil
}

func (d *recordedStandalone) replay(ctx context.Context, c *current, bound *bindings) error {
	if d.passed != nil {
		return c.returned(ctx, c.regenerate(ctx, d.passed))
	}
	d.move(bound)
	return c.returned(ctx, c.rt.standaloneIn(ctx, c, &d.directive, d.args, d.depend))
}

// recordedTask is an explicit task in a record, with depend items of its own.
type recordedTask struct {
	task   explicitTask
	places []place
}

func (r *recording) task(e *explicitTask) (*recordedTask, error) {
	kept := &recordedTask{task: *e}
	kept.task.region.Depend, kept.task.directive.at = slices.Clone(e.region.Depend), r.here()
	var err error
	if kept.places, err = r.bound.dependPlaces(kept.task.region.Depend); err != nil {
		return nil, r.refuse("task", e.region.Label, err.Error())
	}
	return kept, nil
}

func (t *recordedTask) replay(ctx context.Context, c *current, bound *bindings) error {
	bound.moveDepends(t.task.region.Depend, t.places)
	return c.returned(ctx, t.task.generate(ctx, c))
}

// recordedJoin is a taskwait with nowait in a record.
type recordedJoin struct {
	label       string
	depend      []tasks.Depend
	places      []place
	encountered observe.Site
}

func (r *recording) join(label string, depend []tasks.Depend) (*recordedJoin, error) {
	kept := &recordedJoin{label: label, depend: slices.Clone(depend), encountered: r.here()}
	var err error
	if kept.places, err = r.bound.dependPlaces(kept.depend); err != nil {
		return nil, r.refuse(label, "", err.Error())
	}
	return kept, nil
}

func (j *recordedJoin) replay(ctx context.Context, c *current, bound *bindings) error {
	bound.moveDepends(j.depend, j.places)
	return c.returned(ctx, c.join(ctx, j.label, j.depend, true, j.encountered))
}

// recordedRoutine is a memory routine in a record. Its pointers are looked up at each replay.
type recordedRoutine struct {
	label       string
	form        observe.Form
	rows        memory.Rows
	value       byte
	fills       *device
	ends        [2]DevicePtr // the destination, and the source unless it is a fill
	endPlaces   []place
	depend      []tasks.Depend
	itemPlaces  []place
	encountered observe.Site
}

func (r *recording) routine(of *routine, dst, src *DevicePtr) (*recordedRoutine, error) {
	kept := &recordedRoutine{
		label: of.label, form: of.form, rows: of.rows, value: of.value, fills: of.fills,
		depend: slices.Clone(of.depend), encountered: r.here(),
	}
	kept.ends[0] = *dst
	if src != nil {
		kept.ends[1] = *src
	}
	for i := range kept.ends {
		p, ok, err := r.bound.pointerPlace(i, &kept.ends[i])
		if err != nil {
			return nil, r.refuse("", "", fmt.Sprintf("%v: %v", kept.ends[i], err))
		}
		if ok {
			kept.endPlaces = append(kept.endPlaces, p)
		}
	}
	var err error
	if kept.itemPlaces, err = r.bound.dependPlaces(kept.depend); err != nil {
		return nil, r.refuse("", "", err.Error())
	}
	return kept, nil
}

// move makes the ends and the items that belong to parameters those of the parameters' values.
func (k *recordedRoutine) move(bound *bindings) {
	for _, p := range k.endPlaces {
		bound.movePointer(&k.ends[p.item], p)
	}
	bound.moveDepends(k.depend, k.itemPlaces)
}

func (k *recordedRoutine) replay(ctx context.Context, c *current, bound *bindings) error {
	k.move(bound)
	r := newRoutine(c.rt, k.label)
	r.form, r.rows, r.value, r.fills = k.form, k.rows, k.value, k.fills
	if err := r.between(&k.ends[0], &k.ends[1]); err != nil {
		r.giveBack()
		return fmt.Errorf("vkomp: %s: %w", k.label, err)
	}
	r.depend = append(r.depend, k.depend...)
	return r.generateIn(ctx, c, true, k.encountered)
}
