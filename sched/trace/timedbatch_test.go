package trace

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vkomp/vkomp/sched/construct"
	"github.com/vkomp/vkomp/vk"
)

// placed is a command that a test places on a level.
type placed struct {
	level int32
	op    *construct.Op
}

// launches returns so many launches of a kernel, on levels of their own from the given one on.
func launches(n int, from int32, kernel string, teams uint64) (all []placed) {
	for i := range n {
		op := kernelOp(1, teams)
		op.Kernel = kernel
		all = append(all, placed{from + int32(i), op})
	}
	return all
}

// timesOf places the commands in a batch of queue 0, has the device run it, and returns the times of the
// commands since the batch began, and how many timestamps there were.
func (r *rig) timesOf(commands []placed) (times [][2]uint64, timestamps int) {
	r.t.Helper()
	from := r.d.ticks + r.d.step // the first timestamp
	tasks := make([]Task, len(commands))
	for i, c := range commands {
		if !r.placeAt(0, c.level, &tasks[i], c.op, max(c.op.Teams, c.op.Bytes)) {
			r.t.Errorf("command %d is not timed", i)
		}
	}
	r.locked(func() { r.submit(0) })
	timestamps = len(r.d.submitted[0][0].timestamps)
	r.run(0)
	for i := range tasks {
		r.stamps.records = nil
		r.stamps.Complete(&tasks[i])
		for _, record := range r.stamps.records {
			times = append(times, [2]uint64{record.Time - from, record.EndTime - from})
		}
	}
	return times, timestamps
}

func (r *rig) wantTimes(what string, commands []placed, want [][2]uint64, timestamps int) {
	r.t.Helper()
	got, n := r.timesOf(commands)
	if !slices.Equal(got, want) || n != timestamps {
		r.t.Errorf("%s: times %v by %d timestamps, want %v by %d", what, got, n, want, timestamps)
	}
}

// The end of a level is the begin of the next one. Commands of a level beside each other have times of
// their own.
func TestLevelsShareTheTimestampBetweenThem(t *testing.T) {
	a, b, c, d := copyOp(1, 4), copyOp(2, 4), copyOp(3, 4), copyOp(4, 4)
	for _, test := range []struct {
		what     string
		commands []placed
		want     [][2]uint64
		stamps   int
	}{
		{"one command", []placed{{0, a}}, [][2]uint64{{0, 1}}, 2},
		{"a chain", []placed{{0, a}, {1, b}, {2, c}}, [][2]uint64{{0, 1}, {1, 2}, {2, 3}}, 4},
		{"a chain that begins behind an earlier batch", []placed{{1, a}, {2, b}}, [][2]uint64{{0, 1}, {1, 2}}, 3},
		{"two on a level", []placed{{0, a}, {0, b}}, [][2]uint64{{0, 1}, {2, 3}}, 4},
		{"two on the first level", []placed{{0, a}, {0, b}, {1, c}}, [][2]uint64{{0, 1}, {2, 3}, {4, 5}}, 6},
		{"two on the last level", []placed{{0, a}, {1, b}, {1, c}}, [][2]uint64{{0, 1}, {1, 2}, {3, 4}}, 5},
		{"one that joins a level later", []placed{{0, a}, {1, b}, {2, c}, {1, d}}, [][2]uint64{{0, 1}, {1, 2}, {5, 6}, {3, 4}}, 7},
	} {
		r := stamping(t)
		r.wantTimes(test.what, test.commands, test.want, test.stamps)
		r.end()
	}
}

// A timestamp that ends commands waits for them. One that is only a begin waits for nothing, except for
// what its commands follow.
func TestTimestampsBetweenLevelsWaitForTheCommandsBefore(t *testing.T) {
	r := stamping(t)
	defer r.end()
	var stages []vk.Stage
	for k := range int32(2) {
		r.placeAt(0, k, new(Task), copyOp(1, 4), 4)
	}
	r.placeAt(0, 1, new(Task), copyOp(1, 4), 4)
	r.locked(func() { r.submit(0) })
	for _, op := range r.d.submitted[0][0].timestamps {
		stages = append(stages, op.Stage)
	}
	want := []vk.Stage{vk.StageTopOfPipe, vk.StageAllCommands, vk.StageTransfer, vk.StageTopOfPipe, vk.StageTransfer}
	if !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	r.run(0)
}

// parts returns the times of so many launches that share the time of a step from a time on.
func parts(n int, from, step uint64) (times [][2]uint64) {
	for i := range uint64(n) {
		times = append(times, [2]uint64{from + step*i/uint64(n), from + step*(i+1)/uint64(n)})
	}
	return times
}

// single returns the times of launches that each take a step.
func single(n int, step uint64) (times [][2]uint64) {
	for i := range uint64(n) {
		times = append(times, [2]uint64{i * step, (i + 1) * step})
	}
	return times
}

// Launches of one kind share timestamps when they are known to be short.
func TestShortLaunchesShareTimestamps(t *testing.T) {
	const step = shortLaunch * 4 / 5 // more than half of it
	r := stamping(t)
	defer r.end()
	r.d.step = step
	five := launches(5, 0, "k", 3)
	r.wantTimes("of a kernel that is not known", five, single(5, step), 6)
	r.wantTimes("of a kernel that is short", five, parts(5, 0, step), 2)
	r.wantTimes("with more workgroups", launches(2, 0, "k", 4), single(2, step), 3)
	r.wantTimes("of another kernel", launches(2, 0, "other", 3), single(2, step), 3)
	copies := []placed{{0, copyOp(1, 3)}, {1, copyOp(1, 3)}}
	r.wantTimes("copies", copies, single(2, step), 3)
	r.wantTimes("the same copies", copies, single(2, step), 3)
	mixed := slices.Concat(launches(2, 0, "k", 3), launches(1, 2, "k", 4), launches(2, 3, "k", 3))
	r.wantTimes("with another one between", mixed, slices.Concat(parts(2, 0, step), [][2]uint64{{step, 2 * step}}, parts(2, 2*step, step)), 4)
	beside := append(launches(4, 0, "k", 3), launches(1, 2, "k", 3)...)
	r.wantTimes("with another one beside", beside, slices.Concat(parts(2, 0, step), [][2]uint64{{step, 2 * step}, {5 * step, 6 * step}, {3 * step, 4 * step}}), 7)
	many := launches(mostShared+2, 0, "k", 3)
	r.wantTimes("many", many, slices.Concat(parts(mostShared, 0, step), parts(2, step, step)), 3)
	// They take longer now, which only the next ones can know.
	r.d.step = 5 * (shortLaunch + 1)
	r.wantTimes("when they become long", five, parts(5, 0, r.d.step), 2)
	r.wantTimes("when they are long", five, single(5, r.d.step), 6)
	// And shorter again.
	r.d.step = shortLaunch
	r.wantTimes("when they become short", five, single(5, r.d.step), 6)
	r.wantTimes("when they are short again", five, parts(5, 0, r.d.step), 2)
}

func TestTimesOfManyKindsOfLaunchesAreForgotten(t *testing.T) {
	r := stamping(t)
	defer r.end()
	for i := range mostKinds + 10 {
		r.timesOf(launches(1, 0, fmt.Sprint(i), 1))
	}
	if n := len(r.stamps.took); n == 0 || n > mostKinds {
		t.Errorf("times of %d kinds", n)
	}
}
