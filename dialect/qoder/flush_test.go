package qoder_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/dialect/qoder"
)

// The flush has the parts that the response to initialize reports as on for the SDK.
func TestBeforeEOF(t *testing.T) {
	t.Parallel()
	for response, want := range map[string][]string{
		`{"memory":{"enabled":true,"requester":"sdk","mode":"custom"}}`:                                           {"flush_memory"},
		`{"evolution":{"skill":{"enabled":true,"requester":"sdk"}}}`:                                              {"flush_skill_evolution"},
		`{"evolution":{"skill":{"enabled":true,"requester":"sdk"}},"memory":{"enabled":true,"requester":"sdk"}}`:  {"flush_memory", "flush_skill_evolution"},
		`{"evolution":7,"memory":{"enabled":true,"requester":"sdk"}}`:                                             {"flush_memory"},
		`{"memory":{"enabled":true,"requester":"cli"},"evolution":{"skill":{"enabled":false,"requester":"sdk"}}}`: nil,
		`{"memory":{"enabled":true},"Memory":{"requester":"sdk"}}`:                                                nil,
		`{}`: nil, `"?"`: nil, ``: nil,
	} {
		var got []string
		for _, r := range qoder.New().BeforeEOF([]byte(response)) {
			got = append(got, r.Subtype())
		}
		assert.Equal(t, want, got, response)
	}
}
