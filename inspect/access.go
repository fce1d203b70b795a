package inspect

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
)

// Access says who may use a [Handler]. The zero value allows requests that come by a Unix
// socket, and no others.
type Access struct {
	// Token is what a request must bring as "Authorization: Bearer <token>". It is a
	// secret. Requests that do not come by a Unix socket are refused without one.
	Token string
	// Hosts are the names, without ports, that the header Host of a request may have
	// besides localhost and the loopback addresses. Other names are refused, because a
	// web page could have made its own name resolve to this machine.
	Hosts []string
	// Content opens prompts, answers, inputs of tools and transcripts in the pages of package
	// inspect/ui. Nothing of this package shows them.
	Content bool
	// Steer opens the changes that those pages offer: interrupt, close, pause, retune,
	// cancel, answer. Nothing of this package changes anything.
	Steer bool
}

// Format writes which fields are set, without the token, for every verb.
func (a Access) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(a)) }

// LogValue returns the text that Format writes, for package log/slog.
func (a Access) LogValue() slog.Value { return slog.StringValue(shown.Struct(a)) }

// Protect returns a handler that passes on the requests that the access rules allow. It answers others
// with 401 or 403 and the reason.
func (a Access) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		var no *RefusedError
		if errors.As(a.Check(r), &no) {
			if no.Status == http.StatusUnauthorized {
				h.Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, no.Reason, no.Status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// RefusedError is why a request is not answered.
type RefusedError struct {
	Status int    // 401 or 403
	Reason string // one line
}

func (e *RefusedError) Error() string { return "inspect: " + e.Reason }

// Check returns a *[RefusedError] if the rules do not allow the request.
func (a *Access) Check(r *http.Request) error {
	if err := a.CheckSite(r); err != nil {
		return err
	}
	if a.Token == "" {
		if byUnixSocket(r) {
			return nil
		}
		return &RefusedError{http.StatusForbidden, "a request that does not come by a Unix socket needs a token, and none is configured: set Access.Token"}
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !equal(token, a.Token) {
		return &RefusedError{http.StatusUnauthorized, `the header Authorization must be "Bearer" and the token`}
	}
	return nil
}

// CheckSite is the part of [Access.Check] that is about the headers Host and Origin alone:
// whether a page of another site may have made the request.
func (a *Access) CheckSite(r *http.Request) error {
	if !a.knows(r.Host) {
		return &RefusedError{http.StatusForbidden, "the header Host must name this machine (localhost or 127.0.0.1), or one of Access.Hosts"}
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host && origin != "https://"+r.Host {
			return &RefusedError{http.StatusForbidden, "the header Origin names another site"}
		}
	}
	return nil
}

// knows reports whether a request may have this Host.
func (a *Access) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host // without a port
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || strings.EqualFold(name, "localhost") {
		return true
	}
	return name != "" && slices.ContainsFunc(a.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

func byUnixSocket(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && at.Network() == "unix"
}

// equal compares in a time that depends neither on the texts nor on their lengths.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
