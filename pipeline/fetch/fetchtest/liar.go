package fetchtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A Liar is a server of several versions of a file that ignores requests: it answers with any status and
// any part of any version, and with headers that are missing, belong to another answer, or contradict each
// other. But it never labels the bytes of one version as another's, unless Forges is set; then only a
// digest reveals the lie.
type Liar struct {
	Versions [][]byte
	Forges   bool

	mu    sync.Mutex
	r     *rand.Rand
	log   []string
	mayBe int // number of answers left that may be wrong; later ones are right
}

// NewLiar returns a liar whose answers depend on the seed; at most wrong of them are wrong.
func NewLiar(seed uint64, wrong int, versions ...[]byte) *Liar {
	return &Liar{Versions: versions, r: rand.New(rand.NewPCG(seed, 11)), mayBe: wrong}
}

// Log returns the requests and answers.
func (l *Liar) Log() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.log, "\n")
}

func (l *Liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pick := func(n int) bool { return l.mayBe > 0 && l.r.IntN(n) == 0 }
	version := len(l.Versions) - 1
	if l.mayBe > 0 {
		version = l.r.IntN(len(l.Versions))
	}
	b := l.Versions[version]
	tag := fmt.Sprintf(`"version-%d"`, version)
	from, to, status := 0, len(b), http.StatusOK
	asked, ranged := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if n, err := strconv.Atoi(strings.TrimSuffix(asked, "-")); ranged && err == nil && n < len(b) &&
		(r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == tag || pick(2)) {
		from, status = n, http.StatusPartialContent
	}
	if pick(4) {
		status = []int{200, 206, 206, 304, 416, 503}[l.r.IntN(6)]
	}
	if status == http.StatusPartialContent {
		if pick(3) { // shorter than requested
			to = from + l.r.IntN(to-from) + 1
		}
		if pick(4) { // from another offset
			from = l.r.IntN(to)
		}
	} else {
		from, to = 0, len(b)
	}
	body := b[from:to]
	h := w.Header()
	h.Set("ETag", tag)
	if status == http.StatusPartialContent {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(b)))
	}
	for range 2 { // what is missing or wrong in it
		if !pick(3) {
			continue
		}
		switch l.r.IntN(8) {
		case 0:
			h.Del("ETag")
		case 1:
			h.Set("ETag", "W/"+tag)
		case 2:
			h.Del("Content-Range")
		case 3:
			if status == http.StatusPartialContent {
				h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", from, to-1))
			}
		case 4:
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to+l.r.IntN(9), len(b)+l.r.IntN(5)))
		case 5:
			if status == http.StatusOK {
				var z bytes.Buffer
				g := gzip.NewWriter(&z)
				g.Write(body)
				g.Close()
				body = z.Bytes()
				h.Set("Content-Encoding", "gzip")
			}
		case 6:
			h.Set("Content-Type", "multipart/byteranges; boundary=x")
		case 7:
			if l.Forges {
				h.Set("ETag", fmt.Sprintf(`"version-%d"`, l.r.IntN(len(l.Versions))))
				body = bytes.Clone(body)
				if len(body) > 0 {
					body[l.r.IntN(len(body))] ^= 1
				}
			}
		}
	}
	sent := len(body)
	if pick(3) {
		sent = l.r.IntN(len(body) + 1)
	}
	if !pick(3) {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	l.mayBe--
	l.log = append(l.log, fmt.Sprintf("%s %s If-Range %s → %d, version %d [%d,%d), %d bytes of %d, %v",
		r.Method,
		asked, r.Header.Get("If-Range"), status, version, from, to, sent, len(body), h))
	w.WriteHeader(status)
	if status == http.StatusNotModified {
		return
	}
	w.Write(body[:sent])
	if sent < len(body) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}
