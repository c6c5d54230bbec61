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
			return p, errors.New("the server says that the file is unchanged, though no version was named")
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
	// Before HTTP/1.1, and without a length, a file ends with the connection: nothing shows whether it is
	// complete.
	if p.total < 0 && !digestTells && r.ProtoMajor == 1 && len(r.TransferEncoding) == 0 {
		return p, errNoLength
	}
	return p, nil
}

var errNoLength = errors.New("the server sends neither the file's length nor its end")

// opaque returns an ETag without the prefix of a weak one.
func opaque(etag string) string { return strings.TrimPrefix(etag, "W/") }
