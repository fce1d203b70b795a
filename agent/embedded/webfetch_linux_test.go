package embedded_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// site is a web with these pages, by URL.
type site struct {
	pages map[string]string
	kind  string // of all
	holds func(context.Context)

	mu    sync.Mutex
	asked []string
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	if s.holds != nil {
		s.holds(r.Context())
		return nil, r.Context().Err()
	}
	body, known := s.pages[r.URL.String()]
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
	if !known {
		resp.StatusCode = http.StatusNotFound
	}
	return resp, nil
}

func (s *site) urls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

const thePage = "https://a.test/x"

func aSite() *site {
	return &site{kind: "text/plain", pages: map[string]string{thePage: "the secret of the page"}}
}

// surfs is a session that may fetch pages of the site, in the default mode.
func surfs(t *testing.T, web *site, answers ...*modeltest.Answer) *scripted {
	t.Helper()
	s := script(t, answers...)
	s.o.Backend = embedded.New(embedded.Config{Model: s.server.Anthropic(model.Config{}), Name: "claude-sonnet-4-5", Dir: filepath.Join(s.o.Cwd, "../state"), Web: web})
	s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions, s.o.AllowedTools = "", false, []string{"WebFetch(domain:a.test)"}
	return s
}

func fetch(url string) *modeltest.Answer {
	return modeltest.Say(modeltest.Call("WebFetch", map[string]any{"url": url, "prompt": "What is it?"}))
}

func TestAPageIsFetched(t *testing.T) {
	t.Parallel()
	web := aSite()
	s := surfs(t, web, fetch("http://a.test/x"), modeltest.Say(modeltest.Text("It is a page.")), modeltest.Say(modeltest.Text("done"))).open(t)
	r := result(t, s)
	assert.Equal(t, "done", r.Result)
	assert.InDelta(t, 3*(10*3+5*15)/1e6, r.TotalCostUSD, 1e-12, "the question about the page costs, too")
	assert.Equal(t, 2, r.NumTurns)
	requests := s.requests(t, 3)
	assert.Contains(t, requests[0].Tools, "WebFetch")
	assert.Empty(t, requests[1].Tools)
	assert.Contains(t, requests[1].Prompt(), "the secret of the page")
	assert.Contains(t, requests[1].Prompt(), "What is it?")
	assert.Equal(t, "It is a page.", says(t, requests[2]))
	assert.NotContains(t, string(requests[2].Body), "the secret of the page", "the conversation has the answer alone")
	assert.Equal(t, []string{thePage}, web.urls())
}

// The host chooses the model that reads a page, too.
func TestTheHostChoosesWhoReadsAPage(t *testing.T) {
	t.Parallel()
	s := surfs(t, aSite(), fetch(thePage), modeltest.Say(modeltest.Text("It is a page.")), modeltest.Say(modeltest.Text("done")))
	s.o.ResolveModelTimeout = -1
	s.o.ResolveModel = func(_ context.Context, r *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
		return sdk.UseModel("for-" + r.Purpose), nil
	}
	s = s.open(t)
	result(t, s)
	for i, r := range s.requests(t, 3) {
		assert.Contains(t, string(r.Body), `"model":"for-`+[]string{"main", "web_fetch", "main"}[i]+`"`)
	}
}

// Without a rule that allows it, there is no WebFetch; a rule allows what it says.
func TestPagesNeedARule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(*sdk.Options)
		offered bool
		url     string
		want    string // what the model reads; "": the page is fetched
	}{
		"no rule": {func(o *sdk.Options) { o.AllowedTools = nil }, false, thePage, "WebFetch is disabled for this session"},
		"no rule, bypass": {func(o *sdk.Options) {
			o.AllowedTools = nil
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		}, false, thePage, "WebFetch is disabled for this session"},
		"a rule":  {func(*sdk.Options) {}, true, thePage, ""},
		"for all": {func(o *sdk.Options) { o.AllowedTools = []string{"WebFetch"} }, true, thePage, ""},
		"a policy": {func(o *sdk.Options) {
			o.AllowedTools, o.Policy = nil, &sdk.Policy{Allow: []string{"WebFetch(domain:a.test)"}}
		}, true, thePage, ""},
		"another host":       {func(*sdk.Options) {}, true, "https://b.test/x", "haven't granted it yet"},
		"the host as a user": {func(*sdk.Options) {}, true, "https://a.test@b.test/x", "haven't granted it yet"},
		"named, not allowed": {func(o *sdk.Options) { o.AllowedTools, o.Tools = nil, sdk.Only("WebFetch") }, true, thePage, "haven't granted it yet"},
		"named, bypass": {func(o *sdk.Options) {
			o.AllowedTools, o.Tools = nil, sdk.Only("WebFetch")
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		}, true, thePage, ""},
		"denied, bypass": {func(o *sdk.Options) {
			o.DisallowedTools = []string{"WebFetch(domain:a.test)"}
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		}, true, thePage, "WebFetch denied access to domain:a.test."},
		"plan mode": {func(o *sdk.Options) {
			o.AllowedTools, o.Tools = nil, sdk.Only("WebFetch")
			o.PermissionMode = sdk.ModePlan
		}, true, thePage, "WebFetch was not run"},
		"a private address":    {func(o *sdk.Options) { o.AllowedTools = []string{"WebFetch"} }, true, "https://169.254.169.254/latest", "is not a public address"},
		"no page of a browser": {func(*sdk.Options) {}, true, "file:///etc/passwd", "haven't granted it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := aSite()
			s := surfs(t, web, fetch(c.url), modeltest.Say(modeltest.Text("an answer")))
			c.set(s.o)
			s.open(t)
			result(t, s)
			requests := s.requests(t, 2)
			assert.Equal(t, c.offered, strings.Contains(strings.Join(requests[0].Tools, " "), "WebFetch"))
			if c.want == "" {
				assert.Equal(t, "an answer", says(t, requests[2]))
				assert.Len(t, web.urls(), 1)
				return
			}
			assert.Contains(t, says(t, requests[1]), c.want)
			assert.Empty(t, web.urls(), "nothing was fetched")
		})
	}
}

// A page is fetched once for questions that follow each other, and each question is asked.
func TestAPageIsKept(t *testing.T) {
	t.Parallel()
	web := aSite()
	s := surfs(t, web, fetch(thePage), modeltest.Say(modeltest.Text("one")), fetch(thePage), modeltest.Say(modeltest.Text("two"))).open(t)
	result(t, s)
	requests := s.requests(t, 5)
	assert.Equal(t, "one", says(t, requests[2]))
	assert.Equal(t, "two", says(t, requests[4]))
	assert.Len(t, web.urls(), 1)
}

func TestPartsOfALongPage(t *testing.T) {
	t.Parallel()
	web := aSite()
	web.pages[thePage] = strings.Repeat("ä", 100_000) + strings.Repeat("b", 50_000)
	part := func(offset int) *modeltest.Answer {
		return modeltest.Say(modeltest.Call("WebFetch", map[string]any{"url": thePage, "prompt": "p", "offset": offset}))
	}
	s := surfs(t, web, part(0), modeltest.Say(modeltest.Text("1")), part(100_000), modeltest.Say(modeltest.Text("2")), part(150_000)).open(t)
	result(t, s)
	requests := s.requests(t, 6)
	assert.Equal(t, 100_000, strings.Count(requests[1].Prompt(), "ä"))
	assert.NotContains(t, requests[1].Prompt(), "bb")
	assert.Equal(t, "1\n\n[WebFetch note: this page's text is 150000 characters long and the answer above covers only characters 0 to 100000; the final 50000 were not read — to read on, call WebFetch again with the same url and offset: 100000.]", says(t, requests[2]))
	assert.Contains(t, requests[3].Prompt(), strings.Repeat("b", 50_000))
	assert.NotContains(t, requests[3].Prompt(), "ä")
	assert.Equal(t, "2\n\n[WebFetch note: this page's text is 150000 characters long and the answer above covers only characters 100000 to 150000.]", says(t, requests[4]))
	assert.Contains(t, says(t, requests[5]), "nothing at offset 150000")
}

// An interrupt ends the fetch, and the turn.
func TestAFetchIsInterrupted(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	web := aSite()
	web.holds = func(ctx context.Context) {
		close(begun)
		<-ctx.Done()
		close(ended)
	}
	s := surfs(t, web, fetch(thePage)).open(t)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.c.Interrupt(ctx)
	require.NoError(t, err)
	r := result(t, s)
	assert.True(t, r.IsError)
	<-ended
	assert.Len(t, s.server.Requests(), 1)
}

// If the model that reads the page fails for good, the call fails, and the turn continues. A
// request that may succeed later is repeated.
func TestAQuestionAboutAPageFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault modeltest.Fault
		want  string
	}{
		"refused":    {modeltest.Fault{Status: 400}, "the model did not answer about it"},
		"overloaded": {modeltest.Fault{Status: 529}, "an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := surfs(t, aSite(), fetch(thePage))
			failed := false
			var mu sync.Mutex
			s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
				switch {
				case r.N == 1:
					return fetch(thePage)
				case len(r.Tools) == 0:
					return modeltest.Say(modeltest.Text("an answer"))
				}
				return modeltest.Say(modeltest.Text("done"))
			}
			s.server.Fault = func(r *modeltest.Request) *modeltest.Fault {
				mu.Lock()
				defer mu.Unlock()
				if len(r.Tools) > 0 || failed && c.fault.Status == 529 {
					return nil
				}
				failed = true
				return &c.fault
			}
			s.open(t)
			r := result(t, s)
			assert.Equal(t, "done", r.Result)
			all := s.server.Requests()
			assert.Contains(t, says(t, all[len(all)-1]), c.want)
		})
	}
}

var savedTo = regexp.MustCompile(`saved to ([^\s\]]+)\]`)

// A page that is not text is in a file, which may be read; a model that takes it sees it.
func TestAPageThatIsNoText(t *testing.T) {
	t.Parallel()
	const pdf = "%PDF-1.4\n\x00\x01"
	for _, openai := range []bool{false, true} {
		web := aSite()
		web.kind, web.pages[thePage] = "application/pdf", pdf
		s := surfs(t, web)
		s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
			text := string(r.Body)
			switch m := savedTo.FindStringSubmatch(text); {
			case r.N == 1:
				return fetch(thePage)
			case len(r.Tools) == 0:
				return modeltest.Say(modeltest.Text("a file"))
			case m != nil && !strings.Contains(text, "wc -c"):
				content, err := os.ReadFile(m[1])
				assert.NoError(t, err)
				assert.Equal(t, pdf, string(content))
				return modeltest.Say(modeltest.Call("Bash", map[string]any{"command": "wc -c < /dev/null"}))
			}
			return modeltest.Say(modeltest.Text("done"))
		}
		if openai {
			s.o.Backend = embedded.New(embedded.Config{Model: s.server.OpenAI(model.Config{URL: "http://local.test/v1"}), Name: "m", Dir: filepath.Join(s.o.Cwd, "../state"), Web: web})
		}
		s.open(t)
		assert.Equal(t, "done", result(t, s).Result)
		requests := s.server.Requests()
		if openai {
			assert.Contains(t, says(t, requests[1]), "[Binary content (application/pdf, 11 bytes) saved to ")
			continue
		}
		assert.Contains(t, string(requests[1].Body), `"type":"document","source":{`)
		assert.True(t, strings.HasPrefix(says(t, requests[2]), "a file\n\n[Binary content (application/pdf, 11 bytes) also saved to "))
	}
}

// A budget that is spent pays for no question about a page: the first one of an answer may spend it.
func TestAQuestionAboutAPageIsWithinTheBudget(t *testing.T) {
	t.Parallel()
	pages := modeltest.Say(fetch(thePage).Blocks[0], fetch(thePage).Blocks[0])
	s := surfs(t, aSite(), pages, modeltest.Say(modeltest.Text("an answer")), modeltest.Say(modeltest.Text("another")))
	s.o.MaxBudgetUSD = sdk.Some(0.0002) // a request costs 0.000105
	s.open(t)
	assert.Equal(t, "error_max_budget_usd", result(t, s).Subtype)
	assert.Len(t, s.server.Requests(), 2)
}
