package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxCounting is how long a count may take.
const maxCounting = 5 * time.Second

// CountTokens asks the endpoint count_tokens of the Messages API
// (docs.claude.com/en/api/messages-count-tokens) how many tokens a text has for a model. It
// makes one request and waits five seconds at most. With chat completions, which have no such
// endpoint, the error is [errors.ErrUnsupported]; others are an [*Error] or ctx's cause. It is
// safe for concurrent use.
func (c *Client) CountTokens(ctx context.Context, model, text string) (int, error) {
	if _, ok := c.api.(messages); !ok {
		return 0, errors.ErrUnsupported
	}
	body, err := json.Marshal(map[string]any{"model": model, "messages": []any{map[string]any{"role": User, "content": text}}})
	if err != nil {
		return 0, &Error{Class: Invalid, RetryAfter: -1, Err: err}
	}
	counting := *c
	counting.url += "/count_tokens"
	count := 0
	err = counting.exchange(ctx, maxCounting, func(ctx context.Context, x *exchange) error {
		resp, err := x.post(ctx, "application/json", [][]byte{body})
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
		if err != nil {
			return fmt.Errorf("read the count: %w", err)
		}
		if resp.StatusCode != http.StatusOK {
			return refusal(resp, answer)
		}
		var found struct {
			Tokens *int `json:"input_tokens"`
		}
		if json.Unmarshal(answer, &found) != nil || found.Tokens == nil || *found.Tokens < 0 {
			return broken("the endpoint answered with %.100q in place of a number of tokens", answer)
		}
		count = *found.Tokens
		return nil
	})
	return count, err
}
