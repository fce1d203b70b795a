package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// surfer is a model that fetches two pages, asks its user and makes a plan, and gives structured output
// at the third attempt if the host wants it. A page is read by itself, in a request without tools.
func surfer(r *modeltest.Request) *modeltest.Answer {
	if len(r.Tools) == 0 {
		return modeltest.Say(modeltest.Text("It is about " + strings.Fields(strings.SplitN(r.Prompt(), "---\n", 2)[1])[0] + "."))
	}
	said, stubborn := 0, false
	for _, m := range r.Messages {
		if m.Role == model.Assistant {
			said++
		}
		for _, b := range m.Blocks {
			if _, prompt, is := strings.Cut(b.Text, "surf "); is && m.Role == model.User && b.Kind == model.Text { // a reminder may be before it
				said, stubborn = 0, strings.Contains(prompt, "wrong")
			}
		}
	}
	page := func(name string) model.Block {
		return modeltest.Call("WebFetch", map[string]any{"url": "https://a.test/" + name, "prompt": "What is it?"})
	}
	switch said {
	case 0:
		return modeltest.Say(page("one"), page("two"))
	case 1:
		return modeltest.Say(modeltest.Call("AskUserQuestion", map[string]any{"questions": []any{map[string]any{
			"question": "Which?", "header": "Page", "multiSelect": false,
			"options": []any{map[string]any{"label": "one", "description": "the first"}, map[string]any{"label": "two", "description": "the second"}},
		}}}))
	case 2:
		return modeltest.Say(modeltest.Call("EnterPlanMode", map[string]any{}))
	case 3:
		return modeltest.Say(modeltest.Call("ExitPlanMode", map[string]any{}))
	}
	switch shaped := slices.Contains(r.Tools, "StructuredOutput"); {
	case shaped && (said == 4 || said > 5 && stubborn): // which does not fit
		return modeltest.Say(modeltest.Call("StructuredOutput", map[string]any{"pages": "two"}))
	case shaped && said > 5:
		return modeltest.Say(modeltest.Call("StructuredOutput", map[string]any{"pages": 2}))
	}
	return modeltest.Say(modeltest.Text("done"))
}

// paper is a web whose pages say their name, and which is down now and then.
type paper struct{ w *simtests.World }

func (p paper) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.w.Rand().IntN(6) == 0 {
		return nil, errors.New("the line is down")
	}
	body := strings.TrimPrefix(r.URL.Path, "/") + " is a page"
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// Pages, questions and plans replay, whatever goes wrong. The text of a page does not become part
// of the conversation, and no page is fetched but by the world's web.
func TestEmbeddedOnTheWeb(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 4, Twice: 1}, webWork)
}

// TestPlantedBugsOfTheWeb is for tools/simmutate.
func TestPlantedBugsOfTheWeb(t *testing.T) {
	t.Parallel()
	planted(t, 5, webWork)
}

func webWork(w *simtests.World) {
	dir := workplace(w)
	e := &simtests.Embedded{Server: &modeltest.Server{Script: surfer}, OpenAI: w.Rand().IntN(3) == 0, Rests: w.Rand().IntN(2) == 0}
	e.Config.Web = paper{w}
	w.Faults(append(simtests.ModelFaults(0.03), simtests.CancelInFlight(0.03), simtests.SlowCallback(0.1, "", 20*time.Second), simtests.SplitWrites(0.02), simtests.AgentCrash(0.005))...)
	o := &sdk.Options{
		Cwd: dir, AllowedTools: []string{"WebFetch(domain:a.test)"}, MaxRestarts: w.Rand().IntN(2),
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			switch n := w.Rand().IntN(4); {
			case r.ToolName == "AskUserQuestion" && n > 0:
				return sdk.AnswerQuestions(r, map[string][]string{"Which?": {"two"}})
			case n == 0:
				return sdk.Deny("not now"), nil
			}
			return sdk.Allow(), nil
		},
	}
	shaped := w.Rand().IntN(2) == 0
	if shaped {
		o.OutputFormat = sdk.JSONSchema(json.RawMessage(`{"type":"object","properties":{"pages":{"type":"integer"}},"required":["pages"]}`))
	}
	c, err := w.DialEmbedded(o, e)
	if err != nil {
		return
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	for i := range 2 {
		wrong := ""
		if w.Rand().IntN(4) == 0 { // no output of the model fits
			wrong = " wrong"
		}
		turn, err := c.Send(w.Context(), sdk.UserText(fmt.Sprint("surf ", i, wrong)))
		if err != nil {
			break
		}
		if w.Rand().IntN(4) == 0 {
			w.Sleep(time.Duration(w.Rand().IntN(4000)) * time.Millisecond)
			_, _ = c.Interrupt(w.Context()) // it may have died
		}
		r, err := turn.Result(w.Context())
		w.Sometimes("a turn ends well", err == nil && !r.Failed())
		w.Sometimes("a turn fails", err != nil || r.Failed())
		if err != nil {
			continue
		}
		w.Sometimes("a turn has structured output", r.StructuredOutput != nil)
		w.Sometimes("no output fits", r.Subtype == protocol.ResultErrorMaxStructuredRetry)
		if r.Subtype == protocol.ResultErrorMaxStructuredRetry && wrong == "" {
			assert.NotEmpty(w, wrong)
		}
		if r.StructuredOutput != nil {
			assert.True(w, shaped && wrong == "")
			assert.JSONEq(w, `{"pages":2}`, string(r.StructuredOutput))
		}
	}
	_ = c.Close(w.Context()) // one that has died says so
	read, approved := false, false
	for _, r := range e.Server.Requests() {
		if read = read || len(r.Tools) == 0; len(r.Tools) > 0 {
			assert.NotContains(w, string(r.Body), " is a page", "request %d", r.N)
		}
		approved = approved || strings.Contains(string(r.Body), "You have exited plan mode.")
	}
	w.Sometimes("a page is read", read)
	w.Sometimes("a plan is approved", approved)
}

// In a world without a web no page is there.
func TestEmbeddedWithoutAWeb(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 2, Twice: 1}, func(w *simtests.World) {
		s := &modeltest.Server{Script: surfer}
		c := w.OpenEmbedded(&sdk.Options{Cwd: workplace(w), AllowedTools: []string{"WebFetch"}}, &simtests.Embedded{Server: s})
		turn, err := c.Send(w.Context(), sdk.UserText("surf"))
		require.NoError(w, err)
		_, err = turn.Result(w.Context())
		require.NoError(w, err)
		require.NoError(w, c.Close(w.Context()))
		assert.Contains(w, string(s.Requests()[1].Body), "getaddrinfo ENOTFOUND a.test")
	})
}
