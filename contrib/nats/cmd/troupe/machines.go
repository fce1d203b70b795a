package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/internal/command"
)

// machines implements command.Machines.
type machines struct{}

// Connect implements command.Machines.
func (machines) Connect(ctx context.Context, at command.Servers) (command.Cluster, error) {
	options, err := connection(at)
	if err != nil {
		return nil, err
	}
	nc, err := troupenats.Connect(at.URLs, options...)
	if err != nil {
		return nil, err
	}
	return open(ctx, nc, func() {})
}

// Listen implements command.Machines.
func (machines) Listen(ctx context.Context, at command.Servers, dir string) (command.Cluster, string, error) {
	host, port, err := net.SplitHostPort(at.URLs)
	if err != nil {
		return nil, "", err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, "", fmt.Errorf("--listen: %q is no port", port)
	}
	cfg := embedded.Config{Dir: dir, Host: host, Port: number, Token: at.Token, Name: "troupe"}
	if at.Cert != "" {
		if cfg.TLS, err = at509(at); err != nil {
			return nil, "", err
		}
		cfg.TLS.ClientCAs, cfg.TLS.RootCAs, cfg.TLS.ClientAuth = cfg.TLS.RootCAs, nil, tls.RequireAndVerifyClientCert
	}
	s, err := embedded.Start(cfg)
	if err != nil {
		return nil, "", err
	}
	nc, err := s.Connect(nats.Name(at.Name))
	if err != nil {
		s.Stop()
		return nil, "", err
	}
	c, err := open(ctx, nc, s.Stop)
	if err != nil {
		return nil, "", err
	}
	return c, address(s.URL(), host), nil
}

// address is where other machines connect.
func address(url, host string) string {
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return url
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		return url
	}
	_, port, _ := net.SplitHostPort(url[strings.LastIndexByte(url, '/')+1:])
	return "nats://" + net.JoinHostPort(name, port)
}

// connection is how a program says who it is.
func connection(at command.Servers) ([]nats.Option, error) {
	options := []nats.Option{nats.Name(at.Name)}
	if at.Token != "" {
		options = append(options, nats.Token(at.Token))
	}
	if at.Creds != "" {
		o, err := credentials(at.Creds)
		if err != nil {
			return nil, err
		}
		options = append(options, o)
	}
	if at.CA != "" || at.Cert != "" {
		t, err := at509(at)
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(t))
	}
	return options, nil
}

// credentials reads the credentials of a user, or the seed of an nkey.
func credentials(file string) (nats.Option, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--creds: %w", err)
	}
	if strings.Contains(string(raw), "NATS USER JWT") {
		return nats.UserCredentials(file), nil
	}
	o, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		return nil, fmt.Errorf("--creds: %s has neither credentials of a user nor the seed of an nkey: %w", file, err)
	}
	return o, nil
}

// at509 reads the files of TLS. Nothing below 1.2 is spoken.
func at509(at command.Servers) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if at.Cert != "" {
		own, err := tls.LoadX509KeyPair(at.Cert, at.Key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		t.Certificates = []tls.Certificate{own}
	}
	if at.CA != "" {
		raw, err := os.ReadFile(at.CA)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("--tls-ca: %w", errors.New(at.CA+" has no certificate"))
		}
	}
	return t, nil
}
