// Package tool is the tool interface of a runtime: it listens to the stream of events
// (package observe) and calls a tool's callbacks (package ompt), in their EMI forms.
//
// A tool hears of a task by the task's observer, of devices by a [Device] that stands
// before the scheduler's. Whatever a callback does, it returns to the runtime: see guard.go.
//
// The package promises nothing to importers outside of this module.
package tool
