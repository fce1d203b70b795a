package sdk

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Nothing that can be a secret is in a plan.
func TestPlansShowNoSecrets(t *testing.T) {
	t.Parallel()
	for backend, doc := range map[Backend]string{
		Claude(ClaudeConfig{Path: "/bin/x"}): `{"extraArgs":{"api-key":"SECRET","dashed":"-SECRET"},
			"agents":{"a":{"description":"d","prompt":"p","mcpServers":[{"s":{"type":"http","url":"https://u:SECRET@h/x?token=SECRET","headers":{"A":"SECRET"},"extra":{"apiKey":"SECRET"}}}]}}}`,
		Qoder(QoderConfig{Path: "/bin/x"}): `{"auth":{"type":"accessToken","accessToken":"SECRET"},"vpcEndpoint":"https://u:SECRET@h",
			"modelRequestPatches":{"body":{"api_key":"SECRET"}},"extraArgs":{"token":"SECRET"}}`,
	} {
		o, err := LoadOptions(strings.NewReader(doc))
		require.NoError(t, err)
		o.Backend = backend
		p, err := PreviewLaunch(o)
		require.NoError(t, err)
		shown, err := json.Marshal(p)
		require.NoError(t, err)
		assert.NotContains(t, string(shown), "SECRET")
	}
}

// The value of a variable is not in an error.
func TestLoadErrorsShowNoSecrets(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{`{"maxTurns":{"$env":"${K}"}}`, `{"auth":{"type":{"$env":"${K}"}}}`, `{"model":{"$env":"SECRET"}}`, `{"initializeTimeoutMs":{"$env":"${K}"}}`} {
		_, err := LoadOptions(strings.NewReader(doc), ExpandWith(func(string) (string, bool) { return "SECRET", true }))
		require.Error(t, err, doc)
		assert.NotContains(t, err.Error(), "SECRET", doc)
	}
	_, err := LoadOptions(strings.NewReader(`{"maxTurns":{"$env":"${K}"}}`), ExpandWith(func(string) (string, bool) { return "12.75", true }))
	require.ErrorContains(t, err, "maxTurns is another value, and has to be a whole number")
}

// A document on one line is read in the time of its length.
func TestLoadALongLine(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, `"é%d":"x",`, i)
	}
	_, err := LoadOptions(strings.NewReader(`{"env":{` + b.String() + `"Z":1}}`))
	var wrong *LoadError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, len([]rune(b.String()))+13, wrong.Column)
}
