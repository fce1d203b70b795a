package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// pipeWait is how long a pipe without a byte is waited for: its writer may live for hours.
const pipeWait = 3 * time.Second

// pipedFile says whether a file has data that was piped in: /dev/null, a socket and a
// closed file do not count.
func pipedFile(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && (st.Mode()&fs.ModeNamedPipe != 0 || st.Mode().IsRegular())
}

// piped is what was piped in next to a prompt in the arguments: data that follows it.
func (r *runner) piped(ctx context.Context) (string, error) {
	if r.process.stdinTTY {
		return "", nil
	}
	if f, ok := r.process.stdin.(*os.File); ok {
		if !pipedFile(f) {
			return "", nil
		}
	}
	first, all := make(chan struct{}, 1), make(chan []byte, 1)
	go func() {
		var b [1]byte
		n, err := io.ReadFull(r.process.stdin, b[:])
		if first <- struct{}{}; err != nil {
			all <- b[:n]
			return
		}
		rest, _ := io.ReadAll(r.process.stdin) // what was read counts
		all <- append(b[:], rest...)
	}()
	select {
	case <-first:
	case <-time.After(pipeWait):
		r.log.Warn("nothing came on stdin, which is a pipe; only the prompt of the arguments is sent")
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
	select {
	case raw := <-all:
		text, err := textfile.Decode(raw)
		if err != nil {
			return "", &usageError{problem: fmt.Sprintf("the text on stdin: %v", err)}
		}
		if strings.TrimSpace(string(text)) == "" {
			return "", nil
		}
		return "\n\n" + strings.TrimRight(string(text), "\n"), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readServers reads an MCP configuration. Its mistakes name the server and the key.
func readServers(raw []byte) (map[string]sdk.MCPServerConfig, error) {
	raw, err := textfile.Decode(raw)
	if err != nil {
		return nil, err
	}
	if m := optionfile.SyntaxOfJSON(raw); m != nil {
		return nil, fmt.Errorf("line %d, column %d %s; %s", m.Line, m.Column, m.Problem, m.Fix)
	}
	root, err := optionfile.ParseJSON(raw)
	if err != nil {
		return nil, err
	}
	list := root.Get("mcpServers")
	switch {
	case list == nil:
		return nil, errors.New(`the key "mcpServers" is missing`)
	case list.Kind != optionfile.Object:
		return nil, fmt.Errorf("mcpServers is %s, and has to be an object with a server under each name", list.Kind)
	}
	servers := map[string]sdk.MCPServerConfig{}
	for _, p := range list.Pairs {
		if _, twice := servers[p.Key.Text]; twice {
			return nil, fmt.Errorf("mcpServers has %q twice; leave one of them out", p.Key.Text)
		}
		var s sdk.MCPServerConfig
		if err := json.Unmarshal(p.Value.JSON(), &s); err != nil {
			var wrong *json.UnmarshalTypeError
			if errors.As(err, &wrong) {
				err = fmt.Errorf("%s is %s, and has to be %s", strings.TrimPrefix(wrong.Field, "plainServer."),
					strings.NewReplacer("array", "a list", "object", "an object", "number", "a number", "string", "a text", "bool", "true or false").Replace(wrong.Value), kindFor(wrong.Type.Kind().String()))
			}
			return nil, fmt.Errorf("mcpServers.%s: %w", p.Key.Text, err)
		}
		servers[p.Key.Text] = s
	}
	return servers, nil
}

// kindFor is a kind of Go's in terms of JSON.
func kindFor(kind string) string {
	known := map[string]string{"string": "a text in quotes", "slice": "a list", "map": "an object", "struct": "an object", "bool": "true or false"}
	if text := known[kind]; text != "" {
		return text
	}
	return "a number"
}

// planLine says how a task would run.
func planLine(p *fleet.TaskPlan) string {
	where := "in " + p.Workspace.From
	switch p.Workspace.Kind {
	case fleet.WorkspaceCopy:
		where = "in a copy of " + p.Workspace.From
	case fleet.WorkspaceWorktree:
		where = "in a worktree of " + p.Workspace.From
		if p.Workspace.Rev != "" {
			where += " at " + p.Workspace.Rev
		}
	}
	parts := []string{where}
	if p.Verify != nil && p.Verify.Command != "" {
		parts = append(parts, "verified by "+shorten(p.Verify.Command, 40))
	}
	if b := p.Budget; b != nil && b.USD > 0 {
		parts = append(parts, fmt.Sprintf("budget $%g", b.USD))
	}
	if p.Timeout > 0 {
		parts = append(parts, "at most "+p.Timeout.String())
	}
	if p.Mode != "" {
		parts = append(parts, "mode "+string(p.Mode))
	}
	if r := p.Rules; r != nil {
		otherwise := map[policy.Default]string{policy.Ask: "asked about", policy.Deny: "denied", policy.Agent: "left to the agent"}[r.Default]
		rules := map[string][]string{"allow": r.Allow, "deny": r.Deny, "ask": r.Ask}
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if len(rules[name]) > 0 {
				parts = append(parts, name+" "+strings.Join(rules[name], ", "))
			}
		}
		parts = append(parts, "other calls are "+otherwise)
	}
	return strings.Join(parts, "; ")
}
