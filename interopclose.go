package vkomp

import (
	"errors"
	"strings"
	"time"
)

// How Close treats foreign work of interop objects that does not come to its end.

// awaited describes the foreign work that is awaited.
func (rt *Runtime) awaited() []string {
	var all []string
	for _, d := range rt.devices {
		if made := d.interop(); made != nil && d.opened() != nil {
			all = append(all, made.Awaits()...)
		}
	}
	return all
}

// withdrawForeign withdraws the foreign work that was announced and not submitted.
func (rt *Runtime) withdrawForeign() error {
	var errs []error
	for _, d := range rt.devices {
		if made := d.interop(); made != nil {
			errs = append(errs, made.Withdraw())
		}
	}
	return errors.Join(errs...)
}

// boundForeign logs the foreign work for which Close waits. Until over is called, it signals in
// place of foreign work that takes longer than the timeout; the error of over names that work.
func (rt *Runtime) boundForeign() (over func() error) {
	timeout := rt.options.foreignTimeout()
	if awaited := rt.awaited(); len(awaited) > 0 {
		rt.log.Warn("closing waits for foreign work", "awaited", strings.Join(awaited, "; "), "timeout", timeout)
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var errs []error
		look := time.NewTimer(timeout)
		defer look.Stop()
		for {
			select {
			case <-done:
				ended <- errors.Join(errs...)
				return
			case <-look.C:
			}
			for _, d := range rt.devices {
				if made := d.interop(); made != nil && d.opened() != nil {
					errs = append(errs, made.Release())
				}
			}
			// The device goes on now, and may come to later foreign work that does not signal.
			look.Reset(releaseLook)
		}
	}()
	return func() error {
		close(done)
		return <-ended
	}
}

// releaseLook is how often boundForeign looks for such work after the timeout.
const releaseLook = 20 * time.Millisecond
