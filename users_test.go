package vkomp

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// Calls and pauses come at any time. A pause has the runtime to itself, and finds it so only if there is no call.
func TestPauseMeetsNoCall(t *testing.T) {
	const rounds = 3000
	var u users
	var calls atomic.Int64
	// Under the race detector shared shows each call that a pause does not exclude.
	var shared int
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range rounds {
				at := u.enter()
				calls.Add(1)
				inner := u.enter() // while the first one is under way, no pause can be
				if shared%2 != 0 {
					t.Error("a call while there is a pause")
				}
				u.leave(inner)
				calls.Add(-1)
				u.leave(at)
				runtime.Gosched()
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for pauses := 0; pauses < rounds/10; runtime.Gosched() {
				if !u.pause() {
					continue
				}
				pauses++
				if n := calls.Load(); n != 0 {
					t.Errorf("a pause while there are %d calls", n)
				}
				shared++
				runtime.Gosched()
				shared++
				u.resume()
			}
		})
	}
	all.Wait()
	at := u.enter()
	if u.pause() {
		t.Error("a pause during a call")
	}
	u.leave(at)
	if !u.pause() || u.pause() {
		t.Error("no pause without a call, or two pauses")
	}
	u.resume()
}
