package tasks

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// spaced returns n locations of size bytes, stride apart, from base on.
func spaced(base uintptr, n int, size, stride uintptr) []*location {
	array := make([]location, n)
	locations := make([]*location, n)
	for i := range array {
		array[i].section = section{base + uintptr(i)*stride, size}
		locations[i] = &array[i]
	}
	return locations
}

func insertAll(x *index, locations []*location) {
	for _, l := range locations {
		x.insert(l)
	}
}

var benchSets = []struct {
	name   string
	stride uintptr
}{{"contiguous", 8}, {"pages", 4096}}

// eachSet runs body over several sets of 8-byte locations, and orders to visit them in.
func eachSet(b *testing.B, body func(b *testing.B, x *index, locations []*location)) {
	for _, set := range benchSets {
		for _, n := range []int{1, 1_000, 100_000, 2_000_000} {
			for _, order := range []string{"ordered", "shuffled"} {
				if n == 1 && order == "shuffled" {
					continue
				}
				b.Run(fmt.Sprintf("%s/%d/%s", set.name, n, order), func(b *testing.B) {
					var x index
					locations := spaced(0xc000000000, n, 8, set.stride)
					insertAll(&x, locations)
					if order == "shuffled" {
						r := rand.New(rand.NewPCG(1, 2))
						r.Shuffle(n, func(i, j int) { locations[i], locations[j] = locations[j], locations[i] })
					}
					b.ReportAllocs()
					b.ResetTimer()
					body(b, &x, locations)
				})
			}
		}
	}
}

func BenchmarkIndexFind(b *testing.B) {
	eachSet(b, func(b *testing.B, x *index, locations []*location) {
		i := 0
		for range b.N {
			if x.find(locations[i].section) == nil {
				b.Fatal("not found")
			}
			if i++; i == len(locations) {
				i = 0
			}
		}
	})
}

func BenchmarkIndexFindOne(b *testing.B) {
	eachSet(b, func(b *testing.B, x *index, locations []*location) {
		s := locations[len(locations)/2].section
		for range b.N {
			if x.find(s) == nil {
				b.Fatal("not found")
			}
		}
	})
}

func BenchmarkIndexInsertRemove(b *testing.B) {
	eachSet(b, func(b *testing.B, x *index, locations []*location) {
		i := 0
		for range b.N {
			x.remove(locations[i])
			x.insert(locations[i])
			if i++; i == len(locations) {
				i = 0
			}
		}
	})
}

func BenchmarkIndexOverlapNone(b *testing.B) {
	eachSet(b, func(b *testing.B, x *index, locations []*location) {
		dst := make([]*location, 0, 8)
		// In contiguous sets nothing lies behind the last location.
		for _, l := range locations {
			s := section{l.start + 8, 8}
			if dst = x.appendOverlapping(dst[:0], s); len(dst) > 0 {
				continue
			}
			b.ResetTimer()
			for range b.N {
				if len(x.appendOverlapping(dst[:0], s)) != 0 {
					b.Fatal("found")
				}
			}
			return
		}
		b.Fatal("nothing free")
	})
}

func BenchmarkIndexOverlapOne(b *testing.B) {
	eachSet(b, func(b *testing.B, x *index, locations []*location) {
		dst := make([]*location, 0, 8)
		b.ResetTimer()
		i := 0
		for range b.N {
			if len(x.appendOverlapping(dst[:0], locations[i].section)) != 1 {
				b.Fatal("not one")
			}
			if i++; i == len(locations) {
				i = 0
			}
		}
	})
}

// BenchmarkIndexNested has 300 locations of 256 KiB, 1 KiB apart, over 8,000 of
// 8 bytes, 64 bytes apart.
func BenchmarkIndexNested(b *testing.B) {
	var x index
	long := spaced(0xc000000000, 300, 256<<10, 1<<10)
	short := spaced(0xc000000000, 8_000, 8, 64)
	insertAll(&x, long)
	insertAll(&x, short)
	for _, set := range []struct {
		name      string
		locations []*location
	}{{"long", long}, {"short", short}} {
		b.Run("find/"+set.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if x.find(set.locations[i%len(set.locations)].section) == nil {
					b.Fatal("not found")
				}
			}
		})
		b.Run("insertremove/"+set.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				l := set.locations[i%len(set.locations)]
				x.remove(l)
				x.insert(l)
			}
		})
		b.Run("overlap/"+set.name, func(b *testing.B) {
			dst := make([]*location, 0, 10_000)
			found := 0
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				found += len(x.appendOverlapping(dst, set.locations[i%len(set.locations)].section))
			}
			b.ReportMetric(float64(found)/float64(b.N), "found/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(found), "ns/found")
		})
	}
	b.Run("overlap/none", func(b *testing.B) {
		dst := make([]*location, 0, 8)
		b.ReportAllocs()
		b.ResetTimer()
		for range b.N {
			if len(x.appendOverlapping(dst, section{0xc000000000 - 16, 8})) != 0 {
				b.Fatal("found")
			}
		}
	})
}

// BenchmarkIndexHugeOverNothing asks for 1 TiB beside 100,000 short locations.
func BenchmarkIndexHugeOverNothing(b *testing.B) {
	var x index
	insertAll(&x, spaced(0xc000000000, 100_000, 8, 4096))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if len(x.appendOverlapping(nil, section{1 << 45, 1 << 40})) != 0 {
			b.Fatal("found")
		}
	}
}
