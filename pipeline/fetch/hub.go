package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/runexp/runexp/stages"
)

// A Hub is the Hugging Face Hub, or a server with the same protocol.
type Hub struct {
	Endpoint *url.URL
	Token    string // sent only to the endpoint, "" for none
	Files    string // the cache folder of the hub's own tools, "" for none
}

// userHub returns the hub that its own tools would use, by HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HOME
// and HF_HUB_CACHE.
func userHub() (h Hub, err error) {
	text := os.Getenv("HF_ENDPOINT")
	if text == "" {
		text = "https://huggingface.co"
	}
	h.Endpoint, err = url.Parse(strings.TrimRight(text, "/"))
	if err != nil || h.Endpoint.Host == "" || h.Endpoint.User != nil ||
		h.Endpoint.Scheme != "https" && (h.Endpoint.Scheme != "http" || !loopback(h.Endpoint)) {
		return h, errors.New("HF_ENDPOINT isn't the https:// address of a hub")
	}
	home := os.Getenv("HF_HOME")
	if home == "" {
		caches := os.Getenv("XDG_CACHE_HOME")
		if caches == "" {
			user, _ := os.UserHomeDir()
			caches = filepath.Join(user, ".cache")
		}
		home = filepath.Join(caches, "huggingface")
	}
	h.Files = os.Getenv("HF_HUB_CACHE")
	if h.Files == "" {
		h.Files = filepath.Join(home, "hub")
	}
	h.Token = strings.TrimSpace(os.Getenv("HF_TOKEN"))
	if h.Token == "" && !isSet("HF_HUB_DISABLE_IMPLICIT_TOKEN") {
		file := os.Getenv("HF_TOKEN_PATH")
		if file == "" {
			file = filepath.Join(home, "token")
		}
		b, _ := stages.ReadFile(file, 4<<10)
		h.Token = strings.TrimSpace(string(b))
	}
	if strings.ContainsFunc(h.Token, func(r rune) bool { return r <= ' ' || r > 0x7e }) {
		return h, errors.New("HF_TOKEN, or the file of the token, has characters that no token has")
	}
	return h, nil
}

// isSet reports whether a variable of the hub's tools is switched on.
func isSet(name string) bool {
	return slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(os.Getenv(name)))
}

// offline returns why downloads aren't allowed, "" if they are.
func offline() string {
	for _, name := range []string{"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"} {
		if isSet(name) {
			return name + " is set"
		}
	}
	return ""
}

// is reports whether a URL is on the hub's server.
func (h Hub) is(u *url.URL) bool { return u.Scheme == h.Endpoint.Scheme && u.Host == h.Endpoint.Host }

// metadata are the facts about a file in the headers of the hub's answers.
type metadata struct {
	commit string
	digest string // SHA-256 of the bytes, "" for a small file, whose digest the hub doesn't know
	size   int64  // -1 if unknown
}

// add adds the facts in the headers of an answer.
func (m *metadata) add(h http.Header) {
	if commit := h.Get("X-Repo-Commit"); validCommit(commit) {
		m.commit = commit
	}
	if tag := strings.Trim(h.Get("X-Linked-Etag"), `"`); sha256Pattern.MatchString(tag) {
		m.digest = strings.ToLower(tag)
	}
	if n, err := strconv.ParseInt(h.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
		m.size = n
	}
}

// hubMetadata asks the hub for the commit of a revision and the digest of a file.
func (c *Cache) hubMetadata(ctx context.Context, a Address) (metadata, error) {
	var m metadata
	err := c.retry(ctx, a, func() (bool, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, c.stall, errStalled)
		defer cancel()
		r, err := c.request(ctx, http.MethodHead, a, nil)
		if err != nil {
			return false, stall(err)
		}
		r.Body.Close()
		m = r.metadata
		if r.StatusCode >= 400 {
			return false, statusError(r)
		}
		return false, nil
	})
	if err == nil && m.commit == "" {
		err = fmt.Errorf("%s doesn't send the commit of %q", c.Hub.Endpoint.Host, a.revision)
	}
	return m, err
}

// downloaded returns the file of an address in the cache of the hub's own tools, if there is one. A
// branch's file is used only offline, since it may be outdated.
func (c *Cache) downloaded(a Address) (file, commit string, ok bool) {
	if !a.onHub() || c.Hub.Files == "" || !a.Pinned() && !a.Fixed() && c.Offline == "" {
		return "", "", false
	}
	kind := strings.TrimSuffix(a.kind, "/")
	if kind == "" {
		kind = "models"
	}
	dir := filepath.Join(c.Hub.Files, kind+"--"+strings.ReplaceAll(a.repo, "/", "--"))
	if commit = a.revision; !validCommit(commit) {
		if commit == "" {
			commit = "main"
		}
		b, _ := stages.ReadFile(filepath.Join(dir, "refs", filepath.FromSlash(commit)), 1<<10)
		if commit = strings.TrimSpace(string(b)); !validCommit(commit) {
			return "", "", false
		}
	}
	file = filepath.Join(dir, "snapshots", commit, filepath.FromSlash(a.path))
	info, err := os.Stat(file)
	return file, commit, err == nil && info.Mode().IsRegular()
}
