package vkomp_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/vkomp/vkomp"
)

// unwell is a handler that does not return normally.
type unwell struct{ leave func() }

func (u unwell) Enabled(context.Context, slog.Level) bool { return true }
func (u unwell) Handle(context.Context, slog.Record) error {
	u.leave()
	return nil
}
func (u unwell) WithAttrs([]slog.Attr) slog.Handler { return u }
func (u unwell) WithGroup(string) slog.Handler      { return u }

func TestLogHandlersThatFail(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("handle") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			records := 0
			rt, err := vkomp.Open(vkomp.Options{Logger: slog.New(unwell{func() { records++; leave() }})})
			must(t, err)
			y := make([]float32, 100)
			adder(t, rt, y)(false) // opening the device is logged
			must(t, rt.Close())
			if records == 0 {
				t.Error("nothing was logged")
			}
		})
	}
}
