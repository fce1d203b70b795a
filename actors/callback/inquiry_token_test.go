package callback_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

func TestATokenIsNeverShown(t *testing.T) {
	t.Parallel()
	token := session.Token{Value: "s3cret", ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("got", "token", token)
	marshalled, err := json.Marshal(token)
	require.NoError(t, err)
	for _, shown := range []string{
		fmt.Sprint(token), fmt.Sprintf("%v %+v %#v %q", token, token, token, token), string(marshalled), log.String(),
	} {
		assert.NotContains(t, shown, "s3cret")
		assert.Contains(t, shown, "token")
	}
	assert.Equal(t, "no token", session.Token{}.String())
	assert.Equal(t, "token", session.Token{Value: "x"}.String())
}
