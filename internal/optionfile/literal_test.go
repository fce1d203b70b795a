package optionfile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestVariablesThatNobodyExpands(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{"cwd: ${HOME}/x", "model: ${MODEL}", "env: {A: \"x${B}\"}", "settings: ${DIR}/s.json", "additionalDirectories: [\"${D}\"]"} {
		_, mistakes := read(t, doc)
		if assert.Len(t, mistakes, 1, doc) {
			assert.Contains(t, mistakes[0].Problem, "which is not expanded here", doc)
			assert.Contains(t, mistakes[0].Fix, "$env", doc)
		}
	}
	_, mistakes := read(t, "systemPrompt: \"say ${NAME}\"\nmcpServers: {a: {type: http, url: \"${URL:-http://h}\"}}")
	assert.Empty(t, mistakes)
}
