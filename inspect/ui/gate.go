package ui

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/session"
)

const (
	maxLogins = 64             // at a time; the one that was used least recently goes
	maxCodes  = 16             // that were printed and not used; the oldest goes
	loginIdle = 24 * time.Hour // an unused login ends
	maxBody   = 1 << 20        // bytes of a change
	maxName   = 40             // runes of a name
)

// csrfHeader brings the token of hello with each change of a login.
const csrfHeader = "X-Troupe-CSRF"

// gate decides who a request is of. Codes and cookies are kept as hashes.
type gate struct {
	access inspect.Access
	clock  session.Clock
	cookie string // its name; cookies do not know ports, so each window has its own

	mu     sync.Mutex
	codes  []code
	logins []*login // the one that was used last is the last
}

type hash [sha256.Size]byte

// code is a one-time code that was not used.
type code struct {
	of  hash
	who string
}

// login is a browser that has shown a code or the token.
type login struct {
	of   hash
	who  string
	csrf string
	used time.Time
}

// caller is who a request is of.
type caller struct {
	who   string
	login *login // nil: a bearer token or a Unix socket, which no page of another site can use
}

// secret is 128 bits or more that cannot be guessed.
func secret() string { return rand.Text() } //troupe:seam a login must not be guessed from the seed of a runtime

func (g *gate) name() { g.cookie = "troupe-" + strings.ToLower(secret()[:8]) }

// issue makes a code for one login.
func (g *gate) issue(who string) string {
	text := secret()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.codes) >= maxCodes {
		g.codes = slices.Delete(g.codes, 0, 1)
	}
	g.codes = append(g.codes, code{sha256.Sum256([]byte(text)), who})
	return text
}

// enter takes a code, which then works no more, or the token, and returns the value of the
// cookie. name is what the person calls themselves; a code may say it, too.
func (g *gate) enter(given, name string) (value string, ok bool) {
	if given == "" {
		return "", false
	}
	of := sha256.Sum256([]byte(given))
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.IndexFunc(g.codes, func(c code) bool { return c.of == of })
	switch {
	case at >= 0:
		if g.codes[at].who != "" {
			name = g.codes[at].who
		}
		g.codes = slices.Delete(g.codes, at, at+1)
	case g.access.Token == "" || of != sha256.Sum256([]byte(g.access.Token)):
		return "", false
	}
	if len(g.logins) >= maxLogins {
		g.logins = slices.Delete(g.logins, 0, 1)
	}
	value = secret()
	g.logins = append(g.logins, &login{of: sha256.Sum256([]byte(value)), who: named(name), csrf: secret(), used: g.clock.Now()})
	return value, true
}

// named is the name of a person as events have it.
func named(name string) string {
	name = strings.TrimSpace(name)
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	if name == "" {
		return "somebody"
	}
	return name
}

// check returns who the request is of, or an *[inspect.RefusedError].
func (g *gate) check(r *http.Request) (caller, error) {
	if r.Header.Get("Authorization") != "" {
		return caller{who: "token"}, g.access.Check(r)
	}
	if c, err := r.Cookie(g.cookie); err == nil {
		if l := g.find(c.Value); l != nil {
			return caller{l.who, l}, nil
		}
	}
	if g.access.Token == "" && g.access.Check(r) == nil {
		return caller{who: "socket"}, nil
	}
	return caller{}, &inspect.RefusedError{Status: http.StatusUnauthorized, Reason: "log in with the token or with a code that was not used"}
}

// find returns the login with the cookie, which was used now.
func (g *gate) find(value string) *login {
	of := sha256.Sum256([]byte(value))
	now := g.clock.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logins = slices.DeleteFunc(g.logins, func(l *login) bool { return now.Sub(l.used) > loginIdle })
	at := slices.IndexFunc(g.logins, func(l *login) bool { return l.of == of })
	if at < 0 {
		return nil
	}
	l := g.logins[at]
	l.used = now
	g.logins = append(slices.Delete(g.logins, at, at+1), l)
	return l
}

func (g *gate) leave(l *login) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logins = slices.DeleteFunc(g.logins, func(other *login) bool { return other == l })
}

// handler answers a request that the gate has let in.
type handler func(w http.ResponseWriter, r *http.Request, from caller)

// reading lets those in who may look.
func (w *Window) reading(next handler) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		from, err := w.gate.check(r)
		if err != nil {
			refuse(rw, err)
			return
		}
		next(rw, r, from)
	}
}

// changing lets those in who may change something, if the request is of a page of this
// window.
func (w *Window) changing(steers bool, next handler) http.HandlerFunc {
	return w.reading(func(rw http.ResponseWriter, r *http.Request, from caller) {
		site := r.Header.Get("Sec-Fetch-Site")
		switch {
		case from.login != nil && !same(r.Header.Get(csrfHeader), from.login.csrf):
			refuse(rw, forbidden("the header "+csrfHeader+" must have the token that hello has"))
		case site != "" && site != "same-origin" && site != "none":
			refuse(rw, forbidden("the request is of a page of another site"))
		case steers && !w.cfg.Access.Steer:
			refuse(rw, forbidden("this window was opened without Access.Steer: nothing can be changed"))
		default:
			r.Body = http.MaxBytesReader(rw, r.Body, maxBody)
			next(rw, r, from)
		}
	})
}

func same(a, b string) bool { return sha256.Sum256([]byte(a)) == sha256.Sum256([]byte(b)) }

func forbidden(reason string) error {
	return &inspect.RefusedError{Status: http.StatusForbidden, Reason: reason}
}

// refuse answers with what the error says.
func refuse(w http.ResponseWriter, err error) {
	var no *inspect.RefusedError
	if !errors.As(err, &no) {
		no = &inspect.RefusedError{Status: http.StatusInternalServerError, Reason: err.Error()}
	}
	http.Error(w, no.Reason, no.Status)
}

// secured sets the headers of every answer.
func secured(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// Login returns an address that lets one browser in, once. base is the address of the
// window, with a slash at its end; who is the name that events then have for what is changed
// there, and may be empty.
func (w *Window) Login(base, who string) string { return base + "login?code=" + w.gate.issue(who) }

// loginByCode takes the code of an address that [Window.Login] has made.
func (w *Window) loginByCode(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch") {
		refuse(rw, forbidden("open the address: a look ahead does not use the code"))
		return
	}
	value, ok := w.gate.enter(r.URL.Query().Get("code"), "")
	status := http.StatusOK
	if ok {
		w.gate.set(rw, r, value)
	} else if _, err := w.gate.check(r); err != nil {
		status = http.StatusUnauthorized
	} else {
		ok = true // this browser is in already
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(status)
	_ = w.assets.entered.Execute(rw, ok) // an error means that the client has left
}

func (g *gate) set(w http.ResponseWriter, r *http.Request, value string) {
	// Without a Path the cookie is for the directory of login, wherever that is mounted.
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure would keep it from loopback without TLS
		Name: g.cookie, Value: value, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// login takes a code or the token from a page: {"code", "name"}.
func (w *Window) login(rw http.ResponseWriter, r *http.Request) {
	var given struct{ Code, Name string }
	if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxBody)).Decode(&given); err != nil {
		http.Error(rw, `the body must be {"code": "…", "name": "…"}`, http.StatusBadRequest)
		return
	}
	value, ok := w.gate.enter(strings.TrimSpace(given.Code), given.Name)
	if !ok {
		refuse(rw, &inspect.RefusedError{Status: http.StatusUnauthorized, Reason: "this is not the token, or the code was used"})
		return
	}
	w.gate.set(rw, r, value)
	rw.WriteHeader(http.StatusNoContent)
}

func (w *Window) logout(rw http.ResponseWriter, _ *http.Request, from caller) {
	if from.login != nil {
		w.gate.leave(from.login)
		w.hub.drop(from.login)
	}
	rw.Header().Set("Set-Cookie", w.gate.cookie+"=; Max-Age=0; HttpOnly; SameSite=Strict")
	rw.WriteHeader(http.StatusNoContent)
}

// etag is that of content that does not change while the program runs.
func etag(content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%q", hex.EncodeToString(sum[:8]))
}
