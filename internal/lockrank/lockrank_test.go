//go:build invariants

package lockrank

import (
	"strings"
	"sync"
	"testing"
)

func TestLocksAgainstTheOrderShow(t *testing.T) {
	var (
		outer    Mutex[Scheduler]
		inner    Mutex[Family]
		other    Mutex[Family]
		group    Mutex[Group]
		parent   Mutex[Group]
		life     RWMutex[DeviceLife]
		unranked Mutex[int]
	)
	for name, c := range map[string]struct {
		take func()
		want string // "" if the order is right
	}{
		"in the order":         {func() { life.RLock(); outer.Lock(); inner.Lock() }, ""},
		"against it":           {func() { inner.Lock(); outer.Lock() }, "[sched.Scheduler.mu] (rank 12) is taken while [tasks.family.mu]"},
		"reading against it":   {func() { outer.Lock(); life.RLock() }, "[vkomp.device.life] (rank 1) is taken while [sched.Scheduler.mu]"},
		"writing against it":   {func() { outer.Lock(); life.Lock() }, "[vkomp.device.life] (rank 1) is taken while [sched.Scheduler.mu]"},
		"two of a rank":        {func() { inner.Lock(); other.Lock() }, "[tasks.family.mu] (rank 15) is taken while [tasks.family.mu]"},
		"several of a rank":    {func() { group.Lock(); parent.Lock() }, ""},
		"read twice":           {func() { life.RLock(); life.RLock() }, ""},
		"one after the other":  {func() { inner.Lock(); inner.Unlock(); outer.Lock() }, ""},
		"tried against it":     {func() { inner.Lock(); outer.TryLock() }, ""},
		"after one was tried":  {func() { inner.TryLock(); outer.Lock() }, "is taken while [tasks.family.mu]"},
		"not in the table":     {func() { unranked.Lock() }, "int has no place in the table"},
		"after a condition":    {func() { waitFor(&inner); outer.Lock() }, "is taken while [tasks.family.mu]"},
		"released by others":   {func() { inner.Lock(); elsewhere(inner.Unlock); outer.Lock() }, ""},
		"taken by others":      {func() { elsewhere(inner.Lock); outer.Lock() }, ""},
		"after it is released": {func() { life.RLock(); outer.Lock(); outer.Unlock(); life.RUnlock(); life.Lock() }, ""},
	} {
		outer, inner, other, group, parent, life = Mutex[Scheduler]{}, Mutex[Family]{}, Mutex[Family]{}, Mutex[Group]{}, Mutex[Group]{}, RWMutex[DeviceLife]{}
		clear(holders.of)
		t.Run(name, func(t *testing.T) {
			defer func() {
				got, _ := recover().(string)
				if c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
			}()
			c.take()
		})
	}
	clear(holders.of)
}

// waitFor waits for a condition of mu, and returns with mu locked.
func waitFor(mu *Mutex[Family]) {
	c := sync.NewCond(mu)
	mu.Lock()
	go func() {
		mu.Lock()
		defer mu.Unlock()
		c.Signal()
	}()
	c.Wait()
}

// elsewhere calls f on another goroutine.
func elsewhere(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}
