package npy

import (
	"archive/zip"
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/runexp/runexp/stages"
	"github.com/runexp/runexp/stages/internal/archive"
)

// An Archive is an open .npz file, whose arrays are read one at a time.
type Archive struct {
	io.Closer
	entries map[string]*zip.File // by the array's name
}

// OpenArchive opens the .npz file at path.
func OpenArchive(path string) (*Archive, error) {
	f, err := stages.OpenFile(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	a, err := newArchive(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: not an .npz archive: %w", path, err)
	}
	a.Closer = f
	return a, nil
}

// maxArrays bounds the arrays of an archive.
const maxArrays = 1 << 18

func newArchive(r io.ReaderAt, size int64) (*Archive, error) {
	z, err := archive.OpenZip(r, size, maxArrays)
	if err != nil {
		return nil, err
	}
	a := &Archive{entries: map[string]*zip.File{}}
	for _, f := range z.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if a.entries[name] != nil {
			return nil, fmt.Errorf("it has two arrays called %q", name)
		}
		a.entries[name] = f
	}
	return a, nil
}

// Names returns the names of the arrays, sorted.
func (a *Archive) Names() []string { return slices.Sorted(maps.Keys(a.entries)) }

// Read reads the array called name.
func (a *Archive) Read(name string) (Array, error) {
	f := a.entries[name]
	if f == nil {
		return Array{}, fmt.Errorf("there is no array %q", name)
	}
	array, err := readEntry(f)
	if err != nil {
		return Array{}, fmt.Errorf("array %q: %w", name, err)
	}
	return array, nil
}

// readEntry reads the array of an entry, which contains nothing else.
func readEntry(f *zip.File) (a Array, err error) {
	r, err := archive.OpenMember(f)
	if err != nil {
		return a, err
	}
	entry := bufio.NewReader(r)
	if a, err = Read(entry); err == nil {
		// The checksum of an entry is compared only at its end.
		var more int64
		if more, err = io.Copy(io.Discard, io.LimitReader(entry, 1)); more > 0 {
			err = errors.New("more bytes follow the array")
		}
	}
	return a, errors.Join(err, r.Close())
}
