//go:build cgo

package vk

// #cgo noescape vko_messages_take
// #cgo nocallback vko_messages_take
// #include "vko.h"
import "C"

import (
	"context"
	"log/slog"
)

// severities is what the messenger listens for. The loader tells much about
// itself below warnings: only for a logger that wants to know all.
func (i *Instance) severities() C.uint32_t {
	mask := C.uint32_t(C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
		C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)
	if i.logger.Enabled(context.Background(), slog.LevelDebug) {
		mask |= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT |
			C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_VERBOSE_BIT_EXT
	}
	return mask
}

// severityLevel maps a message's severity to the logger's.
func severityLevel(severity uint32) slog.Level {
	switch {
	case severity >= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT:
		return slog.LevelError
	case severity >= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT:
		return slog.LevelWarn
	case severity >= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// isFinding says whether a message is about how Vulkan is used; general ones are
// the loader's own.
func isFinding(severity, types uint32) bool {
	return severity >= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT &&
		types&(C.VKO_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT|
			C.VKO_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT) != 0
}

// drain hands what the messenger heard to the logger, findings with the
// attribute "validation". The messenger itself cannot: it runs inside driver
// calls, which must not enter Go.
func (i *Instance) drain() {
	if !i.validation {
		return
	}
	// The logger runs outside the lock, so that it may use this package.
	i.mu.Lock()
	if i.messages == nil {
		i.mu.Unlock()
		return
	}
	var dropped C.uint64_t
	list := C.vko_messages_take(i.messages, &dropped)
	i.mu.Unlock()
	defer C.vko_messages_free(list)
	for m := list; m != nil; m = m.next {
		severity, types := uint32(m.severity), uint32(m.types)
		attrs := []slog.Attr{slog.String("id", C.GoString(m.name)), slog.Int("number", int(m.number))}
		if isFinding(severity, types) {
			i.heard.Add(1)
			attrs = append(attrs, slog.Bool("validation", true))
		}
		i.logger.LogAttrs(context.Background(), severityLevel(severity), C.GoString(m.text), attrs...)
	}
	if dropped > 0 {
		i.heard.Add(uint64(dropped))
		i.logger.Warn("vk: more validation messages than are kept", slog.Uint64("dropped", uint64(dropped)), slog.Bool("validation", true))
	}
}
