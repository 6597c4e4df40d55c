package sched

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/memory"
	"github.com/vkomp/vkomp/tasks"
)

// line returns the place of its call as file and line, n lines further down.
func line(n int) string {
	_, file, at, _ := runtime.Caller(1)
	return fmt.Sprintf("%s:%d", filepath.Base(file), at+n)
}

func newLeakRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, modeNamed(t, "unified"), 1)
	r.s.leakSites = true
	return r
}

// report closes the scheduler and returns the lines of the error, with the files' folders cut
// off.
func (r *rig) report() []string {
	r.t.Helper()
	err := r.s.Close()
	if !errors.Is(err, memory.ErrLeaked) {
		r.t.Fatal("Close returned", err)
	}
	return strings.Split(regexp.MustCompile(` /\S*/`).ReplaceAllString(err.Error(), " "), "\n")
}

func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("too much: %s", got[i])
		case !strings.HasPrefix(got[i], want[i]):
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

func TestLeaksAreNamedBySite(t *testing.T) {
	r := newLeakRig(t)
	x, y, z := filled(64, 1), filled(128, 2), filled(200, 3)
	alloc := line(3)
	var pointers []Pointer
	for range 3 {
		p, err := r.s.Allocate(1000)
		if err != nil {
			t.Fatal(err)
		}
		pointers = append(pointers, p)
	}
	if err := r.s.Associate(sectionOf(z), pointers[1], 0, "z"); err != nil {
		t.Fatal(err)
	}
	r.free(pointers[2])

	enter := r.region(launch{label: "enter", enter: []arg{to(x)}, included: true})
	enter.Enter[0].Label = "map 0"
	entered := line(1)
	if err := r.s.Run(context.Background(), enter); err != nil {
		t.Fatal(err)
	}
	// The deferred construct maps its storage on the goroutine on which its predecessor, a host
	// task, ends. The report still names the place of the call of Run.
	token := array32(1)
	first := new(heldTask)
	r.add(&tasks.Task{Label: "first", Depend: dependOn(nil, [][]uint32{token}), Runner: first})
	later := r.region(launch{label: "later", enter: []arg{to(y), to(x)}, in: [][]uint32{token}})
	deferred := line(1)
	if err := r.s.Run(context.Background(), later); err != nil {
		t.Fatal(err)
	}
	finished := make(chan struct{})
	go func() {
		first.complete(nil)
		close(finished)
	}()
	<-finished
	r.taskwait()

	lines := r.report()
	expectLines(t, lines,
		"sched: close: storage still allocated: 2 blocks of storage still mapped, 768 bytes; 2 allocations not freed, 2000 bytes; 1 blocks of host storage still associated with them, 800 bytes",
		"1 allocations of 1000 bytes at "+alloc+" (github.com/vkomp/vkomp/sched.TestLeaksAreNamedBySite)",
		"1 associated allocations of 1000 bytes at "+alloc+" (",
		"1 blocks still mapped of 512 bytes (later) at "+deferred+" (",
		"1 blocks still mapped of 256 bytes (enter, map 0) at "+entered+" (",
	)
}

func TestLeaksWithoutSitesHaveTheirLabels(t *testing.T) {
	r := newRig(t, modeNamed(t, "unified"), 1)
	x, y := filled(64, 1), filled(128, 2)
	r.run(launch{label: "grid", enter: []arg{to(x), to(y)}, included: true})
	r.allocate(25)
	expectLines(t, r.report(),
		"sched: close: storage still allocated: 2 blocks of storage still mapped, 768 bytes; 1 allocations not freed, 100 bytes",
		"2 blocks still mapped of 768 bytes (grid)",
	)
	if err := r.s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	if len(r.d.blocks) != 0 {
		t.Errorf("%d blocks are left", len(r.d.blocks))
	}
}

// Declared storage stays until the end, and is no leak. Nor is a block that its construct
// removes.
func TestDeclaredStorageIsNoLeak(t *testing.T) {
	r := newLeakRig(t)
	x, y := filled(64, 1), filled(64, 2)
	declaration := r.region(launch{label: "declare", enter: []arg{to(x)}, included: true})
	declaration.Absent = true
	if err := r.s.Run(context.Background(), declaration); err != nil {
		t.Fatal(err)
	}
	r.s.Declare(declaration.Enter)
	r.run(launch{label: "target", kernel: "add", args: []arg{tofrom(y)}, constant: 1, included: true})
	if err := r.s.Close(); err != nil {
		t.Error(err)
	}
}

// A block has the site of the construct that mapped it first. A later construct that finds it
// present does not change that; one that maps the storage again, after it was removed, has a
// site of its own.
func TestSiteIsThatOfTheConstructThatMadeTheBlock(t *testing.T) {
	r := newLeakRig(t)
	x := filled(64, 1)
	again := r.region(launch{label: "again", enter: []arg{to(x)}, included: true})
	run := func(g *Region) {
		t.Helper()
		if err := r.s.Run(context.Background(), g); err != nil {
			t.Error(err)
		}
	}
	run(r.region(launch{label: "first", enter: []arg{to(x)}, included: true}))
	run(r.region(launch{label: "exit", exit: []arg{from(x)}, included: true}))
	given := again
	given.Site = memory.CallSite()
	made := line(-1)
	run(given)
	run(again)
	expectLines(t, r.report(), "sched: close: storage still allocated: 1 blocks of storage still mapped, 256 bytes",
		"1 blocks still mapped of 256 bytes (again) at "+made+" (")
}
