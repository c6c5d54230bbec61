package archive

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
)

// readZip calls add for the members of a zip file.
func readZip(f io.ReaderAt, size int64, l limits, add func(member) error) error {
	z, err := OpenZip(f, size, l.members)
	if err != nil {
		return err
	}
	if err := whole(f, size, z); err != nil {
		return err
	}
	for _, m := range z.File {
		err := add(member{m.Name, m.Mode(), func() (io.Reader, error) { return OpenMember(m) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenZip opens a zip file of at most this many members.
func OpenZip(f io.ReaderAt, size int64, members int) (*zip.Reader, error) {
	// A member has at least 46 bytes of the directory, less than 128 with a usual path, and takes about 300
	// bytes of memory: the limit on the directory's bytes bounds the memory before members can be counted.
	b := &bounded{f, int64(members) * 128}
	z, err := zip.NewReader(b, size)
	switch {
	case errors.Is(err, errDirectory):
		return nil, fmt.Errorf("its directory has more than %d members, or too long names", members)
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, errors.New("it isn't a zip file, or isn't complete: its end can't be read")
	case err != nil:
		return nil, err
	}
	if n := len(z.File); n > members {
		return nil, fmt.Errorf("it has %d members, more than %d", n, members)
	}
	b.left = math.MaxInt64
	return z, nil
}

// Either of these bits of a member's flags means that it is encrypted.
const encrypted = 1<<0 | 1<<6

// OpenMember opens a member, whose checksum is compared at its end.
func OpenMember(m *zip.File) (io.ReadCloser, error) {
	if m.Flags&encrypted != 0 {
		return nil, errors.New("is encrypted: unpack the archive, and name the folder")
	}
	r, err := m.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return nil, fmt.Errorf("is compressed by zip's method %d: only 0 (store) and 8 (deflate) are read",
			m.Method)
	}
	if err != nil {
		return nil, err
	}
	return &checked{r, m.CRC32, crc32.NewIEEE()}, nil
}

// whole returns an error if the archive isn't the whole file: its first member at the start, and the end of
// its directory at the end. In concatenated archives, a directory has the members of only one.
func whole(f io.ReaderAt, size int64, z *zip.Reader) error {
	end := make([]byte, 4)
	at := size - 22 - int64(len(z.Comment))
	if _, err := f.ReadAt(end, at); err != nil || string(end) != "PK\x05\x06" {
		return errBehind
	}
	first := int64(math.MaxInt64)
	for _, m := range z.File {
		at, err := m.DataOffset()
		if err != nil {
			return cause(err)
		}
		first = min(first, at)
	}
	head := make([]byte, 30)
	_, err := f.ReadAt(head, 0)
	behind := 30 + int64(binary.LittleEndian.Uint16(head[26:])) + int64(binary.LittleEndian.Uint16(head[28:]))
	if len(z.File) > 0 && (err != nil || string(head[:4]) != "PK\x03\x04" || first != behind) {
		return errors.New("something comes before its first member: if archives were joined, unpack them, " +
			"and name the folder")
	}
	return nil
}

// A checked reader fails at the end if its bytes don't have the checksum, even a checksum of 0, which
// package zip treats as absent.
type checked struct {
	io.ReadCloser
	want uint32
	hash hash.Hash32
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.hash.Write(p[:n])
	if err == io.EOF && c.hash.Sum32() != c.want {
		err = zip.ErrChecksum
	}
	return n, err
}

// A bounded reader fails once more bytes were read than its limit.
type bounded struct {
	io.ReaderAt
	left int64
}

var errDirectory = errors.New("too many bytes")

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectory
	}
	return b.ReaderAt.ReadAt(p, off)
}
