package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

const (
	maxUpload = 30 * time.Minute // that a batch may take to be sent
	maxState  = 16 << 20         // bytes of what an endpoint says of batches
)

// BatchRequest is one request of a batch.
type BatchRequest struct {
	ID   string // of the caller's, unique in the batch: up to 64 letters, digits, - and _
	Body []byte // of [Client.Encode]
}

// Batch is a batch of requests that an endpoint works on, and what it says of it.
type Batch struct {
	ID      string
	Tag     string    // what it was submitted with; "": the API keeps no tags
	Created time.Time // by the clock of the endpoint
	Total   int       // requests; 0: it has not counted them yet
	Over    bool      // its answers can be read
	// Err is why the endpoint has refused the batch as a whole, once it is over; nil if it has not.
	Err   *Error
	files []string // with its answers
}

// BatchAnswer is what became of one request of a batch.
type BatchAnswer struct {
	ID        string
	Body      json.RawMessage // for [Client.Play]; nil with Err
	RequestID string          // the provider's; "": it gives none
	Err       *Error
	// Dropped says that the request was not worked on, and costs nothing: the time of the batch
	// was over, or it was canceled. Err says which.
	Dropped bool
}

// batchAPI is what differs between the APIs of batches.
type batchAPI interface {
	// submit makes a batch. maybe: it may be there although there is an error.
	submit(ctx context.Context, c *Client, tag string, list []BatchRequest) (id string, maybe bool, err error)
	path() string // of the batches
	// state reads what the endpoint says of a batch.
	state(data []byte) (*Batch, error)
	page(after string) string  // query of a page of the list
	results(b *Batch) []string // paths of the files with answers
	answer(line []byte) (*BatchAnswer, error)
}

// Encode is a request as one text, for [BatchRequest]: its answer comes in one piece. Equal
// requests are equal texts.
func (c *Client) Encode(r *Request) []byte {
	parts := c.api.body(r)
	for _, member := range []string{`,"stream":true`, `,"stream_options":{"include_usage":true}`} { // no string of the head has such quotes
		if before, after, found := bytes.Cut(parts[0], []byte(member)); found {
			parts[0] = slices.Concat(before, after)
		}
	}
	return bytes.Join(parts, nil)
}

// batches is the API of batches.
func (c *Client) batches() batchAPI {
	if _, ok := c.api.(messages); ok {
		return messageBatches{}
	}
	return chatBatches{}
}

// Play gives the events of an answer that came in one piece to emit, as [Client.Stream] does.
// raw is [Request.Raw]. Its usage is that of a batch. Errors are those of Stream.
func (c *Client) Play(a *BatchAnswer, raw bool, emit func(*Event) bool) error {
	started := false
	err := c.api.decoder(raw, func(e *Event) bool {
		started, e.Usage.Batched = true, true
		if e.Kind == Start {
			e.RequestID = a.RequestID
		}
		return emit(e)
	}).answer(a.Body)
	if e, ok := errors.AsType[*Error](err); ok {
		e.RequestID, e.Started = a.RequestID, started
	}
	return err
}

// SubmitBatch has the endpoint work on requests together, within 24 hours and at its price for
// that: POST /messages/batches of the Messages API (docs.claude.com/en/api/creating-message-batches),
// or a file and POST /batches of the API with chat completions
// (platform.openai.com/docs/api-reference/batch), where a batch has one model. The tag, up to 64
// letters and digits, is kept with the batch if the API can do that. With an error, maybe says
// whether the batch may be there all the same: [Client.Batches] lists those that are. Errors are
// an [*Error] or ctx's cause.
func (c *Client) SubmitBatch(ctx context.Context, tag string, list []BatchRequest) (id string, maybe bool, err error) {
	return c.batches().submit(ctx, c, tag, list)
}

// MaxBatch is how many requests, and bytes of them, the vendor's endpoint takes in a batch.
func (c *Client) MaxBatch() (requests int, bytes int64) {
	if _, ok := c.api.(messages); ok {
		return 100_000, 256 << 20
	}
	return 50_000, 200 << 20
}

// Batch asks what the endpoint says of a batch. Errors are those of SubmitBatch.
func (c *Client) Batch(ctx context.Context, id string) (*Batch, error) {
	return c.batch(ctx, http.MethodGet, "/"+id, nil)
}

// CancelBatch ends a batch. Requests that are worked on may still be answered, and are paid.
// Errors are those of SubmitBatch.
func (c *Client) CancelBatch(ctx context.Context, id string) error {
	_, err := c.batch(ctx, http.MethodPost, "/"+id+"/cancel", nil)
	return err
}

// batch makes a request that the endpoint answers with the state of a batch.
func (c *Client) batch(ctx context.Context, method, path string, body [][]byte) (b *Batch, err error) {
	api := c.batches()
	err = c.call(ctx, method, api.path()+path, "application/json", body, func(r io.Reader) (err error) {
		data, err := readState(r)
		if err == nil {
			b, err = api.state(data)
		}
		return err
	})
	return b, err
}

// Batches gives the batches that were made since then to fn, the last one first, until it returns
// false. Errors are those of SubmitBatch.
func (c *Client) Batches(ctx context.Context, since time.Time, fn func(*Batch) bool) error {
	api := c.batches()
	for after, more := "", true; more; {
		err := c.call(ctx, http.MethodGet, api.path()+api.page(after), "", nil, func(r io.Reader) error {
			data, err := readState(r)
			if err != nil {
				return err
			}
			var found struct {
				Data []json.RawMessage `json:"data"`
				More bool              `json:"has_more"`
			}
			if err := json.Unmarshal(data, &found); err != nil || found.Data == nil {
				return broken("the endpoint answered with %.100q in place of a list of batches", data)
			}
			more = found.More && len(found.Data) > 0
			for _, one := range found.Data {
				b, err := api.state(one)
				if err != nil {
					return err
				}
				if after = b.ID; b.Created.Before(since) || !fn(b) {
					more = false
					break
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// BatchResults gives the answers of a batch that is over, as [Client.Batch] has returned it, to fn,
// in any order, until it returns false. If it ends with an error, some may have come. Errors are those
// of SubmitBatch.
func (c *Client) BatchResults(ctx context.Context, b *Batch, fn func(*BatchAnswer) bool) error {
	api, more := c.batches(), true
	for _, path := range api.results(b) {
		if !more {
			return nil
		}
		err := c.call(ctx, http.MethodGet, path, "", nil, func(r io.Reader) error {
			lines := bufio.NewReaderSize(r, lastRead)
			for more {
				line, err := readLine(lines)
				if err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				if len(bytes.TrimSpace(line)) > 0 {
					a, wrong := api.answer(line)
					if wrong != nil {
						return wrong
					}
					more = fn(a)
				}
				if err != nil {
					return nil //nolint:nilerr // the end
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readLine reads a line of answers, up to the size that an answer may have.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxAnswer {
			return nil, broken("an answer of the batch has more than %d bytes", maxAnswer)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func readState(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxState))
	if err != nil {
		return nil, fmt.Errorf("read the answer about batches: %w", err)
	}
	return data, nil
}

// call makes a request that is not for the model, and has read take the answer.
func (c *Client) call(ctx context.Context, method, path, kind string, parts [][]byte, read func(io.Reader) error) error {
	at, limit := *c, c.cfg.Idle
	if at.url = c.root() + path; len(parts) > 0 {
		limit = maxUpload
	}
	return at.exchange(ctx, limit, func(ctx context.Context, x *exchange) error {
		body := func() (io.ReadCloser, error) { return &joined{parts: parts}, nil }
		first, _ := body() // it never fails
		req, err := http.NewRequestWithContext(ctx, method, at.url, first)
		if err != nil {
			return at.noRequest(err)
		}
		if len(parts) == 0 {
			req.Body = http.NoBody
		} else {
			req.GetBody = body
			req.Header.Set("Content-Type", kind)
		}
		for _, b := range parts {
			req.ContentLength += int64(len(b))
		}
		resp, err := x.send(req, "application/json")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		x.reads.Add(1)
		if resp.StatusCode/100 != 2 {
			text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
			return refusal(resp, text)
		}
		return read(&noticed{ctx, resp.Body, x})
	})
}

// noticed is a body whose reads are noticed, so that it is not taken for a silent one. It has no
// end once ctx has ended: a server that sees the client leave may end its answer as if it were whole.
type noticed struct {
	ctx  context.Context
	body io.Reader
	x    *exchange
}

func (n *noticed) Read(b []byte) (int, error) {
	k, err := n.body.Read(b)
	n.x.reads.Add(1)
	if errors.Is(err, io.EOF) && n.ctx.Err() != nil {
		err = context.Cause(n.ctx)
	}
	return k, err
}

// uncertain reports whether a request to make a batch may have made it, though it has failed.
func uncertain(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return true // ctx has ended meanwhile
	}
	op, isNet := errors.AsType[*net.OpError](err)
	switch {
	case e.Status >= http.StatusMultipleChoices && e.Status < http.StatusInternalServerError:
		return e.Status == http.StatusRequestTimeout
	case e.Status == 0 && (e.Class == Auth || e.Class == Invalid): // it was not made
		return false
	}
	return !isNet || op.Op != "dial"
}

// named is the error of an answer of the endpoint about batches that names no batch.
func named(b *Batch, data []byte, err error) (*Batch, error) {
	if err != nil || b.ID == "" {
		return nil, broken("the endpoint answered with %.100q in place of a batch: it may have no API of batches", data)
	}
	return b, nil
}
