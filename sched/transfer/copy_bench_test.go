package transfer

import (
	"fmt"
	"testing"
	"unsafe"
)

// BenchmarkHostCopy copies between two places of the host's memory, as into staging, with as many
// goroutines as there may be.
func BenchmarkHostCopy(b *testing.B) {
	const most = 64 << 20
	to, from := make([]byte, most), make([]byte, most)
	for i := range from {
		from[i], to[i] = byte(i), 1
	}
	for _, size := range []uint64{64 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 8 << 20, most} {
		for _, threads := range []int{1, 2, MaxThreads} {
			b.Run(fmt.Sprintf("bytes=%d/threads=%d", size, threads), func(b *testing.B) {
				d := &Device{Threads: threads}
				var l List
				x := &Transfer{Kind: CopyToDevice, Host: section(from[:size]), Size: size}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for range b.N {
					if _, err := x.put(&l, d, unsafe.Pointer(&to[0]), true); err != nil {
						b.Fatal(err)
					}
					if err := l.copyGathered(d); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
