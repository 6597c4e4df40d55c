package ompt

import "time"

// Device traces a device: it records when kernels and transfers ran, by the device's own
// clock. A tool gets it with DeviceInitializeEvent and may use it until the
// DeviceFinalize callback for the device has returned; after that its methods do nothing
// and return an error. A trace that is running then has already been stopped.
//
// Callbacks of tasks and their target regions must not start, flush or stop a trace,
// because that can wait for the task they belong to. A BufferRequest and a BufferComplete
// may only call Time and TranslateTime.
type Device interface {
	// SetTraceOMPT enables or disables the records of a type in the trace:
	// CallbackTargetDataOpEMI, CallbackTargetSubmitEMI, their plain forms, or 0 for all
	// (ompt_set_trace_ompt_t). All are disabled at first. The result is SetError while
	// a trace runs and SetNever for a type of which there are no records.
	SetTraceOMPT(enable bool, record Callback) SetResult
	// StartTrace begins a trace (ompt_start_trace_t). A running trace must be stopped
	// first.
	StartTrace(BufferRequest, BufferComplete) error
	// PauseTrace pauses or resumes the recording of what is submitted to the device
	// from then on (ompt_pause_trace_t).
	PauseTrace(pause bool) error
	// FlushTrace completes the current buffer with the records of all completed tasks
	// (ompt_flush_trace_t). It returns after BufferComplete.
	FlushTrace() error
	// StopTrace ends the trace (ompt_stop_trace_t). It waits for everything that was
	// submitted to the device, and for foreign work that this depends on, and flushes.
	StopTrace() error
	// Time returns the device's clock in ticks (ompt_get_device_time_t).
	Time() (uint64, error)
	// TranslateTime converts ticks of the device's clock to a time of the host's, which
	// is comparable with time.Now (ompt_translate_time_t).
	TranslateTime(ticks uint64) time.Time
}

// BufferRequest is ompt_callback_buffer_request. It returns a slice for records, which the
// runtime fills up to its capacity. If the capacity is 0, records are dropped until the
// next StartTrace.
type BufferRequest func(deviceNum int) []Record

// BufferComplete is ompt_callback_buffer_complete. records are the records in a buffer
// that the runtime has filled or flushed. owned says that the buffer belongs to the tool
// again; otherwise more records of it follow. It is called on a goroutine that runs no
// task, one call at a time for each device.
type BufferComplete func(deviceNum int, records []Record, owned bool)

// Record is ompt_record_ompt_t: an operation that a device performed. Its times are ticks
// of the device's clock. There are no records for operations that the host performs:
// allocation, deallocation, copies to and from memory that both can access, and copies
// between two devices, which pass through the host.
type Record struct {
	// Type is CallbackTargetDataOpEMI or CallbackTargetSubmitEMI.
	Type Callback
	// Time is the begin of the operation, EndTime its end. Where one operation follows another on
	// a queue, the end of the first can be the begin of the second. Up to 32 successive launches
	// of one kernel with as many workgroups, which took up to 5 µs each when they were last
	// measured, can share the time between two readings of the clock in equal parts.
	Time, EndTime uint64
	// TargetID identifies the region, 0 for none. HostOpID is what the callback of the
	// operation has set, or the runtime's number if it set none. An operation can have
	// several records, as large copies and large kernels are split into several commands.
	TargetID, HostOpID ID
	// Queue is the index of the device's queue, as in Stats. It stands in place of the
	// thread of the specification.
	Queue int
	// DataOp describes a data operation; its Bytes are those of this record.
	DataOp DataOp
	// RequestedNumTeams is the number of workgroups of a kernel, GrantedNumTeams the
	// number in this record.
	RequestedNumTeams, GrantedNumTeams uint64
	// Label is the kernel's name, or the name of the construct's item. It is an
	// extension of the specification.
	Label string
}
