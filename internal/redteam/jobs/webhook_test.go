package jobs

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

// The URL of a webhook is a secret for many services. SECURITY.md: tokens never appear in
// an error. The command prints this one.
func TestWebhookErrorsHideTheURL(t *testing.T) {
	const closed = "127.0.0.1:1"
	for _, url := range []string{
		"http://" + closed + "/services/T000/B000/s3cr3tpath?token=s3cr3tquery",
		"http://s3cr3tuser:s3cr3tpassword@" + closed + "/x",
		"http://" + closed + "/%zzs3cr3tpath",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := (&control.Webhook{URL: url, Secret: "0123456789abcdef"}).Notify(ctx, fleet.Approval{ID: "x", At: time.Now()})
		cancel()
		require.Error(t, err)
		t.Log(err)
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the error has what only the service may know: %v", err)
		}
	}
}
