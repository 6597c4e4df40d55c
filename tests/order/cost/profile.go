package cost

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// VkQueueFlags that tell families apart.
const (
	graphics = 1
	compute  = 2
	transfer = 4
)

// VkMemoryPropertyFlags.
const (
	deviceLocal = 1
	hostCached  = 8
)

const microseconds = time.Microsecond

// Rate is a number of bytes in time, in GB/s.
type Rate float64

// nanoseconds returns the time that bytes take: one GB/s is one byte a nanosecond.
func (r Rate) nanoseconds(bytes uint64) float64 { return float64(bytes) / float64(r) }

// Profile has what the mechanisms of a device cost.
type Profile struct {
	// Name is what Named finds it by.
	Name string
	// Source says on what the figures were measured, and when.
	Source   string
	Families []Family // by index
	// Links are what a link of a chain of submissions takes in which each waits for the one before
	// and has one dispatch: Links[a][b] from a queue of family a to another queue, of family b.
	Links [][]time.Duration

	// Dispatch is what a queue needs for a small command, of which it executes several at once. A
	// kernel of one workgroup that does nothing is included.
	Dispatch time.Duration
	Barriers BarrierCosts
	// RecordCommand and RecordBarrier are what the host needs to record a command, with its
	// descriptors and push constants, and a barrier.
	RecordCommand, RecordBarrier time.Duration

	// Workgroups is how many workgroups run at once.
	Workgroups int
	// Memory is the bandwidth of the device's memory, reads and writes together. Bus is that
	// between the device and the host's memory, in each direction.
	Memory, Bus Rate
	// What the host writes and reads in memory of three kinds: the device's, the host's own, and
	// the host's own that it caches.
	DeviceMemory, HostMemory, CachedMemory HostRates
}

// BarrierCosts are the costs of a barrier by its masks, beyond those of the dispatch before it.
type BarrierCosts struct {
	Execution time.Duration // stages without accesses
	Memory    time.Duration // COMPUTE_SHADER and transfers, with their accesses
	Host      time.Duration // with HOST among the stages
	All       time.Duration // ALL_COMMANDS, MEMORY_READ, MEMORY_WRITE
}

// HostRates are what a thread of the host moves.
type HostRates struct{ Write, Read Rate }

// Family is a family of queues.
type Family struct {
	Flags  uint64 // VkQueueFlags, of graphics, compute and transfer
	Queues int    // how many it has
	// SideBySide says that its queues run at the same time. Otherwise they take turns.
	SideBySide bool
	// Submit is the call of vkQueueSubmit2. Begin is the time from its end until the first command
	// begins, if the queue was idle.
	Submit, Begin time.Duration
	// Polled is the time from the end of a submission until a thread knows of it that polls a
	// counter or a fence, and Blocked that until one is running that waits for it.
	Polled, Blocked time.Duration
	// Link is Links on one queue.
	Link time.Duration
	// Copy and Fill are what vkCmdCopyBuffer and vkCmdFillBuffer move within the device's memory.
	Copy, Fill Rate
}

// H100 has what was measured by plain Vulkan on an NVIDIA H100 80 GB (PCIe 5, driver 580, Vulkan
// 1.4.312), 2026-11. Durations without a unit are nanoseconds. Figures of which the comment says
// "assumed" were not measured.
var H100 = &Profile{
	Name:   "h100",
	Source: "NVIDIA H100, driver 580, measured 2026-11",
	Families: []Family{
		// Its queues are one channel group: 16 kernels of 3.6 ms on 16 queues take 60.6 ms.
		{Flags: graphics | compute | transfer, Queues: 16,
			Submit: 3100, // best of the call alone; mean 4.9 µs
			// 16.3 µs in all where the host polls, of which the shares of these two are assumed.
			Begin: 8400, Polled: 4500,
			// In all 52.8 to 58.7 µs behind a short kernel, 33.7 behind a long one: between these.
			Blocked: 36200,
			Link:    16100, Copy: 410, Fill: 2650},
		// DMA engines. Submissions and their ends were not measured: assumed as those of family 2.
		// That its two queues run side by side is assumed too.
		{Flags: transfer, Queues: 2, SideBySide: true,
			Submit: 3600, Begin: 5000, Polled: 4500, Blocked: 24800, Link: 10500, Copy: 89, Fill: 97},
		// Asynchronous compute: 16 kernels of 3.6 ms on its 8 queues take 7.2 ms.
		{Flags: compute | transfer, Queues: 8, SideBySide: true,
			Submit: 3600, // best of the call alone; mean 4.2 µs
			// 13.4 µs in all where the host polls, of which the shares of these two are assumed.
			Begin: 5000, Polled: 4500,
			// In all 33.7 µs: what fills of 64 MiB and of 1 GiB take beyond the time of their bytes;
			// fences 30.4 to 37.6 µs, semaphores 18.2 at best and 41.8 in the mean.
			Blocked: 24800,
			Link:    10500, Copy: 410, Fill: 2650},
		// Video. Only fills and links were measured, the rest is assumed as for family 1.
		{Flags: transfer, Queues: 7, SideBySide: true,
			Submit: 3600, Begin: 5000, Polled: 4500, Blocked: 24800, Link: 10500, Copy: 89, Fill: 525},
		{Flags: transfer, Queues: 1,
			Submit: 3600, Begin: 5000, Polled: 4500, Blocked: 24800, Link: 10500, Copy: 89, Fill: 525},
	},
	// Between families 0 and 1, 2, 3: 7.5 to 8.1 µs; between 2 and 0, 1, 3: 3.7 to 8.6. Those
	// between 1, 3 and 4 are assumed as those of 2.
	Links: [][]time.Duration{
		{181 * microseconds, 7800, 7800, 7800, 174 * microseconds},
		{7800, 14 * microseconds, 6200, 6200, 169 * microseconds},
		{7800, 6200, 14 * microseconds, 6200, 169 * microseconds},
		{7800, 6200, 6200, 14 * microseconds, 169 * microseconds},
		{174 * microseconds, 169 * microseconds, 169 * microseconds, 169 * microseconds, 169 * microseconds},
	},
	Dispatch: 289, // 287 on family 0, 289 on family 2
	// Of 2,431 to 2,470, 2,545 to 2,609, 3,979 to 3,982 and 5,734 to 5,773 ns a dispatch with its
	// barrier.
	Barriers: BarrierCosts{Execution: 2160, Memory: 2290, Host: 3690, All: 5460},
	// 571 to 660 ns in a stencil, 812 in a row of kernels with one argument.
	RecordCommand: 650,
	RecordBarrier: 770, // 3,970 ns a link, of which 2,550 on the device, less the dispatch
	// Assumed: 8 workgroups on each of 132 multiprocessors. Measured is that 16 run at once.
	Workgroups: 132 * 8,
	// A kernel copies 1,300 GB/s, which is as much read as written; vkCmdFillBuffer fills 2,650.
	Memory: 2650,
	// 47 to 52 GB/s by DMA and by kernels, both ways; assumed to be at the same time.
	Bus:          50,
	DeviceMemory: HostRates{Write: 9.5, Read: 0.028},
	HostMemory:   HostRates{Write: 9, Read: 11},
	CachedMemory: HostRates{Write: 7.5, Read: 8},
}

// profiles are those that Named knows.
var profiles = []*Profile{H100}

// Named returns a profile. The error lists the names that exist.
func Named(name string) (*Profile, error) {
	var names []string
	for _, p := range profiles {
		if strings.EqualFold(p.Name, name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return nil, fmt.Errorf("there is no profile %q: the profiles are %s", name, strings.Join(names, ", "))
}

// family returns the index of the profile's family for one of a log: that of the same index if it
// can do the same, or else the first that can.
func (p *Profile) family(index int, flags uint64) (int, bool) {
	flags &= graphics | compute | transfer
	can := func(f Family) bool { return f.Flags == flags }
	if index < len(p.Families) && can(p.Families[index]) {
		return index, true
	}
	i := slices.IndexFunc(p.Families, can)
	return i, i >= 0
}

// host returns what the host writes and reads in memory with these properties.
func (p *Profile) host(properties uint64) HostRates {
	switch {
	case properties&hostCached != 0:
		return p.CachedMemory
	case properties&deviceLocal != 0:
		return p.DeviceMemory
	}
	return p.HostMemory
}
