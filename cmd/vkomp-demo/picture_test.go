package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPictureKeepsEveryPixelThroughPNG(t *testing.T) {
	// Opaque, half transparent, fully transparent with a colour, and primaries.
	want := picture{width: 3, height: 2, pixels: []uint32{
		0xff332211, 0x80ffee00, 0x00123456,
		0xff0000ff, 0xff00ff00, 0xffff0000,
	}}
	var file bytes.Buffer
	if err := want.encodePNG(&file); err != nil {
		t.Fatal(err)
	}
	got, err := decodePicture(&file, "six.png")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(picture{})); diff != "" {
		t.Errorf("picture (-want +got):\n%s", diff)
	}
}

func TestRedIsTheLowByte(t *testing.T) {
	drawn := image.NewNRGBA(image.Rect(5, 7, 6, 8)) // an origin of its own
	drawn.SetNRGBA(5, 7, color.NRGBA{R: 1, G: 2, B: 3, A: 255})
	var file bytes.Buffer
	if err := png.Encode(&file, drawn); err != nil {
		t.Fatal(err)
	}
	got, err := decodePicture(&file, "one.png")
	if err != nil {
		t.Fatal(err)
	}
	if got.pixels[0] != 0xff030201 {
		t.Errorf("pixel %08x, want ff030201", got.pixels[0])
	}
}

func TestJPEGIsRead(t *testing.T) {
	drawn := image.NewGray(image.Rect(0, 0, 9, 4))
	for i := range drawn.Pix {
		drawn.Pix[i] = 200
	}
	path := filepath.Join(t.TempDir(), "grey.jpg")
	if err := writeFile(path, func(w io.Writer) error { return jpeg.Encode(w, drawn, nil) }); err != nil {
		t.Fatal(err)
	}
	got, err := readPicture(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.width != 9 || got.height != 4 || got.pixels[35] != 0xffc8c8c8 {
		t.Errorf("%d×%d, last pixel %08x", got.width, got.height, got.pixels[35])
	}
}

func TestUnreadablePicturesAreRefusedWithNameAndReason(t *testing.T) {
	// header returns the beginning of a PNG that claims to have that size.
	header := func(width, height uint32) []byte {
		chunk := binary.BigEndian.AppendUint32([]byte("IHDR"), width)
		chunk = binary.BigEndian.AppendUint32(chunk, height)
		chunk = append(chunk, 8, 2, 0, 0, 0)
		file := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
		file = append(file, chunk...)
		return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(chunk))
	}
	flipped := bytes.Clone(astronaut)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "neither PNG nor JPEG", nil},
		{"text", "neither PNG nor JPEG", []byte("not a picture")},
		{"just a signature", "unexpected EOF", []byte("\x89PNG\r\n\x1a\n")},
		{"half", "not enough pixel data", astronaut[:len(astronaut)/2]},
		{"a flipped bit", "invalid", flipped},
		{"no rows", "non-positive dimension", header(5, 0)},
		{"a bomb", "1048576×1048576 pixels would take 65536.0 GiB, of at most 2", header(1<<20, 1<<20)},
		{"a large one", "8192×8192 pixels would take 4.0 GiB, of at most 2", header(8192, 8192)},
		{"the largest", "unexpected EOF", header(8192, 4096)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "picture.png")
			if err := os.WriteFile(path, c.file, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := readPicture(path)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s and %q in it", err, path, c.want)
			}
		})
	}
}

// endless is an infinite file without a picture, such as /dev/zero.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	clear(b)
	e.read += len(b)
	return len(b), nil
}

func TestFileWithoutEndIsRefusedByItsBeginning(t *testing.T) {
	file := &endless{}
	_, err := decodePicture(file, "zero")
	if err == nil || !strings.Contains(err.Error(), "neither PNG nor JPEG") {
		t.Errorf("error %v, want neither PNG nor JPEG", err)
	}
	if file.read > 1<<16 {
		t.Errorf("%d bytes were read to see it", file.read)
	}
}

func TestFileThatCannotBeWrittenWholeLeavesTheOldOne(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "picture.png")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("lost the thread")
	err := writeFile(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("half of the n")); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want %v and the file's name", err, failure)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the file holds %q (%v), want what was there", got, err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("files %v (%v), want the old one alone", left, err)
	}
}

func TestReplacedFileKeepsItsPermissionsAndLinksStay(t *testing.T) {
	folder := t.TempDir()
	write := func(name string) {
		t.Helper()
		err := writeFile(filepath.Join(folder, name), func(w io.Writer) error {
			_, err := io.WriteString(w, "new")
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	at := func(name string) os.FileInfo {
		t.Helper()
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if err := os.Mkdir(filepath.Join(folder, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"like": 0o666, "private": 0o600} {
		file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE, mode)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
	}
	for name, to := range map[string]string{"link": "other", "other": "below/../private", "dangling": "below/absent", "loop": "loop", "null": os.DevNull} {
		if err := os.Symlink(to, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fresh", "link", "dangling"} {
		write(name)
	}
	for name, want := range map[string]os.FileMode{"fresh": at("like").Mode(), "below/absent": at("like").Mode(), "private": 0o600, "link": os.ModeSymlink, "other": os.ModeSymlink, "dangling": os.ModeSymlink} {
		info := at(name)
		if mode := info.Mode(); mode != want && mode.Type() != os.ModeSymlink || mode.Type() != want.Type() {
			t.Errorf("%s: mode %v, want %v", name, mode, want)
		}
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(text) != "new" {
			t.Errorf("%s: %q (%v), want what was written", name, text, err)
		}
	}
	for name, want := range map[string]string{"loop": "too many levels of symbolic links", "null": "it is no regular file", "below": "it is a folder"} {
		path := filepath.Join(folder, name)
		if err := writeFile(path, func(io.Writer) error { return nil }); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", name, err, want)
		}
	}
}

func TestDefaultPictureIsTheAstronaut(t *testing.T) {
	p, err := readPicture("")
	if err != nil {
		t.Fatal(err)
	}
	if p.width != 512 || p.height != 512 {
		t.Errorf("%d×%d, want 512×512", p.width, p.height)
	}
	credits, err := os.ReadFile("data/CREDITS")
	if err != nil || !strings.Contains(string(credits), "NASA") {
		t.Errorf("credits %q (%v), want NASA named", credits, err)
	}
}
