package command

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var loginAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w+/login\?code=\w+`)

// testBatchWindow: the address that a job prints lets one browser in, which sees the job.
func (b binaries) testBatchWindow(t *testing.T) {
	t.Parallel()
	r := b.newBatch(t, `{"id": "a", "prompt": "go"}`+"\n", slowTurn)
	cmd, out := r.start(t, "--ui")
	var address string
	require.Eventually(t, func() bool {
		address = loginAddress.FindString(out.String())
		return address != ""
	}, time.Minute, 10*time.Millisecond, out.String())
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(path string) (int, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, text
	}
	base, _, _ := strings.Cut(address, "login?")
	status, _ := get(base + "api/jobs")
	assert.Equal(t, http.StatusUnauthorized, status)
	status, _ = get(address)
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool { // the address comes before the tasks are counted
		status, text := get(base + "api/jobs")
		require.Equal(t, http.StatusOK, status)
		var jobs struct {
			Jobs []struct{ Total int }
		}
		require.NoError(t, json.Unmarshal(text, &jobs))
		return len(jobs.Jobs) == 1 && jobs.Jobs[0].Total == 1
	}, time.Minute, 10*time.Millisecond)
	for _, said := range []string{"no others start", "interrupting; Ctrl-C again kills", "killing the agents"} {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		if strings.Contains(said, "killing") {
			break
		}
		out.await(t, said)
	}
	_ = exitCode(t, cmd)
}
