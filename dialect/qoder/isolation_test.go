package qoder_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/session"
)

func TestSharedLogin(t *testing.T) {
	t.Parallel()
	for kind, private := range map[session.AuthType]bool{
		session.AuthQoderCLI: false, session.AuthAccessToken: true, session.AuthServiceAccount: true, session.AuthJobToken: true,
	} {
		in := dialect.Input{Options: session.Options{Auth: &session.Auth{Type: kind}}}
		assert.Equal(t, private, qoder.New().SharedLogin(&in, nil) == "", kind)
	}
	in := dialect.Input{Options: session.Options{CleanEnv: true, Env: map[string]string{"HOME": "/h"}}}
	assert.NotEmpty(t, qoder.New().SharedLogin(&in, nil))
	assert.Equal(t, "/h/.qoder", qoder.New().ConfigDir(&in).Path)
	assert.Equal(t, "QODER_CONFIG_DIR", qoder.New().ConfigDir(&in).Variable)
}
