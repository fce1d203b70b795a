package embedded_test

import (
	"crypto/tls"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/contrib/nats/embedded"
)

func TestStart(t *testing.T) {
	t.Parallel()
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Host: "127.0.0.1", Token: "secret"})
	require.NoError(t, err)
	defer s.Stop()
	nc, err := s.Connect()
	require.NoError(t, err, "inside this process")
	nc.Close()
	_, err = nats.Connect(s.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err = nats.Connect(s.URL(), nats.Token("secret"))
	require.NoError(t, err)
	assert.EqualValues(t, 8<<20, nc.MaxPayload())
	nc.Close()
}

// The streams of a server are there when it starts again.
func TestOnlyInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 2 {
		s, err := embedded.Start(embedded.Config{Dir: dir})
		require.NoError(t, err)
		assert.Empty(t, s.URL())
		nc, err := s.Connect()
		require.NoError(t, err)
		js, err := nc.JetStream()
		require.NoError(t, err)
		_, err = js.AddStream(&nats.StreamConfig{Name: "S", Subjects: []string{"s"}})
		require.NoError(t, err)
		ack, err := js.Publish("s", nil)
		require.NoError(t, err)
		assert.EqualValues(t, i+1, ack.Sequence)
		nc.Close()
		s.Stop()
		s.Wait()
	}
}

// Two servers would overwrite each other's streams, also two of one process.
func TestADirectoryHasOneServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Config{Dir: dir})
	require.NoError(t, err)
	_, err = embedded.Start(embedded.Config{Dir: dir})
	require.ErrorIs(t, err, embedded.ErrStart)
	require.ErrorContains(t, err, "another server has the directory")
	s.Stop()
	s.Stop()
	s, err = embedded.Start(embedded.Config{Dir: dir})
	require.NoError(t, err)
	s.Stop()
}

func TestRefused(t *testing.T) {
	t.Parallel()
	dir, cluster := t.TempDir(), &embedded.Cluster{Name: "c", Port: 1}
	for name, c := range map[string]struct {
		cfg  embedded.Config
		want error
	}{
		"no directory":                  {embedded.Config{}, embedded.ErrConfig},
		"a cluster without a name":      {embedded.Config{Dir: dir, Host: "127.0.0.1", Cluster: &embedded.Cluster{}}, embedded.ErrConfig},
		"open to all":                   {embedded.Config{Dir: dir, Host: "0.0.0.0"}, embedded.ErrOpen},
		"a name is not loopback":        {embedded.Config{Dir: dir, Host: "example.com"}, embedded.ErrOpen},
		"TLS lets anybody in":           {embedded.Config{Dir: dir, Host: "::", TLS: &tls.Config{}}, embedded.ErrOpen},
		"a cluster that is open to all": {embedded.Config{Dir: dir, Name: "n", Host: "::", Cluster: cluster, TLS: &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}}, embedded.ErrOpen},
	} {
		_, err := embedded.Start(c.cfg)
		require.ErrorIs(t, err, c.want, name)
	}
}
