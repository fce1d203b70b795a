package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// An answer that was cut is not an empty one, though it ends as if it were whole; what is whole counts.
func TestAnAnswerThatIsCut(t *testing.T) {
	t.Parallel()
	why := errors.New("the session ends")
	for answer, cut := range map[string]bool{`{"id":`: true, "": true, `{"id":"a"}`: false} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &client{base: "https://cloud.example", clock: kernel.NewClock(nil), http: roundTrip(func(r *http.Request) (*http.Response, error) {
			body := io.MultiReader(strings.NewReader(answer), atEnd(func() { cancel(why) }))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
		})}
		got, err := c.post(ctx, opMessage, "/messages", map[string]any{})
		if !cut {
			require.NoError(t, err)
			assert.JSONEq(t, answer, string(got))
			continue
		}
		require.ErrorIs(t, err, why, answer)
		var failed *session.CloudError
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.Unclear)
	}
}
