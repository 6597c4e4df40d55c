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
// place of foreign work that takes longer than the timeout; the error of over names that work. The
// devices keep how long it has taken, so another Close goes on from there.
func (rt *Runtime) boundForeign() (over func() error) {
	if awaited := rt.awaited(); len(awaited) > 0 {
		rt.log.Warn("closing waits for foreign work", "awaited", strings.Join(awaited, "; "), "timeout", rt.options.foreignTimeout())
	}
	errs := []error{rt.releaseForeign()}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(releaseLook)
		defer look.Stop()
		for {
			select {
			case <-done:
				return
			case <-look.C:
			}
			if err := rt.releaseForeign(); err != nil {
				errs = append(errs, err)
			}
		}
	}()
	return func() error {
		close(done)
		<-ended
		return errors.Join(errs...)
	}
}

// releaseForeign signals in place of foreign work that has taken longer than the timeout.
func (rt *Runtime) releaseForeign() error {
	var errs []error
	for _, d := range rt.devices {
		if made := d.interop(); made != nil && d.opened() != nil {
			errs = append(errs, made.Release())
		}
	}
	return errors.Join(errs...)
}

// releaseLook is how often boundForeign looks for such work.
const releaseLook = 20 * time.Millisecond
