//go:build !cgo

package vk

import (
	"fmt"
	"sync"
	"time"
)

// errNoCgo is the error of every operation in a build without cgo.
var errNoCgo = fmt.Errorf("%w: built without cgo", ErrUnsupported)

// Instance is never created in a build without cgo.
type Instance struct{}

// PhysicalDevice is never created in a build without cgo.
type PhysicalDevice struct{}

// Device is never created in a build without cgo.
type Device struct{}

// Queue is never created in a build without cgo.
type Queue struct{}

// Yield does nothing.
func Yield() {}

// Open returns an error that matches ErrUnsupported.
func Open(InstanceOptions) (*Instance, error) { return nil, errNoCgo }

// Adopt returns an error that matches ErrUnsupported.
func Adopt(Adoption) (*Instance, error) { return nil, errNoCgo }

func (*Instance) PhysicalDevices() []*PhysicalDevice { return nil }
func (*Instance) Close() error                       { return nil }
func (*Instance) Handle() uintptr                    { return 0 }
func (*Instance) GetInstanceProcAddr() uintptr       { return 0 }
func (*Instance) Messages() uint64                   { return 0 }

func (*PhysicalDevice) Handle() uintptr                                  { return 0 }
func (*PhysicalDevice) Properties() *Properties                          { return new(Properties) }
func (*PhysicalDevice) Missing() []string                                { return []string{"cgo"} }
func (*PhysicalDevice) Open(DeviceOptions) (*Device, error)              { return nil, errNoCgo }
func (*PhysicalDevice) PlanQueues(DeviceOptions) (queues, interop []int) { return nil, nil }

func (*Device) Properties() *Properties                                    { return new(Properties) }
func (*Device) Handle() uintptr                                            { return 0 }
func (*Device) Close() error                                               { return nil }
func (*Device) Trim() error                                                { return errNoCgo }
func (*Device) WaitIdle() error                                            { return errNoCgo }
func (*Device) Live() map[string]int                                       { return map[string]int{} }
func (*Device) Queues() []*Queue                                           { return nil }
func (*Device) CreateBlock(uint64, int) (Block, error)                     { return Block{}, errNoCgo }
func (*Device) DestroyBlock(Block)                                         {}
func (*Device) BlockMemoryTypes(uint64) (bits uint32, err error)           { return 0, errNoCgo }
func (*Device) AdoptBuffer(ForeignBuffer) (Block, error)                   { return Block{}, errNoCgo }
func (*Device) ExportableMemoryTypes(uint64) (bits uint32, err error)      { return 0, errNoCgo }
func (*Device) CreateExportableBlock(uint64, int) (Block, error)           { return Block{}, errNoCgo }
func (*Device) ImportBlockFd(int, uint64, int) (Block, error)              { return Block{}, errNoCgo }
func (*Device) ExportBlock(Block) (fd int, err error)                      { return -1, errNoCgo }
func (*Device) CreateExportableSemaphore(SemaphoreType) (Semaphore, error) { return 0, errNoCgo }
func (*Device) ImportSemaphore(SemaphoreType, int) (Semaphore, error)      { return 0, errNoCgo }
func (*Device) ExportSemaphore(Semaphore) (fd int, err error)              { return -1, errNoCgo }
func (*Device) ImportBlock(uintptr, uint64) (Block, error)                 { return Block{}, errNoCgo }
func (*Device) Flush([]MemoryRange) error                                  { return errNoCgo }
func (*Device) Invalidate([]MemoryRange) error                             { return errNoCgo }
func (*Device) MemoryBudget() (heaps []HeapBudget, ok bool)                { return nil, false }
func (*Device) CreatePipeline(PipelineOptions) (Pipeline, error)           { return Pipeline{}, errNoCgo }
func (*Device) DestroyPipeline(Pipeline)                                   {}
func (*Device) PipelineCacheData([]byte) ([]byte, error)                   { return nil, errNoCgo }
func (*Device) CreateQueryPool(uint32) (QueryPool, error)                  { return QueryPool{}, errNoCgo }
func (*Device) DestroyQueryPool(QueryPool)                                 {}
func (*Device) ResetQueryPool(_ QueryPool, first, count uint32) error      { return errNoCgo }
func (*Device) Timestamps(QueryPool, uint32, []uint64) error               { return errNoCgo }
func (*Device) Calibrate() (Calibration, error)                            { return Calibration{}, errNoCgo }

func (*Device) InteropQueues() []*Queue                  { return nil }
func (*Device) CreateTimeline(uint64) (Semaphore, error) { return 0, errNoCgo }
func (*Device) DestroySemaphore(Semaphore)               {}
func (*Device) SemaphoreValue(Semaphore) (uint64, error) { return 0, errNoCgo }
func (*Device) SignalSemaphore(Semaphore, uint64) error  { return errNoCgo }
func (*Device) WaitSemaphore(Semaphore, uint64, time.Duration) (bool, error) {
	return false, errNoCgo
}

func (*Queue) Submit(_ *Stream, waits, signals []SemaphoreValue, signal uint64) error {
	return errNoCgo
}

func (*Queue) Order(waits, signals []SemaphoreValue) error {
	return errNoCgo
}

func (*Queue) Record(*Stream) (Recording, error)                 { return 0, errNoCgo }
func (*Queue) Forget(Recording)                                  {}
func (*Queue) Handle() uintptr                                   { return 0 }
func (*Queue) Family() uint32                                    { return 0 }
func (*Queue) Compute() bool                                     { return false }
func (*Queue) Draws() bool                                       { return false }
func (*Queue) TimestampBits() int                                { return 0 }
func (*Queue) Locker() sync.Locker                               { return new(sync.Mutex) }
func (*Queue) Timeline() Semaphore                               { return 0 }
func (*Queue) Completed() (uint64, error)                        { return 0, errNoCgo }
func (*Queue) Wait(uint64, time.Duration) (done bool, err error) { return false, errNoCgo }
