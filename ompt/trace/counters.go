package trace

import (
	"encoding/json"
	"expvar"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/vkomp/vkomp/ompt"
)

// Counters is a tool that counts events and keeps nothing else. It is an expvar.Var whose
// String is JSON. It may count for several runtimes with the same devices; when one of
// them closes a device, the memory of that device counts as released.
type Counters struct {
	tasks, completed, cancelled    atomic.Uint64
	regions, submits               atomic.Uint64
	bytesTo, bytesFrom, bytesOther atomic.Uint64
	devices                        deviceSet
}

// publishing makes the look-up and publication of a name atomic.
var publishing sync.Mutex

// Publish returns counters that are published with package expvar under a name, so that
// /debug/vars shows them. A name that is already taken is an error.
func Publish(name string) (*Counters, error) {
	publishing.Lock()
	defer publishing.Unlock()
	if expvar.Get(name) != nil {
		return nil, fmt.Errorf("trace: Publish(%q): an expvar of that name exists", name)
	}
	c := &Counters{}
	expvar.Publish(name, c)
	return c, nil
}

// Callbacks returns the tool.
func (c *Counters) Callbacks() ompt.Callbacks {
	return ompt.Callbacks{
		DeviceInitialize: c.devices.initialize,
		DeviceFinalize:   c.devices.finalize,
		TaskCreate: func(e ompt.TaskCreateEvent) {
			c.tasks.Add(1)
			if e.Flags&ompt.TaskMerged != 0 {
				c.completed.Add(1) // the last event of the task
			}
		},
		TaskSchedule: c.taskSchedule,
		TargetEMI: func(e ompt.TargetEMIEvent) {
			if e.Endpoint != ompt.ScopeEnd {
				c.regions.Add(1)
			}
		},
		TargetSubmitEMI: func(e ompt.TargetSubmitEMIEvent) {
			if e.Endpoint != ompt.ScopeEnd {
				c.submits.Add(1)
			}
		},
		TargetDataOpEMI: c.targetDataOp,
	}
}

func (c *Counters) taskSchedule(e ompt.TaskScheduleEvent) {
	switch e.PriorStatus {
	case ompt.TaskComplete, ompt.TaskLateFulfill, ompt.TaskwaitComplete:
		c.completed.Add(1)
	case ompt.TaskCancel:
		c.cancelled.Add(1)
	}
}

func (c *Counters) targetDataOp(e ompt.TargetDataOpEMIEvent) {
	src, memory := c.devices.has(e.SrcDeviceNum), c.devices.memory(e.DestDeviceNum)
	dest := memory != nil
	begins, ends := e.Endpoint != ompt.ScopeEnd, e.Endpoint != ompt.ScopeBegin
	switch e.Type {
	case ompt.TargetDataAlloc, ompt.TargetDataAllocAsync:
		if ends && dest {
			memory.Add(int64(e.Bytes))
		}
		return
	case ompt.TargetDataDelete, ompt.TargetDataDeleteAsync:
		if begins && dest {
			memory.Add(-int64(e.Bytes))
		}
		return
	}
	switch {
	case !begins || !moves(e.Type):
	case e.SrcDeviceNum == ompt.NoDevice || src == dest:
		c.bytesOther.Add(e.Bytes)
	case dest:
		c.bytesTo.Add(e.Bytes)
	default:
		c.bytesFrom.Add(e.Bytes)
	}
}

// String returns the counts as a JSON object with the names tasks (generated),
// completed, notRun (tasks that were cancelled or dropped, or whose predecessors have failed),
// targetRegions, submits (of kernels), bytesToDevice, bytesFromDevice, bytesCopied (by fills and
// all other copies), and deviceMemoryInUse, in bytes.
func (c *Counters) String() string {
	// All fields are numbers, which cannot fail.
	text, _ := json.Marshal(struct {
		Tasks           uint64 `json:"tasks"`
		Completed       uint64 `json:"completed"`
		NotRun          uint64 `json:"notRun"`
		Regions         uint64 `json:"targetRegions"`
		Submits         uint64 `json:"submits"`
		BytesToDevice   uint64 `json:"bytesToDevice"`
		BytesFromDevice uint64 `json:"bytesFromDevice"`
		BytesCopied     uint64 `json:"bytesCopied"`
		MemoryInUse     int64  `json:"deviceMemoryInUse"`
	}{
		c.tasks.Load(), c.completed.Load(), c.cancelled.Load(), c.regions.Load(), c.submits.Load(),
		c.bytesTo.Load(), c.bytesFrom.Load(), c.bytesOther.Load(), c.devices.inUse(),
	})
	return string(text)
}
