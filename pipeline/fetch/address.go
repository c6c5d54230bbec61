package fetch

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strings"
)

// An Address names a remote file: on a web server, or on the Hugging Face Hub.
type Address struct {
	text   string   // as written, without a digest
	web    *url.URL // nil for the hub
	digest string   // SHA-256 in lower-case hex, "" without a digest

	kind           string // of the hub's repository: "" for models, or datasets/ or spaces/
	repo           string // org/name
	revision, path string // a branch, tag or commit, "" for main; the file's path
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
			return a, fmt.Errorf("%q has an unprintable character: write it as %%XX", printable(text))
		}
	}
	base, fragment, cut := strings.Cut(text, "#")
	a.text = base
	if cut {
		digest, ok := strings.CutPrefix(fragment, "sha256=")
		if !ok || !sha256Pattern.MatchString(digest) {
			return a, fmt.Errorf("after # an address has sha256= and 64 hexadecimal digits, not %q",
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

// Pinned reports whether the address contains the digest of its file.
func (a Address) Pinned() bool { return a.digest != "" }

// Fixed reports whether the address always names the same version of the file: on the hub, a commit.
func (a Address) Fixed() bool { return !a.onHub() || validCommit(a.revision) }

// String returns the address as written in an experiment.
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

// longer returns the hub's address with an ending appended to its path.
func (a Address) longer(ending string) Address {
	a.digest = ""
	a.path += ending
	a.text += ending
	return a
}

// url returns the URL from which a is downloaded.
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

// Name returns the name of the local file: the address's last element, without .gz if the file is unpacked.
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
	const longest = 120 // bytes; the end, which has the extension, stays
	name = strings.ToValidUTF8(name[max(0, len(name)-longest):], "")
	if name = strings.TrimLeft(name, "."); name == "" {
		return "file"
	}
	return name
}

// packed reports whether the file itself is compressed by gzip. Servers announce that as an encoding, too.
func (a Address) packed() bool {
	name := strings.ToLower(a.file())
	return strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz")
}

// unpacks reports whether the file is a single compressed file, .gz, to be unpacked.
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

// loopback reports whether a URL names this machine.
func loopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
