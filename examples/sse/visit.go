package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// visit does what the page does: it opens a session, sends one prompt, shows
// the events up to the end of the turn, and closes the page.
func visit(ctx context.Context, address, prompt string, show func(session, kind, data string)) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	r, err := request(ctx, http.MethodGet, address+"/events", nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	session, kind := "", ""
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = name
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if kind == "session" {
			session = address + "/sessions/" + strings.Trim(data, `"`)
			if err := post(ctx, session+"/prompt", url.Values{"text": {prompt}}); err != nil {
				return err
			}
			continue
		}
		show(session, kind, data)
		if kind == "done" {
			return nil
		}
	}
	return errors.New("the stream ended before the turn did")
}

func post(ctx context.Context, url string, form url.Values) error {
	r, err := request(ctx, http.MethodPost, url, form)
	if err != nil {
		return err
	}
	return r.Body.Close()
}

func request(ctx context.Context, method, url string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r, err := http.DefaultClient.Do(req)
	if err == nil && r.StatusCode >= http.StatusBadRequest {
		err = errors.Join(fmt.Errorf("%s %s: %s", method, url, r.Status), r.Body.Close())
	}
	return r, err
}
