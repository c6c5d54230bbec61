package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Error is the error of an address. It contains neither a token nor the target of a redirect.
type Error struct {
	Address string
	Err     error
	Hint    string // what to do, "" if unknown
	// Absent means that there is no network, or that it mustn't be used: the address may be valid on
	// another machine.
	Absent bool
}

func (e *Error) Error() string { return printable(e.Address + ": " + e.Err.Error()) }
func (e *Error) Unwrap() error { return e.Err }

var (
	errOffline  = errors.New("not fetched yet")
	errNotFound = errors.New("not found")
)

// explain returns the error of an address, with a hint.
func (c *Cache) explain(a Address, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	e := &Error{Address: a.String(), Err: err}
	var status *statusErr
	var changed *changedError
	switch {
	case errors.Is(err, errOffline):
		e.Err, e.Absent = fmt.Errorf("%w, and %s", errOffline, c.Offline), true
	case errors.As(err, new(*unreachableError)):
		e.Absent = true
	case errors.As(err, &changed) && a.Pinned():
		e.Hint = "without #sha256=…, \"runexp pin\" takes the file as it is now"
	case errors.Is(err, errNoLength):
		e.Hint = "with #sha256=… and its digest after the address, it is fetched"
	case errors.As(err, &status):
		e.Hint = status.hint(c.Hub)
	}
	if e.Absent && a.onHub() {
		e.Hint = "files of \"hf download\" are found, too: hf download " + a.command()
	}
	return e
}

// command returns the arguments with which the hub's own tool downloads an address.
func (a Address) command() string {
	text := a.repo + " " + a.path
	if a.kind != "" {
		text += " --repo-type " + strings.TrimSuffix(a.kind, "s/")
	}
	if a.revision != "" {
		text += " --revision " + a.revision
	}
	return text
}

// A statusErr is the error of a server that refuses a request.
type statusErr struct {
	status        int
	host          string
	code, message string // the hub's own error
	address       Address
	token         bool // the request contained a token
}

// statusError returns the error of an answer without a file.
func statusError(r *answer) error {
	e := &statusErr{status: r.StatusCode, host: r.Request.URL.Host, address: r.address, token: r.token}
	if r.address.onHub() {
		e.code, e.message = r.Header.Get("X-Error-Code"), plainText(r.Header.Get("X-Error-Message"))
	}
	switch s := r.StatusCode; {
	case s == http.StatusRequestTimeout, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s >= 500:
		seconds, _ := strconv.Atoi(r.Header.Get("Retry-After"))
		return &transientError{e, time.Duration(max(0, min(seconds, 3600))) * time.Second}
	}
	return e
}

func (e *statusErr) Is(target error) bool {
	return target == errNotFound && e.status == http.StatusNotFound
}

func (e *statusErr) Error() string {
	onHub, repo := e.address.onHub(), e.address.kind+e.address.repo
	switch {
	case e.code == "GatedRepo":
		return fmt.Sprintf("access to %s is granted on request (%s)", repo, e.message)
	case e.code == "RevisionNotFound":
		return fmt.Sprintf("%s has no revision %q", repo, e.address.revision)
	case e.code == "EntryNotFound":
		return fmt.Sprintf("%s has no file %q", repo, e.address.path)
	case e.code == "RepoNotFound", onHub && e.status == http.StatusUnauthorized:
		return fmt.Sprintf("%s has no repository %s, or doesn't show it to everybody", e.host, repo)
	case e.status == http.StatusNotFound:
		return fmt.Sprintf("%s has no such file (404)", e.host)
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden:
		return fmt.Sprintf("%s doesn't give it to everybody (%d)", e.host, e.status)
	}
	return fmt.Sprintf("%s answers %d %s", e.host, e.status, http.StatusText(e.status))
}

func (e *statusErr) hint(h Hub) string {
	onHub := e.address.onHub()
	switch refused := e.status == http.StatusUnauthorized || e.status == http.StatusForbidden; {
	case e.code == "GatedRepo":
		return fmt.Sprintf("ask for access at %s/%s%s, then set HF_TOKEN, or \"hf auth login\"", h.Endpoint,
			e.address.kind, e.address.repo)
	case onHub && refused && h.Token == "":
		return "set HF_TOKEN, or \"hf auth login\", if it is private"
	case onHub && refused:
		return "the token that was sent doesn't give access to it"
	case refused:
		return "download it by hand, and name the file"
	}
	return ""
}

// shown reports whether a character may occur in file names and messages: no control character, none that
// is invisible or changes the direction of the text, and no invalid UTF-8.
func shown(r rune) bool { return unicode.IsPrint(r) && r != utf8.RuneError }

// printable returns a text without the characters that aren't shown.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !shown(r) {
			return -1
		}
		return r
	}, s)
}

// plainText returns a server's text in a form that a message may contain.
func plainText(s string) string {
	letters := []rune(printable(s))
	return string(letters[:min(len(letters), 160)])
}
