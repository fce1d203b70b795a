package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// docs/parity.md says which messages Troupe hides and which it delivers, unlike the vendors' SDKs.
func TestWhatIsHiddenFromTheStream(t *testing.T) {
	t.Parallel()
	for typ, hidden := range map[string]bool{
		"keep_alive": true, "keepalive": true, "transcript_mirror": true, "control_request": true, "control_response": true,
		"control_cancel_request": true, "control_cancel": true,
		"system": false, "command_lifecycle": false, "streamlined_text": false, "streamlined_tool_use_summary": false,
		"post_turn_summary": false, "user": false, "assistant": false, "result": false, "": false, "unheard_of": false,
	} {
		assert.Equal(t, hidden, IsControl(typ), typ)
	}
}
