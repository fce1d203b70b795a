package model

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// messageBatches are the batches of the Messages API.
type messageBatches struct{}

func (messageBatches) path() string { return "/messages/batches" }

func (messageBatches) submit(ctx context.Context, c *Client, _ string, list []BatchRequest) (id string, maybe bool, err error) {
	parts := [][]byte{[]byte(`{"requests":[`)}
	for i, r := range list {
		head := []byte(`{"custom_id":`)
		if i > 0 {
			head = []byte(`,{"custom_id":`)
		}
		parts = append(parts, append(appendString(head, r.ID), `,"params":`...), r.Body, []byte{'}'})
	}
	parts = append(parts, []byte("]}"))
	b, err := c.batch(ctx, http.MethodPost, "", parts)
	if err != nil {
		return "", uncertain(err), err
	}
	return b.ID, false, nil
}

func (messageBatches) state(data []byte) (*Batch, error) {
	var in struct {
		ID      string    `json:"id"`
		Status  string    `json:"processing_status"` // in_progress, canceling, ended
		Created time.Time `json:"created_at"`
		Counts  struct {
			Processing int `json:"processing"`
			Succeeded  int `json:"succeeded"`
			Errored    int `json:"errored"`
			Canceled   int `json:"canceled"`
			Expired    int `json:"expired"`
		} `json:"request_counts"`
	}
	err := json.Unmarshal(data, &in)
	n := in.Counts
	return named(&Batch{
		ID: in.ID, Created: in.Created, Over: in.Status == "ended",
		Total: n.Processing + n.Succeeded + n.Errored + n.Canceled + n.Expired,
	}, data, err)
}

func (messageBatches) page(after string) string {
	if after == "" {
		return "?limit=100"
	}
	return "?limit=100&after_id=" + url.QueryEscape(after)
}

// results: the key must not go elsewhere, so results_url is not followed.
func (m messageBatches) results(b *Batch) []string {
	return []string{m.path() + "/" + b.ID + "/results"}
}

func (messageBatches) answer(line []byte) (*BatchAnswer, error) {
	var in struct {
		ID     string `json:"custom_id"`
		Result struct {
			Type    string          `json:"type"`
			Message json.RawMessage `json:"message"`
			Error   json.RawMessage `json:"error"`
		} `json:"result"`
	}
	if err := protocol.Unmarshal(line, &in); err != nil || in.ID == "" {
		return nil, broken("an answer of the batch is %.100q", line)
	}
	a := &BatchAnswer{ID: in.ID}
	switch in.Result.Type {
	case "succeeded":
		a.Body = in.Result.Message
	case "errored":
		var more struct {
			RequestID string `json:"request_id"`
		}
		_ = protocol.Unmarshal(in.Result.Error, &more) // not all have it
		a.RequestID = more.RequestID
		a.Err = inStream(in.Result.Error)
		a.Err.Status, a.Err.RequestID = 0, more.RequestID
	case "canceled", "expired":
		dropped(a, in.Result.Type)
	default:
		a.Err = broken("an answer of the batch has the type %q", in.Result.Type)
	}
	return a, nil
}

// dropped says that a request was not worked on.
func dropped(a *BatchAnswer, why string) {
	a.Dropped = true
	a.Err = &Error{Class: Overload, Type: why, RetryAfter: -1, Final: true, Message: "the batch of the request was " + why + " before it was worked on"}
}
