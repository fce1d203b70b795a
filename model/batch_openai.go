package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// chatBatches are the batches of the API with chat completions.
type chatBatches struct{}

const (
	chatEndpoint = "/v1/chat/completions"
	tagMember    = "troupe" // of the metadata
)

func (chatBatches) path() string { return "/batches" }

func (m chatBatches) submit(ctx context.Context, c *Client, tag string, list []BatchRequest) (id string, maybe bool, err error) {
	file, err := m.upload(ctx, c, tag, list)
	if err != nil {
		return "", false, err // a file without a batch costs nothing
	}
	head := append(appendString([]byte(`{"input_file_id":`), file), `,"endpoint":"`+chatEndpoint+`","completion_window":"24h","metadata":{"`+tagMember+`":`...)
	body := append(appendString(head, tag), "}}"...)
	b, err := c.batch(ctx, http.MethodPost, "", [][]byte{body})
	if err != nil {
		return "", uncertain(err), err
	}
	return b.ID, false, nil
}

// upload sends the file with the requests, a line for each.
func (chatBatches) upload(ctx context.Context, c *Client, tag string, list []BatchRequest) (file string, err error) {
	boundary := "troupe-" + tag // no line of JSON begins with it
	field := "--" + boundary + "\r\nContent-Disposition: form-data; name="
	parts := [][]byte{[]byte(field + "\"purpose\"\r\n\r\nbatch\r\n" +
		field + "\"file\"; filename=\"" + tag + ".jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n")}
	for _, r := range list {
		head := append(appendString([]byte(`{"custom_id":`), r.ID), `,"method":"POST","url":"`+chatEndpoint+`","body":`...)
		parts = append(parts, head, r.Body, []byte("}\n"))
	}
	parts = append(parts, []byte("\r\n--"+boundary+"--\r\n"))
	err = c.call(ctx, http.MethodPost, "/files", "multipart/form-data; boundary="+boundary, parts, func(r io.Reader) error {
		data, err := readState(r)
		if err != nil {
			return err
		}
		var in struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(data, &in); err != nil || in.ID == "" {
			return broken("the endpoint answered with %.100q in place of a file: it may have no API of batches", data)
		}
		file = in.ID
		return nil
	})
	return file, err
}

func (chatBatches) state(data []byte) (*Batch, error) {
	var in struct {
		ID       string            `json:"id"`
		Status   string            `json:"status"`
		Created  int64             `json:"created_at"`
		Metadata map[string]string `json:"metadata"`
		Output   string            `json:"output_file_id"`
		Errors   string            `json:"error_file_id"`
		Counts   struct {
			Total int `json:"total"`
		} `json:"request_counts"`
		Problems struct {
			Data []json.RawMessage `json:"data"`
		} `json:"errors"`
	}
	err := protocol.Unmarshal(data, &in)
	b := &Batch{ID: in.ID, Tag: in.Metadata[tagMember], Created: time.Unix(in.Created, 0), Total: in.Counts.Total}
	switch in.Status {
	case "completed", "expired", "cancelled":
		b.Over = true
	case "failed":
		b.Over = true
		b.Err = &Error{Class: Invalid, RetryAfter: -1, Message: "the endpoint has refused the batch"}
		if len(in.Problems.Data) > 0 {
			b.Err = inStream(in.Problems.Data[0])
			if b.Err.Status = 0; b.Err.Class == Server && !itsFault(b.Err.Type) {
				b.Err.Class = Invalid // it has looked at the file, and did not accept it
			}
		}
		if strings.Contains(b.Err.Type, "limit") { // token_limit_exceeded: others are queued
			b.Err.Class = Rate
		}
	}
	for _, f := range []string{in.Output, in.Errors} {
		if f != "" {
			b.files = append(b.files, f)
		}
	}
	return named(b, data, err)
}

func (chatBatches) page(after string) string {
	if after == "" {
		return "?limit=100"
	}
	return "?limit=100&after=" + url.QueryEscape(after)
}

func (chatBatches) results(b *Batch) (paths []string) {
	for _, f := range b.files {
		paths = append(paths, "/files/"+f+"/content")
	}
	return paths
}

func (chatBatches) answer(line []byte) (*BatchAnswer, error) {
	var in struct {
		ID       string `json:"custom_id"`
		Response *struct {
			Status    int             `json:"status_code"`
			RequestID string          `json:"request_id"`
			Body      json.RawMessage `json:"body"`
		} `json:"response"`
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := protocol.Unmarshal(line, &in); err != nil || in.ID == "" {
		return nil, broken("an answer of the batch is %.100q", line)
	}
	a := &BatchAnswer{ID: in.ID}
	switch r := in.Response; {
	case r != nil && r.Status == http.StatusOK:
		a.Body, a.RequestID = r.Body, r.RequestID
	case r != nil && r.Status != 0:
		a.RequestID = r.RequestID
		a.Err = refusal(&http.Response{StatusCode: r.Status, Header: http.Header{}}, r.Body)
		a.Err.RequestID = r.RequestID
	case in.Error != nil && in.Error.Code == "batch_expired":
		dropped(a, "expired")
	case in.Error != nil && in.Error.Code == "batch_cancelled":
		dropped(a, "canceled")
	case in.Error != nil:
		a.Err = &Error{Class: classOf(0, in.Error.Code, in.Error.Message), Type: in.Error.Code, RetryAfter: -1, Message: in.Error.Message}
	default:
		a.Err = broken("an answer of the batch is %.100q", line)
	}
	return a, nil
}
