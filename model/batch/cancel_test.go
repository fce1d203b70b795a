package batch_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// Cancel also ends a batch that is being submitted, and one that waits for its next attempt.
func TestCancelDuringASubmission(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, first, ended := &modeltest.Server{Script: echo, BatchTakes: 20 * time.Hour}, true, 0
			c := via(func(in *http.Request) *http.Response {
				switch {
				case made && in.URL.Path == "/v1/messages/batches/batch_1/cancel":
					if ended++; ended == 1 {
						return refused(in, http.StatusServiceUnavailable, "")
					}
				case submits(in) && made:
					time.Sleep(5 * time.Minute)
				case submits(in) && first:
					first = false
					return refused(in, http.StatusTooManyRequests, "3600")
				}
				return nil
			}).open(s, batch.Config{})
			go func() {
				time.Sleep(3 * time.Minute)
				assert.NoError(t, c.Cancel(t.Context()))
			}()
			began := time.Now()
			got := ask(t.Context(), c, "a")
			if made {
				require.ErrorContains(t, got.err, "canceled before it was worked on")
				assert.Equal(t, 2, ended, "Cancel of the batch is repeated")
			} else {
				require.ErrorContains(t, got.err, "canceled before it was submitted")
				assert.Zero(t, s.Batches())
			}
			assert.Less(t, time.Since(began), 10*time.Minute)
		})
	}
}
