package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// A wish is what a request asks for of a file.
type wish struct {
	from   int64  // the first byte; what is before is here
	etag   string // the version that the bytes before are of, "" if only the digest tells
	total  int64  // how many bytes that version has, −1 if unknown
	unless string // an ETag: the version that is here as a whole
}

// A piece is what an answer has: the bytes of one version of the file, from a place on.
type piece struct {
	from, to int64 // to is −1 if the answer doesn't tell where it ends
	total    int64 // of the whole file, −1 if unknown
	etag     string
}

// errOther is that of an answer that can't be joined to what is here: the file is asked for as a whole.
var errOther = errors.New("the server sends another part of the file, or of another version, than was " +
	"asked for")

var contentRange = regexp.MustCompile(`^bytes (\d{1,18})-(\d{1,18})/(\d{1,18})$`)

// judge holds an answer against what was asked: its status, range, length, version and encoding. It returns
// errUnchanged if the wished version is here, errOther if the answer doesn't fit, and an error that is final
// if the server's bytes can't be the file's. A server that contradicts itself isn't believed.
func (w wish) judge(r *answer, digestTells bool) (p piece, err error) {
	etag := r.Header.Get("ETag")
	switch r.StatusCode {
	case http.StatusOK:
		p = piece{0, r.ContentLength, r.ContentLength, etag}
	case http.StatusPartialContent:
		m := contentRange.FindStringSubmatch(r.Header.Get("Content-Range"))
		if m == nil {
			return p, errOther
		}
		first, _ := strconv.ParseInt(m[1], 10, 64)
		last, _ := strconv.ParseInt(m[2], 10, 64)
		total, _ := strconv.ParseInt(m[3], 10, 64)
		p = piece{first, last + 1, total, etag}
		switch {
		case w.from == 0 || first != w.from || last < first || last >= total,
			r.ContentLength >= 0 && r.ContentLength != last+1-first,
			w.total >= 0 && total != w.total,
			w.etag != "" && etag != w.etag && (etag != "" || !digestTells):
			return p, errOther
		}
	case http.StatusNotModified:
		if w.unless == "" || w.from > 0 || etag != "" && opaque(etag) != opaque(w.unless) {
			return p, errors.New("the server says that a file hasn't changed, of which nothing was told")
		}
		return p, errUnchanged
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
	// Before HTTP/1.1, and without a length, the end of the connection is that of the file: whether it was
	// cut nothing tells.
	if p.total < 0 && !digestTells && r.ProtoMajor == 1 && len(r.TransferEncoding) == 0 {
		return p, errNoLength
	}
	return p, nil
}

var errNoLength = errors.New("the server doesn't tell how long the file is, nor where it ends")

// opaque returns an ETag without the mark of a weak one.
func opaque(etag string) string { return strings.TrimPrefix(etag, "W/") }
