package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// checkAgents looks for programs of agents, and compares their versions with the tested ones.
func checkAgents(ctx context.Context, m *examined) (found []finding) {
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		t := d.Traits()
		path := programOf(t, m.getenv)
		if path == "" {
			continue
		}
		tested := testedAgents()[slices.IndexFunc(testedAgents(), func(a testedAgent) bool { return a.Backend == d.Name() })]
		found = append(found, checkAgent(ctx, path, &tested))
	}
	if len(found) == 0 {
		found = append(found, remark("neither claude nor qodercli is on PATH", "install one, or use the embedded agent with --model; troupe run --agent demo needs nothing"))
	}
	return found
}

func checkAgent(ctx context.Context, path string, tested *testedAgent) finding {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return wrong(fmt.Sprintf("%s: %s --version: %v", tested.Name, path, err), "install it anew")
	}
	release := releaseForm.FindString(string(out))
	switch {
	case release == "":
		return remark(fmt.Sprintf("%s: %s does not say which release it is", tested.Name, path), "")
	case !slices.Contains(tested.Releases, release):
		return remark(fmt.Sprintf("%s %s at %s, which was not tested", tested.Name, release, path), "tested: "+strings.Join(tested.Releases, ", "))
	}
	return ok("%s %s at %s, tested", tested.Name, release, path)
}

// programOf is the program of an agent, or "".
func programOf(t dialect.Traits, getenv func(string) string) string {
	return cmp.Or(getenv(t.ExecutableEnv), findOnPath(getenv("PATH"), t.ExecutableNames))
}

// checkLogins says by what the agents that are installed would log in, without asking a server.
func checkLogins(_ context.Context, m *examined) (found []finding) {
	if programOf(claude.New().Traits(), m.getenv) != "" {
		found = append(found, claudeLogin(m.getenv, time.Now()))
	}
	if programOf(qoder.New().Traits(), m.getenv) != "" {
		found = append(found, qoderLogin(m.getenv))
	}
	return found
}

func claudeLogin(getenv func(string) string, now time.Time) finding {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} {
		if getenv(name) != "" {
			return ok("Claude Code: by the variable %s", name)
		}
	}
	dir := cmp.Or(getenv("CLAUDE_CONFIG_DIR"), filepath.Join(getenv("HOME"), ".claude"))
	raw, err := os.ReadFile(filepath.Join(dir, ".credentials.json"))
	var file struct {
		Login *struct {
			ExpiresAt    int64           `json:"expiresAt"` // milliseconds
			RefreshToken json.RawMessage `json:"refreshToken"`
			Subscription string          `json:"subscriptionType"`
		} `json:"claudeAiOauth"`
	}
	const fix = "run claude and /login, or set ANTHROPIC_API_KEY"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return remark("Claude Code: no key in the environment and no login in "+dir+" (on macOS it may be in the keychain)", fix)
	case err != nil:
		return wrong("Claude Code: "+err.Error(), "make the login readable for this user")
	case json.Unmarshal(raw, &file) != nil || file.Login == nil:
		return remark("Claude Code: the login in "+dir+" is not known to this release", "")
	}
	text := "Claude Code: logged in, " + cmp.Or(file.Login.Subscription, "with an account")
	if until := time.UnixMilli(file.Login.ExpiresAt); until.Before(now) && len(file.Login.RefreshToken) == 0 {
		return wrong(text+", until "+until.Format(time.DateTime), fix)
	}
	return ok("%s", text)
}

func qoderLogin(getenv func(string) string) finding {
	for _, name := range []string{session.DefaultTokenEnv, "QODER_SERVICE_ACCOUNT_KEY"} {
		if getenv(name) != "" {
			return ok("Qoder CLI: by the variable %s", name)
		}
	}
	return remark("Qoder CLI: no token in the environment; whether it is logged in, it alone knows", "set "+session.DefaultTokenEnv+", or run qodercli and /login")
}

// checkModel says which model the embedded agent would ask, and which keys are there.
func checkModel(_ context.Context, m *examined) (found []finding) {
	known := model.DefaultProfiles()
	found = append(found, modelOf(m.getenv, known))
	var keys []string
	for _, s := range known.Servers {
		if s.KeyName != "" && m.getenv(s.KeyName) != "" && !slices.Contains(keys, s.KeyName) {
			keys = append(keys, s.KeyName)
		}
	}
	if len(keys) > 0 {
		found = append(found, ok("keys in the environment: %s", strings.Join(keys, ", ")))
	}
	return found
}

func modelOf(getenv func(string) string, known *model.Profiles) finding {
	name := getenv(modelVariable)
	if name == "" {
		return ok("%s is not set: the embedded agent needs --model", modelVariable)
	}
	ref, err := model.ParseRef(name)
	if err != nil {
		return wrong(modelVariable+": "+err.Error(), "write "+modelForms)
	}
	if key := known.Server(ref.URL).KeyName; key != "" && getenv(key) == "" && getenv(keyVariable) == "" {
		return wrong(fmt.Sprintf("%s is %s, and its key is missing", modelVariable, name), "set "+key)
	}
	return ok("%s is %s", modelVariable, name)
}

// localServer is a server of models that listens on a port of this machine by custom.
type localServer struct {
	name string
	url  string
}

func localServers() []localServer {
	return []localServer{
		{"Ollama", "http://127.0.0.1:11434"}, {"LM Studio", "http://127.0.0.1:1234"}, {"llama.cpp or LocalAI", "http://127.0.0.1:8080"},
		{"vLLM", "http://127.0.0.1:8000"}, {"SGLang", "http://127.0.0.1:30000"}, {"Jan", "http://127.0.0.1:1337"},
	}
}

func checkLocalModels(ctx context.Context, _ *examined) []finding {
	ctx, cancel := context.WithTimeout(ctx, localTime)
	defer cancel()
	return askServers(ctx, localServers())
}

// localTime is how long a server of this machine may take to list its models.
const localTime = 2 * time.Second

// askServers asks servers of this machine for their models, all at once.
func askServers(ctx context.Context, servers []localServer) (found []finding) {
	each := make([]finding, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() { each[i] = askServer(ctx, s) })
	}
	asking.Wait()
	for _, f := range each {
		if f.Text != "" {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, ok("no server of local models answers at its usual port"))
	}
	return found
}

// askServer is nothing if no such server answers.
func askServer(ctx context.Context, s localServer) finding {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/models", http.NoBody)
	if err != nil {
		return finding{}
	}
	// No proxy: the server is on this machine.
	response, err := (&http.Client{Transport: &http.Transport{}}).Do(request)
	if err != nil {
		return finding{}
	}
	defer response.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(raw, &list) != nil || list.Data == nil {
		return finding{} // something else has the port
	}
	if len(list.Data) == 0 {
		return remark(fmt.Sprintf("%s at %s has no model", s.name, s.url), "")
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return ok("%s at %s: %s; troupe run --model %s", s.name, s.url, shorten(strings.Join(names, ", "), 80), shellQuoted(s.url+"/v1#"+names[0]))
}

// checkGit looks for git, which worktrees and diffs of tasks need.
func checkGit(ctx context.Context, m *examined) []finding {
	path := findOnPath(m.getenv("PATH"), []string{"git"})
	if path == "" {
		return []finding{remark("git is not on PATH", "install it: worktrees and diffs of tasks need it")}
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return []finding{wrong(fmt.Sprintf("%s --version: %v", path, err), "install it anew")}
	}
	return []finding{ok("%s", strings.TrimSpace(string(out)))}
}
