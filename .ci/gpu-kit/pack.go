package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// pieceSize is the most bytes of a piece. Where the project's files travel along with each piece, both fit
// into 64 MiB.
const pieceSize = 10_000_000

// A set is an archive cut into pieces.
type set struct {
	name   string
	sum    string // SHA-256 of the archive
	size   int64
	pieces []piece
}

func (s set) Name() string    { return s.name }
func (s set) Pieces() []piece { return s.pieces }
func (s set) Last() piece     { return s.pieces[len(s.pieces)-1] }

type piece struct {
	name string
	sum  string
}

func (p piece) String() string { return p.name }

// pack writes files as NAME.tar.xz, cut into NAME.01, NAME.02, … of at most so many bytes in a folder.
func pack(name string, files []file, out string, limit int) (set, error) {
	c := &cutter{dir: out, limit: limit, set: set{name: name}, whole: sha256.New()}
	xz := exec.Command("xz", "-6", "-T0", "-c")
	xz.Stdout, xz.Stderr = c, os.Stderr
	in, err := xz.StdinPipe()
	if err != nil {
		return c.set, err
	}
	if err := xz.Start(); err != nil {
		return c.set, fmt.Errorf("compressing needs xz: %w", err)
	}
	err = archive(in, files)
	err = errors.Join(err, in.Close(), xz.Wait(), c.close())
	c.set.sum = hex.EncodeToString(c.whole.Sum(nil))
	return c.set, err
}

// archive writes files as a tar archive, whose bytes depend on them alone.
func archive(w io.Writer, files []file) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		r, size, err := f.open()
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if executable(f.path) {
			mode = 0o755
		}
		err = t.WriteHeader(&tar.Header{Name: f.path, Mode: mode, Size: size,
			ModTime: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err == nil {
			_, err = io.Copy(t, r)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	return t.Close()
}

// A cutter writes pieces.
type cutter struct {
	dir   string
	limit int // bytes of a piece
	set   set
	whole hash.Hash

	file *os.File // the current piece
	part hash.Hash
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if c.left == 0 {
			if err := c.next(); err != nil {
				return written, err
			}
		}
		n := min(len(b), c.left)
		if _, err := c.file.Write(b[:n]); err != nil {
			return written, err
		}
		c.whole.Write(b[:n])
		c.part.Write(b[:n])
		b, written, c.left, c.set.size = b[n:], written+n, c.left-n, c.set.size+int64(n)
	}
	return written, nil
}

// next begins a piece.
func (c *cutter) next() (err error) {
	if err := c.close(); err != nil {
		return err
	}
	name := fmt.Sprintf("%s.%02d", c.set.name, len(c.set.pieces)+1)
	c.file, err = os.Create(filepath.Join(c.dir, name))
	c.set.pieces = append(c.set.pieces, piece{name: name})
	c.part, c.left = sha256.New(), c.limit
	return err
}

// close ends the current piece.
func (c *cutter) close() error {
	if c.file == nil {
		return nil
	}
	c.set.pieces[len(c.set.pieces)-1].sum = hex.EncodeToString(c.part.Sum(nil))
	f := c.file
	c.file = nil
	return f.Close()
}
