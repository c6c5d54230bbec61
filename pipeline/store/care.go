package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/runexp/runexp/stages"
)

// inFlight is how long a file that nothing refers to may be part of what another
// process is just doing.
const inFlight = time.Hour

// An objectFile is a file below objects/.
type objectFile struct {
	path    string
	digest  stages.Digest // zero for a temporary file
	size    int64
	changed time.Time
}

func (o objectFile) temporary() bool { return o.digest == stages.Digest{} }

// eachObject calls fn for every object and temporary file. Files that the store
// didn't make are left alone.
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
			name, err := hex.DecodeString(f.Name())
			switch {
			case strings.HasPrefix(f.Name(), tempPrefix):
			case err == nil && len(name) == keyLen && f.Name() == strings.ToLower(f.Name()) && f.Name()[:2] == folder.Name():
				o.digest = stages.Digest(name)
			default:
				continue
			}
			info, err := f.Info()
			if err != nil || !info.Mode().IsRegular() {
				continue // gone meanwhile, or not ours
			}
			o.size, o.changed = info.Size(), info.ModTime()
			if err := fn(o); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachLog calls fn for every log of a folder, actions or items.
func (s *Store) eachLog(folder string, fn func(path string, bucket byte) error) error {
	for i := range buckets {
		path := filepath.Join(s.dir, folder, fmt.Sprintf("%02x.log", i))
		if _, err := s.size(path); err != nil {
			continue
		}
		if err := fn(path, byte(i)); err != nil {
			return err
		}
	}
	return nil
}

// rewriteLog replaces a log by the frames that keep accepts. A process that
// appends meanwhile loses nothing: what came before the replacement is copied,
// and after it appendLog notices.
func (s *Store) rewriteLog(path string, kind logKind, keep func(off int, key stages.Digest, payload []byte) bool) error {
	old, err := s.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return s.writeErr(err)
	}
	defer old.Close()
	b, err := stages.ReadAll(old, maxLog)
	if err != nil {
		return s.writeErr(err)
	}
	kept := make([]byte, 0, len(b))
	scan := scanLog(b, kind, func(off int, key stages.Digest, payload []byte) {
		if keep(off, key, payload) {
			kept = appendFrame(kept, kind, key, payload)
		}
	})
	if len(kept) == len(b) {
		return nil
	}
	if err := s.writeFile(path, 0o666, kept); err != nil {
		return err
	}
	// A frame that was just being written is whole by now, or will be written again.
	if _, err := old.Seek(int64(scan.end), io.SeekStart); err != nil {
		return s.writeErr(err)
	}
	if b, err = io.ReadAll(io.LimitReader(old, maxLog)); err != nil {
		return s.writeErr(err)
	}
	var late []byte
	scanLog(b, kind, func(_ int, key stages.Digest, payload []byte) {
		late = appendFrame(late, kind, key, payload)
	})
	if len(late) > 0 {
		_, err = s.appendLog(path, late)
	}
	return err
}

// rebuildIndex makes the index again from the action logs, in memory and on disk.
func (s *Store) rebuildIndex() error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	if s.indexed != nil {
		s.indexed.Close()
		s.indexed, s.pending = nil, nil
	}
	s.index = index{}
	s.index.parse(nil)
	frames, err := s.catchUp()
	if err != nil {
		return err
	}
	return s.writeFile(s.indexPath(), 0o666, frames)
}

// forgetPacks makes Check look again.
func (s *Store) forgetPacks() {
	s.packMu.Lock()
	s.packs = map[PackRef]*Miss{}
	s.packMu.Unlock()
}

// remove removes a file that may be gone.
func (s *Store) remove(path string) error {
	if err := s.at("remove"); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return s.writeErr(err)
	}
	return nil
}

// cellName returns a cell's name for people.
func (a *Action) cellName() string {
	if a.Experiment == "" {
		return a.Cell
	}
	return a.Experiment + ": " + a.Cell
}
