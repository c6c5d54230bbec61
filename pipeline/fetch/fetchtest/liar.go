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
	p := l.part(r)
	p.header = w.Header()
	p.header.Set("ETag", p.tag())
	if p.status == http.StatusPartialContent {
		p.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", p.from, p.to-1, p.total))
	}
	for range 2 {
		if l.pick(3) {
			l.spoil(&p)
		}
	}
	sent := len(p.body)
	if l.pick(3) {
		sent = l.r.IntN(len(p.body) + 1)
	}
	if !l.pick(3) {
		p.header.Set("Content-Length", strconv.Itoa(len(p.body)))
	}
	l.mayBe--
	asked := strings.TrimPrefix(r.Header.Get("Range"), "bytes=")
	l.log = append(l.log, fmt.Sprintf("%s %s If-Range %s → %d, version %d [%d,%d), %d bytes of %d, %v",
		r.Method, asked, r.Header.Get("If-Range"), p.status, p.version, p.from, p.to, sent, len(p.body),
		p.header))
	w.WriteHeader(p.status)
	if p.status == http.StatusNotModified {
		return
	}
	w.Write(p.body[:sent])
	if sent < len(p.body) {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// pick reports, in one of n cases, that something is wrong about the answer.
func (l *Liar) pick(n int) bool { return l.mayBe > 0 && l.r.IntN(n) == 0 }

// A lie is an answer.
type lie struct {
	version, from, to, total int // bytes from from to to of a version that has total
	status                   int
	header                   http.Header
	body                     []byte
}

func (p *lie) tag() string { return fmt.Sprintf(`"version-%d"`, p.version) }

// part chooses the version, the status and the bytes of an answer.
func (l *Liar) part(r *http.Request) lie {
	p := lie{version: len(l.Versions) - 1, status: http.StatusOK}
	if l.mayBe > 0 {
		p.version = l.r.IntN(len(l.Versions))
	}
	b := l.Versions[p.version]
	p.to, p.total = len(b), len(b)
	asked, ranged := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if n, err := strconv.Atoi(strings.TrimSuffix(asked, "-")); ranged && err == nil && n < len(b) &&
		(r.Header.Get("If-Range") == "" || r.Header.Get("If-Range") == p.tag() || l.pick(2)) {
		p.from, p.status = n, http.StatusPartialContent
	}
	if l.pick(4) {
		p.status = []int{200, 206, 206, 304, 416, 503}[l.r.IntN(6)]
	}
	if p.status == http.StatusPartialContent {
		if l.pick(3) { // shorter than requested
			p.to = p.from + l.r.IntN(p.to-p.from) + 1
		}
		if l.pick(4) { // from another offset
			p.from = l.r.IntN(p.to)
		}
	} else {
		p.from, p.to = 0, len(b)
	}
	p.body = b[p.from:p.to]
	return p
}

// spoil leaves out something of an answer, or makes it wrong.
func (l *Liar) spoil(p *lie) {
	h := p.header
	switch l.r.IntN(8) {
	case 0:
		h.Del("ETag")
	case 1:
		h.Set("ETag", "W/"+p.tag())
	case 2:
		h.Del("Content-Range")
	case 3:
		if p.status == http.StatusPartialContent {
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/*", p.from, p.to-1))
		}
	case 4:
		h.Set("Content-Range",
			fmt.Sprintf("bytes %d-%d/%d", p.from, p.to+l.r.IntN(9), p.total+l.r.IntN(5)))
	case 5:
		if p.status == http.StatusOK {
			var z bytes.Buffer
			g := gzip.NewWriter(&z)
			g.Write(p.body)
			g.Close()
			p.body = z.Bytes()
			h.Set("Content-Encoding", "gzip")
		}
	case 6:
		h.Set("Content-Type", "multipart/byteranges; boundary=x")
	case 7:
		if l.Forges {
			h.Set("ETag", fmt.Sprintf(`"version-%d"`, l.r.IntN(len(l.Versions))))
			p.body = bytes.Clone(p.body)
			if len(p.body) > 0 {
				p.body[l.r.IntN(len(p.body))] ^= 1
			}
		}
	}
}
