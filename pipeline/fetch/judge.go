package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// A wish is the part of a file that a request asks for.
type wish struct {
	from   int64  // the first byte; earlier bytes are here already
	etag   string // the version of the earlier bytes, "" if only the digest identifies it
	total  int64  // length of that version, −1 if unknown
	unless string // an ETag: the version of the existing file
}

// header asks for the bytes that aren't here, or for another version of the file.
func (w wish) header() http.Header {
	h := http.Header{}
	switch {
	case w.from > 0:
		h.Set("Range", fmt.Sprintf("bytes=%d-", w.from))
		if w.etag != "" {
			h.Set("If-Range", w.etag)
		}
	case w.unless != "":
		h.Set("If-None-Match", w.unless)
	}
	return h
}

// A piece is the part of a file that an answer contains: bytes of one version, from an offset on.
type piece struct {
	from, to int64 // to is −1 if the answer doesn't say where it ends
	total    int64 // of the whole file, −1 if unknown
	etag     string
}

// errOther is the error of an answer that doesn't continue the bytes received so far: the whole file is
// requested next.
var errOther = errors.New("the server sends another part of the file, or of another version, than was " +
	"asked for")

var contentRange = regexp.MustCompile(`^bytes (\d{1,18})-(\d{1,18})/(\d{1,18})$`)

// judge checks an answer against its request: its status, range, length, version and encoding. It returns
// errUnchanged if the existing file is current, errOther if the answer doesn't fit, and a final error if
// the server's bytes can't be the file's. A server that contradicts itself isn't trusted.
func (w wish) judge(r *answer, digestTells bool) (p piece, err error) {
	etag := r.Header.Get("ETag")
	switch r.StatusCode {
	case http.StatusOK:
		p = piece{0, r.ContentLength, r.ContentLength, etag}
	case http.StatusPartialContent:
		if p, err = w.rest(r, digestTells); err != nil {
			return p, err
		}
	case http.StatusNotModified:
		return p, w.unchanged(etag)
	case http.StatusRequestedRangeNotSatisfiable:
		if w.from > 0 {
			return p, errOther
		}
		return p, statusError(r)
	default:
		return p, statusError(r)
	}
	if told := r.metadata.size; told >= 0 && p.total >= 0 && told != p.total {
		return p, &transientError{error: fmt.Errorf("the hub says that the file has %d bytes, and its "+
			"server %d", told, p.total)}
	} else if told >= 0 {
		p.total = told
	}
	if encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding != "" &&
		encoding != "identity" && !(r.address.packed() && strings.HasSuffix(encoding, "gzip")) {
		return p, fmt.Errorf("the server sends it packed (Content-Encoding: %.40s), though it wasn't "+
			"asked to",
			plainText(encoding))
	}
	// Before HTTP/1.1, and without a length, a file ends with the connection: nothing shows whether it is
	// complete.
	if p.total < 0 && !digestTells && r.ProtoMajor == 1 && len(r.TransferEncoding) == 0 {
		return p, errNoLength
	}
	return p, nil
}

// rest returns the piece of an answer that has the part of the file that was asked for.
func (w wish) rest(r *answer, digestTells bool) (piece, error) {
	m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range"))
	if m == nil {
		return piece{}, errOther
	}
	first, _ := strconv.ParseInt(m[1], 10, 64)
	last, _ := strconv.ParseInt(m[2], 10, 64)
	total, _ := strconv.ParseInt(m[3], 10, 64)
	p := piece{first, last + 1, total, r.Header.Get("ETag")}
	switch {
	case w.from == 0 || first != w.from || last < first || last >= total,
		r.ContentLength >= 0 && r.ContentLength != last+1-first,
		w.total >= 0 && total != w.total,
		w.etag != "" && p.etag != w.etag && (p.etag != "" || !digestTells):
		return p, errOther
	}
	return p, nil
}

// unchanged is the error of an answer that the file hasn't changed: errUnchanged if that was asked.
func (w wish) unchanged(etag string) error {
	if w.unless == "" || w.from > 0 || etag != "" && opaque(etag) != opaque(w.unless) {
		return errors.New("the server says that the file is unchanged, though no version was named")
	}
	return errUnchanged
}

var errNoLength = errors.New("the server sends neither the file's length nor its end")

// opaque returns an ETag without the prefix of a weak one.
func opaque(etag string) string { return strings.TrimPrefix(etag, "W/") }
