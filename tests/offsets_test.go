package tests

import (
	"bytes"
	_ "embed"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/vkomp/vkomp"
	"github.com/vkomp/vkomp/tests/vktest"
)

//go:generate glslangValidator --quiet --target-env vulkan1.2 -V -o testdata/bytes.spv testdata/bytes.comp

//go:embed testdata/bytes.spv
var bytesModule []byte

// offsetStorage returns storage for sub-slices. It is aligned for any device and larger than a
// page, so that storage used in place lies on two pages.
func offsetStorage(seed byte) []byte {
	const align, size = 4096, 4096 + 512
	all := make([]byte, size+align)
	first := int(-uintptr(unsafe.Pointer(unsafe.SliceData(all))) % align)
	storage := all[first : first+size]
	for i := range storage {
		storage[i] = seed + byte(13*i)
	}
	return storage
}

// bytesOfWords returns the words as bytes.
func bytesOfWords(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}

func wordsOfBytes(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

const offsets = 256

// near is the distance of the first sub-slice from the middle of the storage: sub-slices lie on
// both sides of a page boundary.
const near = 4096 - 128

// A sub-slice of bytes may begin anywhere, both by itself and inside mapped storage.
func TestByteSlicesAtEveryOffset(t *testing.T) {
	vktest.Long(t)
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		k, err := rt.NewKernel(vkomp.KernelSource{Name: "bytes", SPIRV: bytesModule})
		if err != nil {
			t.Fatal(err)
		}
		const n = 37
		src, dst := offsetStorage(1), offsetStorage(2)
		probe := rt.Target(t.Context(), vkomp.Target{
			Kernel: k, Range: vkomp.Range{X: 1},
			Args: []vkomp.Arg{vkomp.To(src), vkomp.Alloc(dst), vkomp.Value(uint32(1)), vkomp.Value(uint32(0))},
		})
		if errors.Is(probe, vkomp.ErrUnsupported) {
			t.Logf("no kernel sees single bytes: %v", probe)
			return
		}
		succeed(t, probe)
		run := func(t *testing.T, at int, add byte) {
			t.Helper()
			// Source and destination have different offsets.
			from := (7 * at) % offsets
			want := slices.Clone(dst)
			before := slices.Clone(src)
			for i := range n {
				want[near+at+i] = src[near+from+i] + add
			}
			succeed(t, rt.Target(t.Context(), vkomp.Target{
				Kernel: k, Range: vkomp.Range{X: n},
				Args: []vkomp.Arg{
					vkomp.To(src[near+from : near+from+n]), vkomp.ToFrom(dst[near+at : near+at+n]),
					vkomp.Value(uint32(n)), vkomp.Value(uint32(add)),
				},
			}), rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(src), vkomp.From(dst)}}))
			if !bytes.Equal(dst, want) {
				t.Fatalf("at offset %d the destination is wrong from byte %d on", at, firstWrong(dst, want)-near-at)
			}
			if !bytes.Equal(src, before) {
				t.Fatalf("at offset %d the source has changed", at)
			}
		}
		for at := range offsets {
			run(t, at, 5)
		}
		maps := []vkomp.Arg{vkomp.To(src), vkomp.ToFrom(dst)}
		succeed(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: maps}))
		for at := range offsets {
			run(t, at, 9)
		}
		succeed(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: maps}))
	})
}

// Words can be bound at every offset that is a multiple of their size. At other offsets they are
// refused in mapped storage; by themselves they can be bound anywhere.
func TestWordsAtEveryOffset(t *testing.T) {
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		k := newAffine(t, rt)
		const n = 9
		src, dst := offsetStorage(1), offsetStorage(2)
		run := func(t *testing.T, at int, add uint32) error {
			t.Helper()
			from := (20 * at) % offsets
			want := slices.Clone(dst)
			words := slices.Clone(dst[near+at : near+at+4*n])
			affineOnHost(wordsOfBytes(words), wordsOfBytes(slices.Clone(src[near+from:near+from+4*n])), 3, 5, add)
			copy(want[near+at:], words)
			region := vkomp.Target{
				Kernel: k.Kernel, Range: vkomp.Range{X: n},
				Args: []vkomp.Arg{
					vkomp.To(src[near+from : near+from+4*n]), vkomp.ToFrom(dst[near+at : near+at+4*n]),
					vkomp.Value(uint32(n)), vkomp.Value(uint32(3)), vkomp.Value(uint32(5)), vkomp.Value(add),
				},
			}
			if err := rt.Target(t.Context(), region); err != nil {
				return err
			}
			succeed(t, rt.TargetUpdate(t.Context(), vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(dst)}}))
			if !bytes.Equal(dst, want) {
				t.Fatalf("at offset %d the destination is wrong from byte %d on", at, firstWrong(dst, want)-near-at)
			}
			return nil
		}
		for at := range offsets {
			succeed(t, run(t, at, 5))
		}
		maps := []vkomp.Arg{vkomp.To(src), vkomp.ToFrom(dst)}
		succeed(t, rt.TargetEnterData(t.Context(), vkomp.TargetEnterData{Maps: maps}))
		for at := range offsets {
			err := run(t, at, 9)
			if at%4 == 0 && err != nil || at%4 != 0 && !errors.Is(err, vkomp.ErrInvalidLaunch) {
				t.Fatalf("at offset %d of mapped storage: %v", at, err)
			}
		}
		succeed(t, rt.TargetExitData(t.Context(), vkomp.TargetExitData{Maps: maps}))
	})
}

// Copies, fills and updates may begin and end anywhere.
func TestMotionsAtEveryOffset(t *testing.T) {
	onModelPaths(t, func(t *testing.T, rt *vkomp.Runtime) {
		ctx, d := t.Context(), rt.DefaultDevice(t.Context())
		host := offsetStorage(3)
		device := slices.Clone(host)
		p, err := d.Alloc(ctx, len(host))
		succeed(t, err, rt.Memcpy(ctx, p, vkomp.HostPtr(host), len(host)))
		succeed(t, d.AssociatePtr(ctx, vkomp.HostPtr(host), p, len(host), 0))
		check := func(t *testing.T, what string, at int) {
			t.Helper()
			got := make([]byte, len(host))
			succeed(t, rt.Memcpy(ctx, vkomp.HostPtr(got), p, len(got)))
			if !bytes.Equal(got, device) {
				t.Fatalf("%s at offset %d: wrong from byte %d on", what, at, firstWrong(got, device)-near-at)
			}
		}
		for at := range offsets {
			n := 1 + at%70
			lo, hi := near+at, near+at+n
			succeed(t, d.Memset(ctx, p.Add(lo), byte(at), n))
			for i := lo; i < hi; i++ {
				device[i] = byte(at)
			}
			check(t, "a fill", at)
			for i := lo; i < hi; i++ {
				host[i] = byte(3*at + i)
			}
			succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.To(host[lo:hi])}}))
			copy(device[lo:hi], host[lo:hi])
			check(t, "an update", at)
			succeed(t, rt.MemcpyAsync(ctx, p.Add(lo), p.Add(lo-300), n), rt.Taskwait(ctx))
			copy(device[lo:hi], device[lo-300:])
			check(t, "a copy", at)
			want := slices.Clone(host)
			copy(want[lo:hi], device[lo:hi])
			succeed(t, rt.TargetUpdate(ctx, vkomp.TargetUpdate{Motions: []vkomp.Arg{vkomp.From(host[lo:hi])}}))
			if !bytes.Equal(host, want) {
				t.Fatalf("an update from offset %d: wrong from byte %d on", at, firstWrong(host, want)-near-at)
			}
		}
		succeed(t, d.DisassociatePtr(ctx, vkomp.HostPtr(host)), d.Free(ctx, p))
	})
}

func firstWrong(got, want []byte) int {
	for i := range want {
		if got[i] != want[i] {
			return i
		}
	}
	return -1
}
