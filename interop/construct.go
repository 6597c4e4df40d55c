package interop

import (
	"errors"
	"fmt"

	"github.com/vkomp/vkomp/tasks"
)

// Action is what an interop construct does to an object.
type Action int

const (
	ActionInit Action = iota
	ActionUse
	ActionDestroy
)

// String names the action as its clause does.
func (a Action) String() string { return [...]string{"init", "use", "destroy"}[a] }

// Task is the empty task of an interop construct (OpenMP 5.1 §2.15.1). Foreign work
// that the object was given before the construct is complete before the task begins;
// foreign work that it is given later begins after the task is complete.
type Task struct {
	Action Action
	Scope  *tasks.Scope
	Depend []tasks.Depend
	NoWait bool
	Group  *tasks.Group
}

// Generate generates the task of an object that has targetsync. Without nowait and
// without depend it is merged: there is no task. Otherwise it is one of the scope's,
// deferred: nothing here waits.
func (o Object) Generate(t Task) error {
	if o == None || o.state.stream == nil {
		return nil
	}
	st := o.state.stream
	w := tasks.NewWork()
	defer w.Finish()
	s, err := st.generate(&t, o.state.device.Domain, w)
	if s == nil || err != nil {
		return err
	}
	// Unless it waits for the host, the task is submitted by this: then no queue is made
	// to wait for what is not.
	w.Run()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.implicit && t.Action != ActionDestroy {
		return st.queue.Order(st.at(s.signal), nil)
	}
	return nil
}

// generate adds a construct's task, and returns its step, nil if it is merged.
func (st *stream) generate(t *Task, domain tasks.Domain, w *tasks.Work) (s *step, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.destroyed {
		return nil, fmt.Errorf("%w: %s was destroyed", ErrInvalid, st.name)
	}
	if st.implicit && t.Action != ActionInit {
		// What was submitted to the object's own queue is before this; if there is no
		// task, what comes later is after it.
		if err := st.gather(); err != nil {
			return nil, err
		}
		st.advance(w)
	}
	if !t.NoWait && len(t.Depend) == 0 {
		err = st.failure
		st.failure = nil
		if st.implicit && t.Action == ActionUse {
			err = errors.Join(err, st.queue.Order(st.at(st.last), nil))
		}
		return nil, err
	}
	s = &step{}
	task := tasks.Task{
		Label: "interop " + t.Action.String(), Domain: domain, Depend: t.Depend, Group: t.Group,
		Runner: generated{st, s},
		// Foreign work waits for the task's end, which has to come.
		Always: true,
		// Until its submission, see advance.
		Held: true,
	}
	if _, err := t.Scope.Add(&task, w); err != nil {
		return nil, err
	}
	return st.add(s), nil
}

// generated is the runner of a construct's task.
type generated struct {
	st   *stream
	step *step
}

// Start implements tasks.Runner.
func (g generated) Start(n *tasks.Node, w *tasks.Work) {
	g.st.mu.Lock()
	defer g.st.mu.Unlock()
	g.step.node, g.step.ready = n, true
	g.st.advance(w)
}

// Drop implements tasks.Runner; such a task is always run.
func (generated) Drop(*tasks.Node) {}
