package differential

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// pages are the servers of the cases about WebFetch, as they were when those were recorded. They
// need no network.
type pages struct{}

// RoundTrip implements [http.RoundTripper].
func (pages) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Host {
	case "docs.example.test:18443", "other.example.test:18443":
	case "docs.example.test:1":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: syscall.ECONNREFUSED}
	default:
		return nil, &net.DNSError{Err: "no such host", Name: r.URL.Hostname(), IsNotFound: true}
	}
	kind, status, body, to := "text/html; charset=utf-8", http.StatusOK, "", ""
	switch r.URL.Path {
	case "/page":
		body = `<html><head><title>T</title><style>x{}</style><script>y()</script></head><body><h1>Head</h1><p>Para <a href="/l">link</a></p><ul><li>one</li></ul></body></html>`
	case "/text":
		kind, body = "text/plain", "plain text\n"
	case "/md":
		kind, body = "text/markdown", "# Md\n\ntext\n"
	case "/json":
		kind, body = "application/json", `{"a":1}`
	case "/long":
		kind, body = "text/plain", strings.Repeat("word ", 60000)
	case "/redir-same":
		status, to = http.StatusFound, "/text"
	case "/redir-other":
		status, to = http.StatusFound, "https://other.example.test:18443/text"
	case "/500":
		status, body = http.StatusInternalServerError, "boom"
	case "/png":
		kind, body = "image/png", "\x89PNG\r\n\x1a\n"
	case "/pdf":
		kind, body = "application/pdf", "%PDF-1.4\n"
	case "/empty":
	default:
		status, body = http.StatusNotFound, "gone"
	}
	h := http.Header{"Content-Type": {kind}}
	if to != "" {
		h.Set("Location", to)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}
