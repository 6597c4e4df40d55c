package vkomp

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// savedVersion is the version of the format of saved taskgraphs. Files of version 1 are the same, but do not have what
// was absent before the replay.
const savedVersion = 2

// Names of the entries of a saved taskgraph that every one has. The last has the SHA-256 of all that
// come before.
const (
	savedGraphFile = "graph.json"
	savedSumFile   = "sha256"
)

// savedGraph is a saved taskgraph: graph.json, with the bytes of the other entries.
type savedGraph struct {
	Version int    `json:"version"`
	Label   string `json:"label,omitempty"`
	// Failure is the failure of the replay, if it failed.
	Failure    string                    `json:"failure,omitempty"`
	Devices    savedList[savedOn]        `json:"devices"`
	Kernels    savedList[savedKernel]    `json:"kernels"`
	Storage    savedList[savedStorage]   `json:"storage"`
	Present    savedList[savedBlock]     `json:"present"`
	Memory     savedList[savedMemory]    `json:"memory"`
	Constructs savedList[savedConstruct] `json:"constructs"`
}

// savedOn says for people what a device was.
type savedOn struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
	Driver string `json:"driver"`
}

type savedKernel struct {
	Name       string            `json:"name"`
	Entry      string            `json:"entry"`
	Specialize map[uint32]uint32 `json:"specialize,omitempty"`
	code       []byte
}

// savedBytes are bytes before and after the replay. They are nil for what was not present then.
type savedBytes struct{ bytes [2][]byte }

// savedStorage is host storage whose address is Align more than a multiple of savedAlign.
type savedStorage struct {
	Size  uint64 `json:"size"`
	Align uint64 `json:"align"`
	savedBytes
}

const savedAlign = 4096

// savedBlock is host storage that was present on a device before the replay or after it. Count is its reference count
// before the replay, unless that was infinite.
type savedBlock struct {
	Device int `json:"device"`
	savedPlace
	Count    uint32 `json:"count,omitempty"`
	Infinite bool   `json:"infinite,omitempty"`
	// Gone says that it was absent after the replay.
	Gone bool `json:"gone,omitempty"`
	savedBytes
}

// absent reports whether the storage was absent before the replay.
func (b *savedBlock) absent() bool { return b.Count == 0 && !b.Infinite }

// savedMemory is memory from Device.Alloc.
type savedMemory struct {
	Device int    `json:"device"`
	Size   uint64 `json:"size"`
	savedBytes
}

// savedPlace is a part of host storage. Storage is -1 for a slice of no bytes.
type savedPlace struct {
	Storage int    `json:"storage"`
	Offset  uint64 `json:"offset"`
	Size    uint64 `json:"size"`
}

// savedPointer points into memory, Offset bytes after its beginning.
type savedPointer struct {
	Memory int    `json:"memory"`
	Offset uint64 `json:"offset"`
}

// Kinds of constructs in a saved taskgraph.
const (
	savedTarget   = "target"
	savedEnter    = "target enter data"
	savedExit     = "target exit data"
	savedUpdate   = "target update"
	savedMemcpy   = "memcpy"
	savedMemset   = "memset"
	savedTaskwait = "taskwait nowait"
)

// savedConstruct is a construct. Fields that its kind does not have are zero.
type savedConstruct struct {
	Kind     string                 `json:"kind"`
	Label    string                 `json:"label,omitempty"`
	Device   int                    `json:"device"`
	Kernel   int                    `json:"kernel"`
	Range    [3]uint64              `json:"range"`
	Priority int                    `json:"priority,omitempty"`
	Items    savedList[savedItem]   `json:"items,omitempty"`
	Values   savedList[savedValue]  `json:"values,omitempty"`
	Dst      *savedEnd              `json:"dst,omitempty"`
	Src      *savedEnd              `json:"src,omitempty"`
	Bytes    uint64                 `json:"bytes,omitempty"`
	Value    byte                   `json:"value,omitempty"`
	Depend   savedList[savedDepend] `json:"depend,omitempty"`
}

// savedItem is an item of a clause: host storage, or memory of a device.
type savedItem struct {
	savedPlace
	Type     int  `json:"type"`
	Always   bool `json:"always,omitempty"`
	Delete   bool `json:"delete,omitempty"`
	Presence int  `json:"presence,omitempty"`
	// Implicit says that the item is an Implicit. Memory is not nil for an IsDevicePtr or, with Bound,
	// a HasDeviceAddr of Size bytes.
	Implicit bool          `json:"implicit,omitempty"`
	Bound    bool          `json:"bound,omitempty"`
	Memory   *savedPointer `json:"memory,omitempty"`
}

// savedValue is a value, or an address.
type savedValue struct {
	Bytes  []byte        `json:"bytes,omitempty"`
	Host   *savedPlace   `json:"host,omitempty"`
	Memory *savedPointer `json:"memory,omitempty"`
}

// savedEnd is an end of a copy or a fill.
type savedEnd struct {
	Host   *savedPlace   `json:"host,omitempty"`
	Memory *savedPointer `json:"memory,omitempty"`
}

type savedDepend struct {
	Kind int `json:"kind"`
	savedPlace
}

// savedList is a list in graph.json. In a file that is not trusted an element could take two bytes of text and
// hundreds of memory: {}. So it is refused if its text is shorter than that of any element which SaveTaskgraph writes.
type savedList[T any] []T

// leastElement is the least size of an element in bytes where all fields can be absent.
const leastElement = 16

// UnmarshalJSON implements json.Unmarshaler.
func (l *savedList[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	if string(text) == "null" {
		return nil
	}
	var zero T
	shortest, err := json.Marshal(&zero)
	if err != nil {
		return err
	}
	least := int64(max(len(shortest), leastElement))
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return fmt.Errorf("%.20s is no list", text)
	}
	for d.More() {
		from := d.InputOffset()
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		if d.InputOffset()-from < least {
			return fmt.Errorf("%s is no element of such a list", bytes.TrimLeft(text[from:d.InputOffset()], ", \n"))
		}
		*l = append(*l, element)
	}
	return nil
}

// savedEntry is an entry of the archive besides graph.json. size is what graph.json says of it.
type savedEntry struct {
	name  string
	bytes *[]byte
	size  int64 // -1 if the entry says it
}

// entries returns the entries for the bytes of the graph.
func (g *savedGraph) entries() (all []savedEntry) {
	for i := range g.Kernels {
		all = append(all, savedEntry{fmt.Sprintf("kernels/%d.spv", i), &g.Kernels[i].code, -1})
	}
	both := func(folder string, i int, of *savedBytes, size uint64, absent [2]bool) {
		for k, when := range [...]string{"before", "after"} {
			if !absent[k] {
				all = append(all, savedEntry{fmt.Sprintf("%s/%d.%s", folder, i, when), &of.bytes[k], int64(min(size, math.MaxInt64))})
			}
		}
	}
	for i := range g.Storage {
		both("storage", i, &g.Storage[i].savedBytes, g.Storage[i].Size, [2]bool{})
	}
	for i := range g.Present {
		b := &g.Present[i]
		both("present", i, &b.savedBytes, b.Size, [2]bool{b.absent(), b.Gone})
	}
	for i := range g.Memory {
		both("memory", i, &g.Memory[i].savedBytes, g.Memory[i].Size, [2]bool{})
	}
	return all
}

// write writes the file.
func (g *savedGraph) write(w io.Writer) error {
	for i := range g.Present {
		g.Present[i].Gone = g.Present[i].bytes[1] == nil
	}
	text, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return err
	}
	var file bytes.Buffer
	archive, sum := zip.NewWriter(&file), sha256.New()
	put := func(name string, content []byte) error {
		// Not compressed, so that a reader can allocate no more than the file has.
		e, err := archive.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		_, err = e.Write(content)
		return err
	}
	err = put(savedGraphFile, text)
	for _, e := range g.entries() {
		err = errors.Join(err, put(e.name, *e.bytes))
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if err := errors.Join(err, put(savedSumFile, []byte(digest)), archive.Close()); err != nil {
		return err
	}
	n, err := w.Write(file.Bytes())
	if err == nil && n < file.Len() {
		err = io.ErrShortWrite
	}
	return err
}

// SavedTaskgraph is a taskgraph that [Runtime.SaveTaskgraph] has written to a file. It may be run several
// times, also concurrently.
type SavedTaskgraph struct{ graph savedGraph }

// ReadSavedTaskgraph reads a file that [Runtime.SaveTaskgraph] has written. The error is an
// [ErrInvalidArgument] if it is none, or its entries were changed. The file is not trusted: what is
// allocated to read it is a small multiple of its size. Its kernels are code, however, that
// [SavedTaskgraph.Run] gives to the driver: see [KernelSource].
func ReadSavedTaskgraph(r io.ReaderAt, size int64) (*SavedTaskgraph, error) {
	s := new(SavedTaskgraph)
	if err := s.graph.read(r, size); err != nil {
		return nil, fmt.Errorf("vkomp: read saved taskgraph: %w: %w", ErrInvalidArgument, err)
	}
	return s, nil
}

func (g *savedGraph) read(r io.ReaderAt, size int64) error {
	if r == nil {
		return errors.New("no reader")
	}
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	files, sum := archive.File, sha256.New()
	next := func(name string, want int64) ([]byte, error) {
		if len(files) == 0 || files[0].Name != name {
			return nil, fmt.Errorf("there is no %s where it should be", name)
		}
		f := files[0]
		files = files[1:]
		n := f.UncompressedSize64
		if f.Method != zip.Store || n > uint64(size) || n != f.CompressedSize64 || want >= 0 && n != uint64(want) {
			return nil, fmt.Errorf("%s has not the size that it should have", name)
		}
		e, err := f.Open()
		if err != nil {
			return nil, err
		}
		content := make([]byte, n)
		_, err = io.ReadFull(e, content)
		if err == nil {
			// The checksum is compared at the end of the entry.
			if _, err = io.Copy(io.Discard, e); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		return content, errors.Join(err, e.Close())
	}
	text, err := next(savedGraphFile, -1)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, g); err != nil {
		return fmt.Errorf("%s: %w", savedGraphFile, err)
	}
	if g.Version < 1 || g.Version > savedVersion {
		return fmt.Errorf("the file has version %d of the format, this vkomp reads versions 1 to %d", g.Version, savedVersion)
	}
	if len(g.Kernels)+len(g.Storage)+len(g.Present)+len(g.Memory) > len(files) {
		return fmt.Errorf("%s has more than there are entries", savedGraphFile)
	}
	total := uint64(0)
	for _, e := range g.entries() {
		if *e.bytes, err = next(e.name, e.size); err != nil {
			return err
		}
		// Entries can share bytes of the file.
		if total += uint64(len(*e.bytes)); total > uint64(size) {
			return errors.New("its entries have more bytes than the file")
		}
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	if said, err := next(savedSumFile, int64(len(digest))); err != nil || string(said) != digest {
		return errors.Join(errors.New("its SHA-256 is not that of its contents"), err)
	}
	if len(files) > 0 {
		return fmt.Errorf("there is a further entry %q", files[0].Name)
	}
	return g.check()
}
