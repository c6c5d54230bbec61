package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline/fetch/fetchtest"
)

const token = "hf_secretsecret"

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// A world is a hub and a cache in front of it.
type world struct {
	*fetchtest.Hub
	c *Cache
	t *testing.T
}

func newWorld(t *testing.T) *world {
	w := &world{Hub: fetchtest.New(t), t: t}
	w.Token = token
	w.c = w.cache(t.TempDir())
	return w
}

func (w *world) cache(dir string) *Cache {
	endpoint, err := url.Parse(w.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	c := New(dir, Hub{Endpoint: endpoint, Token: token})
	c.wait = time.Millisecond
	return c
}

func (w *world) address(text string) Address {
	w.t.Helper()
	a, err := Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// fetch fetches an address, checks the bytes, and returns the file.
func (w *world) fetch(text string, want []byte) string {
	w.t.Helper()
	file, err := w.c.Fetch(w.t.Context(), w.address(text))
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(b, want) {
		w.t.Fatalf("%s: %d bytes, %v; want %d", file, len(b), err, len(want))
	}
	return file
}

// refused fetches what can't be, checks that the error has a text, and returns it.
func (w *world) refused(text string, parts ...string) *Error {
	w.t.Helper()
	a := w.address(text)
	_, err := w.c.Fetch(w.t.Context(), a)
	var e *Error
	if !errors.As(err, &e) {
		w.t.Fatalf("%s: error %v", text, err)
	}
	for _, p := range parts {
		if !strings.Contains(e.Error()+"\n"+e.Hint, p) {
			w.t.Errorf("%s: %v\nhint: %s\nlacks %q", text, e, e.Hint, p)
		}
	}
	for _, secret := range []string{token, "X-Signature", "\x1b"} {
		if strings.Contains(e.Error()+e.Hint, secret) {
			w.t.Errorf("%s: the error has %q: %v", text, secret, e)
		}
	}
	if w.c.Fetched(a) {
		w.t.Errorf("%s: is there nevertheless", text)
	}
	return e
}

func (w *world) write(file string, b []byte) {
	w.t.Helper()
	os.Remove(file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, b, 0o666)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) asked(want ...string) {
	w.t.Helper()
	got := w.Requests()
	if len(got) != len(want) {
		w.t.Fatalf("asked:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for i := range got {
		if got[i] != want[i] {
			w.t.Errorf("asked %q, want %q", got[i], want[i])
		}
	}
}

func TestFetchFromHub(t *testing.T) {
	w := newWorld(t)
	large, small := noise(5000), []byte("file,label\n")
	w.Put("org/repo/deep/images.tar.gz", large)
	w.Put("datasets/org/repo/labels.csv", small)
	file := w.fetch("hf://org/repo@main/deep/images.tar.gz", large)
	w.asked("hub GET /org/repo/resolve/main/deep/images.tar.gz Authorization: Bearer "+token,
		"cdn GET /org/repo/deep/images.tar.gz") // without the token
	if filepath.Base(file) != "images.tar.gz" || !strings.HasPrefix(file, w.c.Dir) {
		t.Errorf("the file is %s", file)
	}
	w.fetch("hf://datasets/org/repo/labels.csv#sha256="+fetchtest.Digest(small), small)
	w.asked("hub GET /datasets/org/repo/resolve/main/labels.csv Authorization: Bearer " + token)
	w.fetch("hf://org/repo@main/deep/images.tar.gz", large)
	w.asked() // it is there
	err := filepath.WalkDir(w.c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(token)) || bytes.Contains(b, []byte("X-Signature")) {
			t.Errorf("%s has a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFetchFromWeb(t *testing.T) {
	w := newWorld(t)
	b := noise(5000)
	w.Put("a/b/net.onnx", b)
	w.fetch(w.URL+"/web/a/b/net.onnx", b)
	w.asked("hub GET /web/a/b/net.onnx") // no token, though it is the hub's host
}

func TestAddresses(t *testing.T) {
	digest := strings.Repeat("0aF", 21) + "0"
	for text, name := range map[string]string{
		"https://host/a/net.onnx":                          "net.onnx",
		"https://host/a/net.onnx?download=1":               "net.onnx",
		"https://host/a/net.onnx.gz#sha256=" + digest:      "net.onnx",
		"https://host/a/images.tar.gz":                     "images.tar.gz",
		"https://host/a%2Fb/..%2fx.onnx":                   "x.onnx",
		"https://host/.lock":                               "lock",
		"http://127.0.0.1:1234/x.zip":                      "x.zip",
		"http://localhost/x.zip":                           "x.zip",
		"hf://org/repo@main/onnx/model.onnx":               "model.onnx",
		"hf://org/repo/model.onnx":                         "model.onnx",
		"hf://datasets/org/re.po@refs%2Fpr%2F1/a.zip":      "a.zip",
		"hf://spaces/org/repo@v1.0/a.zip#sha256=" + digest: "a.zip",
	} {
		a, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if a.Name() != name {
			t.Errorf("%s is called %s", text, a.Name())
		} else if got := a.String(); !strings.EqualFold(got, text) {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"ftp://host/x":               "not from ftp://",
		"file:///etc/passwd":         "not from file://",
		"http://host/x.onnx":         "https://host/x.onnx",
		"http://127.0.0.1.host/x":    "https://",
		"https://user:pw@host/x":     "no user and password",
		"https://host":               "names no file",
		"https:///x":                 "names no file",
		"https://host/x#sha256=12":   "64 hexadecimal digits",
		"https://host/x#md5=12":      "sha256=",
		"hf://repo/model.onnx":       "hf://organisation/repository@revision/file",
		"hf://org/repo@main":         "hf://organisation/repository@revision/file",
		"hf://org/repo@/x":           "hf://organisation/repository@revision/file",
		"hf://org/repo@main/../x":    "names no file",
		"hf://org/repo@..%2F..%2F/x": "no valid revision",
		"hf://../repo@main/x":        "hf://organisation/repository@revision/file",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: the error shows the password: %v", text, err)
		}
	}
}

func TestCutConnections(t *testing.T) {
	w := newWorld(t)
	b := noise(1 << 20)
	w.Put("org/repo/big.zip", b)
	w.Mishaps(fetchtest.Mishap{Cut: 300_000}, fetchtest.Mishap{Status: 503}, fetchtest.Mishap{Cut: 300_000},
		fetchtest.Mishap{Status: 429, RetryAfter: "0"})
	w.fetch("hf://org/repo@main/big.zip", b)
	ranges := 0
	for _, r := range w.Requests() {
		_, validated, ok := strings.Cut(r, "cdn GET /org/repo/big.zip Range: bytes=")
		if ok && strings.Contains(validated, " If-Range: ") {
			ranges++
		}
	}
	if ranges != 4 {
		t.Errorf("%d requests for the rest, want 4", ranges)
	}
}

// A download that one process gave up goes on in the next, unless the file has changed: then it begins anew.
func TestDownloadsGoOn(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := newWorld(t)
		b := noise(100_000)
		w.Put("org/repo/big.zip", b)
		w.Mishaps(fetchtest.Mishap{Cut: 60_000}, fetchtest.Mishap{Status: 404})
		w.refused("hf://org/repo@main/big.zip", "404")
		if changed {
			b = noise(100_001)
			w.Put("org/repo/big.zip", b)
		}
		w.Requests()
		w.c = w.cache(w.c.Dir)
		w.fetch("hf://org/repo@main/big.zip", b)
		if list := w.Requests(); len(list) != 2 || !strings.Contains(list[1], "Range: bytes=60000-") {
			t.Errorf("asked %q", list)
		}
	}
}

func TestServersThatMishandleRanges(t *testing.T) {
	cut := fetchtest.Mishap{Cut: 60_000}
	noTag := cut
	noTag.NoETag = true
	for name, list := range map[string][]fetchtest.Mishap{
		"ignores":           {cut, {Whole: true}},
		"sends another":     {cut, {Wrong: true}},
		"416":               {cut, {Status: 416}},
		"tells no version":  {noTag, {NoETag: true}},
		"nothing, for long": {{Cut: 60_000, Stall: 30 * time.Second}},
	} {
		for _, pinned := range []bool{false, true} {
			w := newWorld(t)
			w.c.stall = 100 * time.Millisecond
			b := noise(100_000)
			w.Put("a/b/big.zip", b)
			w.Mishaps(list...)
			text := w.URL + "/web/a/b/big.zip"
			if pinned {
				text += "#sha256=" + fetchtest.Digest(b)
			}
			w.fetch(text, b)
			if n := len(w.Requests()); n > 3 {
				t.Errorf("%s: %d requests", name, n)
			}
		}
	}
}

// The part that is there may be of another version where no ETag tells: the digest does.
func TestPartOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	b := noise(100_000)
	w.Put("a/b/big.zip", noise(100_001))
	w.Mishaps(fetchtest.Mishap{Cut: 60_000, NoETag: true}, fetchtest.Mishap{Status: 404})
	text := w.URL + "/web/a/b/big.zip#sha256=" + fetchtest.Digest(b)
	w.refused(text, "404")
	w.Put("a/b/big.zip", b)
	w.fetch(text, b)
}

func TestWrongDigests(t *testing.T) {
	w := newWorld(t)
	w.Put("org/repo/big.zip", noise(5000))
	w.Put("org/repo/small.csv", noise(50))
	wrong := "#sha256=" + fetchtest.Digest([]byte("else"))
	e := w.refused("hf://org/repo@main/big.zip"+wrong,
		"it has the digest sha256="+fetchtest.Digest(noise(5000))[:12],
		"the address says sha256="+wrong[8:20], "runexp pin")
	if e.Absent {
		t.Error("it is absent")
	}
	w.asked("hub GET /org/repo/resolve/main/big.zip Authorization: Bearer "+token,
		"cdn GET /org/repo/big.zip") // whose bytes aren't read
	w.refused("hf://org/repo@main/small.csv"+wrong, "it has the digest")
	w.refused(w.URL+"/web/org/repo/big.zip"+wrong, "it has the digest")
	parts, _ := filepath.Glob(filepath.Join(w.c.Dir, "*", ".part*"))
	for _, p := range parts {
		if info, err := os.Stat(p); err == nil && info.Size() > 0 && !strings.HasSuffix(p, ".json") {
			t.Errorf("%s has %d bytes", p, info.Size())
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.c.Hub.Token = "other"
	w.Put("org/gated/x.zip", noise(2000))
	w.Put("org/repo/x.zip", noise(2000))
	w.refused("hf://org/gated@main/x.zip",
		"access to org/gated is granted on request (Access to it is restricted.", "HF_TOKEN")
	w.refused("hf://org/repo@main/y.zip", `org/repo has no file "y.zip"`)
	w.refused("hf://org/repo@old/x.zip", `org/repo has no revision "old"`)
	w.refused("hf://org/none@main/x.zip", "has no repository org/none, or doesn't show it")
	w.refused(w.URL+"/web/a/b/c", "has no such file (404)")
	w.Mishaps(fetchtest.Mishap{Status: 403})
	w.refused(w.URL+"/web/org/repo/x.zip", "doesn't give it to everybody (403)", "by hand")
	w.Mishaps(fetchtest.Mishap{Status: 500}, fetchtest.Mishap{Status: 500}, fetchtest.Mishap{Status: 500},
		fetchtest.Mishap{Status: 500}, fetchtest.Mishap{Status: 500})
	w.refused(w.URL+"/web/org/repo/x.zip", "answers 500")
	w.c.Hub.Token = token
	w.fetch("hf://org/gated@main/x.zip", noise(2000))
}

func TestRedirects(t *testing.T) {
	w := newWorld(t)
	var to string
	secure := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token is sent elsewhere")
		}
		http.Redirect(rw, r, to, http.StatusFound)
	}))
	defer secure.Close()
	w.c.transport.TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	w.Put("a/b/x.zip", noise(2000))
	for target, want := range map[string]string{
		w.URL + "/web/a/b/x.zip": "a redirect to http://, which isn't followed",
		"file:///etc/passwd":     "a redirect to",
		secure.URL + "/again":    "more than 10 redirects",
		"http://%zz":             "a redirect to nowhere",
	} {
		to = target
		w.refused(secure.URL+"/x.zip", want)
	}
	plain := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, to, http.StatusMovedPermanently)
	}))
	defer plain.Close()
	to = "http://example.org/x.zip"
	w.refused(plain.URL+"/x.zip", "a redirect to http://, which isn't followed")
	to = w.URL + "/web/a/b/x.zip"
	w.fetch(plain.URL+"/x.zip", noise(2000))
}

func TestSizeLimit(t *testing.T) {
	w := newWorld(t)
	w.c.most = 3000
	w.Put("org/repo/x.zip", noise(5000))
	w.refused("hf://org/repo@main/x.zip", "more than 3000 bytes")
	w.Put("org/repo/x.onnx.gz", packed(make([]byte, 100_000)))
	w.refused("hf://org/repo@main/x.onnx.gz", "more than 3000 bytes")
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// Of a packed file, the digest is that of the file inside.
func TestPackedFile(t *testing.T) {
	w := newWorld(t)
	b := noise(5000)
	w.Put("org/repo/x.onnx.gz", packed(b))
	text := "hf://org/repo@main/x.onnx.gz"
	if file := w.fetch(text+"#sha256="+fetchtest.Digest(b), b); filepath.Base(file) != "x.onnx" {
		t.Errorf("the file is %s", file)
	}
	w.refused(text+"#sha256="+fetchtest.Digest(packed(b)), "it has the digest")
	a, err := w.c.Pin(t.Context(), w.address(text))
	if want := "hf://org/repo@" + fetchtest.Commit + "/x.onnx.gz#sha256=" + fetchtest.Digest(b); err != nil ||
		a.String() != want {
		t.Errorf("pinned %s, %v; want %s", a, err, want)
	}
	w.Put("org/repo/y.onnx.gz", b)
	w.refused("hf://org/repo@main/y.onnx.gz", "no .gz file")
}

// Of several that fetch the same file at once, one downloads it.
func TestSeveralAtOnce(t *testing.T) {
	w := newWorld(t)
	b := noise(1 << 20)
	w.Put("org/repo/x.zip", b)
	w.Mishaps(fetchtest.Mishap{Cut: 500_000})
	var wait sync.WaitGroup
	for range 8 {
		c := w.cache(w.c.Dir)
		wait.Go(func() {
			file, err := c.Fetch(context.Background(), w.address("hf://org/repo@main/x.zip"))
			if err != nil {
				t.Error(err)
			} else if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	wait.Wait()
	if n := len(w.Requests()); n != 4 { // two, and two for the rest
		t.Errorf("%d requests", n)
	}
}

func TestOffline(t *testing.T) {
	w := newWorld(t)
	b := noise(2000)
	w.Put("org/repo/x.zip", b)
	w.c.Offline = "HF_HUB_OFFLINE is set"
	e := w.refused("hf://org/repo@main/x.zip", "not fetched yet, and HF_HUB_OFFLINE is set",
		"hf download org/repo x.zip --revision main")
	if !e.Absent {
		t.Error("it isn't absent")
	}
	w.asked()
	// what the hub's own tools have
	w.c.Hub.Files = t.TempDir()
	repo := filepath.Join(w.c.Hub.Files, "models--org--repo")
	for name, text := range map[string]string{"refs/main": fetchtest.Commit,
		"snapshots/" + fetchtest.Commit + "/x.zip": string(b)} {
		w.write(filepath.Join(repo, name), []byte(text))
	}
	w.fetch("hf://org/repo@main/x.zip", b)
	w.fetch("hf://org/repo@main/x.zip#sha256="+fetchtest.Digest(b), b)
	w.refused("hf://org/repo@main/x.zip#sha256="+fetchtest.Digest([]byte("else")), "it has the digest")
	w.asked()
	w.c.Offline = ""
	w.fetch("hf://org/repo@"+fetchtest.Commit+"/x.zip", b)
	w.asked() // a commit's file is what it was; a branch's may not be
	w.Put("org/repo/x.zip", b[1:])
	w.fetch("hf://org/repo/x.zip", b[1:])
}

func TestNoNetwork(t *testing.T) {
	w := newWorld(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w.c.wait = time.Hour // it isn't tried again
	if e := w.refused(gone.URL+"/x.zip", "no connection to 127.0.0.1:"); !e.Absent {
		t.Error("it isn't absent")
	}
}

func TestPin(t *testing.T) {
	w := newWorld(t)
	large, small := noise(5000), noise(50)
	w.Put("org/repo/x.zip", large)
	w.Put("org/repo/labels.csv", small)
	pin := func(text, want string) {
		t.Helper()
		a, err := w.c.Pin(t.Context(), w.address(text))
		if err != nil || a.String() != want {
			t.Errorf("%s pinned: %s, %v; want %s", text, a, err, want)
		}
	}
	at := "hf://org/repo@" + fetchtest.Commit
	pin("hf://org/repo/x.zip", at+"/x.zip#sha256="+fetchtest.Digest(large))
	w.asked("hub HEAD /org/repo/resolve/main/x.zip Authorization: Bearer " + token) // nothing downloaded
	pin("hf://org/repo@main/labels.csv", at+"/labels.csv#sha256="+fetchtest.Digest(small))
	digest := "#sha256=" + fetchtest.Digest(large)
	pin("hf://org/repo@main/x.zip"+digest, at+"/x.zip"+digest)
	w.Requests()
	web := w.URL + "/web/org/repo/x.zip"
	w.fetch(web, large)
	w.asked("hub GET /web/org/repo/x.zip")
	pin(web, web+"#sha256="+fetchtest.Digest(large))
	w.asked(fmt.Sprintf("hub GET /web/org/repo/x.zip If-None-Match: %q", fetchtest.Digest(large)[:20]))
	w.fetch(web+"#sha256="+fetchtest.Digest(large), large)
	w.asked() // the same bytes are there
	pin(web+"#sha256="+fetchtest.Digest(large), web+"#sha256="+fetchtest.Digest(large))
	w.asked()
	// another version is seen by pin alone
	w.Put("org/repo/x.zip", small)
	w.fetch(web, large)
	w.asked()
	pin(web, web+"#sha256="+fetchtest.Digest(small))
	w.fetch(web, small)
	w.fetch(web+"#sha256="+fetchtest.Digest(large), large)
	if _, err := w.c.Pin(t.Context(), w.address("hf://org/repo@main/none.zip")); err == nil ||
		!strings.Contains(err.Error(), `has no file "none.zip"`) {
		t.Error(err)
	}
}

// A model on the hub may keep its weights in a second file.
func TestWeightsOfModels(t *testing.T) {
	w := newWorld(t)
	w.Put("org/repo/onnx/model.onnx", noise(500))
	w.Put("org/repo/onnx/model.onnx_data", noise(5000))
	w.Put("org/repo/one/model.onnx", noise(501))
	for _, text := range []string{"hf://org/repo/onnx/model.onnx",
		"hf://org/repo@" + fetchtest.Commit + "/onnx/model.onnx#sha256=" + fetchtest.Digest(noise(500))} {
		file := w.fetch(text, noise(500))
		if b, err := os.ReadFile(file + "_data"); err != nil || !bytes.Equal(b, noise(5000)) {
			t.Errorf("weights: %d bytes, %v", len(b), err)
		}
		if err := os.Remove(file + "_data"); err != nil || w.c.Fetched(w.address(text)) {
			t.Error("without its weights the model is taken to be there", err)
		}
	}
	w.fetch("hf://org/repo/one/model.onnx", noise(501))
}

// A file that somebody has changed is fetched again.
func TestChangedFiles(t *testing.T) {
	w := newWorld(t)
	b := noise(2000)
	w.Put("org/repo/x.zip", b)
	file := w.fetch("hf://org/repo/x.zip", b)
	w.write(file, b)
	w.fetch("hf://org/repo/x.zip", b)
	w.asked("hub GET /org/repo/resolve/main/x.zip Authorization: Bearer "+token, "cdn GET /org/repo/x.zip")
	w.write(file, append(noise(1999), 7))
	w.fetch("hf://org/repo/x.zip", b)
}

func TestStop(t *testing.T) {
	w := newWorld(t)
	w.Put("org/repo/x.zip", noise(100_000))
	w.Mishaps(fetchtest.Mishap{Cut: 50_000, Stall: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	w.c.Show = func(p Progress) { cancel() }
	if _, err := w.c.Fetch(ctx, w.address("hf://org/repo/x.zip")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUserHub(t *testing.T) {
	for _, name := range []string{"HF_ENDPOINT", "HF_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE",
		"HF_HUB_DISABLE_IMPLICIT_TOKEN", "HF_HOME", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	hub := func() Hub {
		t.Helper()
		c, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		if c.Dir != filepath.Join(home, "runexp", "files") {
			t.Error(c.Dir)
		}
		return c.Hub
	}
	if h := hub(); h.Endpoint.String() != "https://huggingface.co" || h.Token != "" ||
		h.Files != filepath.Join(home, "huggingface", "hub") {
		t.Errorf("%+v", h)
	}
	own := t.TempDir()
	t.Setenv("HF_HOME", own)
	if err := os.WriteFile(filepath.Join(own, "token"), []byte("hf_file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := hub(); h.Token != "hf_file" || h.Files != filepath.Join(own, "hub") {
		t.Errorf("%+v", h)
	}
	t.Setenv("HF_TOKEN", " hf_variable ")
	t.Setenv("HF_ENDPOINT", "https://mirror.example/hf/")
	h := hub()
	if h.Token != "hf_variable" || h.Endpoint.String() != "https://mirror.example/hf" {
		t.Errorf("%+v", h)
	}
	a, err := Parse("hf://org/repo@refs%2Fpr%2F1/a b.onnx")
	if err != nil {
		t.Fatal(err)
	}
	const want = "https://mirror.example/hf/org/repo/resolve/refs%2Fpr%2F1/a%20b.onnx"
	if got := a.url(h).String(); got != want {
		t.Error(got)
	}
	for name, value := range map[string]string{"HF_ENDPOINT": "http://mirror.example", "HF_TOKEN": "a\nb"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			if _, err := Open(); err == nil || strings.Contains(err.Error(), value) {
				t.Error(err)
			}
		})
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	if c, err := Open(); err != nil || c.Offline != "HF_HUB_OFFLINE is set" {
		t.Error(c, err)
	}
}
