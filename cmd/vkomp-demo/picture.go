package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/draw"
	_ "image/jpeg" // registers the decoder
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// astronaut is the default picture; data/CREDITS has its origin.
//
//go:embed data/astronaut.png
var astronaut []byte

// The header of a file may claim any size, and a small file can hold a large picture, so the
// memory is limited. A pixel takes pixelBytes: in the decoded picture, in the filter's images,
// and in their storage on a device that shares the host's memory.
const (
	pixelBytes       = 64
	mostPictureBytes = 2 << 30
)

// picture is width × height pixels row by row, each RGBA8 with red in the low byte and colours that
// are not multiplied by alpha.
type picture struct {
	width, height int
	pixels        []uint32
}

// readPicture reads a PNG or JPEG file, or the astronaut if path is empty.
func readPicture(path string) (picture, error) {
	if path == "" {
		return decodePicture(bytes.NewReader(astronaut), "astronaut.png")
	}
	file, err := os.Open(path)
	if err != nil {
		return picture{}, fmt.Errorf("cannot read the picture: %w", err)
	}
	defer file.Close()
	r := bufio.NewReader(file)
	if _, err := r.Peek(1); err != nil && err != io.EOF {
		return picture{}, fmt.Errorf("cannot read the picture: %w", err)
	}
	return decodePicture(r, path)
}

// decodePicture reads only the header of a file that it refuses, because a device file may be
// infinite.
func decodePicture(file io.Reader, name string) (picture, error) {
	fail := func(err error) (picture, error) {
		return picture{}, fmt.Errorf("cannot read the picture %s: %w", name, err)
	}
	var head bytes.Buffer
	config, _, err := image.DecodeConfig(io.TeeReader(file, &head))
	if errors.Is(err, image.ErrFormat) {
		err = errors.New("neither PNG nor JPEG")
	}
	if err != nil {
		return fail(err)
	}
	if config.Width > 0 && config.Height > mostPictureBytes/pixelBytes/config.Width {
		const gib = 1 << 30
		return fail(fmt.Errorf("%d×%d pixels would take %.1f GiB, of at most %d", config.Width, config.Height,
			float64(config.Width)*float64(config.Height)*pixelBytes/gib, mostPictureBytes/gib))
	}
	decoded, _, err := image.Decode(io.MultiReader(&head, file))
	if err != nil {
		return fail(err)
	}
	bounds := decoded.Bounds()
	straight := image.NewNRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	draw.Draw(straight, straight.Rect, decoded, bounds.Min, draw.Src)
	p := picture{width: bounds.Dx(), height: bounds.Dy(), pixels: make([]uint32, bounds.Dx()*bounds.Dy())}
	for i := range p.pixels {
		b := straight.Pix[4*i : 4*i+4]
		p.pixels[i] = uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	}
	return p, nil
}

// encodePNG writes the picture.
func (p *picture) encodePNG(w io.Writer) error {
	straight := image.NewNRGBA(image.Rect(0, 0, p.width, p.height))
	for i, pixel := range p.pixels {
		copy(straight.Pix[4*i:], []byte{byte(pixel), byte(pixel >> 8), byte(pixel >> 16), byte(pixel >> 24)})
	}
	return png.Encode(w, straight)
}

// checkOutput returns an error if the path of a result has none of the extensions or if no file can
// be written there, so that this is known before the work is done.
func checkOutput(flag, path string, extensions ...string) error {
	if !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))) {
		return fmt.Errorf("-%s %s: the extension must be %s", flag, path, strings.Join(extensions, " or "))
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("-%s %s: %w", flag, path, err)
	}
	if !folder.IsDir() {
		return fmt.Errorf("-%s %s: %s is no folder", flag, path, filepath.Dir(path))
	}
	if err := checkWritable(path); err != nil {
		return fmt.Errorf("-%s %s: %w", flag, path, err)
	}
	return nil
}

// checkWritable returns why writeFile could not write a file, or nil.
func checkWritable(path string) error {
	path, _, err := destination(path)
	if err != nil {
		return err
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// destination returns the file that a path means, which is another one if the path is a symbolic
// link, and what is there; nil if nothing is. A result can replace only a regular file.
func destination(path string) (string, os.FileInfo, error) {
	const mostLinks = 40 // as many as Linux follows
	for range mostLinks {
		at, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return path, nil, nil
		case err != nil:
			return "", nil, err
		case at.IsDir():
			return "", nil, errors.New("it is a folder")
		case at.Mode().IsRegular():
			return path, at, nil
		case at.Mode()&os.ModeSymlink == 0:
			return "", nil, errors.New("it is no regular file")
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(link) {
			folder, _ := filepath.Split(path)
			link = folder + link // not cleaned: the folder may be a link too
		}
		path = link
	}
	return "", nil, &os.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

// createBeside creates a file with another name in the same folder, with the permissions that the
// umask leaves to a new file.
func createBeside(path string) (*os.File, error) {
	folder, name := filepath.Split(path)
	return os.OpenFile(folder+"."+name+"."+rand.Text()[:10], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// writeFile writes a file with encode. If the file cannot be written completely, it does not
// appear, and an earlier file with that name is kept. A file that it replaces passes its permissions
// on.
func writeFile(path string, encode func(io.Writer) error) (err error) {
	to, before, err := destination(path)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	file, err := createBeside(to)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s: %w", path, errors.Join(err, os.Remove(file.Name())))
		}
	}()
	err = encode(file)
	if before != nil {
		err = errors.Join(err, file.Chmod(before.Mode().Perm()))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), to)
}
