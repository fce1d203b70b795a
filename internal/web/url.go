package web

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// Errors of URLs, in the words of Claude Code 2.1.329 (observed).
var (
	errInvalid = errors.New("Invalid URL")                                                                                                            //nolint:staticcheck // as observed
	errLocal   = errors.New("WebFetch cannot fetch localhost or other hostnames without a dot. To reach a local server, use Bash with curl instead.") //nolint:staticcheck,revive // as observed
)

// maxURL is how long a URL may be, in bytes.
const maxURL = 2000

// Valid reports whether a text is an absolute URL, of any scheme.
func Valid(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return false
	}
	return u.Host != "" || u.Scheme != "http" && u.Scheme != "https"
}

// parse reads the URL of a page. One of http is taken for one of https, as observed.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, len(text) > maxURL, u.User != nil, u.Scheme == "file", u.Opaque != "" && (u.Scheme == "http" || u.Scheme == "https"):
		return nil, errInvalid
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("Unsupported protocol " + u.Scheme + ":")
	case u.Hostname() == "":
		return nil, errInvalid
	}
	if u.Scheme == "http" {
		u.Scheme, u.Host = "https", strings.TrimSuffix(u.Host, ":80")
	}
	u.Fragment, u.RawFragment = "", ""
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		if !Public(a) {
			return nil, &AddressError{Addr: a}
		}
		return u, nil
	}
	if !strings.Contains(strings.Trim(host, "."), ".") {
		return nil, errLocal
	}
	return u, nil
}

// sameHost reports whether a redirect stays at the server.
func sameHost(from, to *url.URL) bool {
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" {
			return p
		}
		return "443"
	}
	return to.Scheme == "https" && to.User == nil && strings.EqualFold(from.Hostname(), to.Hostname()) && port(from) == port(to)
}
