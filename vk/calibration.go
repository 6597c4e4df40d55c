package vk

import (
	"math"
	"time"
)

// Calibration is a moment in time read from the device's clock and the host's; see
// [Device.Calibrate].
type Calibration struct {
	Ticks     uint64        // the device's timestamp
	Host      time.Time     // with a monotonic reading
	Deviation time.Duration // the largest possible error of Host
	Period    float64       // nanoseconds per tick
	Bits      int           // valid bits of a timestamp, after which the clock wraps to 0
}

// Time returns the host time of a timestamp. Where the clock has wrapped, it is the
// time nearest to the calibration.
func (c Calibration) Time(ticks uint64) time.Time {
	unused := 64 - c.Bits
	after := int64((ticks-c.Ticks)<<unused) >> unused
	return c.Host.Add(time.Duration(math.Round(float64(after) * c.Period)))
}

// Extend returns the timestamp, with all bits of the clock, of which a queue has written so many low bits near
// that time: at most half of what these can count earlier or later.
func (c Calibration) Extend(ticks uint64, bits int, near time.Time) uint64 {
	if bits >= c.Bits {
		return ticks
	}
	unused, then := 64-bits, c.At(near)
	return (then + uint64(int64((ticks-then)<<unused)>>unused)) & (1<<c.Bits - 1)
}

// At returns the device's timestamp at a host time.
func (c Calibration) At(host time.Time) uint64 {
	after := int64(math.Round(float64(host.Sub(c.Host)) / c.Period))
	return (c.Ticks + uint64(after)) & (1<<c.Bits - 1)
}
