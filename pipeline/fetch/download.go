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
	"strings"
	"time"
)

// A download writes the file of one address to a place. The bytes that have arrived stay in part, next to a
// note of their address and version.
type download struct {
	*Cache
	address    Address
	file, part string
	unless     string // an ETag: the version that is here already

	// What is known afterwards.
	digest, etag, commit string
}

var (
	errUnchanged = errors.New("the file is the same as before")
	errStalled   = errors.New("nothing arrives any more")
)

// run downloads the file, or takes it from the hub's own tools.
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
	return d.retry(ctx, func() (bool, error) { return d.attempt(ctx) })
}

// take copies a file that is on this machine.
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

// A begun download is what part holds.
type begun struct {
	URL  string `json:"url"`
	ETag string `json:"etag,omitempty"` // a strong one
}

func (d *download) notes() string { return d.part + ".json" }

// begun returns how many bytes of the file are in part, and the ETag that they are of. Without one the digest
// tells whether the rest fits.
func (d *download) begun(f *os.File) (n int64, etag string) {
	var b begun
	text, err := os.ReadFile(d.notes())
	if err != nil || json.Unmarshal(text, &b) != nil || b.URL != d.address.url(d.Hub).String() ||
		b.ETag == "" && !d.address.Pinned() {
		return 0, ""
	}
	if info, err := f.Stat(); err == nil {
		n = info.Size()
	}
	return n, b.ETag
}

// attempt downloads the rest of the file, and reports whether any of it arrived.
func (d *download) attempt(ctx context.Context) (arrived bool, err error) {
	f, err := os.OpenFile(d.part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	defer f.Close()
	have, etag := d.begun(f)
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if etag != "" {
			header.Set("If-Range", etag)
		}
	} else if d.unless != "" {
		header.Set("If-None-Match", d.unless)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	r, err := d.request(ctx, http.MethodGet, d.address, header)
	if err != nil {
		return false, stall(err)
	}
	defer r.Body.Close()
	switch {
	case r.StatusCode == http.StatusOK:
		have = 0
	case r.StatusCode == http.StatusPartialContent && have > 0 && startsAt(r.Response, have):
	case r.StatusCode == http.StatusNotModified && d.unless != "":
		return false, errUnchanged
	case r.StatusCode == http.StatusPartialContent,
		r.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		return false, d.restart(f, errors.New("the server sends another part of the file than was asked for"))
	default:
		return false, statusError(r)
	}
	packed := d.address.unpacks()
	if told := r.metadata.digest; told != "" && !packed && d.address.Pinned() && told != d.address.digest {
		return false, &changedError{is: told, want: d.address.digest}
	}
	d.etag, d.commit = r.Header.Get("ETag"), r.commit
	total := r.size
	if r.ContentLength >= 0 {
		total = have + r.ContentLength
	}
	if total > d.most {
		return false, d.tooLarge()
	}
	h := sha256.New()
	if have == 0 {
		err = d.begin(f)
	} else {
		_, err = io.CopyN(h, f, have)
	}
	if err != nil {
		return false, err
	}
	n, err := d.receive(io.MultiWriter(f, h), r.Body, have, total, stalled)
	switch {
	case err == nil && total >= 0 && have+n != total:
		err = &transientError{error: io.ErrUnexpectedEOF}
	case err == nil:
		err = d.finish(f, h, r.metadata.digest)
		if changed := (*changedError)(nil); errors.As(err, &changed) && have > 0 {
			err = d.restart(f, err) // the part may have been of another version
		} else if changed != nil {
			d.drop()
		}
	}
	if err != nil && context.Cause(ctx) != nil {
		err = stall(context.Cause(ctx))
	}
	return n > 0, err
}

// stall makes the end of a silent connection an error that another attempt may not have.
func stall(err error) error {
	if errors.Is(err, errStalled) {
		return &transientError{error: err}
	}
	return err
}

func startsAt(r *http.Response, n int64) bool {
	return strings.HasPrefix(r.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", n))
}

// begin empties part, for the version that the server has now.
func (d *download) begin(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	b := begun{URL: d.address.url(d.Hub).String()}
	if !strings.HasPrefix(d.etag, "W/") {
		b.ETag = d.etag
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(d.notes(), text, 0o600)
}

// restart forgets what part holds, so that the next attempt begins anew.
func (d *download) restart(f *os.File, why error) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	return &transientError{error: why}
}

func (d *download) drop() {
	os.Remove(d.part)
	os.Remove(d.notes())
}

// receive copies a body, and tells how much has arrived.
func (d *download) receive(to io.Writer, body io.Reader, have, total int64, stalled *time.Timer) (n int64,
	err error) {
	b := make([]byte, 256<<10)
	var shown time.Time
	for {
		k, err := body.Read(b)
		stalled.Reset(d.stall)
		if n += int64(k); have+n > d.most {
			return n, d.tooLarge()
		}
		if _, err := to.Write(b[:k]); err != nil {
			return n, err // of the disk
		}
		end := err != nil
		if d.Show != nil && (end || time.Since(shown) > 100*time.Millisecond) {
			shown = time.Now()
			d.Show(Progress{d.address.Name(), have + n, total})
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

// finish gives a complete file its name. told is the digest of the part that the server told, or "".
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
