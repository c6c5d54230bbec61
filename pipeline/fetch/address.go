package fetch

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// An Address names a file elsewhere: on a web server, or on the Hugging Face Hub.
type Address struct {
	text   string   // as written, without a digest
	web    *url.URL // nil on the hub
	digest string   // SHA-256 in lower-case hex, "" if the address has none

	kind           string // of a hub's repository: "" for models, or datasets/ or spaces/
	repo           string // org/name
	revision, path string // a branch, tag or commit, "" for main; the file
}

var (
	sha256Pattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)
	hubPattern    = regexp.MustCompile(`^hf://(datasets/|spaces/)?` +
		`([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([^/@]+))?/([^?]+)$`)
)

func validCommit(s string) bool { return commitPattern.MatchString(s) }

// Parse reads an address.
func Parse(text string) (a Address, err error) {
	for _, r := range text {
		if !shown(r) {
			return a, fmt.Errorf("%q has a letter that isn't printed: write it as %%XX", printable(text))
		}
	}
	base, fragment, cut := strings.Cut(text, "#")
	a.text = base
	if cut {
		digest, ok := strings.CutPrefix(fragment, "sha256=")
		if !ok || !sha256Pattern.MatchString(digest) {
			return a, fmt.Errorf("behind # in an address stands sha256= and 64 hexadecimal digits, not %q",
				fragment)
		}
		a.digest = strings.ToLower(digest)
	}
	scheme, _, _ := strings.Cut(base, "://")
	switch scheme {
	case "hf":
		return a, a.parseHub(base)
	case "https", "http":
	default:
		return a, fmt.Errorf("files are fetched from https:// and hf://, not from %s://", scheme)
	}
	if a.web, err = url.Parse(base); err != nil {
		return a, fmt.Errorf("%q is no address", base)
	}
	switch {
	case a.web.User != nil: // experiments are published
		return a, fmt.Errorf("an address has no user and password")
	case a.web.Hostname() == "" || strings.Trim(a.web.Path, "/") == "":
		return a, fmt.Errorf("%q names no file of a server", base)
	case scheme == "http" && !loopback(a.web):
		return a, fmt.Errorf("http:// is for this machine alone: https://%s",
			strings.TrimPrefix(base, "http://"))
	}
	return a, nil
}

func (a *Address) parseHub(base string) error {
	m := hubPattern.FindStringSubmatch(base)
	if m == nil {
		return fmt.Errorf("%q isn't hf://organisation/repository@revision/file", base)
	}
	a.kind, a.repo, a.path = m[1], m[2], m[4]
	revision, err := url.PathUnescape(m[3])
	if err != nil || strings.Contains(revision, "..") || printable(revision) != revision {
		return fmt.Errorf("%q has no valid revision", base)
	}
	if path.Clean("/"+a.path) != "/"+a.path {
		return fmt.Errorf("%q names no file of a repository", base)
	}
	a.revision = revision
	return nil
}

func (a Address) onHub() bool { return a.web == nil }

// Pinned reports whether the address says which bytes its file has.
func (a Address) Pinned() bool { return a.digest != "" }

// Fixed reports whether the address always names the same version of the file: on the hub, a commit.
func (a Address) Fixed() bool { return !a.onHub() || validCommit(a.revision) }

// String returns the address as an experiment writes it.
func (a Address) String() string {
	if a.digest == "" {
		return a.text
	}
	return a.text + "#sha256=" + a.digest
}

// with returns the address with a digest.
func (a Address) with(digest string) Address {
	a.digest = digest
	return a
}

// at returns the hub's address at a commit.
func (a Address) at(commit string) Address {
	a.revision = commit
	a.text = "hf://" + a.kind + a.repo + "@" + commit + "/" + a.path
	return a
}

// longer returns the address of the hub's file whose path is longer by an ending.
func (a Address) longer(ending string) Address {
	a.digest = ""
	a.path += ending
	a.text += ending
	return a
}

// url returns where a is downloaded.
func (a Address) url(h Hub) *url.URL {
	if !a.onHub() {
		return a.web
	}
	revision := a.revision
	if revision == "" {
		revision = "main"
	}
	u := *h.Endpoint
	prefix := strings.TrimSuffix(u.Path, "/") + "/" + a.kind + a.repo + "/resolve/"
	u.Path = prefix + revision + "/" + a.path
	var segments []string
	for s := range strings.SplitSeq(a.path, "/") {
		segments = append(segments, url.PathEscape(s))
	}
	u.RawPath = prefix + url.PathEscape(revision) + "/" + strings.Join(segments, "/")
	return &u
}

// Name returns the name of the local file: the address's last element, .gz removed where it is unpacked.
func (a Address) Name() string {
	name := path.Base(a.file())
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || !shown(r) {
			return '-'
		}
		return r
	}, name)
	if a.unpacks() {
		name = name[:len(name)-len(".gz")]
	}
	const longest = 120 // bytes; the end, which has the extension
	name = strings.ToValidUTF8(name[max(0, len(name)-longest):], "")
	if name = strings.TrimLeft(name, "."); name == "" {
		return "file"
	}
	return name
}

// packed reports whether the file's own bytes are those of gzip. Servers tell that as an encoding, too.
func (a Address) packed() bool {
	name := strings.ToLower(a.file())
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz")
}

// unpacks reports whether the file is a single one in a .gz.
func (a Address) unpacks() bool {
	name := strings.ToLower(a.file())
	return strings.HasSuffix(name, ".gz") && !strings.HasSuffix(name, ".tar.gz")
}

// file returns the path of the file on its server.
func (a Address) file() string {
	if a.onHub() {
		return a.path
	}
	return a.web.Path
}

// loopback reports whether a URL is of this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
