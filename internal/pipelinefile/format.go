package pipelinefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrInvalid says that a file is damaged, or is of another device, driver or format.
var ErrInvalid = errors.New("invalid pipeline file")

// MaxBytes is the largest number of bytes of data that a file has.
const MaxBytes = 256 << 20

// Identity says for which device and driver pipelines were compiled.
type Identity struct {
	Vendor, Device uint32   // VkPhysicalDeviceProperties.vendorID and deviceID
	Driver         uint32   // driverVersion, since not every driver changes its UUID with its version
	UUID           [16]byte // pipelineCacheUUID
}

const (
	magic         = "vkompPC1"
	identityBytes = 28
	headerBytes   = len(magic) + identityBytes + 8 + sha256.Size
)

// append appends the identity as a file has it.
func (id Identity) append(b []byte) []byte {
	for _, n := range [...]uint32{id.Vendor, id.Device, id.Driver} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(b, id.UUID[:]...)
}

// encode returns the contents of a file.
func encode(id Identity, data []byte) []byte {
	b := make([]byte, 0, headerBytes+len(data))
	b = id.append(append(b, magic...))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = append(b, sum(id, data)...)
	return append(b, data...)
}

// decode returns the data of a file's contents. The error matches ErrInvalid.
func decode(id Identity, b []byte) ([]byte, error) {
	if len(b) < headerBytes {
		return nil, fmt.Errorf("%w: %d bytes, of %d that a header has", ErrInvalid, len(b), headerBytes)
	}
	rest, is := bytes.CutPrefix(b, []byte(magic))
	if !is {
		return nil, fmt.Errorf("%w: it begins with %q", ErrInvalid, b[:len(magic)])
	}
	if rest, is = bytes.CutPrefix(rest, id.append(nil)); !is {
		return nil, fmt.Errorf("%w: it is of another device or driver", ErrInvalid)
	}
	size, checksum, data := binary.LittleEndian.Uint64(rest), rest[8:8+sha256.Size], rest[8+sha256.Size:]
	if size != uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes of data, of %d", ErrInvalid, len(data), size)
	}
	if !bytes.Equal(checksum, sum(id, data)) {
		return nil, fmt.Errorf("%w: its checksum does not match", ErrInvalid)
	}
	return data, nil
}

// sum returns the checksum of a file.
func sum(id Identity, data []byte) []byte {
	h := sha256.New()
	h.Write(id.append(nil))
	h.Write(data)
	return h.Sum(nil)
}
