package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/runexp/runexp/stages"
)

// A manifest lists the files of an address's folder. It is written last: a folder without one is incomplete.
type manifest struct {
	Address string      `json:"address"`
	ETag    string      `json:"etag,omitempty"`   // the server's name of this version
	Commit  string      `json:"commit,omitempty"` // of the hub's repository
	Files   []savedFile `json:"files"`            // the address's own file first
}

// A savedFile is a fetched file, with the facts that show cheaply whether it was changed later.
type savedFile struct {
	Name   string    `json:"name"`
	Digest string    `json:"sha256"`
	Bytes  int64     `json:"bytes"`
	Time   time.Time `json:"time"`
}

const manifestName = ".fetched.json"

func (r *manifest) main() *savedFile { return &r.Files[0] }

func (r *manifest) add(file, digest string) error {
	info, err := os.Stat(file)
	if err == nil {
		r.Files = append(r.Files, savedFile{info.Name(), digest, info.Size(), info.ModTime()})
	}
	return err
}

// write completes an address's folder.
func (c *Cache) write(a Address, r *manifest) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(c.folder(a), manifestName), append(b, '\n'))
}

// present returns the manifest of an address if all its files exist unchanged.
func (c *Cache) present(a Address) (*manifest, bool) {
	dir := c.folder(a)
	b, err := stages.ReadFile(filepath.Join(dir, manifestName), 1<<20)
	r := &manifest{}
	if err != nil || json.Unmarshal(b, r) != nil || len(r.Files) == 0 || r.main().Name != a.Name() ||
		a.Pinned() && r.main().Digest != a.digest {
		return nil, false
	}
	for _, f := range r.Files {
		file := filepath.Join(dir, filepath.Base(f.Name))
		info, err := os.Stat(file)
		if err != nil || info.Size() != f.Bytes {
			return nil, false
		}
		if !info.ModTime().Equal(f.Time) {
			if d, err := digestOf(file); err != nil || d != f.Digest {
				return nil, false
			}
		}
	}
	return r, true
}

func digestOf(file string) (string, error) {
	f, err := stages.OpenFile(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// adopt links or copies the files of one address to another one with the same bytes, if they exist: a
// pinned address needn't be fetched again.
func (c *Cache) adopt(ctx context.Context, from, to Address) error {
	r, ok := c.present(from)
	if !ok || r.main().Digest != to.digest || c.Fetched(to) || c.folder(from) == c.folder(to) {
		return nil
	}
	return c.locked(ctx, to, func(string) error {
		now := &manifest{Address: to.String(), ETag: r.ETag, Commit: r.Commit}
		for _, f := range r.Files {
			old := filepath.Join(c.folder(from), f.Name)
			file := filepath.Join(c.folder(to), f.Name)
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if os.Link(old, file) != nil { // some file systems have no links
				return nil // it is fetched when it is needed
			}
			if err := now.add(file, f.Digest); err != nil {
				return err
			}
		}
		return c.write(to, now)
	})
}

// writeFile writes a file atomically.
func writeFile(file string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	return keep(f, file, err)
}

// keep closes a written file, syncs it and renames it, unless writing it failed.
func keep(f *os.File, file string, err error) error {
	if err == nil {
		err = f.Chmod(0o444)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
