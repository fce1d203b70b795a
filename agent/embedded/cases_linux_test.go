package embedded_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// recorded is a case that was recorded with Claude Code 2.1.329: a workspace, what the model
// says, and what became of it.
type recorded struct {
	Name    string            `json:"name"`
	Tool    string            `json:"tool"`
	Mode    string            `json:"mode"`
	Model   string            `json:"model"`
	Files   []file            `json:"files"`
	Setup   []string          `json:"setup"`
	Env     map[string]string `json:"env"`
	Flags   []string          `json:"flags"`
	Asker   *bool             `json:"asker"`
	Prompts []string          `json:"prompts"`
	Hooks   json.RawMessage   `json:"hooks"`
	Sources json.RawMessage   `json:"sources"`
	Init    json.RawMessage   `json:"init"`
	Events  json.RawMessage   `json:"events"`

	Settings struct {
		Permissions struct{ Allow, Deny, Ask []string }
	} `json:"settings"`
	Answers []json.RawMessage `json:"answers"`
	Script  []step            `json:"script"`

	Requests []struct {
		Of  string            `json:"of"`
		New []json.RawMessage `json:"new"`
	} `json:"requests"`
	Structured []struct {
		ID    string          `json:"id"`
		Value json.RawMessage `json:"value"`
	} `json:"structured"`
	PermissionRequests []struct {
		Tool    string `json:"tool_name"`
		Blocked string `json:"blocked_path"`
	} `json:"permission_requests"`
	FilesAfter struct {
		Changed map[string]after `json:"changed"`
		Removed []string         `json:"removed"`
	} `json:"files_after"`
}

type file struct {
	Path    string  `json:"path"`
	Text    *string `json:"text"`
	Base64  string  `json:"base64"`
	Symlink string  `json:"symlink"`
	Dir     bool    `json:"dir"`
	FIFO    bool    `json:"fifo"`
	Mode    string  `json:"mode"`
	Gen     *struct {
		Line  string `json:"line"`
		Count int    `json:"count"`
	} `json:"gen"`
}

type after struct {
	Mode    string          `json:"mode"`
	Text    json.RawMessage `json:"text"`
	Symlink string          `json:"symlink"`
}

// step is an answer of the model.
type step struct {
	Content []content
	Stop    string
	Other   bool // an error, a broken stream: not of these cases
	Actions []json.RawMessage
}

type content struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"`
	Raw      *string         `json:"raw_input"`
}

func (s *step) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, &s.Content)
	}
	var in struct {
		Content []content         `json:"content"`
		Stop    string            `json:"stop"`
		Actions []json.RawMessage `json:"actions"`
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	s.Content, s.Stop, s.Actions = in.Content, in.Stop, in.Actions
	err := json.Unmarshal(b, &keys)
	for _, k := range []string{"status", "raw", "reset", "cut_after", "stream_error", "hang", "delta"} {
		if _, ok := keys[k]; ok {
			s.Other = true
		}
	}
	return err
}

// place is the directory that stands for /w.
type place struct{ root string }

func (p place) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.root, "proj", name)
}

func (p place) make(t *testing.T, c *recorded) {
	t.Helper()
	for _, d := range []string{"proj", "home", "tmp", "other"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.root, d), 0o755))
	}
	for _, f := range c.Files {
		at := p.path(f.Path)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		mode := uint64(0o644)
		if f.Mode != "" {
			var err error
			mode, err = strconv.ParseUint(f.Mode, 8, 32)
			require.NoError(t, err)
		}
		content := []byte{}
		switch {
		case f.Dir:
			require.NoError(t, os.MkdirAll(at, 0o755))
			continue
		case f.Symlink != "":
			require.NoError(t, os.Symlink(f.Symlink, at))
			continue
		case f.FIFO:
			require.NoError(t, syscall.Mkfifo(at, 0o644))
			continue
		case f.Base64 != "":
			var err error
			content, err = base64.StdEncoding.DecodeString(f.Base64)
			require.NoError(t, err)
		case f.Gen != nil:
			for i := range f.Gen.Count {
				content = append(content, strings.ReplaceAll(f.Gen.Line, "%d", strconv.Itoa(i+1))...)
			}
		case f.Text != nil:
			content = []byte(*f.Text)
		}
		require.NoError(t, os.WriteFile(at, content, 0o600))
		require.NoError(t, os.Chmod(at, fs.FileMode(mode)))
	}
	for _, s := range c.Setup {
		cmd := exec.Command("/bin/bash", "-c", s)
		cmd.Dir = filepath.Join(p.root, "proj")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", s, out)
	}
}

// files are those of the workspace: mode, and content or target.
func (p place) files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := filepath.Join(p.root, "proj")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(root, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[rel] = "-> " + to
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		b, _ := os.ReadFile(path) // one without permission is compared by its mode
		all[rel] = fmt.Sprintf("%04o %s", info.Mode().Perm(), b)
		return nil
	}))
	return all
}

// played is a model that says what the script says.
type played struct {
	codec  model.Codec
	script []step

	mu   sync.Mutex
	next int
	last []byte // of the messages of the last request, as a JSON list
	told string // all text that the model has been sent
}

func (p *played) Codec() model.Codec { return p.codec }

func (p *played) Stream(_ context.Context, r *model.Request, emit func(*model.Event) bool) error {
	p.mu.Lock()
	n := p.next
	p.next++
	p.last = append(append([]byte{'['}, bytes.Join(r.Messages, []byte{','})...), ']')
	p.told = string(p.last)
	p.mu.Unlock()
	s := step{Content: []content{{Type: "text", Text: "Done."}}}
	if n < len(p.script) {
		s = p.script[n]
	}
	emit(&model.Event{Kind: model.Start, ID: fmt.Sprintf("msg_%d", n), Model: r.Model})
	stop := "end_turn"
	for i, b := range s.Content {
		k := model.Block{Kind: model.BlockKind(b.Type), Text: b.Text, Name: b.Name, Origin: "anthropic"}
		switch b.Type {
		case "thinking":
			k.Text, k.Signature = b.Thinking, "c2ln"
		case "tool_use":
			stop = "tool_use"
			if k.ID = b.ID; k.ID == "" {
				k.ID = fmt.Sprintf("toolu_%d_%d", n, i)
			}
			input := string(b.Input)
			if b.Raw != nil {
				input = *b.Raw
			}
			k.Input, k.BadInput = asObject(input)
		}
		emit(&model.Event{Kind: model.Done, Index: i, Block: &k})
	}
	if s.Stop != "" {
		stop = s.Stop
	}
	emit(&model.Event{Kind: model.Stop, StopReason: stop, Usage: model.Usage{Input: 10, Output: 5}})
	return nil
}

// asObject is the input of a call as a codec gives it.
func asObject(s string) (json.RawMessage, string) {
	s = strings.TrimSpace(s)
	if s == "" || s == "null" {
		return json.RawMessage("{}"), ""
	}
	if s[0] != '{' || !json.Valid([]byte(s)) {
		return json.RawMessage("{}"), s
	}
	return json.RawMessage(s), ""
}

// told is what the model reads of each call, by id.
type told struct {
	Text    string
	IsError bool
}

func results(t *testing.T, messages []json.RawMessage) map[string]told {
	t.Helper()
	all := map[string]told{}
	for _, raw := range messages {
		var m struct{ Content json.RawMessage }
		if json.Unmarshal(raw, &m) != nil || len(m.Content) == 0 || m.Content[0] != '[' {
			continue
		}
		var blocks []struct {
			Type    string          `json:"type"`
			ID      string          `json:"tool_use_id"`
			Content json.RawMessage `json:"content"`
			IsError bool            `json:"is_error"`
		}
		require.NoError(t, json.Unmarshal(m.Content, &blocks))
		for _, b := range blocks {
			if b.Type == "tool_result" {
				all[b.ID] = told{string(b.Content), b.IsError}
			}
		}
	}
	return all
}

var notYetFlag = flag.Bool("update-not-yet", false, "rewrite the list of cases that differ")

// Each recorded case gives what Claude Code gave: what the model reads, the structured
// result, the files, and who was asked. testdata/not-yet.txt names those that differ, with
// the first difference; it only shrinks. TROUPE_TOOL_CASES names another directory of cases.
func TestCases(t *testing.T) { //nolint:tparallel // the group is waited for
	t.Parallel()
	syscall.Umask(0o022) // as when they were recorded
	if os.Getuid() == 0 {
		t.Log("as root: cases of files without permission are left out")
	}
	dir := "testdata/cases"
	if other := os.Getenv("TROUPE_TOOL_CASES"); other != "" {
		dir = other
	}
	notYet := map[string]string{}
	if text, err := os.ReadFile("testdata/not-yet.txt"); err == nil {
		for line := range strings.Lines(string(text)) {
			name, why, _ := strings.Cut(strings.TrimSpace(line), ": ")
			notYet[name] = why
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var mu sync.Mutex
	differ := map[string]string{}
	same, absent := 0, 0
	t.Run("all", func(t *testing.T) {
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			root, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			var raw []json.RawMessage
			if json.Unmarshal(text, &raw) != nil {
				continue // schemas
			}
			for i, r := range raw {
				at := place{filepath.Join(root, strconv.Itoa(i))}
				var c recorded
				moved := bytes.ReplaceAll(r, []byte("/w/"), []byte(at.root+"/"))
				require.NoError(t, json.Unmarshal(bytes.ReplaceAll(moved, []byte(`/w"`), []byte(at.root+`"`)), &c), f)
				if !c.within() {
					absent++
					continue
				}
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					why := strings.ReplaceAll(play(t, at, &c), at.root, "/w")
					mu.Lock()
					defer mu.Unlock()
					if why == "" {
						same++
						if _, listed := notYet[c.Name]; listed && !*notYetFlag {
							assert.Fail(t, "it is the same now: take it out of testdata/not-yet.txt")
						}
						return
					}
					differ[c.Name] = why
					if _, listed := notYet[c.Name]; !listed && !*notYetFlag {
						assert.Fail(t, "it differs", why)
					}
				})
			}
		}
	})
	t.Logf("%d cases are the same, %d differ, %d are of what this agent does not have", same, len(differ), absent)
	if *notYetFlag {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(differ)) {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(differ[name], "\n", " "))
		}
		require.NoError(t, os.WriteFile("testdata/not-yet.txt", []byte(b.String()), 0o600))
	}
}

// within reports whether the case is about what this agent has.
func (c *recorded) within() bool {
	if c.Hooks != nil || c.Sources != nil || c.Init != nil || c.Events != nil || c.Model != "claude-opus-5-5" || len(c.Prompts) > 1 || len(c.Settings.Permissions.Ask) > 0 {
		return false
	}
	if os.Getuid() == 0 && (strings.Contains(c.Name, "no-permission") || strings.Contains(c.Name, "read-only-dir")) {
		return false
	}
	for _, s := range c.Script {
		if s.Other || len(s.Actions) > 0 {
			return false
		}
		for _, b := range s.Content {
			if needs := programs.FindString(string(b.Input)); needs != "" {
				if _, err := exec.LookPath(needs); err != nil {
					return false
				}
			}
			if b.Type == "tool_use" && !slices.Contains(toolsOf, b.Name) && !slices.Contains([]string{"NoSuchTool", "read", ""}, b.Name) {
				return false
			}
		}
	}
	return true
}

// programs are those that a machine may not have.
var programs = regexp.MustCompile(`\b(python3|node|git|npm|ps|awk|diff|setsid|nohup|xargs)\b`)

// toolsOf are the tools that the agent has.
var toolsOf = []string{"Bash", "Edit", "Read", "Write"}

// play plays a case and returns the first difference; "": there is none.
func play(t *testing.T, at place, c *recorded) string {
	t.Helper()
	at.make(t, c)
	before := at.files(t)
	codec := model.NewAnthropic(model.AnthropicConfig{}).Codec()
	m := &played{codec: codec, script: c.Script}
	var mu sync.Mutex
	var asked []string
	structured := map[string]string{}
	o := &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: m, Name: "claude-opus-5-5", Dir: filepath.Join(at.root, "sessions")}),
		Cwd:     filepath.Join(at.root, "proj"), CleanEnv: true,
		Env: map[string]string{
			"HOME": filepath.Join(at.root, "home"), "TMPDIR": filepath.Join(at.root, "tmp"), "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/bash",
		},
		PermissionMode: sdk.PermissionMode(c.Mode), AllowDangerouslySkipPermissions: c.Mode == "bypassPermissions",
		AllowedTools: c.Settings.Permissions.Allow, DisallowedTools: c.Settings.Permissions.Deny,
	}
	maps.Copy(o.Env, c.Env)
	for _, f := range c.Flags {
		if d, ok := strings.CutPrefix(f, "--add-dir="); ok {
			o.AdditionalDirectories = append(o.AdditionalDirectories, d)
		}
	}
	if c.Asker == nil || *c.Asker {
		o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			mu.Lock()
			defer mu.Unlock()
			n := len(asked)
			asked = append(asked, r.ToolName+" "+r.BlockedPath)
			var a struct {
				Behavior, Message string
				Interrupt         bool
				UpdatedInput      json.RawMessage
			}
			if n < len(c.Answers) {
				_ = json.Unmarshal(c.Answers[n], &a)
			}
			if a.Behavior == "deny" {
				d := sdk.Deny(a.Message)
				d.Interrupt = a.Interrupt
				return d, nil
			}
			allow := sdk.Allow()
			allow.UpdatedInput = a.UpdatedInput
			return allow, nil
		}
	}
	o.OnMessage = func(msg sdk.Message) {
		u, ok := msg.(*sdk.UserMessage)
		if !ok {
			return
		}
		var f struct {
			Message struct {
				Content []struct {
					ID string `json:"tool_use_id"`
				}
			} `json:"message"`
			Result json.RawMessage `json:"tool_use_result"`
		}
		if json.Unmarshal(u.Raw(), &f) == nil && len(f.Message.Content) == 1 {
			mu.Lock()
			defer mu.Unlock()
			structured[f.Message.Content[0].ID] = string(f.Result)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	prompt := "Go."
	if len(c.Prompts) == 1 {
		prompt = c.Prompts[0]
	}
	_, err := sdk.Run(ctx, prompt, o)
	if err != nil && ctx.Err() != nil {
		return "no result: " + err.Error()
	}
	return c.compare(t, at, before, m, asked, structured)
}

func (c *recorded) compare(t *testing.T, at place, before map[string]string, m *played, asked []string, structured map[string]string) string {
	t.Helper()
	want := map[string]told{}
	for _, r := range c.Requests {
		if r.Of == "main" {
			maps.Copy(want, results(t, r.New))
		}
	}
	var messages []json.RawMessage
	require.NoError(t, json.Unmarshal(m.last, &messages))
	got := results(t, messages)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if diff := sameJSON(want[id].Text, got[id].Text); diff != "" {
			return fmt.Sprintf("%s reads %s", id, diff)
		}
		if want[id].IsError != got[id].IsError {
			return fmt.Sprintf("%s: is_error is %t", id, got[id].IsError)
		}
	}
	for _, s := range c.Structured {
		if diff := sameJSON(string(s.Value), structured[s.ID]); diff != "" {
			return fmt.Sprintf("%s: tool_use_result: %s", s.ID, diff)
		}
	}
	var wantAsked []string
	for _, p := range c.PermissionRequests {
		wantAsked = append(wantAsked, p.Tool+" "+p.Blocked)
	}
	if !slices.Equal(wantAsked, asked) {
		return fmt.Sprintf("asked %q, not %q", asked, wantAsked)
	}
	now := at.files(t)
	changed := map[string]bool{}
	for name, content := range now {
		if before[name] != content {
			changed[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.FilesAfter.Changed)) {
		w := c.FilesAfter.Changed[name]
		if strings.HasPrefix(name, "/") {
			continue // outside of the workspace
		}
		if !changed[name] {
			return name + " is not changed"
		}
		delete(changed, name)
		mode, content, _ := strings.Cut(now[name], " ")
		if w.Symlink == "" && mode != w.Mode {
			return fmt.Sprintf("%s has the mode %s, not %s", name, mode, w.Mode)
		}
		if len(w.Text) > 0 {
			text, _ := json.Marshal(content)
			if diff := sameJSON(string(w.Text), string(text)); diff != "" {
				return name + ": " + diff
			}
		}
	}
	if len(changed) > 0 {
		return fmt.Sprintf("changed: %v", slices.Sorted(maps.Keys(changed)))
	}
	for _, name := range c.FilesAfter.Removed {
		if _, there := now[name]; there {
			return name + " is not removed"
		}
	}
	return ""
}

// counts are numbers that the name of the workspace changes.
var counts = regexp.MustCompile(`\(first \d+ of \d+ bytes\)`)

// sameJSON compares values. A text that the recording has cut is compared by its length and
// sum, advice that it has cut by what comes before; durations are not compared.
func sameJSON(want, got string) string {
	var w, g any
	if json.Unmarshal([]byte(want), &w) != nil {
		w = want
	}
	if json.Unmarshal([]byte(got), &g) != nil {
		g = got
	}
	return sameValue("", w, g)
}

func sameValue(at string, w, g any) string {
	short := func(v any) string {
		b, _ := json.Marshal(v)
		return string(b[:min(len(b), 160)])
	}
	differs := fmt.Sprintf("%s: %s in place of %s", at, short(g), short(w))
	switch w := w.(type) {
	case map[string]any:
		if cut, _ := w["cut"].(bool); cut {
			text, ok := g.(string)
			if !ok || float64(len(text)) != w["len"] && float64(len([]rune(text))) != w["len"] || fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16] != w["sha256"] {
				return fmt.Sprintf("%s: another long text", at)
			}
			return ""
		}
		m, ok := g.(map[string]any)
		if !ok {
			return differs
		}
		for _, k := range slices.Sorted(maps.Keys(w)) {
			if diff := sameValue(at+"."+k, w[k], m[k]); diff != "" {
				return diff
			}
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if _, known := w[k]; !known {
				return fmt.Sprintf("%s.%s is there", at, k)
			}
		}
		return ""
	case []any:
		l, ok := g.([]any)
		if !ok || len(l) != len(w) {
			return differs
		}
		for i := range w {
			if diff := sameValue(fmt.Sprintf("%s[%d]", at, i), w[i], l[i]); diff != "" {
				return diff
			}
		}
		return ""
	case string:
		text, ok := g.(string)
		w, text = counts.ReplaceAllString(w, ""), counts.ReplaceAllString(text, "")
		if head, _, cut := strings.Cut(w, "[cut:"); ok && cut {
			ok = strings.HasPrefix(text, strings.TrimSpace(head))
		} else if ok {
			ok = w == text
		}
		if !ok {
			return differs
		}
		return ""
	}
	if fmt.Sprint(w) != fmt.Sprint(g) {
		return differs
	}
	return ""
}
