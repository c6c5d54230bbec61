package fetch

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline/fetch/fetchtest"
)

var lies = flag.Int("lies", 400, "seeds of servers that answer as they like")

// TestLiars holds that whatever a server answers, the file that is kept has the bytes of one version of the
// server's, or there is an error: for a digest, whose bytes may be forged, those of the digest.
func TestLiars(t *testing.T) {
	same := noise(5000) // of the length of another one
	slices.Reverse(same)
	versions := [][]byte{same, noise(5001), noise(5000)}
	fetched := 0
	for seed := range *lies {
		pinned := seed%2 == 1
		l := fetchtest.NewLiar(uint64(seed), seed%9, versions...)
		l.Forges = pinned
		server := httptest.NewServer(l)
		w := newWorld(t)
		w.c.stall = 2 * time.Second
		text, may := server.URL+"/a.zip", versions
		if pinned {
			text, may = text+"#sha256="+fetchtest.Digest(versions[2]), versions[2:]
		}
		file, err := w.c.Fetch(t.Context(), w.address(text))
		if err == nil {
			got, err := os.ReadFile(file)
			fetched++
			if err != nil || !slices.ContainsFunc(may, func(v []byte) bool { return bytes.Equal(v, got) }) {
				t.Errorf("seed %d: %d bytes of no version are kept, %v:\n%s", seed, len(got), err, l.Log())
			}
		} else if seed%9 == 0 {
			t.Errorf("seed %d: an honest server's file isn't fetched: %v\n%s", seed, err, l.Log())
		}
		server.Close()
	}
	if fetched < *lies/2 {
		t.Errorf("%d of %d files were fetched", fetched, *lies)
	}
}

// raw serves answers as they are written, one a connection.
func raw(t *testing.T, answers ...string) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4<<10))
			io.WriteString(c, answers[min(i, len(answers)-1)])
			c.Close()
		}
	}()
	return "http://" + l.Addr().String() + "/a.bin"
}

func TestAnswersWithoutLength(t *testing.T) {
	w := newWorld(t)
	const answer = "HTTP/1.0 200 OK\r\n\r\nabc"
	w.refused(raw(t, answer), "sends neither the file's length nor its end", "#sha256=")
	w.fetch(raw(t, answer)+"#sha256="+fetchtest.Digest([]byte("abc")), []byte("abc"))
}

func TestPackedAnswers(t *testing.T) {
	w := newWorld(t)
	z := string(packed([]byte("abc")))
	const head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: %s\r\nContent-Length: " +
		"%d\r\n\r\n%s"
	url := raw(t, fmt.Sprintf(head, "gzip", len(z), z))
	w.refused(url, "Content-Encoding: gzip", "wasn't asked to")
	// Servers tell as an encoding what the file itself is.
	w.fetch(strings.TrimSuffix(url, ".bin")+".bin.gz", []byte("abc"))
}

// A server that says nothing, or a byte now and then, ends in an error, for pin as for fetch.
func TestSilentServers(t *testing.T) {
	for name, slow := range map[string]http.HandlerFunc{
		"silent": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drips": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "1000000")
			for r.Context().Err() == nil && r.Method == http.MethodGet {
				rw.Write([]byte("x"))
				rw.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
			<-r.Context().Done()
		},
	} {
		server := httptest.NewServer(slow)
		w := newWorld(t)
		w.c.stall = 50 * time.Millisecond
		again := 0
		w.c.Again = func(why string) {
			again++
			if !strings.Contains(why, "hardly anything arrives") {
				t.Errorf("%s: %s", name, why)
			}
		}
		w.c.Hub.Endpoint = w.address(server.URL + "/x").web
		w.c.Hub.Endpoint.Path = ""
		begin := time.Now()
		w.refused(server.URL+"/a.zip", map[string]string{"silent": "hardly anything arrives",
			"drips": "from the beginning again"}[name])
		if _, err := w.c.Pin(t.Context(), w.address("hf://org/repo/a.zip")); err == nil {
			t.Errorf("%s: pinned", name)
		}
		if d := time.Since(begin); d > 20*time.Second || again == 0 {
			t.Errorf("%s: it took %v, and was told %d times", name, d, again)
		}
		server.Close()
	}
}

// The token isn't sent to the hub's host by way of another server.
func TestTokenAfterAnotherServer(t *testing.T) {
	w := newWorld(t)
	var other *httptest.Server
	sent := 0
	hub := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/back" {
			http.Redirect(rw, r, other.URL, http.StatusFound)
			return
		}
		if r.Header.Get("Authorization") != "" {
			sent++
		}
		rw.Header().Set("X-Repo-Commit", strings.Repeat("ab", 20)) // nor is it the hub that tells this
		rw.Write([]byte("abc"))
	}))
	defer hub.Close()
	other = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, hub.URL+"/back", http.StatusFound)
	}))
	defer other.Close()
	w.c.Hub.Endpoint = w.address(hub.URL + "/x").web
	w.c.Hub.Endpoint.Path = ""
	w.fetch("hf://org/repo/a.zip", []byte("abc"))
	if sent > 0 {
		t.Error("the token is sent by way of another server")
	}
}

// What a server cuts again and again without going on is downloaded a few times, not hundreds.
func TestDownloadsAreBounded(t *testing.T) {
	w := newWorld(t)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked++
		rw.Header().Set("Content-Length", "1000")
		rw.Write(make([]byte, 500))
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	w.refused(server.URL+"/a.zip", "from the beginning again and again")
	if asked > mostRestarts+2 {
		t.Errorf("asked %d times", asked)
	}
}

func TestNamesAreShown(t *testing.T) {
	for _, text := range []string{"https://host/a\u202egnp.exe", "https://host/a\u009b31m",
		"https://host/\xff",
		"hf://org/repo@main/a\u200b"} {
		if _, err := Parse(text); err == nil || printable(err.Error()) != err.Error() {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, name := range map[string]string{
		"https://host/a%E2%80%AEgnp.exe": "a-gnp.exe",
		"https://host/a%C2%9B31m":        "a-31m",
		"https://host/a%FFb":             "a-b",
		"https://host/caf%C3%A9.zip":     "café.zip",
	} {
		if a, err := Parse(text); err != nil || a.Name() != name {
			t.Errorf("%s: %q, %v", text, a.Name(), err)
		}
	}
}
