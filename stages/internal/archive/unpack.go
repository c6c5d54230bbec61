package archive

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/runexp/runexp/stages"
)

// limits bound the content of an archive.
type limits struct {
	members int
	bytes   int64 // of all members
	member  int64 // bytes of a member
	ratio   int64 // bytes of all members per byte of the archive …
	free    int64 // … unless there are at most this many
}

// CelebA has 202 599 images; PNG and JPEG files hardly get smaller in an archive, BMP files of drawings by
// a factor of 100.
var defaultLimits = limits{members: 1 << 18, bytes: 1 << 37, member: 1 << 30, ratio: 200, free: 1 << 26}

// total returns how many bytes an archive of a size may hold.
func (l limits) total(size int64) int64 { return min(l.bytes, max(l.free, l.ratio*size)) }

// A member is a file, a folder or something else in an archive.
type member struct {
	name string
	mode fs.FileMode
	open func() (io.Reader, error)
}

// An amount counts the unpacked files and bytes.
type amount struct {
	files int
	bytes int64
}

func (n amount) String() string { return fmt.Sprintf("%d files, %d bytes\n", n.files, n.bytes) }

// An unpacking writes members into a folder.
type unpacking struct {
	limits  limits
	done    amount
	root    *os.Root
	members int             // and folders that are named only in the paths of members
	left    int64           // remaining bytes
	folders map[string]bool // folders that were made
}

// folderBytes is the number of bytes that a folder counts as, which is its size on a disk: a short archive
// can name very many folders.
const folderBytes = 4 << 10

// unpack writes the members of an archive into a new folder, without hidden files.
func (l limits) unpack(file, dir string) (n amount, err error) {
	f, err := stages.OpenFile(file)
	if err != nil {
		return n, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return n, err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return n, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return n, err
	}
	defer root.Close()
	x := &unpacking{limits: l, root: root, left: l.total(info.Size()), folders: map[string]bool{".": true}}
	if extension(file) == ".zip" {
		err = readZip(f, info.Size(), l, x.add)
	} else {
		err = readTar(f, extension(file) != ".tar", x.left, x.add)
	}
	return x.done, err
}

// add writes a member.
func (x *unpacking) add(m member) error {
	if x.members++; x.members > x.limits.members {
		return fmt.Errorf("more than %d members and folders", x.limits.members)
	}
	if err := x.write(m); err != nil {
		return fmt.Errorf("the member %.200q %w", m.name, cause(err))
	}
	return nil
}

// makeFolder makes a folder and its parents, and counts them.
func (x *unpacking) makeFolder(name string) error {
	if x.folders[name] {
		return nil
	}
	if err := x.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	x.folders[name] = true
	if x.members++; x.members > x.limits.members {
		return fmt.Errorf("makes more than %d members and folders", x.limits.members)
	}
	if x.left -= folderBytes; x.left < 0 {
		return errBomb
	}
	return x.root.MkdirAll(name, 0o777)
}

func (x *unpacking) write(m member) error {
	name, err := local(m.name)
	if err != nil || hidden(name) {
		return err
	}
	switch {
	case m.mode.IsDir():
		return x.makeFolder(name)
	case !m.mode.IsRegular():
		return fmt.Errorf("is %s: only files and folders are unpacked", stages.Kind(m.mode))
	}
	if err := x.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	r, err := m.open()
	if err != nil {
		return err
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return errors.New("has the name of another one")
	} else if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, min(x.limits.member, x.left)+1))
	x.done.files, x.done.bytes, x.left = x.done.files+1, x.done.bytes+n, x.left-n
	switch err = errors.Join(err, f.Close()); {
	case n > x.limits.member:
		return fmt.Errorf("has more than %d bytes", x.limits.member)
	case x.left < 0:
		return errBomb
	}
	return err
}

var errBomb = errors.New("makes the content too large: far larger than an archive of this size has it")

// longestName is in bytes, deepest in folders.
const (
	longestName = 1 << 10
	deepest     = 64
)

// local returns the clean path of a member inside the archive.
func local(name string) (string, error) {
	switch {
	case name == "":
		return "", errors.New("has no name")
	case len(name) > longestName:
		return "", fmt.Errorf("has a name of %d bytes, more than %d", len(name), longestName)
	case strings.Count(name, "/") > deepest:
		return "", fmt.Errorf("is more than %d folders deep", deepest)
	case !utf8.ValidString(name):
		return "", errors.New("has a name that isn't UTF-8")
	case strings.ContainsRune(name, 0):
		return "", errors.New("has a name with a zero byte")
	case strings.Contains(name, `\`):
		return "", errors.New("has a name with a backslash: folders are separated by slashes")
	case path.IsAbs(name):
		return "", errors.New("has an absolute path")
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return "", errors.New("has a path that leads upwards")
		}
	}
	return path.Clean(name), nil
}

// hidden reports whether a member is skipped: hidden files, and files that macOS adds to archives.
func hidden(name string) bool {
	if name == "." {
		return false
	}
	for element := range strings.SplitSeq(name, "/") {
		if Hidden(element) {
			return true
		}
	}
	return false
}

// Hidden reports whether data sets skip a file or folder by its name.
func Hidden(name string) bool { return strings.HasPrefix(name, ".") || name == "__MACOSX" }

// cause returns an error in words that continue "the member … ".
func cause(err error) error {
	var p *fs.PathError
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("is cut: the archive isn't complete")
	case errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrFormat), errors.As(err, &corrupt):
		return fmt.Errorf("is damaged: %w", err)
	case errors.As(err, &p):
		return fmt.Errorf("can't be written: %w", p.Err)
	}
	return err
}
