package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/runexp/runexp/stages"
)

// InlineMax is the size in bytes up to which a payload has no place in an object: a score, a label or a
// target is part of the records that mention it.
const InlineMax = 64

// smallObject is the size in bytes below which an object isn't worth a file, which takes a block of the disk,
// and a look at that file on every run.
const smallObject = 4096

// An ObjectRef names a file of objects/, by the SHA-256 of its bytes.
type ObjectRef struct {
	Digest stages.Digest `json:"object"`
	Size   int64         `json:"size"`
}

// A Ref is the place of a payload: the record itself, an object or, if its bytes weren't kept, nowhere.
type Ref struct {
	Digest stages.Digest // SHA-256 of the payload
	Object ObjectRef     // zero when the payload isn't in an object
	Off    int64         // where it begins in the object
	Len    int64
	Inline []byte // the payload itself, if it's in the record; empty, not nil, for an empty payload
}

// Kept reports whether the payload's bytes are somewhere.
func (r Ref) Kept() bool { return r.Inline != nil || r.Object != ObjectRef{} }

// Dropped returns r without the place of its bytes, as a record has it under "store: none". Payloads in the
// record itself stay.
func (r Ref) Dropped() Ref {
	r.Object, r.Off = ObjectRef{}, 0
	return r
}

// A Miss is the reason why something recorded can't be read. At worst it is computed again.
type Miss struct{ Reason string }

func (m *Miss) Error() string { return m.Reason }

func miss(format string, args ...any) *Miss { return &Miss{fmt.Sprintf(format, args...)} }

// Put stores payloads and returns their places, in order: those up to InlineMax in the refs themselves, the
// others together in one object, equal ones once. Nothing refers to the object until it's recorded. One that
// would be smaller than smallObject isn't made: its payloads are inline too.
func (s *Store) Put(payloads [][]byte) ([]Ref, error) {
	refs := make([]Ref, len(payloads))
	offs := make(map[stages.Digest]int64, len(payloads)) // in the object
	var pieces [][]byte
	var size int64
	for i, p := range payloads {
		refs[i] = Ref{Digest: stages.Sum(p), Len: int64(len(p))}
		if _, again := offs[refs[i].Digest]; again || len(p) <= InlineMax {
			continue
		}
		offs[refs[i].Digest] = size
		size += int64(len(p))
		pieces = append(pieces, p)
	}
	inlineMax := smallObject
	var object ObjectRef
	if size >= smallObject {
		var err error
		if object, err = s.putObject(pieces); err != nil {
			return nil, err
		}
		inlineMax = InlineMax
	}
	for i, p := range payloads {
		if r := &refs[i]; len(p) <= inlineMax {
			r.Inline = append([]byte{}, p...)
		} else {
			r.Off, r.Object = offs[r.Digest], object
		}
	}
	return refs, nil
}

// putObject writes pieces as one object unless it exists. A file of the wrong size is replaced.
func (s *Store) putObject(pieces [][]byte) (object ObjectRef, err error) {
	h := sha256.New()
	for _, b := range pieces {
		h.Write(b)
		object.Size += int64(len(b))
	}
	object.Digest = stages.Digest(h.Sum(nil))
	s.damageMu.RLock()
	defer s.damageMu.RUnlock()
	if err := s.layer.put(object, pieces); err != nil {
		return object, err
	}
	s.remember(object, nil)
	return object, nil
}

// Load returns the payload that r refers to. Its bytes have the digest of r, or the error is a [*Miss]. A
// object whose bytes were altered is moved to damaged/, so that putting it again writes it.
func (s *Store) Load(r Ref) ([]byte, error) {
	if r.Inline != nil {
		if stages.Sum(r.Inline) != r.Digest {
			return nil, miss("payload %s is altered", r.Digest.Short())
		}
		return r.Inline, nil
	}
	if !r.Kept() {
		return nil, miss("the bytes of payload %s weren't kept", r.Digest.Short())
	}
	b, err := s.readObject(r)
	if err != nil {
		return s.distrust(r)
	}
	return b, nil
}

// readObject reads and checks only the bytes of the object to which r refers.
func (s *Store) readObject(r Ref) ([]byte, error) {
	if r.Off < 0 || r.Len < 0 || r.Off > r.Object.Size-r.Len {
		return nil, miss("the record of payload %s is altered", r.Digest.Short())
	}
	f, err := s.layer.open(r.Object)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if m := objectMiss(r.Object, f.Size(), nil); m != nil {
		return nil, m
	}
	b := make([]byte, r.Len)
	if _, err := f.ReadAt(b, r.Off); err != nil {
		return nil, err
	}
	if stages.Sum(b) != r.Digest {
		return nil, miss("object %s is altered", r.Object.Digest.Short())
	}
	return b, nil
}

// objectBytes are the bytes of an object, in a file of their own or in that of a share.
type objectBytes struct {
	*io.SectionReader
	close func() error
}

// objectMiss returns why an object can't be read, given the size of its file or the error of finding it; nil
// if these show no damage.
func objectMiss(object ObjectRef, size int64, err error) *Miss {
	switch name := object.Digest.Short(); {
	case errors.Is(err, fs.ErrNotExist):
		return miss("object %s is missing", name)
	case err != nil:
		return miss("object %s can't be read: %v", name, err)
	case size < object.Size:
		return miss("object %s is truncated: %d of %d bytes", name, size, object.Size)
	case size > object.Size:
		return miss("object %s is altered: %d bytes instead of %d", name, size, object.Size)
	}
	return nil
}

// distrust moves the object of r, which couldn't be read, to damaged/ unless its bytes are what its name
// says: then the record that led to it is wrong, not the object. No object is put meanwhile, since a good
// one that just replaced the damaged one would be moved; if one was put before, its payload is returned.
func (s *Store) distrust(r Ref) ([]byte, error) {
	s.damageMu.Lock()
	defer s.damageMu.Unlock()
	b, err := s.readObject(r)
	if err == nil {
		return b, nil
	}
	m, ok := errors.AsType[*Miss](err)
	if !ok {
		m = objectMiss(r.Object, 0, err)
	}
	gone := errors.Is(err, fs.ErrNotExist)
	if known, _ := s.known(r.Object); gone && known != nil {
		m = known // another reader has set it aside, with this reason
	}
	s.remember(r.Object, m)
	if gone || s.opts.ReadOnly {
		return nil, m
	}
	path := s.objectPath(r.Object.Digest)
	if d, _, err := s.hash(context.Background(), path); err == nil && d == r.Object.Digest {
		return nil, m
	}
	err = s.setAside(path, filepath.Base(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errForeign) {
		s.warn("%v", err)
	}
	return nil, m
}

// Check returns nil if the object exists and has its size, or else the reason. It looks at the disk once: the
// answer is remembered until the object is put or found damaged. A share doesn't look, since otherwise all
// shares would look at all objects: it assumes that an object that a record names exists, until loading it
// fails.
func (s *Store) Check(object ObjectRef) *Miss {
	m, known := s.known(object)
	if !known {
		if !s.trusts {
			size, err := s.size(s.objectPath(object.Digest))
			m = objectMiss(object, size, err)
		}
		return s.rememberFirst(object, m)
	}
	return m
}

// rememberFirst is remember for a look at the disk: the finding of a writer or a reader in the meantime is
// newer, and stays. It returns what is remembered then.
func (s *Store) rememberFirst(object ObjectRef, m *Miss) *Miss {
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	if newer, known := s.looked[object]; known {
		return newer
	}
	s.looked[object] = m
	return m
}

// known returns what is remembered of an object.
func (s *Store) known(object ObjectRef) (m *Miss, known bool) {
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	m, known = s.looked[object]
	return m, known
}

// remember remembers why an object is missing; m is nil if it exists.
func (s *Store) remember(object ObjectRef, m *Miss) {
	s.lookMu.Lock()
	defer s.lookMu.Unlock()
	s.looked[object] = m
}

func (s *Store) objectPath(d stages.Digest) string {
	var name [2 * keyLen]byte
	hex.Encode(name[:], d[:])
	const sep = string(filepath.Separator)
	return s.objects + sep + string(name[:2]) + sep + string(name[:]) // faster than Join
}

// An objectFile is a file below objects/.
type objectFile struct {
	fs.FileInfo
	path   string
	digest stages.Digest // zero for a temporary file
}

func (o objectFile) temporary() bool { return o.digest == stages.Digest{} }

// eachObject calls fn for every object and temporary file. Files that the store didn't make are left alone.
func (s *Store) eachObject(fn func(objectFile) error) error {
	folders, err := s.entries(s.objects)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		dir := filepath.Join(s.objects, folder.Name())
		if !folder.IsDir() || len(folder.Name()) != 2 {
			continue
		}
		files, err := s.entries(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			o := objectFile{path: filepath.Join(dir, f.Name())}
			err := o.digest.UnmarshalText([]byte(f.Name()))
			if err != nil || s.objectPath(o.digest) != o.path {
				o.digest = stages.Digest{}
			}
			if o.FileInfo, err = f.Info(); err != nil || !o.Mode().IsRegular() ||
				o.temporary() && !strings.HasPrefix(f.Name(), tempPrefix) {
				continue // removed meanwhile, or not the store's
			}
			if err := fn(o); err != nil {
				return err
			}
		}
	}
	return nil
}
