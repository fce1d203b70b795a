package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/http/httpproxy"
)

// names is a DNS server with these names; a list of addresses for each, of which each answer
// takes the next, and the last stays.
func names(t *testing.T, all map[string][]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	asked := map[string]int{}
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Additionals = true, nil
			list, known := all[strings.TrimSuffix(q.Name.String(), ".")]
			if !known {
				m.RCode = dnsmessage.RCodeNameError
			}
			for _, one := range answer(list, q, asked) {
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				if q.Type == dnsmessage.TypeA && one.Is4() {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: one.As4()}})
				}
				if q.Type == dnsmessage.TypeAAAA && !one.Is4() {
					m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: one.As16()}})
				}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	var d net.Dialer
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer is what a question gets: "a|b" are two addresses in one answer.
func answer(list []string, q dnsmessage.Question, asked map[string]int) (all []netip.Addr) {
	if len(list) == 0 {
		return nil
	}
	key := q.Name.String() + q.Type.String()
	n := min(asked[key], len(list)-1)
	asked[key]++
	for one := range strings.SplitSeq(list[n], "|") {
		all = append(all, netip.MustParseAddr(one))
	}
	return all
}

// served is a server that is called example.com, and a fetcher that trusts it. anywhere lets the
// fetcher connect to this machine.
func served(t *testing.T, anywhere bool, handler http.HandlerFunc) (f *Fetcher, base string, server *httptest.Server) {
	t.Helper()
	server = httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	f = &Fetcher{resolver: names(t, map[string][]string{"example.com": {"127.0.0.1"}}), roots: x509.NewCertPool()}
	f.roots.AddCert(server.Certificate())
	if anywhere {
		f.dial = func(string, string, syscall.RawConn) error { return nil }
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	return f, "https://example.com:" + port, server
}

func get(t *testing.T, f *Fetcher, url string) (*Page, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return f.Get(ctx, url)
}

func TestAPage(t *testing.T) {
	t.Parallel()
	f, base, _ := served(t, true, func(w http.ResponseWriter, r *http.Request) {
		assert.Contains(t, r.UserAgent(), "Troupe-WebFetch")
		assert.Empty(t, r.Header.Get("Cookie"))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = io.WriteString(w, "<title>T</title><p>hello")
	})
	for range 2 {
		p, err := get(t, f, strings.Replace(base, "https:", "http:", 1)+"/a#b")
		require.NoError(t, err)
		assert.Equal(t, base+"/a", p.URL, "http is https")
		assert.Equal(t, 200, p.Status)
		assert.Equal(t, "text/html", p.Kind)
		assert.Equal(t, "T\n\nhello", p.Readable())
	}
}

// The addresses to which a name leads count, and not the name: also in the forms in which IPv6
// carries IPv4, and of several addresses each that is tried.
func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f, base, server := served(t, false, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	f.resolver = names(t, map[string][]string{
		"loop.example.com": {"127.0.0.1"}, "mapped.example.com": {"::ffff:127.0.0.1"}, "meta.example.com": {"169.254.169.254"},
		"lan.example.com": {"10.1.2.3"}, "unique.example.com": {"fd00::1"}, "nat.example.com": {"64:ff9b::7f00:1"}, "two.example.com": {"127.0.0.1|10.0.0.1"},
		"example.com": {"127.0.0.1"},
	})
	for _, host := range []string{"loop", "mapped", "meta", "lan", "unique", "nat", "two"} {
		_, err := get(t, f, "https://"+host+".example.com:"+port+"/")
		var private *AddressError
		require.ErrorAs(t, err, &private, host)
		assert.Equal(t, host+".example.com", private.Host)
		assert.Contains(t, err.Error(), "is not a public address")
	}
	for _, u := range []string{"https://127.0.0.1:" + port, "http://[::1]:" + port, "https://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/meta-data", "https://10.0.0.1", "https://0.0.0.0:" + port} {
		var private *AddressError
		_, err := get(t, f, u)
		require.ErrorAs(t, err, &private, u)
	}
	_, err := get(t, f, base)
	require.ErrorContains(t, err, "is not a public address")
	assert.Zero(t, asked.Load(), "the server was not asked")

	// A transport of the host's does not look at addresses, so those that a URL names are looked at before.
	f.Transport = unreachable{t}
	for _, u := range []string{"https://127.0.0.1:" + port, "https://[fd00::1]/", "http://169.254.169.254/latest/meta-data"} {
		var private *AddressError
		_, err := get(t, f, u)
		require.ErrorAs(t, err, &private, u)
	}
}

// unreachable is a transport that must not be used.
type unreachable struct{ t *testing.T }

func (u unreachable) RoundTrip(r *http.Request) (*http.Response, error) {
	u.t.Errorf("%s was asked for", r.URL)
	return nil, errors.New("not reachable")
}

// A name may lead elsewhere a moment later: each connection is looked at.
func TestANameThatMoves(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f, base, _ := served(t, false, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	var first atomic.Bool
	f.dial = func(network, address string, c syscall.RawConn) error {
		if first.CompareAndSwap(false, true) {
			return nil // it was public then
		}
		return publicOnly(network, address, c)
	}
	_, err := get(t, f, base)
	var private *AddressError
	require.ErrorAs(t, err, &private)
	assert.EqualValues(t, 1, asked.Load())
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f, base, _ := served(t, true, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch to := r.URL.Query().Get("to"); {
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusMovedPermanently)
		case to != "":
			w.Header()["Location"] = []string{to}
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			_, _ = io.WriteString(w, "here "+r.URL.Path)
		}
	})
	p, err := get(t, f, base+"/?to=a/../b%23c")
	require.NoError(t, err)
	assert.Equal(t, "here /b", string(p.Body))
	_, err = get(t, f, base+"/loop")
	require.ErrorContains(t, err, "Too many redirects")
	assert.EqualValues(t, 2+maxRedirects+1, asked.Load())
	plain, named := strings.Replace(base, "https:", "http:", 1)+"/x", strings.Replace(base, "//", "//u:p@", 1)+"/x"
	for to, want := range map[string]string{
		plain: plain, named: named, strings.Replace(base, "example.com", "other.example.com", 1) + "/x": strings.Replace(base, "example.com", "other.example.com", 1) + "/x",
		"https://other.example.com/x": "https://other.example.com/x", "http://169.254.169.254/": "http://169.254.169.254/",
		"//127.0.0.1/x": "https://127.0.0.1/x", "https://example.com/": "https://example.com/", "http://example.com/": "http://example.com/",
		"file:///etc/passwd": "file:///etc/passwd", "https://u:p@example.com/": "https://u:p@example.com/",
	} {
		asked.Store(0)
		p, err := get(t, f, base+"/?to="+strings.ReplaceAll(to, "#", "%23"))
		require.NoError(t, err, to)
		assert.Equal(t, want, p.Redirect)
		assert.Nil(t, p.Body)
		assert.EqualValues(t, 1, asked.Load(), "%s is not followed", to)
	}
}

func TestPagesThatFail(t *testing.T) {
	t.Parallel()
	f, base, server := served(t, true, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = io.CopyN(w, zeros{}, MaxPage+1)
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // a level that it has
			_, _ = io.CopyN(z, zeros{}, MaxPage+1<<16)
			_ = z.Close() // the client has left
		case "/whole":
			_, _ = io.CopyN(w, zeros{}, MaxPage)
		case "/slow":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/short":
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "x")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	for _, path := range []string{"/large", "/bomb"} {
		_, err := get(t, f, base+path)
		var large *TooLargeError
		require.ErrorAs(t, err, &large, path)
	}
	p, err := get(t, f, base+"/whole")
	require.NoError(t, err)
	assert.Len(t, p.Body, MaxPage)
	_, err = get(t, f, base+"/short")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	p, err = get(t, f, base+"/none")
	require.NoError(t, err)
	assert.Equal(t, "Not Found", p.Text)
	assert.Nil(t, p.Body)

	why := errors.New("it takes too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	_, err = f.Get(ctx, base+"/slow")
	require.ErrorIs(t, err, why)

	for url, want := range map[string]string{
		"ftp://example.com/x": "Unsupported protocol ftp:", "file:///etc/passwd": "Invalid URL", "https://u@example.com/": "Invalid URL",
		"https://localhost/": "without a dot", "https://localhost./": "without a dot", "https://2130706433/": "without a dot", "https:///x": "Invalid URL",
		"https://nosuch.example.com/": "getaddrinfo ENOTFOUND nosuch.example.com", "https://example.com/" + strings.Repeat("x", 2000): "Invalid URL",
	} {
		_, err := get(t, f, url)
		require.ErrorContains(t, err, want, url)
	}
	server.Close()
	_, err = get(t, f, base)
	require.ErrorContains(t, err, "connect ECONNREFUSED 127.0.0.1:")
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// A server whose certificate is for another name is not read.
func TestACertificateOfAnotherName(t *testing.T) {
	t.Parallel()
	f, base, _ := served(t, true, func(http.ResponseWriter, *http.Request) { t.Error("it was asked") })
	f.resolver = names(t, map[string][]string{"other.test": {"127.0.0.1"}})
	_, err := get(t, f, strings.Replace(base, "example.com", "other.test", 1))
	var other x509.HostnameError
	require.ErrorAs(t, err, &other)
}

// Behind a proxy, a name that leads to an address that is not public is not asked for, nor one that
// is not known here: the proxy would resolve it.
func TestAProxy(t *testing.T) {
	t.Parallel()
	f, base, server := served(t, false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "through") })
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		assert.Equal(t, http.MethodConnect, r.Method)
		to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", server.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = fmt.Fprint(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, bufio.NewReader(io.MultiReader(buffered, from))); _ = to.Close() }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	t.Cleanup(proxy.Close)
	f.Proxy = &httpproxy.Config{HTTPSProxy: proxy.URL, NoProxy: "direct.example.com"}
	f.resolver = names(t, map[string][]string{
		"example.com": {"93.184.216.34"}, "lan.example.com": {"10.0.0.5"}, "two.example.com": {"93.184.216.34|10.0.0.5"}, "direct.example.com": {"127.0.0.1"},
	})
	p, err := get(t, f, base)
	require.NoError(t, err)
	assert.Equal(t, "through", string(p.Body))
	assert.EqualValues(t, 1, asked.Load())
	for host, want := range map[string]string{
		"lan.example.com": "is not a public address", "two.example.com": "is not a public address", "nosuch.example.com": "ENOTFOUND", "direct.example.com": "is not a public address",
	} {
		_, err := get(t, f, strings.Replace(base, "example.com", host, 1))
		require.ErrorContains(t, err, want)
	}
	assert.EqualValues(t, 1, asked.Load(), "the proxy was not asked for these")
}
