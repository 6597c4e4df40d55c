package vk

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimestampsAreTranslatedAroundTheCalibration(t *testing.T) {
	host := time.Now()
	c := Calibration{Ticks: 5, Host: host, Period: 83.5, Bits: 36}
	for ticks, want := range map[uint64]time.Duration{
		5: 0, 7: 167, 4: -84, 0: -418, 1<<36 - 1: -501, 1<<35 + 3: 83.5 * (1<<35 - 2), 1<<35 + 5: -83.5 * (1 << 35),
	} {
		if got := c.Time(ticks).Sub(host); got != want {
			t.Errorf("%d ticks are %d ns after the calibration, want %d", ticks, got, want)
		}
	}
}

func TestTheDevicesClockIsTheInverseOfTranslation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Calibration{Host: time.Now(), Bits: rapid.IntRange(36, 64).Draw(t, "bits"),
			Period: float64(rapid.Float32Range(1, 100).Draw(t, "period"))}
		mask := uint64(1)<<c.Bits - 1
		c.Ticks = rapid.Uint64().Draw(t, "ticks") & mask
		after := rapid.Int64Range(-1<<34, 1<<34).Draw(t, "after")
		ticks := (c.Ticks + uint64(after)) & mask
		if got := c.At(c.Time(ticks)); got != ticks {
			t.Fatalf("%d ticks became %d by way of the host's clock", ticks, got)
		}
	})
}

func TestTimestampsOfFewBitsAreExtendedNearATime(t *testing.T) {
	host := time.Now()
	c := Calibration{Ticks: 5 << 32, Host: host, Period: 2, Bits: 40}
	for _, k := range []struct {
		ticks uint64
		bits  int
		after time.Duration
		want  uint64
	}{
		{100, 32, 200, 5<<32 + 100},
		{100, 32, 0, 5<<32 + 100},
		{1<<32 - 3, 32, 0, 5<<32 - 3},         // just before the counter began anew
		{2, 32, -10, 5<<32 + 2},               // just after that
		{100, 32, 2 << 32, 6<<32 + 100},       // a round later
		{100, 32, 2<<32 - 2<<30, 6<<32 + 100}, // the nearest
		{7, 8, 2 * 250, 5<<32 + 256 + 7},
		{1, 32, 2 * (251<<32 - 2), 1},                 // the clock itself begins anew
		{5<<32 - 9, 40, 0, 5<<32 - 9},                 // all bits
		{1<<50 + 5<<32 - 9, 64, 0, 1<<50 + 5<<32 - 9}, // more than the clock's
	} {
		if got := c.Extend(k.ticks, k.bits, host.Add(k.after)); got != k.want {
			t.Errorf("%d bits %d, %d ns after the calibration, are %#x, want %#x", k.bits, k.ticks, k.after, got, k.want)
		}
	}
}
