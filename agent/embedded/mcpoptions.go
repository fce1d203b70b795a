package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// maxConfig is how long the file of MCPConfigPath may be.
const maxConfig = 4 << 20

// serversOf are the MCP servers of the options: those of MCPServers, or of the file.
func serversOf(o *dialect.Input) (map[string]session.MCPServerConfig, error) {
	all, at := o.MCPServers, "MCPServers[%q]"
	if o.MCPConfigPath != "" {
		path := o.MCPConfigPath
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Cwd, path)
		}
		var file struct {
			Servers map[string]session.MCPServerConfig `json:"mcpServers"`
		}
		text, err := readStart(openFile, path, maxConfig)
		if err == nil {
			err = json.Unmarshal([]byte(text), &file)
		}
		if err == nil && file.Servers == nil {
			err = errors.New("it has no mcpServers")
		}
		if err != nil {
			return nil, problem("MCPConfigPath", "cannot be read: "+withoutPath(err), "name a file with a JSON object that has mcpServers")
		}
		all, at = file.Servers, "MCPConfigPath: server %q"
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if err := usable(name, &c); err != nil {
			wrong = append(wrong, problem(fmt.Sprintf(at, name), err.Error(), "leave it out"))
		}
	}
	return all, errors.Join(wrong...)
}

func withoutPath(err error) string {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// usable says why a server cannot be used, or nil.
func usable(name string, c *session.MCPServerConfig) error {
	var o client
	switch {
	case name == "":
		return errors.New("has no name")
	case c.Type == "sse" || c.Type == "http":
		if c.URL == "" {
			return errors.New("has no URL")
		}
	case c.Type != "" && c.Type != "stdio":
		return fmt.Errorf("has the type %q, which this agent does not have: stdio, sse and http", c.Type)
	case c.Command == "":
		return errors.New("has no command")
	}
	switch {
	case c.HeadersHelper != "":
		return errors.New("has HeadersHelper, which this agent does not run; set Headers")
	case !c.AlwaysLoad.Or(true):
		return errors.New("has AlwaysLoad: false, and this agent has no search for tools")
	case len(c.OAuth) > 0 && protocol.Unmarshal(c.OAuth, &o) != nil:
		return errors.New("has an OAuth that is no object with clientId and clientSecret")
	}
	return nil
}

// expander puts variables of the session's environment in place of ${NAME} and ${NAME:-default},
// as Claude Code does. A variable that is not set, without a default, stays as it is.
func expander(getenv func(string) string) func(string) string {
	return func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(ref string) string {
			m := variable.FindStringSubmatch(ref)
			if value := getenv(m[1]); value != "" {
				return value
			}
			if strings.HasPrefix(m[2], ":-") {
				return m[2][2:]
			}
			return ref
		})
	}
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)

// toolPolicies are what the options say of single tools of servers: rules, and the names of tools
// that are asked about in every mode.
func toolPolicies(o *dialect.Input) (allow, deny, ask []string, err error) {
	external, err := serversOf(o)
	policies := map[string][]session.MCPToolPolicy{}
	for name, c := range external {
		policies[name] = c.Tools
	}
	for name, c := range o.SDKMCPServerConfigs {
		policies[name] = append(slices.Clip(policies[name]), c.Tools...)
	}
	for _, server := range slices.Sorted(maps.Keys(policies)) {
		for _, p := range policies[server] {
			name := protocol.MCPToolName(server, p.Name)
			switch {
			case p.PermissionPolicy == session.AlwaysDeny || p.OrgMaxPermission == "blocked":
				deny = append(deny, name)
			case p.PermissionPolicy == session.AlwaysAsk || p.OrgMaxPermission == "ask":
				ask = append(ask, name)
			case p.PermissionPolicy == session.AlwaysAllow:
				allow = append(allow, name)
			}
		}
	}
	return allow, deny, ask, err
}

// plain are the options without what this agent does itself, which Claude Code's dialect would
// put into arguments, settings and initialize.
func plain(o *dialect.Input) *dialect.Input {
	own := *o
	allow, deny, _, _ := toolPolicies(o) // mistakes were reported
	own.AllowedTools = slices.Concat(o.AllowedTools, allow)
	own.DisallowedTools = slices.Concat(o.DisallowedTools, deny)
	own.MCPServers, own.MCPConfigPath, own.MCPServersDelivery = nil, "", ""
	own.SDKMCPServerConfigs = nil
	return &own
}
