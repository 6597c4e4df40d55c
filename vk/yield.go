//go:build cgo

package vk

// #cgo noescape vko_yield
// #cgo nocallback vko_yield
// #include "vko.h"
import "C"

// Yield lets another thread of the operating system run on the processor of the calling one, if there is one
// that is ready. A goroutine that looks at a timeline again and again calls it in between: the thread of a
// software driver may need the processor to make progress.
func Yield() { C.vko_yield() }
