package construct

import "errors"

// Errors of constructs, and of calls about their devices, that several packages return.
var (
	// ErrClosed says that the device, the kernel or the trace is closed.
	ErrClosed = errors.New("closed")
	// ErrBusy says that something cannot be given up, or not be started, because it is in use.
	ErrBusy = errors.New("still in use")
)
