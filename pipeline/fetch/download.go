package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"time"
)

// A download writes the file of one address to a path. The bytes received so far are in part, next to a
// note of their address and version.
type download struct {
	*Cache
	address    Address
	file, part string
	unless     string // an ETag: the version of the existing file
	restarts   int    // how often received bytes were discarded

	// The results.
	digest, etag, commit string
}

var (
	errUnchanged = errors.New("the file is the same as before")
	errStalled   = errors.New("hardly anything arrives any more")
	errRestarts  = errors.New("the server sends it from the beginning again and again: a connection that " +
		"breaks doesn't go on where it was")
)

// run downloads the file, or copies it from the cache of the hub's own tools.
func (d *download) run(ctx context.Context) error {
	if file, commit, ok := d.downloaded(d.address); ok {
		if err := d.take(file); err == nil {
			d.commit = commit
			return nil
		} else if d.Offline != "" {
			return err
		}
	}
	if d.Offline != "" {
		return errOffline
	}
	return d.retry(ctx, d.address, func() (bool, error) { return d.attempt(ctx) })
}

// take copies a local file.
func (d *download) take(file string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(d.part)
	if err != nil {
		return err
	}
	defer to.Close()
	h := sha256.New()
	if _, err = io.Copy(io.MultiWriter(to, h), from); err != nil {
		return err
	}
	return d.finish(to, h, "")
}

// A begun describes the version of which part holds the first bytes.
type begun struct {
	URL  string `json:"url"`
	ETag string `json:"etag,omitempty"` // a strong one
	// Bytes is the length of the file, 0 or −1 if unknown.
	Bytes int64 `json:"bytes,omitempty"`
}

func (d *download) notes() string { return d.part + ".json" }

// begun returns the request for the rest of the file: from which byte on, and of which version. Without an
// ETag only the digest shows whether the rest belongs to the same version.
func (d *download) begun(f *os.File) (w wish) {
	var b begun
	text, err := os.ReadFile(d.notes())
	if err != nil || json.Unmarshal(text, &b) != nil || b.URL != d.address.url(d.Hub).String() ||
		b.ETag == "" && !d.address.Pinned() {
		return wish{total: -1}
	}
	w = wish{etag: b.ETag, total: -1}
	if b.Bytes > 0 {
		w.total = b.Bytes
	}
	if info, err := f.Stat(); err == nil {
		w.from = info.Size()
	}
	return w
}

// attempt downloads the rest of the file, or a piece of it, and reports whether more of the file is here than
// before.
func (d *download) attempt(ctx context.Context) (further bool, err error) {
	f, err := os.OpenFile(d.part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	w := d.begun(f)
	if w.from == 0 {
		w.unless = d.unless
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	r, err := d.request(ctx, http.MethodGet, d.address, w.header())
	if err != nil {
		return false, stall(err)
	}
	defer r.Body.Close()
	p, err := d.accept(f, w, r)
	if err != nil {
		return false, err
	}
	h := sha256.New()
	if p.from == 0 {
		err = d.begin(f, p)
	} else {
		_, err = io.CopyN(h, f, p.from)
	}
	if err != nil {
		return false, err
	}
	n, err := d.receive(io.MultiWriter(f, h), r.Body, p, stalled)
	arrived := p.from + n
	if err == nil {
		err = d.complete(f, h, p, arrived, r.metadata.digest)
	}
	if err != nil && context.Cause(ctx) != nil {
		err = stall(context.Cause(ctx))
	}
	return n > 0 && arrived > w.from, err
}

// accept returns the piece of the file that an answer has, if it can be the rest of the part.
func (d *download) accept(f *os.File, w wish, r *answer) (piece, error) {
	digest := r.metadata.digest
	p, err := w.judge(r, d.address.Pinned() || digest != "")
	if err == errOther {
		return p, d.restart(f, err)
	} else if err != nil {
		return p, err
	}
	if digest != "" && !d.address.unpacks() && d.address.Pinned() && digest != d.address.digest {
		return p, &changedError{is: digest, want: d.address.digest}
	}
	d.etag, d.commit = p.etag, r.commit
	if p.total > d.most {
		return p, d.tooLarge()
	}
	return p, nil
}

// complete finishes the file if as many bytes as it has arrived. A part that has another digest than the file
// may have been of another version, and is forgotten.
func (d *download) complete(f *os.File, h hash.Hash, p piece, arrived int64, digest string) error {
	switch {
	case p.to >= 0 && arrived != p.to, p.total >= 0 && arrived < p.total:
		return &transientError{error: io.ErrUnexpectedEOF}
	case p.total >= 0 && arrived > p.total:
		return d.restart(f, errOther)
	}
	err := d.finish(f, h, digest)
	if !errors.As(err, new(*changedError)) {
		return err
	}
	if p.from > 0 {
		return d.restart(f, err)
	}
	d.drop()
	return err
}

// stall makes the end of a silent connection a transient error.
func stall(err error) error {
	if errors.Is(err, errStalled) {
		return &transientError{error: err}
	}
	return err
}

// mostRestarts bounds how often the received bytes of a file are discarded.
const mostRestarts = 3

// begin empties part, for the server's current version.
func (d *download) begin(f *os.File, p piece) error {
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		if d.restarts++; d.restarts > mostRestarts {
			return errRestarts
		}
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	b := begun{URL: d.address.url(d.Hub).String(), Bytes: p.total}
	if p.etag == opaque(p.etag) {
		b.ETag = p.etag
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(d.notes(), text, 0o600)
}

// restart discards part, so that the next attempt begins anew.
func (d *download) restart(f *os.File, why error) error {
	if d.restarts++; d.restarts > mostRestarts {
		return errRestarts
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	return &transientError{error: why}
}

func (d *download) drop() {
	os.Remove(d.part)
	os.Remove(d.notes())
}

// leastBytes must arrive within the time after which a silent connection is ended: about 1 KB a second.
// Single bytes don't keep a download alive.
const leastBytes = 64 << 10

// receive copies a body, and reports its progress.
func (d *download) receive(to io.Writer, body io.Reader, p piece, stalled *time.Timer) (n int64, err error) {
	b := make([]byte, 256<<10)
	var shown time.Time
	var counted int64
	for {
		k, err := body.Read(b)
		if n += int64(k); p.from+n > d.most {
			return n, d.tooLarge()
		}
		if n-counted >= leastBytes {
			counted = n
			stalled.Reset(d.stall)
		}
		if _, err := to.Write(b[:k]); err != nil {
			return n, err // the disk's error
		}
		end := err != nil
		if d.Show != nil && (end || time.Since(shown) > 100*time.Millisecond) {
			shown = time.Now()
			d.Show(Progress{d.address.Name(), p.from + n, p.total})
		}
		switch {
		case err == io.EOF:
			return n, nil
		case end:
			return n, &transientError{error: err}
		}
	}
}

func (c *Cache) tooLarge() error {
	return fmt.Errorf("the file has more than %d bytes, the most that are fetched", c.most)
}

// finish renames a complete file. told is the digest of the received bytes, still packed, that the server
// announced, or "".
func (d *download) finish(f *os.File, h hash.Hash, told string) error {
	is := hex.EncodeToString(h.Sum(nil))
	if told != "" && told != is {
		return &changedError{is: is, want: told}
	}
	from := f
	if d.address.unpacks() {
		var err error
		if from, is, err = d.unpack(f.Name()); err != nil {
			return err
		}
		defer os.Remove(from.Name())
	}
	if d.address.Pinned() && is != d.address.digest {
		return &changedError{is: is, want: d.address.digest}
	}
	d.digest = is
	if err := keep(from, d.file, nil); err != nil {
		return err
	}
	d.drop()
	return nil
}
