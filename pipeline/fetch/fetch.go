// Package fetch downloads files that an experiment names by an address into the user's cache folder, so
// that the rest of runexp reads only local files.
//
// An address (address.go) is https://host/path or hf://org/repo@revision/path, the latter on the Hugging
// Face Hub (hub.go), and may end in #sha256=DIGEST. The address alone decides its folder (cache.go). The
// folder contains the file under its own name, the files that hold the weights of the hub's .onnx files,
// and a manifest of the download (manifest.go). One process at a time fetches an address (lock.go). An
// interrupted download is resumed (download.go), within the process or by the next one. Requests follow
// redirects carefully (request.go), and answers are checked against their request (judge.go); errors come
// with a hint (errors.go).
//
// A digest is of the file that is read: for a .gz file the file inside (unpack.go), for a .tar.gz
// archive the archive.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// Progress is how much of a file has arrived. Total is -1 if the server doesn't say.
type Progress struct {
	Name        string
	Done, Total int64
}

// Fetched reports whether a's file exists unchanged.
func (c *Cache) Fetched(a Address) bool {
	_, ok := c.present(a)
	return ok
}

// Fetch returns the local file of an address, and downloads it if it doesn't exist. An address without a
// digest is downloaded only once, too; only Pin notices that the remote file has changed.
func (c *Cache) Fetch(ctx context.Context, a Address) (file string, err error) {
	if c.Fetched(a) {
		return c.File(a), nil
	}
	err = c.locked(ctx, a, func(part string) error {
		if c.Fetched(a) { // by another process, meanwhile
			return nil
		}
		_, err := c.fill(ctx, a, part, nil)
		return err
	})
	return c.File(a), c.explain(a, err)
}

// Pin returns an address with the digest of its current file and, on the hub, with the commit instead of a
// branch or tag. The file is downloaded only if the server doesn't send its digest.
func (c *Cache) Pin(ctx context.Context, a Address) (pinned Address, err error) {
	pinned, err = c.pin(ctx, a)
	return pinned, c.explain(a, err)
}

func (c *Cache) pin(ctx context.Context, a Address) (pinned Address, err error) {
	from := a
	switch {
	case a.Pinned() && a.Fixed():
		return a, nil
	case c.Offline != "":
		return a, errOffline
	case a.onHub():
		m, err := c.hubMetadata(ctx, a)
		if err != nil {
			return a, err
		}
		a = a.at(m.commit)
		if m.digest != "" && !a.unpacks() { // else it is the digest of the packed file
			if a.Pinned() && m.digest != a.digest {
				return a, &changedError{is: m.digest, want: a.digest}
			}
			a = a.with(m.digest)
		}
		if a.Pinned() {
			return a, c.locked(ctx, from, func(string) error { return c.adopt(ctx, from, a) })
		}
	}
	err = c.locked(ctx, a, func(part string) error {
		old, _ := c.present(a)
		r, err := c.fill(ctx, a, part, old)
		if err != nil {
			return err
		}
		pinned = a.with(r.main().Digest)
		return c.adopt(ctx, a, pinned)
	})
	return pinned, err
}

// fill downloads an address's files into its folder. With an old manifest it downloads only the files that
// have changed since.
func (c *Cache) fill(ctx context.Context, a Address, part string, old *manifest) (*manifest, error) {
	r := &manifest{Address: a.String()}
	d := download{Cache: c, address: a, file: c.File(a), part: part}
	if old != nil {
		d.unless = old.ETag
	}
	switch err := d.run(ctx); {
	case errors.Is(err, errUnchanged):
		return old, nil
	case err != nil:
		return nil, err
	}
	r.ETag, r.Commit = d.etag, d.commit
	if err := r.add(d.file, d.digest); err != nil {
		return nil, err
	}
	for _, sibling := range a.weights() {
		if r.Commit != "" {
			sibling = sibling.at(r.Commit)
		}
		file := filepath.Join(c.folder(a), sibling.Name())
		d := download{Cache: c, address: sibling, file: file, part: part}
		switch err := d.run(ctx); {
		case errors.Is(err, errNotFound), errors.Is(err, errOffline):
		case err != nil:
			return nil, err
		default:
			if err := r.add(d.file, d.digest); err != nil {
				return nil, err
			}
		}
	}
	return r, c.write(a, r)
}

// weights returns the addresses at which exporters put the weights of a model on the hub.
func (a Address) weights() []Address {
	if !a.onHub() || path.Ext(a.path) != ".onnx" {
		return nil
	}
	return []Address{a.longer(".data"), a.longer("_data")}
}

// A changedError is the error of a file whose digest isn't the address's.
type changedError struct{ is, want string }

func (e *changedError) Error() string {
	return fmt.Sprintf("it has the digest sha256=%s, and the address says sha256=%s", short(e.is),
		short(e.want))
}

func short(digest string) string { return strings.ToLower(digest[:min(12, len(digest))]) + "…" }
