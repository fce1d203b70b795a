package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Limits of a page.
const (
	MaxPage      = 5 << 20 // bytes, when it is no longer compressed
	maxRedirects = 10

	connectLimit = 20 * time.Second
)

// Fetcher fetches pages. The zero value does so over the network. It is safe for concurrent
// use, and keeps no connection.
type Fetcher struct {
	// Transport makes requests in place of the network; nil: the network.
	Transport http.RoundTripper
	// Proxy says through what to go, as the variables of the environment do; nil: through none.
	Proxy *httpproxy.Config

	resolver *net.Resolver // nil: the system's
	roots    *x509.CertPool
	dial     func(network, address string, c syscall.RawConn) error // looks at each address; nil: publicOnly
}

// Page is what a server has answered.
type Page struct {
	URL    string // of the last request
	Status int
	Text   string // of the status, such as Not Found
	Kind   string // the media type, without parameters, in lower case
	Body   []byte // of an answer with the status 200 to 299
	// Redirect is where another server has the page. It was not followed.
	Redirect string

	contentType string
}

// TooLargeError is a page above the limit.
type TooLargeError struct{ URL string }

// Error says what the limit is.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("The page %s has more than %d MB, and at most that much is fetched.", e.URL, MaxPage>>20)
}

// Get fetches a page. A redirect is followed if it stays at the server, and each step is looked
// at as the first was. Its errors have texts for the model, those of Claude Code 2.1.329 where they
// were observed.
func (f *Fetcher) Get(ctx context.Context, text string) (*Page, error) {
	u, err := parse(text)
	if err != nil {
		return nil, err
	}
	for range maxRedirects + 1 {
		p, next, err := f.once(ctx, u)
		if err != nil || next == nil {
			return p, explain(ctx, u, err)
		}
		if u, err = parse(next.String()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("Too many redirects (exceeded %d)", maxRedirects) //nolint:staticcheck // what the model reads
}

// once makes one request. next is where a redirect leads that is followed.
func (f *Fetcher) once(ctx context.Context, u *url.URL) (p *Page, next *url.URL, err error) {
	transport, err := f.transport(ctx, u)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, nil, errInvalid
	}
	req.Header.Set("User-Agent", "Troupe-WebFetch/1.0 (+https://github.com/agent-troupe/troupe)")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	p = &Page{URL: u.String(), Status: resp.StatusCode, Text: statusText(resp), contentType: resp.Header.Get("Content-Type")}
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode/100 == 3 {
		if next, err = u.Parse(to); err != nil || len(to) > maxURL {
			return nil, nil, errors.New("the server redirects to what is no URL")
		}
		if sameHost(u, next) {
			return nil, next, nil
		}
		p.Redirect = next.String()
		return p, nil, nil
	}
	if resp.StatusCode/100 != 2 {
		return p, nil, nil
	}
	p.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxPage+1))
	if err == nil {
		err = ctx.Err() // a server that sees the client leave may end its page as if it were whole
	}
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read the page: %w", err)
	case len(p.Body) > MaxPage:
		return nil, nil, &TooLargeError{u.String()}
	}
	p.Kind = kindOf(p.contentType, p.Body)
	return p, nil, nil
}

// statusText is what the status is called, by the standard if that knows it: the server's words
// go to the model.
func statusText(resp *http.Response) string {
	if s := http.StatusText(resp.StatusCode); s != "" {
		return s
	}
	return strconv.Itoa(resp.StatusCode)
}

// transport makes the request of one URL.
func (f *Fetcher) transport(ctx context.Context, u *url.URL) (http.RoundTripper, error) {
	if f.Transport != nil {
		return f.Transport, nil
	}
	looks := f.dial
	if looks == nil {
		looks = publicOnly
	}
	t := &http.Transport{
		DisableKeepAlives: true, TLSHandshakeTimeout: connectLimit, MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig: &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12},
	}
	if f.Proxy != nil {
		through, err := f.Proxy.ProxyFunc()(u)
		if err != nil {
			return nil, fmt.Errorf("the proxy of the environment: %w", err)
		}
		if through != nil {
			if err := f.lookUp(ctx, u.Hostname()); err != nil {
				return nil, err
			}
			t.Proxy, looks = http.ProxyURL(through), nil // the proxy itself may be anywhere
		}
	}
	d := &net.Dialer{Timeout: connectLimit, Resolver: f.resolver, Control: looks}
	t.DialContext = d.DialContext
	return t, nil
}

// lookUp looks at the addresses of a host that a proxy connects to. The proxy resolves the name
// again, so this only keeps out names that are known here for what they are.
func (f *Fetcher) lookUp(ctx context.Context, host string) error {
	resolver := f.resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	all := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		all = append(all, a)
	} else if all, err = resolver.LookupNetIP(ctx, "ip", host); err != nil {
		return err
	}
	for _, a := range all {
		if !Public(a) {
			return &AddressError{Host: host, Addr: a.Unmap()}
		}
	}
	return nil
}

// explain is an error in words for the model, those of Claude Code 2.1.329 where they were
// observed.
func explain(ctx context.Context, u *url.URL, err error) error {
	if err == nil {
		return nil
	}
	var (
		private *AddressError
		unknown *net.DNSError
		op      *net.OpError
	)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &private):
		return &AddressError{Host: u.Hostname(), Addr: private.Addr}
	case errors.As(err, &unknown):
		if unknown.IsNotFound {
			return fmt.Errorf("getaddrinfo ENOTFOUND %s", unknown.Name)
		}
		return fmt.Errorf("getaddrinfo EAI_AGAIN %s", unknown.Name)
	case errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Addr != nil:
		return fmt.Errorf("connect ECONNREFUSED %s", op.Addr)
	case errors.Is(err, syscall.ECONNRESET):
		return errors.New("read ECONNRESET")
	}
	return err
}
