package command

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os/user"
	"strings"
	"sync/atomic"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// openWindow opens the pages of the job on a free port of this machine, if they are wanted,
// and prints an address that lets one browser in.
func (s *settings) openWindow(c *console, rt *runtime.Runtime, h *fleet.Handle) (end func()) {
	s.window.job.Store(&jobPages{control.Job(h, s.batch.job.Out)})
	if !s.window.open {
		return func() {}
	}
	w := ui.Handler(rt, s.ownWindow())
	// The window lets in who has its code; that of the server is for other handlers.
	handler, path := below(w, "")
	server, err := inspect.ListenWith(handler, inspect.Config{Address: "127.0.0.1:0", Token: rand.Text()})
	if err != nil {
		c.note("--ui: %v", err)
		return w.Close
	}
	return serveWindow(c, w, server, "http://"+server.Addr()+path)
}

// below mounts the window at a path that cannot be guessed. A browser sends a cookie to every port of
// a host, so at / it would bring a login to any other program of this machine that it visits, as the server
// that an agent tries out is one. With a token the path stays the same from one start to the next.
func below(w http.Handler, token string) (mounted http.Handler, path string) {
	path = "/" + strings.ToLower(rand.Text()) + "/"
	if token != "" {
		sum := sha256.Sum256([]byte("path of the window\x00" + token))
		path = "/" + hex.EncodeToString(sum[:16]) + "/"
	}
	mux := http.NewServeMux()
	mux.Handle(path, w)
	mux.HandleFunc("/", func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, "the window is at the address that troupe has printed, with all of its path", http.StatusNotFound)
	})
	return mux, path
}

// ownWindow is that of this program: all of it, for this user.
func (s *settings) ownWindow() ui.Config {
	return ui.Config{Access: inspect.Access{Content: true, Steer: true}, Jobs: func() []ui.Job {
		if j := s.window.job.Load(); j != nil {
			return []ui.Job{j.Job}
		}
		return nil
	}}
}

// jobPages is the job of this program, once it runs.
type jobPages struct{ ui.Job }

// serveWindow serves a window, and prints the address of one login.
func serveWindow(c *console, w *ui.Window, server *inspect.Server, base string) (end func()) {
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(); err != nil {
			c.note("%v", err)
		}
	}()
	c.note("window, for one login: %s", w.Login(base, loginName()))
	return func() {
		w.Close()
		_ = server.Close()
		<-served
	}
}

// loginName is the name that events have for the user of this program.
func loginName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// windowFlags are those of the pages of all programs.
func windowFlags() []flagSpec {
	return []flagSpec{
		{name: "ui", arg: "HOST:PORT", optional: true, help: "show them in a browser, on a free port of this machine or, with =HOST:PORT, there. Beyond this machine it needs the variable " + envWindowToken, set: func(s *settings, value string) error {
			s.window.open, s.window.at = true, value
			return nil
		}},
		{name: "ui-content", help: "with --ui: show inputs of tools and transcripts, too", set: on(func(s *settings) *bool { return &s.window.content })},
		{name: "ui-steer", help: "with --ui: what troupe ctl can do may be done there, too", set: on(func(s *settings) *bool { return &s.window.steer })},
	}
}

// envWindowToken is the variable with the token of --ui=HOST:PORT.
const envWindowToken = "TROUPE_UI_TOKEN"

// windowSettings are those of --ui.
type windowSettings struct {
	open           bool
	at             string // HOST:PORT; "" for a free port of this machine
	content, steer bool
	job            atomic.Pointer[jobPages]
}

// topWindow is troupe top --ui, and troupe top --cluster --ui.
func topWindow(ctx context.Context, p process, c *console, s *settings, hosts func(context.Context) ([]ui.Host, error)) int {
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		c.note("%v", err)
		return exitStart
	}
	defer func() { _ = rt.Shutdown(context.WithoutCancel(ctx)) }()
	at, token := s.window.at, p.getenv(envWindowToken)
	host, _, err := net.SplitHostPort(at)
	if at != "" && err != nil {
		return c.usage(&usageError{fmt.Sprintf("--ui=%s is not HOST:PORT", at), "write --ui=127.0.0.1:8080, or --ui alone"})
	}
	beyond := at != "" && host != "localhost" && !net.ParseIP(host).IsLoopback()
	access := inspect.Access{Token: token, Content: s.window.content, Steer: s.window.steer}
	if beyond {
		access.Hosts = []string{host}
	}
	switch {
	case at != "" && (host == "" || net.ParseIP(host).IsUnspecified()):
		return c.usage(&usageError{fmt.Sprintf("--ui=%s does not say by which name or address browsers come, and no other is let in", at), "write that one, as in --ui=10.0.0.7:8080"})
	case beyond && len(token) < minWindowToken:
		return c.usage(&usageError{
			fmt.Sprintf("--ui=%s is beyond this machine, where everybody in the network can reach it", at),
			fmt.Sprintf("set %s to at least %d characters that cannot be guessed", envWindowToken, minWindowToken),
		})
	case beyond:
		c.note("--ui=%s has no TLS: whoever is between can read the token and what the pages show, and act with it. Put a proxy with TLS before it, or use ssh -L", at)
	case at == "":
		at = "127.0.0.1:0"
	}
	w := ui.Handler(rt, ui.Config{Access: access, Hosts: hosts})
	listener, err := net.Listen("tcp", at)
	if err != nil {
		w.Close()
		return c.usage(&usageError{problem: "--ui: " + err.Error()})
	}
	handler, path := below(w, token)
	end := serveWindow(c, w, inspect.NewServer(handler, listener), "http://"+listener.Addr().String()+path)
	<-ctx.Done()
	end()
	return exitOK
}

// minWindowToken is the least length of a token.
const minWindowToken = 16

// windowHosts are the programs of this user that show their sessions.
func (s *settings) windowHosts(context.Context) ([]ui.Host, error) {
	sockets, err := s.find()
	hosts := make([]ui.Host, len(sockets))
	for i, socket := range sockets {
		hosts[i] = ui.Socket(socket)
	}
	return hosts, err
}
