package command

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
)

// TestRunInTheCloud: a configuration with a cloud agent is enough; no program is needed.
func TestRunInTheCloud(t *testing.T) { // not parallel: the address is in this process's environment
	service := &cloudtest.Server{Token: "tok-secret"}
	server := httptest.NewServer(service)
	defer server.Close()
	t.Setenv("QODER_CLOUD_AGENT_API_BASE", server.URL)
	config := filepath.Join(t.TempDir(), "cloud.yaml")
	require.NoError(t, os.WriteFile(config, []byte("experimentalCloudAgent: {session: {id: sess_1}}\nauth: {type: accessToken, accessToken: tok-secret}\n"), 0o600))

	w := newWorld()
	require.Equal(t, exitOK, w.run("run", "--config", config, "hi"), w.err.String())
	assert.Equal(t, "answer to hi in turn_1\n", w.out.String())
	assert.Equal(t, []string{"hi"}, service.Messages())
	assert.NotContains(t, w.err.String(), "has no effect")

	w = newWorld()
	require.Equal(t, exitOK, w.run("options", "--config", config), w.err.String())
	assert.Contains(t, w.out.String(), "none: the agent is in Qoder's cloud")
	assert.NotContains(t, w.out.String(), "tok-secret")

	w = newWorld()
	require.NotEqual(t, exitOK, w.run("run", "--config", config, "--agent", "claude", "hi"))
	assert.Contains(t, w.err.String(), "experimentalCloudAgent")
}
