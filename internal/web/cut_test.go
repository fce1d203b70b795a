package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/web"
)

type leaves func(*http.Request) (*http.Response, error)

func (l leaves) RoundTrip(r *http.Request) (*http.Response, error) { return l(r) }

// ends calls a function and is at its end.
type ends func()

func (e ends) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// A page whose request was given up is not whole, though it ends as if it were.
func TestAPageThatIsCut(t *testing.T) {
	t.Parallel()
	why := errors.New("it takes too long")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := &web.Fetcher{Transport: leaves(func(r *http.Request) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader("half of"), ends(func() { cancel(why) }))
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
	})}
	_, err := f.Get(ctx, "https://example.com/")
	require.ErrorIs(t, err, why)
}
