package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	maxListing = 10 * time.Second // that a list may take
	maxList    = 4 << 20          // bytes of it
)

// Models asks the endpoint for the names of its models: GET /models, which the Messages API
// (docs.claude.com/en/api/models-list) and chat completions have, in the order of its answer. The
// vendor of the Messages API gives the first thousand. It makes one request and waits ten seconds at
// most. Its errors are an [*Error] or ctx's cause: many servers do not have it. It is safe for
// concurrent use.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	listing := *c
	listing.url = c.root() + "/models"
	if _, ok := c.api.(messages); ok {
		listing.url += "?limit=1000"
	}
	var names []string
	err := listing.exchange(ctx, maxListing, func(ctx context.Context, x *exchange) error {
		resp, err := x.get(ctx, "application/json")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err := io.ReadAll(io.LimitReader(resp.Body, maxList))
		if err != nil {
			return fmt.Errorf("read the list of models: %w", err)
		}
		if resp.StatusCode != http.StatusOK {
			return refusal(resp, answer)
		}
		var found struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(answer, &found); err != nil || found.Data == nil {
			return broken("the endpoint answered with %.100q in place of a list of models", answer)
		}
		for _, m := range found.Data {
			if m.ID != "" {
				names = append(names, m.ID)
			}
		}
		return nil
	})
	return names, err
}

// root is the URL of the API.
func (c *Client) root() string {
	url := c.url
	for _, path := range []string{"/chat/completions", "/messages"} {
		url = strings.TrimSuffix(url, path)
	}
	return url
}
