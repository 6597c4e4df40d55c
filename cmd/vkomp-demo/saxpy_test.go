package main

import (
	"strings"
	"testing"

	"github.com/vkomp/vkomp/tests/vktest"
)

func TestSaxpyIsExactInAnySize(t *testing.T) {
	vktest.Long(t)
	for _, c := range []struct {
		n     string
		tasks int
	}{
		{"0", 0}, {"1", 1}, {"1000", 1}, {"1048576", 1}, {"1048577", 2}, {"3145729", 4},
	} {
		t.Run(c.n, func(t *testing.T) {
			printed := succeed(t, "run", "saxpy", "-n", c.n, "-verify")
			if tasks := figure(t, printed, "tasks"); tasks != c.tasks {
				t.Errorf("%d tasks, want %d", tasks, c.tasks)
			}
			if !strings.HasSuffix(printed, "verified: all "+c.n+" elements exact\n") {
				t.Errorf("not verified:\n%s", printed)
			}
		})
	}
}

func TestSaxpyOnTheInitialDeviceIsExact(t *testing.T) {
	for _, device := range []string{"-1", "host", "initial"} {
		printed := succeed(t, "run", "saxpy", "-n", "100000", "-verify", "-device", device)
		if !strings.Contains(printed, "(initial)") || !strings.Contains(printed, "exact") {
			t.Errorf("-device %s:\n%s", device, printed)
		}
	}
}

func TestWrongElementIsReported(t *testing.T) {
	y := make([]float32, 2000)
	for i := range y {
		x, before := saxpyInput(i)
		y[i] = saxpyA*x + before
	}
	var s session
	check := func() error {
		return s.inPieces("verify", len(y), func(i int) error { return checkSaxpy(i, y[i]) })
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	y[1999]++
	if err := check(); err == nil || !strings.Contains(err.Error(), "y[1999]") {
		t.Errorf("error %v, want y[1999] named", err)
	}
}
