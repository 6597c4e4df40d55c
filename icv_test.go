package vkomp_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/vkomp/vkomp"
)

func TestBadControlVariablesAreNamedWithTheirValues(t *testing.T) {
	for name, values := range map[string][]string{
		"OMP_NUM_THREADS":       {"0", "-1", "many", "4,0", "4,,2", "1e3", "99999999999"},
		"OMP_MAX_TASK_PRIORITY": {"-1", "high", "1.5", "99999999999"},
		"OMP_CANCELLATION":      {"yes", "1", "truely"},
		"OMP_DEFAULT_DEVICE":    {"-1", "first"},
		"OMP_TARGET_OFFLOAD":    {"always"},
	} {
		for _, value := range values {
			rt, err := vkomp.Open(vkomp.Options{LookupEnv: environment(name, value, "OMP_TARGET_OFFLOAD", "disabled")})
			if err == nil {
				rt.Close()
			}
			if !errors.Is(err, vkomp.ErrInvalidArgument) || !strings.Contains(err.Error(), name+`="`+value+`"`) || !strings.Contains(err.Error(), "want") {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
}

func TestGoodControlVariablesAreTaken(t *testing.T) {
	for name, values := range map[string][]string{
		"OMP_NUM_THREADS":       {"1", " 3 ", "4,2", " 4 , 2 ", ""},
		"OMP_MAX_TASK_PRIORITY": {"0", " 7", ""},
		"OMP_CANCELLATION":      {"TRUE", " false ", ""},
	} {
		for _, value := range values {
			rt := openTasks(t, name, value)
			generate(t, rt, t.Context(), vkomp.Task{Body: nothing})
			if err := rt.Taskwait(t.Context()); err != nil {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

func TestNumThreadsIsTheFirstOfItsListAndGOMAXPROCSByDefault(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for value, places := range map[string]int{"": 3, "2,5": 2, "7": 7} {
		rt := openTasks(t, "OMP_NUM_THREADS", value)
		var full sync.WaitGroup
		full.Add(places)
		for range places {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error {
				// It ends only when there are so many.
				full.Done()
				full.Wait()
				return nil
			}})
		}
		full.Wait()
		release := make(chan struct{})
		began := make(chan struct{}, places+1)
		for range places + 1 {
			generate(t, rt, t.Context(), vkomp.Task{Body: func(context.Context) error { began <- struct{}{}; <-release; return nil }})
		}
		for range places {
			<-began
		}
		for range 100 {
			runtime.Gosched()
		}
		if len(began) != 0 {
			t.Errorf("OMP_NUM_THREADS=%q: more than %d bodies at once", value, places)
		}
		close(release)
		if err := rt.Taskwait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
