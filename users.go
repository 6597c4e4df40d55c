package vkomp

import (
	"sync/atomic"

	"github.com/vkomp/vkomp/internal/invariants"
	"github.com/vkomp/vkomp/internal/lockrank"
	"github.com/vkomp/vkomp/internal/striped"
)

// users are the calls that use a device or generate tasks. A pause does not wait for them, so a call
// can be inside of another one.
type users struct {
	// paused is set while a pause holds mu. Calls that begin meanwhile wait for mu.
	paused atomic.Bool
	calls  striped.Count
	mu     lockrank.Mutex[lockrank.RuntimePause]
}

// enter begins a call, which ends with leave: defer u.leave(u.enter()).
func (u *users) enter() striped.Cell {
	at := striped.Here()
	u.calls.Add(at, 1)
	// With the tag invariants each call shows whether it could wait here.
	if u.paused.Load() || invariants.Enabled {
		u.enterAfterPause(at)
	}
	return at
}

// enterAfterPause has a call that has begun during a pause wait for its end.
func (u *users) enterAfterPause(at striped.Cell) {
	for again := true; again; again = u.paused.Load() {
		u.calls.Add(at, -1)
		u.awaitPause()
		u.calls.Add(at, 1)
	}
}

// leave ends the call for which enter returned at.
func (u *users) leave(at striped.Cell) { u.calls.Add(at, -1) }

func (u *users) awaitPause() {
	u.mu.Lock()
	defer u.mu.Unlock()
}

// pause begins a pause, which ends with resume. It reports false if there is a call, though that may be about to
// wait for another attempt to pause, or if there is another pause.
func (u *users) pause() bool {
	if !u.mu.TryLock() {
		return false
	}
	u.paused.Store(true)
	if u.calls.Sum() == 0 {
		return true
	}
	u.resume()
	return false
}

// resume ends a pause.
func (u *users) resume() {
	u.paused.Store(false)
	u.mu.Unlock()
}
