package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// newTransport returns the transport of requests. Unlike a client it follows no redirects, since they must
// not get the token.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 20 * time.Second
	t.DisableCompression = true
	return t
}

// maxRedirects bounds a chain of redirects.
const maxRedirects = 10

// An answer is the response of the server that has the file, with the metadata that the hub has sent
// before.
type answer struct {
	*http.Response
	metadata
	address Address
	token   bool // the hub was sent a token
}

// request requests an address's file and follows redirects: at most maxRedirects, never from https to http,
// and with the token only on the hub's own server. HEAD stops when the hub redirects it to another server.
func (c *Cache) request(ctx context.Context, method string, a Address, header http.Header) (*answer, error) {
	out := &answer{address: a, metadata: metadata{size: -1}}
	u := a.url(c.Hub)
	ofHub := a.onHub()
	for range maxRedirects + 1 {
		req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
		if err != nil {
			return nil, fmt.Errorf("%s: no address to ask for", u.Host)
		}
		for name, values := range header {
			req.Header[name] = values
		}
		req.Header.Set("User-Agent", "runexp")
		// Ranges, lengths and digests refer to the file's own bytes.
		req.Header.Set("Accept-Encoding", "identity")
		// Once another server has redirected the request, it gets no token, not even on the hub's host.
		ofHub = ofHub && c.Hub.is(u)
		if out.token = ofHub && c.Hub.Token != ""; out.token {
			req.Header.Set("Authorization", "Bearer "+c.Hub.Token)
		}
		if out.Response, err = c.transport.RoundTrip(req); err != nil {
			return nil, unreachable(ctx, u, err)
		}
		if ofHub {
			out.metadata.add(out.Header)
		}
		next, err := redirect(u, out.Response)
		switch {
		case err != nil:
			out.Body.Close()
			return nil, err
		case next == nil, method == http.MethodHead && ofHub && !c.Hub.is(next):
			return out, nil
		}
		out.Body.Close()
		u = next
	}
	return nil, fmt.Errorf("%s: more than %d redirects", a.url(c.Hub).Host, maxRedirects)
}

// redirect returns the target of a redirect, nil if the answer isn't one.
func redirect(from *url.URL, r *http.Response) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || to.Host == "" || r.Header.Get("Location") == "":
		return nil, fmt.Errorf("%s: a redirect to nowhere", from.Host)
	case to.Scheme == "https", to.Scheme == "http" && from.Scheme == "http" && loopback(to):
		return to, nil
	}
	return nil, fmt.Errorf("%s: a redirect to %s://, which isn't followed", from.Host, to.Scheme)
}

// A transientError is an error that another attempt may not have.
type transientError struct {
	error
	after time.Duration // the wait that the server asks for
}

func (e *transientError) Unwrap() error { return e.error }

// An unreachableError is the error of a server that can't be connected.
type unreachableError struct {
	host string
	err  error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("no connection to %s: %v", e.host, e.err)
}
func (e *unreachableError) Unwrap() error { return e.err }

// unreachable returns the error of a request without an answer.
func unreachable(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := &unreachableError{u.Host, err}
	if errors.As(err, new(*tls.CertificateVerificationError)) {
		return out
	}
	return &transientError{error: out}
}

const (
	attempts    = 5   // in a row without progress
	allAttempts = 100 // with progress
	longestWait = time.Minute
)

// retry calls do until it succeeds, fails with an error that isn't transient, or fails too often, and shows
// the reason of each repetition. do reports whether it made progress. A server that was never reached isn't
// tried again: there is no network.
func (c *Cache) retry(ctx context.Context, a Address, do func() (further bool, err error)) error {
	wait, tried := c.wait, 0
	for n := range allAttempts {
		further, err := do()
		var again *transientError
		if !errors.As(err, &again) {
			return err
		}
		var dial *net.OpError
		if tried++; further {
			wait, tried = c.wait, 0
		} else if tried == attempts || n == 0 && errors.As(err, &dial) && dial.Op == "dial" {
			return again.error
		}
		pause := max(wait, min(again.after, longestWait))
		if c.Again != nil {
			c.Again(printable(fmt.Sprintf("%s: %v; tried again in %v", a.Name(), again.error, pause)))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
		wait = min(2*wait, longestWait)
	}
	return errors.New("the connection breaks again and again")
}
