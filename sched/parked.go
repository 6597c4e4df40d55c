package sched

import "github.com/vkomp/vkomp/tasks"

// parkedTasks are tasks that wait for one event, such as the end of another task or the
// removal of a block, and try again to enter when it has come. They are guarded by
// Scheduler.mu. A pointer to the list stands for the event.
type parkedTasks []*tasks.Node

// restart lets all of the tasks try again.
func (p *parkedTasks) restart(w *tasks.Work) {
	for i, n := range *p {
		w.Restart(n)
		(*p)[i] = nil
	}
	*p = (*p)[:0]
}
