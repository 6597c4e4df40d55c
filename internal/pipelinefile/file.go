package pipelinefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is the place of the file of one device and driver. Its methods may be called concurrently, and
// by several programs.
type File struct {
	folder, path string
	id           Identity
}

// In returns the file of a device and driver in a folder. Neither need exist.
func In(folder string, id Identity) *File {
	return &File{folder, filepath.Join(folder, fmt.Sprintf("%x.pipelines", id.append(nil))), id}
}

// usable returns an error unless the folder can be trusted.
func (f *File) usable() error {
	info, err := os.Stat(f.folder)
	if err != nil {
		return err
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%s: %w", f.folder, err)
	}
	return nil
}

// Path returns where the file is, or will be.
func (f *File) Path() string { return f.path }

// Read returns the data of the file, nil without an error if there is no file. The error matches
// ErrInvalid for a file whose data must not be used.
func (f *File) Read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = f.usable()
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // reading it could wait for a writer
		return nil, fmt.Errorf("%s: %w: it is no regular file", f.path, ErrInvalid)
	}
	if most := int64(headerBytes) + MaxBytes; info.Size() > most {
		return nil, fmt.Errorf("%s: %w: %d bytes, of at most %d", f.path, ErrInvalid, info.Size(), most)
	}
	b, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	data, err := decode(f.id, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return data, nil
}

// Write replaces the file, and creates the folder if there is none. At any time the file has the data
// of one Write. More than MaxBytes are an error that matches ErrInvalid.
func (f *File) Write(data []byte) (err error) {
	if len(data) > MaxBytes {
		return fmt.Errorf("%s: %w: %d bytes of data", f.path, ErrInvalid, len(data))
	}
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	if err := f.usable(); err != nil {
		return err
	}
	// Of mode 0600, and with a name that no other program has.
	file, err := os.CreateTemp(f.folder, "*.partial")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(encode(f.id, data))
	if err == nil {
		// Otherwise the file can be empty after a power failure: the name may reach the disk first.
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), f.path)
}
