package observe

import (
	"runtime"
	"slices"
	"strings"

	"github.com/vkomp/vkomp/ompt"
)

// Stack has the return addresses of a construct's callers, the innermost first.
type Stack [24]uintptr

// Codeptr returns the return address of the program's current call of the runtime.
func Codeptr() ompt.Codeptr {
	var s Stack
	runtime.Callers(2, s[:])
	return ompt.Codeptr(s.Frames()[0].PC + 1)
}

// Frames returns the frames from the program's innermost one outward, or all frames where the
// program is part of this module.
func (s *Stack) Frames() []runtime.Frame {
	n := slices.Index(s[:], 0)
	if n < 0 {
		n = len(s)
	}
	var frames []runtime.Frame
	for next := runtime.CallersFrames(s[:n]); ; {
		f, more := next.Next()
		frames = append(frames, f)
		if !more {
			break
		}
	}
	for i, f := range frames {
		if !own(f.Function) {
			return frames[i:]
		}
	}
	return frames
}

// module is the import path of the runtime's module.
var module = func() string {
	pc, _, _, _ := runtime.Caller(0)
	name := runtime.FuncForPC(pc).Name()
	return name[:strings.Index(name, "/internal/observe.")]
}()

// own reports whether a function belongs to the runtime: to a package that programs call, or one
// that such a package calls.
func own(function string) bool {
	rest, ok := strings.CutPrefix(function, module)
	if !ok {
		return false
	}
	for _, prefix := range [...]string{".", "/sched.", "/sched/", "/interop.", "/internal/"} {
		if strings.HasPrefix(rest, prefix) {
			return true
		}
	}
	return false
}
