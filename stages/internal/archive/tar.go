package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// readTar calls add for the members of a tar file with at most the given number of bytes.
func readTar(f io.Reader, compressed bool, most int64, add func(member) error) error {
	r := io.Reader(bufio.NewReaderSize(f, 1<<18))
	if compressed {
		z, err := gzip.NewReader(r)
		if err != nil {
			return fmt.Errorf("it isn't compressed by gzip: %w", err)
		}
		r = z
	}
	s := &stream{r: r, left: most + most/8} // headers and padding count, even of members that are skipped
	t, last := tar.NewReader(s), "its start"
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF && s.zeros >= 512:
			return s.end()
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("it isn't complete: it ends behind %s", last)
		case errors.Is(err, tar.ErrHeader):
			return fmt.Errorf("it isn't a tar file, or is damaged: no header behind %s", last)
		case err != nil:
			return fmt.Errorf("behind %s: %w", last, damaged(err))
		}
		m := member{h.Name, h.FileInfo().Mode(), func() (io.Reader, error) { return t, nil }}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // git archive puts the commit there
			continue
		case tar.TypeReg, tar.TypeDir, tar.TypeGNUSparse:
		case tar.TypeLink:
			m.mode = fs.ModeSymlink
		default:
			if m.mode.IsRegular() {
				m.mode = fs.ModeIrregular
			}
		}
		if err := add(m); err != nil {
			return err
		}
		last = fmt.Sprintf("the member %.200q", h.Name)
	}
}

// A stream is the bytes of a tar file. It bounds their number, and counts the zeros at the end: a tar file
// ends with two blocks of zeros, and package tar accepts one that is cut before a header as complete.
type stream struct {
	r     io.Reader
	left  int64
	zeros int
}

// end reads the rest of a tar file: zeros up to the end of a record, and of a compressed one the checksum
// and the length.
func (s *stream) end() error {
	b := make([]byte, 32<<10)
	for {
		n, err := s.Read(b)
		switch {
		case len(bytes.Trim(b[:n], "\x00")) > 0:
			return errBehind
		case err == io.EOF:
			return nil
		case errors.Is(err, gzip.ErrHeader):
			return errBehind
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("it isn't complete: its checksum is missing")
		case err != nil:
			return damaged(err)
		}
	}
}

var errBehind = errors.New("something follows the archive's end: if archives were joined, unpack them, and " +
	"name the folder")

// damaged explains a checksum error of gzip.
func damaged(err error) error {
	if errors.Is(err, gzip.ErrChecksum) {
		return errors.New("it is damaged: its checksum is another one")
	}
	return err
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.left -= int64(n); s.left < 0 {
		return 0, errBomb
	}
	if k := n - len(bytes.TrimRight(p[:n], "\x00")); k == n {
		s.zeros += n
	} else {
		s.zeros = k
	}
	return n, err
}
