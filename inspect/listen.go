package inspect

import (
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Config says where [Listen] listens. The zero value is the socket that troupe ps finds.
type Config struct {
	// Socket is the path of the Unix socket. Its directory must belong to the user and
	// be closed to all others (mode 0700); it is created if it is missing. The socket
	// gets mode 0600. Default: the path of this process in [DefaultDir], unless Address is set.
	Socket string
	// Address is a loopback address and a port to listen on instead of a socket, such as
	// 127.0.0.1:7070 or [::1]:0, where port 0 means any free port. It needs a Token.
	Address string
	// Token is what each request to Address must bring as a bearer token: at least 16
	// characters that cannot be guessed. It is a secret. A socket needs no token: its
	// mode protects it.
	Token string
}

// Format writes which fields are set, without the token, for every verb.
func (c Config) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// InUseError says that a live process listens on the socket.
type InUseError struct {
	Socket string // path of the socket
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("inspect: another program, or another runtime of this one, listens on %s: choose another Config.Socket", e.Socket)
}

// Server shows a runtime on a socket. It is safe for concurrent use.
type Server struct {
	listener net.Listener
	http     http.Server
}

// minToken is the least length of a token.
const minToken = 16

// Listen opens the socket or the port that cfg names; [Server.Serve] then answers. A
// socket that a dead process has left is replaced. The error is an *[InUseError] if a
// live process listens on the socket, and a *[session.ConfigError] if other users or
// other machines could get in.
func Listen(rt *runtime.Runtime, cfg Config) (*Server, error) {
	return ListenWith(Handler(rt, Access{Token: cfg.Token}), cfg)
}

// ListenWith is [Listen] for another handler, which checks each request itself; see
// [Access.Protect].
func ListenWith(h http.Handler, cfg Config) (*Server, error) {
	listener, err := open(&cfg)
	if err != nil {
		return nil, err
	}
	return NewServer(h, listener), nil
}

// NewServer returns a server for a listener of the program's. The handler checks each request
// itself: everybody who reaches the listener can ask it.
func NewServer(h http.Handler, l net.Listener) *Server {
	return &Server{listener: l, http: http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0), // of clients that leave early
	}}
}

func open(cfg *Config) (net.Listener, error) {
	refuse := func(option, problem, fix string) error {
		return fmt.Errorf("inspect: %w", &session.ConfigError{Option: option, Problem: problem, Fix: fix})
	}
	switch {
	case cfg.Token != "" && len(cfg.Token) < minToken:
		return nil, refuse("Token", fmt.Sprintf("has fewer than %d characters, which can be guessed", minToken), "use a long random text")
	case cfg.Token != "" && cfg.Address == "":
		return nil, refuse("Token", "is for an Address; the mode of a socket protects it", "set Address, or no Token")
	case cfg.Address == "":
		return openSocket(cfg.Socket)
	case cfg.Socket != "":
		return nil, refuse("Address", "contradicts Socket", "set one of them")
	case cfg.Token == "":
		return nil, refuse("Address", "needs a Token, because every user of this machine can reach the port", "set Token, or use a Socket")
	}
	if host, _, err := net.SplitHostPort(cfg.Address); err != nil || host != "localhost" && !loopback(host) {
		return nil, refuse("Address", fmt.Sprintf("%q is not a loopback address and a port", cfg.Address), "use 127.0.0.1:0 or [::1]:0")
	}
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // what localhost is, the machine says
		return nil, errors.Join(refuse("Address", fmt.Sprintf("%q is the address %v of this machine, which others can reach", cfg.Address, l.Addr()),
			"use 127.0.0.1:0 or [::1]:0"), l.Close())
	}
	return l, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Addr returns the path of the socket, or the address with its port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers requests until Close, and then returns nil. Call it on its own goroutine.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("inspect: %s: %w", s.Addr(), err)
	}
	return nil
}

// Close ends all connections, closes the port or removes the socket, and lets Serve
// return. It may be called more than once, and without Serve.
func (s *Server) Close() error {
	err := s.http.Close()
	if closed := s.listener.Close(); err == nil && !errors.Is(closed, net.ErrClosed) {
		err = closed
	}
	return err
}
