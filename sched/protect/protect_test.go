package protect_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/vkomp/vkomp/sched/protect"
)

func TestCodeEndsInAnError(t *testing.T) {
	mine := errors.New("mine")
	for name, call := range map[string]func(func() error) error{"Call": protect.Call, "Apart": protect.Apart, "Start": func(f func() error) error { return protect.Start(f)() }} {
		if err := call(func() error { return nil }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := call(func() error { return mine }); err != mine {
			t.Errorf("%s: %v, want what the code returned", name, err)
		}
		var p *protect.PanicError
		if err := call(func() error { panic(mine) }); !errors.As(err, &p) || !errors.Is(err, mine) || !strings.Contains(string(p.Stack), "protect_test.go") {
			t.Errorf("%s: a panic is %v", name, err)
		}
		if err := call(func() error { panic("words") }); !errors.As(err, &p) || p.Value != "words" || p.Unwrap() != nil || !strings.HasPrefix(err.Error(), "panic: words\n") {
			t.Errorf("%s: a panic is %v", name, err)
		}
		if name == "Call" {
			// A panic cannot be seen on a goroutine that it has ended.
			continue
		}
		if err := call(func() error { runtime.Goexit(); return nil }); !errors.Is(err, protect.ErrGoexit) {
			t.Errorf("%s: Goexit is %v", name, err)
		}
	}
}

func TestCallLeftByGoexitRunsWhatIsDeferred(t *testing.T) {
	left := make(chan error, 1)
	go func() {
		returned := false
		defer func() {
			if !returned {
				left <- protect.NotReturned(recover())
			}
		}()
		_ = protect.Call(func() error { runtime.Goexit(); return nil })
		returned = true
		left <- nil
	}()
	if err := <-left; !errors.Is(err, protect.ErrGoexit) {
		t.Errorf("got %v", err)
	}
}

func TestTouchLeavesOtherPanicsAlone(t *testing.T) {
	if err := protect.Touch(func() {}); err != nil {
		t.Error(err)
	}
	defer func() {
		if v := recover(); v != "mine" {
			t.Errorf("recovered %v", v)
		}
	}()
	_ = protect.Touch(func() { panic("mine") })
}
