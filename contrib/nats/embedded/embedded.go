package embedded

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// Errors of [Start], to be matched with errors.Is.
var (
	// ErrConfig says that a [Config] is wrong.
	ErrConfig = errors.New("this is not a valid configuration")
	// ErrOpen says that the server would let anybody in from other machines.
	ErrOpen = errors.New("a server that other machines reach needs a token or client certificates")
	// ErrStart says that the server does not start: its port or its directory is in use.
	ErrStart = errors.New("the server does not start")
)

// Config configures [Start]. Dir is needed.
type Config struct {
	// Dir is where the server keeps its streams. One server at a time has it.
	Dir string
	// Name is the server's name, which is its own in a cluster. Default: "", one is made.
	Name string
	// Host and Port are where programs connect. Default: Host "", this process alone can;
	// Port 0, one that is free. A host beyond loopback needs Token, or TLS
	// that asks for client certificates.
	Host string
	Port int
	// Token is what clients have to say, and the servers of a cluster to one another. Default:
	// "", nothing.
	Token string
	// TLS is for clients. Default: nil, none.
	TLS *tls.Config
	// MaxStore is how many bytes the streams may have. Default: 0, three quarters of what the
	// disk has left.
	MaxStore int64
	// MaxPayload is how many bytes a message may have. Default: 0, 8 MiB, and 1 MiB in a cluster.
	MaxPayload int32
	// Cluster makes the server one of several, which keep each job three times. Default: nil,
	// it is alone.
	Cluster *Cluster
}

// Cluster is how a server finds the others.
type Cluster struct {
	// Name is the same on all servers.
	Name string
	// Port is where the other servers connect, on Config.Host.
	Port int
	// Routes are the other servers, as host:port of their Cluster.Port.
	Routes []string
}

// Server is a server that runs.
type Server struct {
	server *server.Server
	token  string
	lock   io.Closer // of Config.Dir
}

// Start starts a server, and returns when clients can connect. In a cluster a leader comes some
// seconds later. The error matches [ErrConfig], [ErrOpen] or [ErrStart].
func Start(cfg Config) (*Server, error) {
	o, err := cfg.options()
	if err != nil {
		return nil, err
	}
	lock, err := take(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("nats server in %s: %w: %w", cfg.Dir, ErrStart, err)
	}
	s, err := server.NewServer(o)
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("nats server in %s: %w: %w", cfg.Dir, ErrStart, err)
	}
	running := &Server{s, cfg.Token, lock}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		running.Stop()
		return nil, fmt.Errorf("nats server in %s: %w: it does not listen on %s: is the port in use?", cfg.Dir, ErrStart, net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port)))
	}
	return running, nil
}

// take locks the directory for this server until it stops or its process ends: two servers would
// overwrite each other's streams.
func take(dir string) (io.Closer, error) {
	files := journal.Dir(dir)
	if err := files.Mkdir("."); err != nil {
		return nil, err
	}
	lock, err := files.Lock("server.lock", fmt.Sprintf("process %d", os.Getpid()))
	if errors.Is(err, journal.ErrLocked) {
		err = errors.New("another server has the directory")
	}
	return lock, err
}

func (c Config) options() (*server.Options, error) {
	switch {
	case c.Dir == "":
		return nil, fmt.Errorf("nats server: %w: Dir is empty: name a directory on a disk that lasts", ErrConfig)
	case c.Cluster != nil && (c.Host == "" || c.Name == "" || c.Cluster.Name == "" || c.Cluster.Port == 0):
		return nil, fmt.Errorf("nats server: %w: a cluster needs Host, Name, Cluster.Name and Cluster.Port", ErrConfig)
	case !loopback(c.Host) && c.Token == "" && (c.Cluster != nil || c.TLS == nil || c.TLS.ClientAuth != tls.RequireAndVerifyClientCert):
		return nil, fmt.Errorf("nats server on %s: %w: set Token, or a TLS that requires client certificates; the servers of a cluster need Token", c.Host, ErrOpen)
	}
	o := &server.Options{
		ServerName: c.Name, Host: c.Host, Port: c.Port, DontListen: c.Host == "", Authorization: c.Token,
		JetStream: true, StoreDir: c.Dir, SyncAlways: true, JetStreamMaxStore: c.MaxStore,
		NoSigs: true, NoLog: true, MaxPayload: c.MaxPayload,
	}
	if c.TLS != nil {
		o.TLS, o.TLSConfig, o.TLSTimeout = true, c.TLS, 5
		o.TLSVerify = c.TLS.ClientAuth == tls.RequireAndVerifyClientCert
	}
	if c.Host != "" && c.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if c.Cluster == nil {
		if o.MaxPayload == 0 {
			o.MaxPayload = 8 << 20
		}
		return o, nil
	}
	o.Cluster = server.ClusterOpts{Name: c.Cluster.Name, Host: c.Host, Port: c.Cluster.Port}
	var user *url.Userinfo
	if c.Token != "" {
		o.Cluster.Username, o.Cluster.Password, o.Cluster.AuthTimeout = "troupe", c.Token, 5
		user = url.UserPassword("troupe", c.Token)
	}
	for _, r := range c.Cluster.Routes {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats", User: user, Host: r})
	}
	return o, nil
}

// loopback reports whether no other machine reaches a host.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL is where clients connect; "": only this process can.
func (s *Server) URL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// InProcessConn is a connection inside this process, for nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.server.InProcessConn() }

// Connect returns a connection inside this process, which ends with the server.
func (s *Server) Connect(options ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect("", append([]nats.Option{nats.Name("troupe"), nats.InProcessServer(s), nats.Token(s.token), nats.MaxReconnects(-1)}, options...)...)
	if err != nil {
		return nil, fmt.Errorf("nats server: connect: %w", err)
	}
	return nc, nil
}

// Stop ends the server when what it has is on the disk. Jobs of other machines wait until it is
// there again, and their leases end meanwhile.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
	_ = s.lock.Close() // only a second Stop fails
}

// Wait waits until the server has ended.
func (s *Server) Wait() { s.server.WaitForShutdown() }
