package sdk_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// storeRun is one run in testdata/store/claude-store.json: Claude Code 2.1.329 and its SDK 0.3.329 with
// a session store. Times are in milliseconds since the start.
type storeRun struct {
	ID      string
	Options struct {
		SessionID         string
		Resume            string
		Continue          bool
		ForkSession       bool
		SessionStoreFlush session.StoreFlush
		LoadTimeoutMs     int
	}
	Argv       []string
	Error      string
	StoreCalls []storeCall `json:"store_calls"`
	Wire       []struct {
		At    int `json:"t_ms"`
		Frame string
	}
	Consumer []struct {
		At    int `json:"t_ms"`
		Msg   string
		Error string
	}
	Cases        []struct{ Option, Error string } // of runs that are refused
	Materialised *struct {
		Mode, Settings, Credentials string
		Files                       []string
	}
}

type storeCall struct {
	At       int  `json:"t_ms"`
	Done     *int `json:"done_ms"` // nil if it failed
	Method   string
	Key      recordedKey
	Types    []string // of an append
	Returned json.RawMessage
}

// recordedKey is a key, or the name of a project.
type recordedKey struct{ session.StoreKey }

func (k *recordedKey) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &k.Project) == nil {
		return nil
	}
	return json.Unmarshal(b, &k.StoreKey)
}

// name is the key without its project, which is that of the working directory.
func (k recordedKey) name() string {
	return strings.TrimSuffix(k.Session+" "+k.Subpath, " ")
}

// view is what is compared of a call.
func (c *storeCall) view() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Method, c.Key.name(), strings.Join(c.Types, " ")))
}

// repeats reports whether the call is the one before, again, because that has failed.
func (c *storeCall) repeats(before *storeCall) bool {
	return before.Method == "append" && before.Done == nil && c.view() == before.view()
}

// frames are the lines that the agent of a run writes: the types of the entries are those of the appends.
func (r *storeRun) frames(t *testing.T, root string) (lines []timedLine) {
	t.Helper()
	entries := make(map[string][]string) // by key
	for i := range r.StoreCalls {
		c := &r.StoreCalls[i]
		if c.Method == "append" && (i == 0 || !c.repeats(&r.StoreCalls[i-1])) {
			entries[c.Key.name()] = append(entries[c.Key.name()], c.Types...)
		}
	}
	main := r.main()
	n := 0
	for _, w := range r.Wire {
		kind, rest, _ := strings.Cut(w.Frame, " ")
		line := map[string]any{"type": kind, "session_id": main, "uuid": fmt.Sprintf("frame-%d", n), "parent_tool_use_id": nil}
		switch kind {
		case "transcript_mirror":
			var file string
			var count int
			_, err := fmt.Sscanf(rest, "%s n=%d", &file, &count)
			require.NoError(t, err)
			name := strings.TrimSuffix(file, ".jsonl")
			if strings.HasPrefix(name, "agent-") {
				name = main + " subagents/" + name
			}
			require.GreaterOrEqual(t, len(entries[name]), count, "the recording has the entries of %s", file)
			var sent []any
			for _, kind := range entries[name][:count] {
				n++
				sent = append(sent, r.entry(kind, n))
			}
			entries[name] = entries[name][count:]
			line = map[string]any{"type": kind, "entries": sent, "filePath": filepath.Join(root, strings.ReplaceAll(name, " ", "/")+".jsonl")}
		case "assistant", "user":
			line["message"] = map[string]any{"role": kind, "id": fmt.Sprintf("msg_%d", n), "type": "message", "model": "m", "content": []any{}}
			if kind == "user" {
				line["message"] = map[string]any{"role": kind, "content": []any{map[string]any{"type": "tool_result", "tool_use_id": "t", "content": ""}}}
			}
		default:
			kind, subtype, _ := strings.Cut(kind, "/")
			line["type"], line["subtype"] = kind, subtype
			line["is_error"] = subtype != "success"
			if text, ok := strings.CutPrefix(r.Error, returnedError); ok {
				line["errors"] = []string{text}
			}
		}
		b, err := json.Marshal(line)
		require.NoError(t, err)
		lines = append(lines, timedLine{time.Duration(w.At) * time.Millisecond, append(b, '\n')})
	}
	for name, left := range entries {
		require.Empty(t, left, "entries of %s that no frame has", name)
	}
	return lines
}

// returnedError is what the vendor's SDK puts before the error of a result.
const returnedError = "Claude Code returned an error result: "

// main is the session that the agent of the run is in.
func (r *storeRun) main() string {
	for i := range r.StoreCalls {
		if c := &r.StoreCalls[i]; c.Method == "append" {
			return c.Key.Session
		}
	}
	return cmp.Or(r.Options.SessionID, "none")
}

// entry is an entry of a type. Only members of the conversation have a uuid.
func (r *storeRun) entry(kind string, n int) map[string]any {
	kind, attachment, _ := strings.Cut(strings.TrimSuffix(kind, ")"), "(")
	e := map[string]any{"type": kind, "n": n}
	switch kind {
	case "attachment":
		e["attachment"], e["uuid"] = map[string]any{"type": attachment}, fmt.Sprintf("entry-%d", n)
	case "user", "assistant":
		e["uuid"] = fmt.Sprintf("entry-%d", n)
		if kind == "assistant" && r.ID == "over-1MiB" {
			e["text"] = strings.Repeat("x", 1<<20)
		}
	}
	return e
}

type timedLine struct {
	at   time.Duration
	line []byte
}

// tape is an agent that writes what was recorded: at its times after the prompt, until the result. The
// rest comes when its stdin is closed.
type tape struct {
	lines  []timedLine
	dies   bool // at the end of the lines
	fails  bool // it answers nothing
	launch func(agent.Launch)
}

func (*tape) AgentName() string { return "tape" }

func (a *tape) Serve(l agent.Launch, p agent.Port) agent.Exit {
	a.launch(l)
	if a.fails {
		for _, l := range a.lines {
			_ = p.Write(l.line)
		}
		return agent.Exit{Code: 1}
	}
	at := time.Duration(-1) // of the tape; before the prompt it stands still
	for {
		wait := time.Duration(-1)
		if at >= 0 && len(a.lines) > 0 {
			wait = max(a.lines[0].at-at, 0)
		}
		began := time.Now()
		line, err := p.Next(wait)
		if at >= 0 {
			at += time.Since(began)
		}
		switch {
		case errors.Is(err, agent.ErrWaited):
			next := a.lines[0]
			a.lines = a.lines[1:]
			if bytesHave(next.line, `"type":"result"`) {
				at = -1 // what follows waits for the end of stdin
			}
			if p.Write(next.line) != nil || len(a.lines) == 0 && a.dies {
				return agent.Exit{Signal: "KILL"}
			}
		case errors.Is(err, io.EOF):
			for _, l := range a.lines {
				_ = p.Write(l.line)
			}
			return agent.Exit{}
		case err != nil:
			return agent.Exit{Signal: "KILL"}
		case bytesHave(line, `"type":"control_request"`):
			var req struct {
				ID string `json:"request_id"`
			}
			_ = json.Unmarshal(line, &req)
			_ = p.Write(fmt.Appendf(nil, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`+"\n", req.ID))
		case bytesHave(line, `"type":"user"`) && len(a.lines) > 0:
			at = a.lines[0].at
		}
	}
}

func bytesHave(line []byte, part string) bool { return strings.Contains(string(line), part) }

// recordingStore is a store that notes its calls, and does what the store of a run did.
type recordingStore struct {
	store.Memory
	run   *storeRun
	began time.Time
	mu    sync.Mutex
	calls []storeCall
	order error
}

var errStore = errors.New("db down")

// note notes a call, and returns how it ends: after a time, and whether it fails.
func (r *recordingStore) note(method string, key session.StoreKey, entries []json.RawMessage) (pause time.Duration, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := storeCall{Method: method, Key: recordedKey{key}, At: int(time.Since(r.began).Milliseconds())}
	for _, e := range entries {
		var head struct {
			Type       string
			Attachment struct{ Type string }
		}
		if err := json.Unmarshal(e, &head); err != nil {
			r.order = err
		}
		if head.Attachment.Type != "" {
			head.Type += "(" + head.Attachment.Type + ")"
		}
		c.Types = append(c.Types, head.Type)
	}
	switch n := len(r.calls); {
	case r.run.ID == "append-rejects", r.run.ID == "append-rejects-twice" && n < 2:
		fails = method == "append"
	case r.run.ID == "slow-append-1500ms":
		pause = 1500 * time.Millisecond
	}
	if !fails {
		c.Done = new(c.At + int(pause.Milliseconds()))
	}
	r.calls = append(r.calls, c)
	return pause, fails
}

func (r *recordingStore) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	pause, fails := r.note("append", key, entries)
	time.Sleep(pause)
	if fails {
		return errStore
	}
	return r.Memory.Append(ctx, key, entries)
}

func (r *recordingStore) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	r.note("load", key, nil)
	return func(yield func(json.RawMessage, error) bool) {
		switch r.run.ID {
		case "load-rejects":
			yield(nil, errors.New("no db"))
			return
		case "load-never":
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		for e, err := range r.Memory.Load(ctx, key) {
			if !yield(e, err) {
				return
			}
		}
	}
}

func (r *recordingStore) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	r.note("listSessions", session.StoreKey{Project: project}, nil)
	return r.Memory.Sessions(ctx, project)
}

func (r *recordingStore) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	r.note("listSubkeys", session.StoreKey{Project: project, Session: id}, nil)
	if r.run.ID == "listSubkeys-unsafe" {
		return []string{"/etc/passwd", "", "../../x", "subagents/../../y", "subagents/agent-ok"}, nil
	}
	return r.Memory.Subpaths(ctx, project, id)
}

// Acquire implements [session.Leases], so that nothing is warned of.
func (r *recordingStore) Acquire(context.Context, string) (func(), error) { return func() {}, nil }

// fill puts into the store what it had before the run.
func (r *recordingStore) fill(t *testing.T, project string) {
	t.Helper()
	put := func(key session.StoreKey, n int) {
		key.Project = project
		var all []json.RawMessage
		for i := range n {
			line := fmt.Sprintf(`{"type":"user","uuid":"old-%d","parentUuid":null}`, i)
			if key.Subpath != "" && i == 0 {
				line = `{"type":"agent_metadata","agentType":"x"}`
			}
			all = append(all, json.RawMessage(line))
		}
		require.NoError(t, r.Memory.Append(t.Context(), key, all))
	}
	for i := range r.run.StoreCalls {
		c := &r.run.StoreCalls[i]
		var n int
		var rows []session.StoredSession
		switch {
		case c.Method == "load" && r.run.ID != "resume-unknown":
			if json.Unmarshal(c.Returned, &n) == nil {
				put(c.Key.StoreKey, n)
			} else if c.Done != nil {
				put(c.Key.StoreKey, 1)
			}
		case c.Method == "listSessions":
			var all []struct{ SessionID string }
			require.NoError(t, json.Unmarshal(c.Returned, &all))
			for _, row := range all {
				rows = append(rows, session.StoredSession{ID: row.SessionID})
			}
		}
		for _, row := range rows[:max(len(rows)-1, 0)] { // the last one is loaded, and so put there
			put(session.StoreKey{Session: row.ID}, 1)
		}
	}
}

// storeSeen is what came of a run.
type storeSeen struct {
	mu       sync.Mutex
	calls    []storeCall
	consumer []string // as in the recording
	late     bool     // a result came later than the agent wrote it
	argv     []string // those of sessions
	files    []string // of the configuration directory that was made
	mode     string   // of that directory
	settings string
	login    string
	meta     string // of a subagent
	gone     bool   // it was removed
	err      error
}

func (s *storeSeen) see(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.consumer = append(s.consumer, what)
}

// resultDelay is how late a result counts as late.
const resultDelay = 100 * time.Millisecond

func (r *storeRun) play(t *testing.T) *storeSeen {
	got := new(storeSeen)
	home, cwd := t.TempDir(), t.TempDir()
	cwd, err := filepath.EvalSymlinks(cwd)
	require.NoError(t, err)
	claude := filepath.Join(home, ".claude")
	for name, content := range map[string]string{
		".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"at","refreshToken":"secret"}}`,
		".claude/.claude.json":      `{}`,
		".claude/settings.json":     `{"model":"opus","env":{"FOO":"1","CLAUDE_CONFIG_DIR":"/x"},"enabledPlugins":{"a":true},"extraKnownMarketplaces":{}}`,
	} {
		require.NoError(t, os.MkdirAll(claude, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte(content), 0o600))
	}
	project := transcript.FolderName(transcript.Claude, cwd)
	temp := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler), TempDir: temp})
		require.NoError(t, err)
		rec := &recordingStore{run: r, began: time.Now()}
		rec.fill(t, project)
		var made string
		var root string
		a := &tape{dies: r.ID == "sigkill-in-tool", fails: strings.HasPrefix(r.Error, returnedError)}
		a.launch = func(l agent.Launch) {
			root = claude
			if dir := l.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
				root, made = dir, dir
				got.files, got.settings, got.login, got.meta = contents(dir, project)
				if info, err := os.Stat(dir); err == nil {
					got.mode = fmt.Sprintf("%o", info.Mode().Perm())
				}
			}
			a.lines = r.frames(t, filepath.Join(root, "projects", project))
			got.argv = ofSessions(l.Args)
		}
		o := &sdk.Options{
			Runtime: rt, Backend: a, Cwd: cwd, CleanEnv: true, Env: map[string]string{"HOME": home},
			SessionID: r.Options.SessionID, Resume: r.Options.Resume, Continue: r.Options.Continue, ForkSession: r.Options.ForkSession,
			SessionStore:        rec,
			SessionStoreOptions: session.StoreOptions{Flush: r.Options.SessionStoreFlush, Load: time.Duration(r.Options.LoadTimeoutMs) * time.Millisecond},
			OnEvent: func(e session.EventRecord) {
				if f, ok := e.Event.(*session.MirrorFailed); ok {
					got.see(fmt.Sprintf("system/mirror_error %s %v", f.Key.Session, errors.Unwrap(f.Err)))
				}
			},
		}
		c := sdk.NewClient(o)
		if got.err = c.Connect(t.Context()); got.err == nil {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began, answered := time.Now(), make(chan struct{})
			var reader sync.WaitGroup
			reader.Go(func() {
				open := true
				for m, err := range c.Messages(ctx) {
					m, is := m.(*protocol.ResultMessage)
					if err != nil {
						got.err = err
					}
					if is {
						got.see("result/" + m.Subtype)
						got.late = time.Since(began) > r.resultTime()+resultDelay
					}
					if open && (is || err != nil) {
						open = false
						close(answered)
					}
				}
			})
			_, err := c.Send(ctx, sdk.UserText("go"))
			assert.NoError(t, err)
			<-answered
			_ = c.Close(t.Context()) // its error is that of the session
			reader.Wait()
		} else {
			_ = c.Close(t.Context())
		}
		synctest.Wait()
		assert.NoError(t, rt.Shutdown(t.Context()))
		assert.NoError(t, rec.order)
		got.calls = rec.calls
		if made != "" {
			_, err := os.Stat(made)
			got.gone = errors.Is(err, fs.ErrNotExist)
		}
	})
	return got
}

// resultTime is when the agent writes the result, after the first line.
func (r *storeRun) resultTime() time.Duration {
	for _, w := range r.Wire {
		if strings.HasPrefix(w.Frame, "result/") {
			return time.Duration(w.At-r.Wire[0].At) * time.Millisecond
		}
	}
	return 0
}

// contents lists the files of a directory as the recording does.
func contents(dir, project string) (files []string, settings, login, meta string) {
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		short := strings.Replace(filepath.ToSlash(strings.TrimPrefix(name, dir)), project, "<CWD-SLUG>", 1)
		files = append(files, fmt.Sprintf("%s %o", short, info.Mode().Perm()))
		return nil
	})
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(dir, name)) // the list says if it is missing
		return string(b)
	}
	slices.Sort(files)
	if all, _ := filepath.Glob(filepath.Join(dir, "projects", "*", "*", "subagents", "*.meta.json")); len(all) > 0 {
		meta = read(strings.TrimPrefix(all[0], dir))
	}
	return files, read("settings.json"), read(".credentials.json"), meta
}

// ofSessions are the arguments that the recordings have: those about sessions.
func ofSessions(args []string) (all []string) {
	for _, a := range args {
		if regexp.MustCompile(`^--(session-|resume|continue|fork)`).MatchString(a) {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return all
}

// storeDeviation is what Troupe does otherwise than a recording. nil: as recorded.
type storeDeviation struct {
	calls, consumer func([]string) []string
	onTime          bool // the result is not late
}

// storeDeviations are those of docs/sessions.md, by recording.
func storeDeviations() map[string]storeDeviation {
	split := func(at int, parts ...string) func([]string) []string { // an append comes in parts
		return func(calls []string) []string { return slices.Replace(calls, at, at+1, parts...) }
	}
	noResult := storeDeviation{consumer: func([]string) []string { return nil }}
	const sub, main, fork = "append dddddddd-0000-4000-8000-000000000007 subagents/agent-a18e5910df71c4023 ",
		"append dddddddd-0000-4000-8000-000000000007 ", "append d983ba11-9211-47ce-8e1d-8f2423329dbe "
	const queued, rest = "queue-operation queue-operation", "user assistant last-prompt mode atis-latch"
	return map[string]storeDeviation{
		"batched": {calls: func(calls []string) []string {
			return []string{sub + "agent_metadata", calls[1], sub + strings.TrimPrefix(calls[0], sub+"agent_metadata "), calls[2]}
		}},
		"continue":           {calls: split(3, fork+queued, fork+rest)},
		"listSubkeys-unsafe": {calls: split(3, main+queued, main+rest)},
		"resume-fork": {calls: func(calls []string) []string {
			const before = "mode atis-latch tools-used"
			return split(3, fork+before, fork+strings.TrimPrefix(calls[3], fork+before+" "))(calls)
		}},
		"slow-append-1500ms":   {onTime: true},
		"append-rejects-twice": {onTime: true},
		"append-rejects": {onTime: true, consumer: func(c []string) []string {
			return []string{c[1], c[0], c[2]}
		}},
		"resume-unknown":  noResult, // Connect returns it
		"resume-not-uuid": noResult,
	}
}

// inTroupesWords is what Troupe says where the vendor's SDK throws.
func inTroupesWords(threw string) string {
	switch {
	case strings.HasPrefix(threw, returnedError):
		return strings.TrimPrefix(threw, returnedError)
	case strings.HasPrefix(threw, "SessionStore.load() timed out after 500ms"):
		return "load of the session from the store: no answer within 500ms"
	case strings.HasSuffix(threw, "terminated by signal SIGKILL"):
		return "signal SIGKILL"
	}
	return threw
}

func storeRuns(t *testing.T) []storeRun {
	t.Helper()
	var recorded struct{ Scenarios []storeRun }
	b, err := os.ReadFile("testdata/store/claude-store.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &recorded))
	require.Len(t, recorded.Scenarios, 17)
	return recorded.Scenarios
}

// TestStoreRecordings plays each recorded run. The store gets the calls that the vendor's SDK made, and
// the consumer sees what the vendor's did, or what the deviation of that name says.
func TestStoreRecordings(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "claude/option/sessionStore", "claude/option/loadTimeoutMs")
	deviates := storeDeviations()
	runs := storeRuns(t)
	for i := range runs {
		r := &runs[i]
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			if r.Cases != nil {
				r.refusals(t)
				return
			}
			got := r.play(t)
			var want, calls []string
			for i := range r.StoreCalls {
				want = append(want, r.StoreCalls[i].view())
			}
			for i := range got.calls {
				calls = append(calls, got.calls[i].view())
			}
			var consumer []string
			late := false
			for _, c := range r.Consumer {
				if c.Error != "" {
					c.Msg += " " + r.main() + " " + c.Error
				}
				consumer = append(consumer, c.Msg)
				if strings.HasPrefix(c.Msg, "result/") {
					late = c.At > r.Wire[0].At+int((r.resultTime()+resultDelay).Milliseconds())
				}
			}
			d, deviating := deviates[r.ID]
			if deviating {
				same := slices.Equal(want, calls) && slices.Equal(consumer, got.consumer) && late == got.late
				assert.False(t, same, "it does not deviate")
			}
			if d.calls != nil {
				want = d.calls(want)
			}
			if d.consumer != nil {
				consumer = d.consumer(consumer)
			}
			assert.Equal(t, want, calls)
			assert.Equal(t, consumer, got.consumer)
			assert.Equal(t, late && !d.onTime, got.late)
			if r.Argv != nil {
				slices.Sort(r.Argv)
				assert.Equal(t, r.Argv, got.argv)
			}
			if r.Error == "" {
				assert.NoError(t, got.err)
			} else {
				assert.ErrorContains(t, got.err, inTroupesWords(r.Error))
			}
			assert.Equal(t, pauses(r.StoreCalls), pauses(got.calls), "between attempts")
			if m := r.Materialised; m != nil {
				slices.Sort(m.Files)
				assert.Equal(t, m.Files, got.files)
				assert.JSONEq(t, m.Settings, got.settings)
				assert.JSONEq(t, m.Credentials, got.login)
				assert.Equal(t, m.Mode, got.mode)
				assert.JSONEq(t, `{"agentType":"x"}`, got.meta, "of the subagent")
				assert.True(t, got.gone, "it is removed")
			}
		})
	}
	guide, err := os.ReadFile("../docs/sessions.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(guide), "### Differences from the vendor's store runs")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n#")
	for name := range deviates {
		assert.True(t, slices.ContainsFunc(runs, func(r storeRun) bool { return r.ID == name }), name)
		assert.Contains(t, table, "`"+name+"`")
	}
	for _, m := range regexp.MustCompile("`([a-z]+(?:-[a-zA-Z0-9]+)*)`").FindAllStringSubmatch(table, -1) {
		assert.Contains(t, deviates, m[1], "what docs/sessions.md says")
	}
}

// pauses are the times between attempts of one append, in tenths of a second.
func pauses(calls []storeCall) (all []int) {
	for i := 1; i < len(calls); i++ {
		if calls[i].repeats(&calls[i-1]) {
			all = append(all, (calls[i].At-calls[i-1].At+50)/100)
		}
	}
	return all
}

// TestRecordedMirror plays the raw frames of a recorded run with subagents: the store has the entries
// of each transcript, in their order.
func TestRecordedMirror(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/store/claude-mirror.ndjson")
	require.NoError(t, err)
	for name, flush := range map[string]session.StoreFlush{"batched": session.StoreBatched, "eager": session.StoreEager} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, cwd := t.TempDir(), t.TempDir()
			project := transcript.FolderName(transcript.Claude, cwd)
			a, want := &tape{launch: func(agent.Launch) {}}, make(map[session.StoreKey][]string)
			for line := range strings.Lines(strings.NewReplacer("<HOME>", home, "<CWD-SLUG>", project).Replace(string(raw))) {
				var l struct {
					Msg json.RawMessage
				}
				var frame struct {
					FilePath string
					Entries  []json.RawMessage
				}
				require.NoError(t, json.Unmarshal([]byte(line), &l))
				require.NoError(t, json.Unmarshal(l.Msg, &frame))
				rest := strings.TrimSuffix(strings.TrimPrefix(frame.FilePath, filepath.Join(home, ".claude", "projects", project)+"/"), ".jsonl")
				key := session.StoreKey{Project: project}
				key.Session, key.Subpath, _ = strings.Cut(rest, "/")
				for _, e := range frame.Entries {
					want[key] = append(want[key], string(e))
				}
				a.lines = append(a.lines, timedLine{line: append(l.Msg, '\n')})
			}
			require.Len(t, a.lines, 15)
			require.Greater(t, len(want), 1, "subagents have transcripts")
			a.lines = append(a.lines, timedLine{line: []byte(`{"type":"result","subtype":"success","is_error":false,"session_id":"x","uuid":"r"}` + "\n")})
			rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			s := &store.Memory{}
			_, err = sdk.Run(t.Context(), "go", &sdk.Options{
				Runtime: rt, Backend: a, Cwd: cwd, CleanEnv: true, Env: map[string]string{"HOME": home},
				SessionStore: s, SessionStoreOptions: session.StoreOptions{Flush: flush},
				OnEvent: func(e session.EventRecord) {
					if f, ok := e.Event.(*session.MirrorFailed); ok {
						assert.Fail(t, f.String())
					}
				},
			})
			require.NoError(t, err)
			require.NoError(t, rt.Shutdown(t.Context()))
			for key, entries := range want {
				var got []string
				for e, err := range s.Load(t.Context(), key) {
					require.NoError(t, err)
					got = append(got, string(e))
				}
				assert.Equal(t, entries, got, key)
			}
		})
	}
}

// refusals tries the options that the vendor's SDK refuses with a store: each is an error that names it.
func (r *storeRun) refusals(t *testing.T) {
	t.Helper()
	for _, c := range r.Cases {
		o := &sdk.Options{Backend: &tape{}, SessionStore: &recordingStore{run: r}}
		var option string
		switch c.Option {
		case "persistSession:false":
			o.PersistSession, option = session.Some(false), "PersistSession"
		case "enableFileCheckpointing":
			o.EnableFileCheckpointing, option = session.Some(true), "EnableFileCheckpointing"
		case "continue without listSessions":
			o.SessionStore, o.Continue, option = unlisted{&store.Memory{}}, true, "Continue"
		}
		err := sdk.NewClient(o).Connect(t.Context())
		var config *session.ConfigError
		if assert.ErrorAs(t, err, &config, c.Option) {
			assert.Equal(t, option, config.Option)
		}
	}
}

// unlisted is a store that cannot list its sessions.
type unlisted struct{ session.Store }

func (unlisted) Sessions(context.Context, string) ([]session.StoredSession, error) {
	return nil, errors.ErrUnsupported
}
