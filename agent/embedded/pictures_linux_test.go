package embedded_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/model/modeltest"
)

// Words that only look like the address of an image stay words.
func TestACommandThatPrintsNoImage(t *testing.T) {
	t.Parallel()
	s := script(t,
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": "echo 'data:image/png;base64,AAAA'"})),
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": "echo 'data:image/png;base64,=A='"})),
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": "printf 'data:image/gif;base64,'; head -c 11000000 /dev/zero | base64 -w0"})),
		modeltest.Say(modeltest.Call("Bash", map[string]any{"command": "echo 'data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("words")) + "'"})),
		modeltest.Say(modeltest.Text("done"))).open(t)
	result(t, s)
	requests := s.requests(t, 5)
	assert.Equal(t, "data:image/png;base64,AAAA", says(t, requests[1]))
	assert.Equal(t, "data:image/png;base64,=A=", says(t, requests[2]))
	assert.Contains(t, says(t, requests[3]), "<persisted-output>\nOutput too large (")
	assert.NotContains(t, string(requests[4].Body), `"type":"image"`)
}
