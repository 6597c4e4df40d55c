package tasks

import (
	"math"
	"testing"
)

// FuzzIndex reads the input as steps of four bytes: an operation, where its section starts (two
// bytes, a scale and a distance), and its size.
func FuzzIndex(f *testing.F) {
	f.Add([]byte{0, 3, 1, 0x30, 0, 3, 2, 0x30, 1, 3, 1, 0x30})
	f.Add([]byte{3, 3, 0, 0x30, 3, 12, 0, 0x30, 2, 0, 0, 0xff, 4, 0, 0, 0})
	f.Add([]byte{3, 20, 7, 0x95, 0x83, 30, 9, 0x33, 2, 0, 0, 0xf0})
	f.Add([]byte{0x80, 0, 0, 0xf7, 0x80, 60, 9, 0x13, 0x81, 0, 0, 0xf7})
	f.Fuzz(func(t *testing.T, steps []byte) {
		var m indexModel
		for ; len(steps) >= 4; steps = steps[4:] {
			size := uintptr(1) << (steps[3] >> 2 % 63)
			size += uintptr(steps[3]&3) * (size / 4)
			start := uintptr(steps[2]) << (steps[1] % 58)
			// With the high bit of the operation the section is at the top of the address
			// space.
			if steps[0]&0x80 != 0 {
				start = math.MaxUint - size - start
			}
			if start > math.MaxUint-size {
				continue
			}
			s := section{start, size}
			switch steps[0] & 0x7f % 5 {
			case 0, 1:
				m.toggle(s)
			case 2:
				s.size = math.MaxUint - s.start
			case 3:
				for range 20 {
					m.toggle(s)
					if s.start += s.size; s.start > math.MaxUint-s.size {
						break
					}
				}
			case 4:
				for range min(20, len(m.locations)) {
					m.toggle(m.locations[0].section)
				}
			}
			if s.size == 0 || s.start > math.MaxUint-s.size {
				s = section{0, math.MaxUint}
			}
			if err := m.check(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}
