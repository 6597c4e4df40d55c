package vkomp

import (
	"fmt"

	"github.com/vkomp/vkomp/internal/observe"
	"github.com/vkomp/vkomp/internal/observe/tool"
	"github.com/vkomp/vkomp/ompt"
)

// startTool opens Options.Tool, if it registers anything.
func (rt *Runtime) startTool() error {
	if err := rt.options.Tool.Check(); err != nil {
		return fmt.Errorf("%w: Options.Tool: %w", ErrInvalidArgument, err)
	}
	if rt.icvs.noTool {
		rt.options.Tool = ompt.Callbacks{}
	}
	if t := tool.New(rt.options.Tool, rt.log); t != nil {
		rt.tool.Store(t)
		t.Implicit(ompt.ScopeBegin)
	}
	return nil
}

// stopTool ends Options.Tool. It returns what the tool's callbacks failed with.
func (rt *Runtime) stopTool() error {
	t := rt.tool.Load()
	if t == nil {
		return nil
	}
	t.Implicit(ompt.ScopeEnd)
	for _, d := range rt.devices {
		d.endTool()
	}
	rt.tool.Store(nil)
	rt.listen()
	return t.Failure()
}

// listen makes the race detector and the tool, if there are any, the listeners of the runtime.
func (rt *Runtime) listen() {
	var detector, tool observe.Listener
	if d := rt.races.detector; d != nil {
		detector = d
	}
	if t := rt.tool.Load(); t != nil && t.Listens() {
		tool = t
	}
	// The detector comes first, because a callback of the tool may end the goroutine.
	rt.events.Store(observe.New(detector, tool))
}

// ControlTool passes a command on to Options.Tool (OpenMP 5.0 omp_control_tool): one of
// ompt.ControlToolStart, Pause, Flush and End, or of the tool's own from 64 on. The
// result is the tool's; ompt.ControlToolNoTool without a tool, and
// ompt.ControlToolNoCallback if it does not ask for commands.
func (rt *Runtime) ControlTool(command, modifier uint64, arg any) ompt.ControlToolResult {
	t := rt.tool.Load()
	if t == nil {
		return ompt.ControlToolNoTool
	}
	return t.Control(command, modifier, arg)
}
