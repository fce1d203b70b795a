package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/command"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.file, _ = a.make(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue returns a certificate for 127.0.0.1, which is the server's or a client's, and its key.
func (a *authority) issue() (cert, key string) {
	_, _, cert, key = a.make(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert, key
}

func (a *authority) make(of *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, string, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	of.SerialNumber, of.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = of, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, parent, key.Public(), signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(a.t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	dir := a.t.TempDir()
	write := func(name, kind string, raw []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(a.t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
		return file
	}
	return cert, key, write("cert.pem", "CERTIFICATE", raw), write("key.pem", "EC PRIVATE KEY", secret)
}

// submits connects, makes a job, and finds it.
func submits(t *testing.T, at command.Servers, job string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c, err := machines{}.Connect(ctx, at)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Submit(ctx, command.JobEntry{Job: job, State: command.JobOpen, Agent: "scripted"}, []byte("{}")))
	all, err := c.Jobs(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, job, all[0].Job)
}

func refused(t *testing.T, at command.Servers, why string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c, err := machines{}.Connect(ctx, at)
	if err == nil {
		c.Close()
	}
	require.Error(t, err, why)
}

// The first machine with certificates: others need one from the same authority, also on loopback. Beyond
// loopback there is a token or a certificate, or no server.
func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	at := command.Servers{URLs: "0.0.0.0:0", CA: ours.file}
	at.Cert, at.Key = ours.issue()
	first, address, err := machines{}.Listen(t.Context(), at, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(first.Close)
	_, port, err := net.SplitHostPort(address[len("nats://"):])
	require.NoError(t, err)
	url := "nats://127.0.0.1:" + port
	client := command.Servers{URLs: url, CA: ours.file}
	client.Cert, client.Key = ours.issue()
	submits(t, client, "secure")
	refused(t, command.Servers{URLs: url}, "without TLS")
	refused(t, command.Servers{URLs: url, CA: ours.file}, "without a certificate")
	client.Cert, client.Key = theirs.issue()
	refused(t, client, "with a certificate of another authority")
	client.Cert, client.Key = ours.issue()
	client.CA = theirs.file
	refused(t, client, "the server's is of another authority")

	_, _, err = machines{}.Listen(t.Context(), command.Servers{URLs: "0.0.0.0:0"}, t.TempDir())
	require.ErrorContains(t, err, "set Token, or a TLS that requires client certificates")
	second, address, err := machines{}.Listen(t.Context(), command.Servers{URLs: "127.0.0.1:0", Token: "secret"}, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(second.Close)
	submits(t, command.Servers{URLs: address, Token: "secret"}, "token")
	refused(t, command.Servers{URLs: address}, "without the token")
	refused(t, command.Servers{URLs: address, Token: "guess"}, "with another token")
}

// Users of an operator's accounts have their credentials in files, and each account has its own jobs.
func TestCredentialsOfAnOperator(t *testing.T) {
	t.Parallel()
	key := func(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
		pair, err := create()
		require.NoError(t, err)
		public, err = pair.PublicKey()
		require.NoError(t, err)
		return pair, public
	}
	operator, name := key(nkeys.CreateOperator)
	claims := jwt.NewOperatorClaims(name)
	signed, err := claims.Encode(operator)
	require.NoError(t, err)
	trusted, err := jwt.DecodeOperatorClaims(signed)
	require.NoError(t, err)
	resolver := &server.MemAccResolver{}
	var files []string
	for range 2 {
		account, id := key(nkeys.CreateAccount)
		of := jwt.NewAccountClaims(id)
		of.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		token, err := of.Encode(operator)
		require.NoError(t, err)
		require.NoError(t, resolver.Store(id, token))
		user, id := key(nkeys.CreateUser)
		token, err = jwt.NewUserClaims(id).Encode(account)
		require.NoError(t, err)
		seed, err := user.Seed()
		require.NoError(t, err)
		creds, err := jwt.FormatUserConfig(token, seed)
		require.NoError(t, err)
		files = append(files, filepath.Join(t.TempDir(), "user.creds"))
		require.NoError(t, os.WriteFile(files[len(files)-1], creds, 0o600))
	}
	system, id := key(nkeys.CreateAccount)
	_ = system
	token, err := jwt.NewAccountClaims(id).Encode(operator)
	require.NoError(t, err)
	require.NoError(t, resolver.Store(id, token))
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: resolver, SystemAccount: id,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	require.True(t, s.ReadyForConnections(time.Minute))
	submits(t, command.Servers{URLs: s.ClientURL(), Creds: files[0]}, "first")
	submits(t, command.Servers{URLs: s.ClientURL(), Creds: files[1]}, "second")
	refused(t, command.Servers{URLs: s.ClientURL()}, "without credentials")
	_, err = nats.Connect(s.ClientURL(), nats.Token("x"))
	require.ErrorIs(t, err, nats.ErrAuthorization)
}
