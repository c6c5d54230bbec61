// Package fetchtest has servers for tests. hub.go is a Hugging Face Hub with a second server, the CDN, for
// large files; its answers can fail as on a real network. liar.go is a server whose answers may be wrong in
// any way.
package fetchtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Commit is the commit of branch main in every repository.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// A Hub serves files by their paths org/repo/file. Files of at least Large bytes are on the CDN; files of a
// repository called gated require the token. Every file is also at /web/org/repo/file, as on a plain
// server.
type Hub struct {
	URL, CDN string
	Token    string

	mu       sync.Mutex
	files    map[string][]byte
	requests []string
	mishaps  []Mishap
}

// Large is the number of bytes from which on a file is on the CDN.
const Large = 1000

// A Mishap changes one answer that has a body.
type Mishap struct {
	Status     int    // answer with this status instead
	RetryAfter string // header of such an answer
	Cut        int    // end the connection after this many bytes; 0: don't
	Whole      bool   // ignore the requested range
	Wrong      bool   // send another range than requested
	NoETag     bool   // omit the version
	Stall      time.Duration
}

// New starts both servers; they end with the test.
func New(t testing.TB) *Hub {
	h := &Hub{files: map[string][]byte{}}
	hub := httptest.NewServer(http.HandlerFunc(h.serveHub))
	cdn := httptest.NewServer(http.HandlerFunc(h.serveCDN))
	t.Cleanup(hub.Close)
	t.Cleanup(cdn.Close)
	h.URL, h.CDN = hub.URL, cdn.URL
	return h
}

// Put stores a file.
func (h *Hub) Put(file string, b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files[file] = b
}

// Mishaps sets the mishaps of the next answers with a body, one each.
func (h *Hub) Mishaps(list ...Mishap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mishaps = list
}

// Requests returns the requests since the last call: server, method, path, range and user agent.
func (h *Hub) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.requests
	h.requests = nil
	return list
}

func (h *Hub) note(server string, r *http.Request) {
	line := server + " " + r.Method + " " + r.URL.Path
	for _, name := range []string{"Range", "If-Range", "If-None-Match", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			line += " " + name + ": " + v
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, line)
}

var resolve = regexp.MustCompile(`^/((?:datasets/)?[^/]+/[^/]+)/resolve/([^/]+)/(.+)$`)

func (h *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	h.note("hub", r)
	if file, ok := strings.CutPrefix(r.URL.Path, "/web/"); ok {
		h.serve(w, r, file)
		return
	}
	refuse := func(status int, code, message string) {
		w.Header().Set("X-Error-Code", code)
		w.Header().Set("X-Error-Message", message)
		w.WriteHeader(status)
	}
	m := resolve.FindStringSubmatch(r.URL.Path)
	switch {
	case m == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case strings.HasSuffix(m[1], "/gated") && r.Header.Get("Authorization") != "Bearer "+h.Token:
		refuse(http.StatusUnauthorized, "GatedRepo", "Access to it is restricted.")
		return
	case m[2] != "main" && m[2] != Commit:
		refuse(http.StatusNotFound, "RevisionNotFound", "Invalid rev id")
		return
	}
	h.mu.Lock()
	b, ok := h.files[m[1]+"/"+m[3]]
	known := slices.ContainsFunc(keys(h.files), func(f string) bool { return strings.HasPrefix(f, m[1]+"/") })
	h.mu.Unlock()
	switch {
	case !known:
		refuse(http.StatusUnauthorized, "RepoNotFound", "Repository not found")
		return
	case !ok:
		refuse(http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	w.Header().Set("X-Repo-Commit", Commit)
	if len(b) < Large {
		h.serve(w, r, m[1]+"/"+m[3])
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+Digest(b)+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(b)))
	http.Redirect(w, r, h.CDN+"/"+m[1]+"/"+m[3]+"?X-Signature=secret", http.StatusFound)
}

func keys(m map[string][]byte) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

func (h *Hub) serveCDN(w http.ResponseWriter, r *http.Request) {
	h.note("cdn", r)
	h.serve(w, r, strings.TrimPrefix(r.URL.Path, "/"))
}

// serve sends a file, or fails by the next mishap.
func (h *Hub) serve(w http.ResponseWriter, r *http.Request, file string) {
	h.mu.Lock()
	b, ok := h.files[file]
	var m Mishap
	if r.Method == http.MethodGet && len(h.mishaps) > 0 && ok {
		m, h.mishaps = h.mishaps[0], h.mishaps[1:]
	}
	h.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case m.Status != 0:
		w.Header().Set("Retry-After", m.RetryAfter)
		w.WriteHeader(m.Status)
		return
	case m.Whole:
		r.Header.Del("Range")
	case m.Wrong:
		r.Header.Set("Range", "bytes=1-")
		r.Header.Del("If-Range")
	}
	if !m.NoETag {
		w.Header().Set("ETag", `"`+Digest(b)[:20]+`"`)
	}
	if m.Cut > 0 || m.Stall > 0 {
		w = &cutWriter{w, m.Cut, m.Stall, r}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// A cutWriter ends the connection, or stays silent, after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left  int
	stall time.Duration
	r     *http.Request
}

func (w *cutWriter) Write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b[:min(len(b), w.left)])
	if w.left -= n; w.left == 0 {
		w.ResponseWriter.(http.Flusher).Flush()
		if w.stall > 0 {
			select {
			case <-time.After(w.stall):
			case <-w.r.Context().Done():
			}
		}
		panic(http.ErrAbortHandler)
	}
	return n, err
}

// Digest returns the SHA-256 of b as addresses write it.
func Digest(b []byte) string {
	d := sha256.Sum256(b)
	return hex.EncodeToString(d[:])
}
