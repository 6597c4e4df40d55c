package tasks

import "testing"

// The tasks of a set follow the children of an exporting task. The join behind the set does not: it would fail with them, and
// be counted among the tasks that were not run.
func TestAJoinDoesNotFailWithTheChildrenOfAnExportingTask(t *testing.T) {
	s := newScript()
	s.graph.JoinSets(scripted{s, joinLabel, true})
	s.graph.largeSet = 1
	back := s.inner("export", Export, Task{Depend: s.use(DependOut, "y")})
	s.add(Task{Label: "child", Depend: s.use(DependOut, "x")})
	s.add(Task{Label: "other child", Depend: s.use(DependOut, "z")})
	children := s.scope
	back()
	for _, label := range []string{"p", "q"} {
		s.add(Task{Label: label, Depend: append(s.use(DependIn, "x"), s.use(DependIn, "y")...)})
	}
	for _, label := range []string{"a", "b", "c"} {
		s.add(Task{Label: label, Depend: s.use(DependInOutSet, "x")})
	}
	s.expect(t, "start export", "start child", "start other child")
	s.complete("export", nil)
	s.complete("child", errBroken)
	s.expect(t, "drop p", "drop q", "drop a", "drop b", "start "+joinLabel, "drop c")
	if c := s.graph.Counts(); c.Tasks != 8 || c.Failures != 6 || c.Live != 1 {
		t.Errorf("%d tasks, %d failures and %d live, want 8, 6 and 1", c.Tasks, c.Failures, c.Live)
	}
	const want = `task "child": broken (5 dependent tasks not run)`
	if err := s.waitNow(); err == nil || err.Error() != want {
		t.Errorf("the wait reports %v, want %s", err, want)
	}
	s.scope = children
	s.complete("other child", nil)
}
