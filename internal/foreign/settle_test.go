package foreign_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vkomp/vkomp/internal/foreign"
	"github.com/vkomp/vkomp/interop"
	"github.com/vkomp/vkomp/vk"
)

// Settle waits for what was submitted to an object's own queue, up to a limit. It does not wait
// for foreign work that has semaphores of its own.
func TestSettleWaitsForTheObjectsOwnQueue(t *testing.T) {
	for name, c := range map[string]struct {
		// before is the job that the program submits to the queue. foreign says that other
		// foreign work is announced, and submitted without a signal.
		before  *job
		foreign bool
		comes   bool
		waits   time.Duration
	}{
		"nothing there":     {comes: true, waits: time.Second},
		"work there":        {before: &job{}, comes: true, waits: time.Second},
		"it does not come":  {waits: foreignTimeout},
		"other work":        {foreign: true},
		"other work, comes": {foreign: true, comes: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(1)
				o := initialise(t, r.device, interop.TypeTargetSync)
				r.own[0].submit(nil, nil, c.before, nil)
				_, signal := announce(t, o)
				s, _ := o.Semaphore()
				if c.foreign {
					succeed(t, o.Submitted(signal))
				} else {
					succeed(t, o.Withdraw(signal))
				}
				succeed(t, r.device.Destroy(foreign.Object(o)))
				began := time.Now()
				if c.comes {
					go func() {
						time.Sleep(time.Second)
						r.steps()
					}()
				}
				r.device.Settle(context.Background())
				if took := time.Since(began); took != c.waits {
					t.Errorf("Settle has waited %v, want %v", took, c.waits)
				}
				if busy := len(r.device.Awaits()) > 0; busy != (c.foreign || !c.comes) {
					t.Errorf("the device awaits %q", r.device.Awaits())
				}
				time.Sleep(time.Second)
				r.steps()
				if c.foreign {
					r.newQueue("foreign").submit(nil, nil, nil, []vk.SemaphoreValue{{Semaphore: s, Value: signal}})
				}
				r.steps()
				r.free(t)
			})
		})
	}
}
