package vkomp

import (
	"context"
	"log/slog"

	"github.com/vkomp/vkomp/sched/protect"
)

// guarded wraps the program's slog.Handler. A handler that panics or ends its goroutine
// loses the record, but does not disturb the operation during which the runtime logs.
type guarded struct{ slog.Handler }

// Enabled implements slog.Handler.
func (g guarded) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	err := protect.Apart(func() error {
		enabled = g.Handler.Enabled(ctx, level)
		return nil
	})
	return err == nil && enabled
}

// Handle implements slog.Handler.
func (g guarded) Handle(ctx context.Context, r slog.Record) error {
	return protect.Apart(func() error { return g.Handler.Handle(ctx, r) })
}

// WithAttrs implements slog.Handler.
func (g guarded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return guarded{g.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (g guarded) WithGroup(name string) slog.Handler { return guarded{g.Handler.WithGroup(name)} }
