package ompt

import "time"

// Device is how a tool traces a device: what its kernels and transfers did when, by
// the device's own clock. A tool gets it with DeviceInitializeEvent, and may use it
// until the DeviceFinalize callback for the device has returned; later its methods do
// nothing and return an error. A trace that runs then has been stopped before.
//
// Callbacks of tasks and their target regions may not start, flush or stop a trace: that
// can wait for what they are part of. A BufferRequest and a BufferComplete may only ask for times.
type Device interface {
	// SetTraceOMPT says whether the trace has the records of a type:
	// CallbackTargetDataOpEMI, CallbackTargetSubmitEMI, their plain forms, or 0 for all
	// (ompt_set_trace_ompt_t). All are off at first. It is SetError while a trace runs,
	// SetNever for a type that no device records.
	SetTraceOMPT(enable bool, record Callback) SetResult
	// StartTrace begins a trace (ompt_start_trace_t). One that runs has to be stopped
	// before.
	StartTrace(BufferRequest, BufferComplete) error
	// PauseTrace has what is handed to the device from now on leave no records, or
	// leave them again (ompt_pause_trace_t).
	PauseTrace(pause bool) error
	// FlushTrace completes the buffer with all that the device has done so far of tasks
	// that are complete (ompt_flush_trace_t). It returns when BufferComplete has.
	FlushTrace() error
	// StopTrace ends the trace (ompt_stop_trace_t): it waits for what the device has
	// been given, foreign work that this follows included, and flushes.
	StopTrace() error
	// Time returns the device's clock, in its own ticks (ompt_get_device_time_t).
	Time() (uint64, error)
	// TranslateTime returns when that was by the host's clock (ompt_translate_time_t),
	// comparable with time.Now.
	TranslateTime(ticks uint64) time.Time
}

// BufferRequest is ompt_callback_buffer_request: it returns a slice for records, of
// which the runtime fills up to the capacity. One without any refuses: records are
// dropped until the next StartTrace.
type BufferRequest func(deviceNum int) []Record

// BufferComplete is ompt_callback_buffer_complete: the runtime is done with a buffer,
// and records are what it has. It is called on a goroutine that is no task's, one
// call of a device after the other; owned says that the buffer is the tool's again,
// else more records of it follow.
type BufferComplete func(deviceNum int, records []Record, owned bool)

// Record is ompt_record_ompt_t: what a device did. The times are of its clock, in
// ticks. What the host does itself has none: storage that comes or goes, and copies to
// and from memory that both see. Nor have copies between two devices, which go through
// the host in pieces.
type Record struct {
	// Type is CallbackTargetDataOpEMI or CallbackTargetSubmitEMI.
	Type Callback
	// Time is when it began, EndTime when it was done.
	Time, EndTime uint64
	// TargetID is that of the region, 0 for none; HostOpID is what the callback of the
	// operation has set, or the runtime's number if it set none. An operation can have
	// several records: large copies go in pieces, large kernels in several dispatches.
	TargetID, HostOpID ID
	// Queue is the index of the device's queue, as in Stats: beyond the specification,
	// in place of the thread.
	Queue int
	// DataOp is that of a data operation; Bytes are those of this record.
	DataOp DataOp
	// RequestedNumTeams is the number of workgroups of a kernel, GrantedNumTeams those
	// of this record.
	RequestedNumTeams, GrantedNumTeams uint64
	// Label is the kernel's name, or names the item of the construct: beyond the
	// specification.
	Label string
}
