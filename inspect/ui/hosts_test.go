package ui_test

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
)

// TestOtherHosts shows the sessions of another program by its socket, and one that is dead.
func TestOtherHosts(t *testing.T) {
	t.Parallel()
	far := newRuntime(t)
	openSession(t, far, "far\u202e", nil, nil)
	socket := filepath.Join(t.TempDir(), "77.sock")
	server, err := inspect.Listen(far, inspect.Config{Socket: socket})
	if err != nil {
		t.Skip("no socket here: ", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve() }()
	defer func() { assert.NoError(t, server.Close()); assert.NoError(t, <-served) }()
	near := newRuntime(t)
	openSession(t, near, "near", nil, nil)
	cfg := open()
	cfg.Hosts = func(context.Context) ([]ui.Host, error) {
		return []ui.Host{ui.Socket(socket), ui.Socket(socket + ".gone")}, nil
	}
	p := serve(t, ui.Handler(near, cfg)).enter("")
	var hosts []struct {
		ID string
		Up bool
	}
	p.read("api/hosts", &hosts)
	require.Len(t, hosts, 1)
	assert.Equal(t, "77", hosts[0].ID)
	var table struct {
		Sessions []struct{ ID, Host string }
	}
	p.read("api/sessions", &table)
	require.Len(t, table.Sessions, 2)
	assert.Equal(t, "near", table.Sessions[0].ID)
	assert.Equal(t, "77", table.Sessions[1].Host)
	status, text, _ := p.get("api/tree?host=77&session=far%E2%80%AE")
	assert.Equal(t, http.StatusOK, status)
	assert.NotContains(t, text, "\u202e")
	for _, path := range []string{"api/tree?host=78", "api/tree?host=77&session=near"} {
		status, _, _ = p.get(path)
		assert.Equal(t, http.StatusNotFound, status, path)
	}
	p.follow("", func(f frame) bool {
		if f.kind == "tick" {
			return f.data["states"].(map[string]any)["ready"] == 2.0
		}
		return false
	})
}
