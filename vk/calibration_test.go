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
