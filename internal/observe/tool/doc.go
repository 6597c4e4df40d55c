// Package tool is the tool interface of a runtime: it listens to what the runtime does (package
// observe) and calls a tool's callbacks (package ompt), in their EMI forms.
//
// A tool is told about a task through the task's observer, and about devices through a [Device]
// that wraps the scheduler's. A callback that fails does not prevent the runtime from going on
// (see guard.go).
//
// The package is internal to this module.
package tool
