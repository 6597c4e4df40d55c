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

// severities returns the severities that the messenger receives. The loader writes many
// messages below warnings; they are received only if the logger wants debug messages.
func (i *Instance) severities() C.uint32_t {
	mask := C.uint32_t(C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
		C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)
	if i.logger.Enabled(context.Background(), slog.LevelDebug) {
		mask |= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT |
			C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_VERBOSE_BIT_EXT
	}
	return mask
}

// severityLevel maps a message's severity to a level of slog.
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

// isFinding reports whether a message is about the use of Vulkan, rather than a general
// message of the loader.
func isFinding(severity, types uint32) bool {
	return severity >= C.VKO_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT &&
		types&(C.VKO_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT|
			C.VKO_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT) != 0
}

// drain passes the messages to the logger, findings with the attribute "validation". The
// messenger cannot do so itself, because it runs inside driver calls, which must not call
// into Go.
func (i *Instance) drain() {
	if !i.validation {
		return
	}
	// Log without the lock, so that the logger may use this package.
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
