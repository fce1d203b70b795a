package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// api is a client of the service.
type api struct{ address, token string }

func (a api) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.address+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	return http.DefaultClient.Do(r)
}

// call makes a request and reads its answer; to may be nil.
func (a api) call(ctx context.Context, method, path, body string, to any) error {
	resp, err := a.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(text)))
	case to == nil:
		return nil
	}
	return json.Unmarshal(text, to)
}

// watch reads the events of a session until each says that it is enough, or they end.
func (a api) watch(ctx context.Context, id string, each func(kind, data string) (enough bool, err error)) error {
	resp, err := a.do(ctx, http.MethodGet, "/sessions/"+id+"/events", "")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	kind := ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			kind = value
		case "data":
			if enough, err := each(kind, value); enough || err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// visit uses the service once.
func visit(ctx context.Context, address, token string, out io.Writer) error {
	say := func(words ...string) { _, _ = io.WriteString(out, strings.Join(words, " ")+"\n") }
	a := api{address, token}
	var made struct{ ID string }
	if err := a.call(ctx, http.MethodPost, "/sessions", `{"prompt":"Say hello."}`, &made); err != nil {
		return err
	}
	err := a.watch(ctx, made.ID, func(kind, data string) (bool, error) {
		switch kind {
		case "approval":
			var w approval
			if err := json.Unmarshal([]byte(data), &w); err != nil {
				return false, err
			}
			say("approval", w.Tool, string(w.Input))
			return false, a.call(ctx, http.MethodPost, "/approvals/"+w.ID, `{"hash":"`+w.Hash+`","allow":true}`, nil)
		case "message":
			f, err := protocol.ParseFrame([]byte(data))
			if err != nil {
				return false, err
			}
			m := protocol.DecodeMessage(f)
			if result, ok := m.(*sdk.ResultMessage); ok {
				say("result", result.Text())
				return true, nil
			}
			if text := sdk.TextOf(m); text != "" {
				say("text", text)
			}
		default:
			say(kind, data)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return a.call(ctx, http.MethodDelete, "/sessions/"+made.ID, "", nil)
}
