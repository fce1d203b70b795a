package embedded

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/model"
)

// Claude Code speaks of the key if the endpoint does, observed on 2.1.329.
func TestARefusedKeyAndARefusedLogin(t *testing.T) {
	t.Parallel()
	for message, says := range map[string]string{
		"invalid x-api-key": "Invalid API key · Fix external API key",
		"Invalid X-API-Key": "Invalid API key · Fix external API key",
		"who are you?":      "Failed to authenticate. API Error: 401 who are you?",
	} {
		f := (&talk{}).describe(&model.Error{Class: model.Auth, Status: http.StatusUnauthorized, Message: message}, "m")
		assert.Equal(t, []string{says, "authentication_failed"}, []string{f.text, f.name}, message)
	}
}
