package vktest

import (
	"log/slog"
	"slices"
	"testing"
)

func TestRecorderKeepsValidationMessagesAlone(t *testing.T) {
	r := &recorder{}
	log := slog.New(r)
	log.Warn("the default device is a software driver")
	log.Error("hazard", "id", "SYNC-HAZARD-READ-AFTER-WRITE", "validation", true)
	log.Debug("unheard", "validation", true)
	if got, want := r.validation(), []string{"hazard id=SYNC-HAZARD-READ-AFTER-WRITE validation=true"}; !slices.Equal(got, want) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

func TestCleanupFailsOnWhatIsLeftBehind(t *testing.T) {
	block := make(chan struct{})
	leaks := &fakeTB{TB: t}
	rt := Open(leaks, Host)
	if rt.NumDevices() != 0 {
		t.Errorf("%d devices", rt.NumDevices())
	}
	go func() { <-block }()
	leaks.cleanup()
	close(block)
	if leaks.errors == 0 {
		t.Error("a goroutine was left behind unnoticed")
	}
}

// fakeTB counts failures instead of failing.
type fakeTB struct {
	testing.TB
	errors   int
	cleanups []func()
}

func (f *fakeTB) Errorf(string, ...any) { f.errors++ }
func (f *fakeTB) Cleanup(c func())      { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) cleanup() {
	for _, c := range slices.Backward(f.cleanups) {
		c()
	}
}
