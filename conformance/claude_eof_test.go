//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// What the agent does by itself with a turn that is under way when stdin ends.
// It is why a close denies first, interrupts then, and closes stdin last.
func TestEndOfStdinInATurn(t *testing.T) {
	t.Parallel()
	const hooked = `{"type":"control_request","request_id":"init-1","request":{"subtype":"initialize","systemPrompt":[""],"hooks":{"PreToolUse":[{"hookCallbackIds":["hook_0"]}]}}}`
	for name, tc := range map[string]struct {
		initialize string
		args       []string
		pending    string // the request of the agent that is not answered; "" if the model has not spoken yet
		made       bool   // the tool ran
		told       string // what the model is told of its call
	}{
		"a hook is pending":     {hooked, []string{"--allowedTools=Bash"}, "hook_callback", false, "doesn't want to"},
		"permission is pending": {initialize, []string{"--permission-prompt-tool=stdio"}, "can_use_tool", false, "stream closed"},
		// In the first moment it may still be asked, and cannot answer.
		"a hook would be asked":   {hooked, []string{"--allowedTools=Bash"}, "", false, ""},
		"somebody would be asked": {initialize, []string{"--permission-prompt-tool=stdio"}, "", false, ""},
		"no gate at all":          {initialize, []string{"--allowedTools=Bash"}, "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := startModel(t, modelapi.Config{})
			closed := make(chan struct{})
			model.Script("touch", func(modelapi.Call) modelapi.Reply {
				if tc.pending == "" {
					<-closed
				}
				return modelapi.Reply{Blocks: []modelapi.Block{shell("touch made")}}
			}, modelapi.Say(modelapi.Text("Touch done.")))
			cli := startRaw(t, model, t.TempDir(), tc.args...)
			cli.write(t, tc.initialize)
			cli.write(t, userLine(t, "make a file [[scn:touch]]"))
			if tc.pending != "" {
				assert.Equal(t, tc.pending, cli.next(t, "control_request").Request.Subtype)
			} else {
				_, err := model.Wait(t.Context(), func(q modelapi.Request) bool { return q.Marker.Scenario == "touch" })
				require.NoError(t, err)
			}
			require.NoError(t, cli.stdin.Close())
			close(closed)

			var result frame
			for cli.lines.Scan() {
				var f frame
				require.NoError(t, json.Unmarshal(cli.lines.Bytes(), &f))
				if f.Type == "result" {
					result = f
				}
			}
			require.NoError(t, cli.cmd.Wait(), "stderr: %s", cli.stderr)
			assert.Equal(t, "success", result.Subtype, "the turn goes on to its end")
			assert.Equal(t, "Touch done.", result.Result)
			_, err := os.Stat(cli.cmd.Dir + "/made")
			assert.Equal(t, tc.made, err == nil, "the tool ran")
			all := model.Requests()
			told := all[len(all)-1].ToolResults()
			require.Len(t, told, 1)
			assert.Equal(t, !tc.made, told[0].IsError)
			assert.Contains(t, strings.ToLower(told[0].Text), strings.ToLower(tc.told))
		})
	}
}
