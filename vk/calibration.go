package vk

import (
	"math"
	"time"
)

// Calibration is one moment by a device's clock and by the host's; see
// [Device.Calibrate].
type Calibration struct {
	Ticks     uint64
	Host      time.Time     // with a monotonic reading
	Deviation time.Duration // how far Host may be from the moment, at most
	Period    float64       // nanoseconds that a tick takes
	Bits      int           // bits that a timestamp has; then the clock begins again at 0
}

// Time is when a timestamp was written, by the host's clock. Of the moments that the
// device's clock gives that timestamp at it is the one nearest to the calibration.
func (c Calibration) Time(ticks uint64) time.Time {
	unused := 64 - c.Bits
	after := int64((ticks-c.Ticks)<<unused) >> unused
	return c.Host.Add(time.Duration(math.Round(float64(after) * c.Period)))
}

// At is what the device's clock says at a time of the host's.
func (c Calibration) At(host time.Time) uint64 {
	after := int64(math.Round(float64(host.Sub(c.Host)) / c.Period))
	return (c.Ticks + uint64(after)) & (1<<c.Bits - 1)
}
