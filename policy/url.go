package policy

import (
	"net/netip"
	"net/url"
	"strings"
)

// hostSpec is the specifier of WebFetch: a host, or its subdomains.
type hostSpec struct {
	host       string
	subdomains bool
}

func parseHost(content string) (*hostSpec, *flaw) {
	host, found := strings.CutPrefix(content, "domain:")
	if !found {
		return nil, &flaw{0, "is not a domain", "write it as domain:example.com"}
	}
	s := &hostSpec{}
	s.host, s.subdomains = strings.CutPrefix(host, "*.")
	s.host = strings.ToLower(s.host)
	if i := strings.IndexFunc(s.host, func(r rune) bool { return !isHostRune(r) }); i >= 0 || s.host == "" {
		return nil, &flaw{len(content) - len(s.host) + max(i, 0), "is not a host name", "write it as domain:example.com or domain:*.example.com, other scripts as punycode"}
	}
	return s, nil
}

func isHostRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_'
}

// hostPart is the host of a URL, in lower case.
type hostPart string

// readURL finds the host. Readers of URLs differ on all but the plain ones, so
// that nothing else can be allowed.
func readURL(in input) subject {
	text, _, ok := in.text("url")
	if !ok || text == "" {
		return subject{unclear: "the input has no url"}
	}
	if !plain(text) || strings.ContainsAny(text, "\\ ") {
		return subject{unclear: "the url has characters that readers of URLs disagree on"}
	}
	u, err := url.Parse(text)
	if err != nil {
		return subject{unclear: "the url is not a plain http or https one", parts: decodedHost(text)}
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return subject{unclear: "the url is not a plain http or https one"}
	case u.User != nil:
		return subject{unclear: "the url has a user name", parts: []part{hostOf(u)}}
	}
	host := strings.ToLower(u.Hostname())
	s := subject{parts: []part{hostOf(u)}}
	switch {
	case strings.ContainsFunc(host, func(r rune) bool { return !isHostRune(r) }), strings.HasSuffix(host, "."):
		s.unclear = "the url's host is not a plain name"
	case isNumber(host[strings.LastIndexByte(host, '.')+1:]):
		// Addresses have many spellings; only the usual one is what it seems.
		if _, err := netip.ParseAddr(host); err != nil {
			s.unclear = "the url's host is an address in an unusual spelling"
		}
	}
	return s
}

func hostOf(u *url.URL) hostPart {
	return hostPart(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

// decodedHost is the host of a URL with percent-encoded characters in it, which
// readers of URLs that are not Go's decode.
func decodedHost(text string) []part {
	decoded, err := url.PathUnescape(text)
	if err != nil {
		return nil
	}
	if u, err := url.Parse(decoded); err == nil && u.Host != "" {
		return []part{hostOf(u)}
	}
	return nil
}

// isNumber reports whether the last part of a host makes it an address.
func isNumber(label string) bool {
	return strings.HasPrefix(label, "0x") || strings.Trim(label, "0123456789") == ""
}

func (h hostPart) String() string { return string(h) }

func (h hostPart) fits(spec specifier) bool {
	s, ok := spec.(*hostSpec)
	if !ok {
		return false
	}
	if s.subdomains {
		return strings.HasSuffix(string(h), "."+s.host)
	}
	return string(h) == s.host
}

func (h hostPart) covered(spec specifier, _ *work) (bool, string) { return h.fits(spec), "" }

func (h hostPart) stopped(spec specifier, _ *work) match {
	if h.fits(spec) {
		return yes
	}
	return no
}
