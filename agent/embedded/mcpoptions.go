package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		all, at = file.Servers, "MCPConfigPath: mcpServers[%q]"
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		if field, what := unusable(name, &c); what != "" {
			wrong = append(wrong, problem(strings.TrimSuffix(fmt.Sprintf(at, name)+"."+field, "."), what, "leave it out"))
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

// unusable says which field of a server's configuration this agent cannot use, and why; "", "": it
// can use all of it.
func unusable(name string, c *session.MCPServerConfig) (field, what string) {
	web := c.Type == "sse" || c.Type == "http"
	switch {
	case name == "":
		return "", "has no name"
	case !web && c.Type != "" && c.Type != "stdio":
		return "Type", fmt.Sprintf("is %q, which this agent does not have: stdio, sse and http", c.Type)
	case web && c.URL == "":
		return "URL", "is empty"
	case !web && c.Command == "":
		return "Command", "is empty"
	case c.HeadersHelper != "":
		return "HeadersHelper", "is not run by this agent; set Headers"
	case !c.AlwaysLoad.Or(true):
		return "AlwaysLoad", "is false, and this agent has no search for tools"
	case len(c.Extra) > 0:
		return "Extra", "has " + quotedKeys(c.Extra) + ", which this agent does not know"
	case len(c.OAuth) == 0:
		return "", ""
	}
	var o client
	switch {
	case c.Type != "http":
		return "OAuth", "is for servers of type http"
	case protocol.Unmarshal(c.OAuth, &o) != nil:
		return "OAuth", "is no object with clientId, clientSecret and callbackPort"
	case len(o.Extra) > 0:
		return "OAuth", "has " + quotedKeys(o.Extra) + ", which this agent does not know"
	case o.Port < 0 || o.Port > math.MaxUint16:
		return "OAuth", fmt.Sprintf("has the callbackPort %d, which is no port", o.Port)
	}
	return "", ""
}

// quotedKeys names the keys of an object.
func quotedKeys(extra map[string]json.RawMessage) string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		keys = append(keys, strconv.Quote(key))
	}
	return strings.Join(keys, ", ")
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
	own.SDKMCPServerConfigs, own.Sandbox, own.ResolveModel = nil, nil, nil
	return &own
}
