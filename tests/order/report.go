package order

import (
	"fmt"
	"io"
	"strings"
)

// Kind is a kind of violation.
type Kind string

// The kinds of violations.
const (
	Unordered        Kind = "unordered"          // conflicting accesses without an order
	Dependence       Kind = "dependence"         // an edge of depend clauses is not kept
	Undispatched     Kind = "undispatched"       // a task of the clauses file has no dispatch
	WaitBeforeSignal Kind = "wait before signal" // legal in Vulkan, but against the rules of the runtime
	Hang             Kind = "hang"               // a wait is never signalled
	BadSignal        Kind = "signal"             // a value that is not above the last, or may be reached before it
	Unbound          Kind = "unbound"            // an access outside of memory, or by objects that are destroyed or of another device
	Ownership        Kind = "ownership"          // an exclusive buffer is used on queues of two families
	Leftover         Kind = "leftover"           // what unfinished work uses is destroyed or recorded again, or a device is destroyed before its objects
	Unknown          Kind = "unknown"            // a command that the checker does not know
)

// Submission is one batch of a vkQueueSubmit.
type Submission struct {
	Queue  *QueueTotals // the queue
	Number uint64       // its number on the queue, from 1
	Signal string       // the first semaphore that it signals, with the value
}

// String returns the queue and the signal.
func (s *Submission) String() string {
	if s.Signal == "" {
		return fmt.Sprintf("%v submission %d", s.Queue, s.Number)
	}
	return fmt.Sprintf("%v submission %d (signals %s)", s.Queue, s.Number, s.Signal)
}

// Command is a command of a queue, all commands of a submission, or an action of the host.
type Command struct {
	Submission *Submission // nil for the host
	Index      int         // in its submission, from 0, including barriers; -1 for all of it
	What       string      // "dispatch", "copy", "flush", ...
	Kernel     string      // name of the kernel of a dispatch
	Push       []uint32    // the first push constants
	Thread     int         // of the host
	Line       int         // of the log
}

// String returns everything that is known of the command.
func (c *Command) String() string {
	if c.Submission == nil {
		return fmt.Sprintf("host thread %d %s (line %d)", c.Thread, c.What, c.Line)
	}
	if c.Index < 0 {
		return c.Submission.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v command %d %s", c.Submission, c.Index, c.What)
	if c.Kernel != "" {
		fmt.Fprintf(&b, " %s", c.Kernel)
	}
	if len(c.Push) > 0 {
		fmt.Fprintf(&b, " push %d", c.Push)
	}
	return b.String()
}

// Violation is a violation in a log.
type Violation struct {
	Kind Kind   // what kind of violation it is
	Line int    // line of the log at which it shows
	Text string // description
}

// String returns the violation in one line.
func (v Violation) String() string { return fmt.Sprintf("line %d: %s: %s", v.Line, v.Kind, v.Text) }

// QueueTotals holds statistics of a queue.
type QueueTotals struct {
	Device, Family, Index int    // numbers of the queue's device, its family and its index in that
	Flags                 uint64 // VkQueueFlags of the family
	Submissions           uint64 // batches
	Dispatches            uint64 // commands
	Launches              uint64 // of kernels, of which a dispatch can do several
	Copies                uint64 // commands
	Fills                 uint64 // including updates
	Barriers              uint64 // commands
	Waits                 uint64 // waits for semaphores
	CrossWaits            uint64 // of these, for another queue's signal
	Signals               uint64 // of semaphores
}

// String returns the name of the queue.
func (q *QueueTotals) String() string {
	return fmt.Sprintf("device %d queue %d.%d", q.Device, q.Family, q.Index)
}

// HostTotals counts the waiting calls of one host thread.
type HostTotals struct {
	Thread   int    // number of the thread
	Waits    uint64 // vkWaitSemaphores, vkWaitForFences, idle waits
	Blocked  uint64 // of these, the calls that blocked
	Observed uint64 // values that vkGetSemaphoreCounterValue was the first to show
}

// Report is the result of Check.
type Report struct {
	// Violations are the first ones, in the order of the log; Total counts all.
	Violations  []Violation
	Total       uint64
	Kinds       map[Kind]uint64
	Queues      []*QueueTotals // in the order of their creation
	Hosts       []*HostTotals
	Lines       uint64
	Bytes       uint64
	Flushes     uint64 // number of ranges
	Invalidates uint64 // number of ranges
	// Addressed counts dispatches whose kernels access memory by address: those accesses are
	// not checked.
	Addressed uint64
	Tasks     uint64 // tasks of the clauses file that were dispatched
	Edges     uint64 // edges of the clauses that were checked
	// Undispatched counts device tasks of the clauses file without a dispatch in a log that was cut
	// short. In a whole log they are violations.
	Undispatched uint64
	Devices      uint64
}

// Sum returns the sum over all queues.
func (r *Report) Sum() QueueTotals {
	var s QueueTotals
	for _, q := range r.Queues {
		s.Submissions += q.Submissions
		s.Dispatches += q.Dispatches
		s.Launches += q.Launches
		s.Copies += q.Copies
		s.Fills += q.Fills
		s.Barriers += q.Barriers
		s.Waits += q.Waits
		s.CrossWaits += q.CrossWaits
		s.Signals += q.Signals
	}
	return s
}

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	if n := r.Total - uint64(len(r.Violations)); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	for _, q := range r.Queues {
		fmt.Fprintf(&b, "%v: %d submissions, %d launches in %d dispatches, %d copies, %d fills, %d barriers, %d waits (%d for other queues), %d signals\n",
			q, q.Submissions, q.Launches, q.Dispatches, q.Copies, q.Fills, q.Barriers, q.Waits, q.CrossWaits, q.Signals)
	}
	for _, h := range r.Hosts {
		if h.Waits+h.Observed > 0 {
			fmt.Fprintf(&b, "host thread %d: %d waits (%d blocked), %d values seen\n", h.Thread, h.Waits, h.Blocked, h.Observed)
		}
	}
	s := r.Sum()
	fmt.Fprintf(&b, "total: %d submissions, %d launches in %d dispatches, %d copies, %d fills, %d barriers, %d waits (%d across queues), %d flushes, %d invalidations\n",
		s.Submissions, s.Launches, s.Dispatches, s.Copies, s.Fills, s.Barriers, s.Waits, s.CrossWaits, r.Flushes, r.Invalidates)
	if r.Edges+r.Tasks > 0 {
		fmt.Fprintf(&b, "clauses: %d tasks, %d edges\n", r.Tasks, r.Edges)
	}
	if r.Undispatched > 0 {
		fmt.Fprintf(&b, "%d tasks of the clauses have no dispatch: the log ends before its devices are destroyed\n", r.Undispatched)
	}
	if r.Addressed > 0 {
		fmt.Fprintf(&b, "%d dispatches access memory by address, which the log does not show\n", r.Addressed)
	}
	fmt.Fprintf(&b, "%d violations\n", r.Total)
	_, err := io.WriteString(w, b.String())
	return err
}
