package build

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func checkMCP(o *dialect.Input, p *Problems) {
	p.AddIf(o.MCPConfigPath != "" && len(o.MCPServers) > 0, "MCPConfigPath", "cannot be combined with MCPServers", "use one of them")
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		at := fmt.Sprintf("MCPServers[%q]", name)
		p.AddIf(name == "", at, "has no name", "name the server")
		checkServer(p, at, o.MCPServers[name])
		warnUnset(o, p, at, o.MCPServers[name])
		checkTools(p, at, o.MCPServers[name].Tools)
	}
	checkAlike(o, p)
	seen := map[string]bool{}
	for i, s := range o.Servers {
		at := fmt.Sprintf("SDKMCPServers[%d]", i)
		p.AddIf(s.Name == "", at+".Name", "is empty", "name the server")
		_, external := o.MCPServers[s.Name]
		p.AddIf(seen[s.Name] || external, at+".Name", fmt.Sprintf("%q is the name of another server too", s.Name), "make each name unique")
		seen[s.Name] = true
		p.AddIf(s.InitializeResult != nil && !IsObject(s.InitializeResult), at+".InitializeResult", "is not a JSON object", "")
		p.AddIf(s.ToolsListResult != nil && !IsObject(s.ToolsListResult), at+".ToolsListResult", "is not a JSON object", "")
		p.AddIf(s.Timeout < 0, at+".Timeout", "is negative", "give 0 for the agent's default")
		checkTools(p, at, s.Tools)
	}
}

// checkAlike warns of servers whose tools agents call alike: of two tools of one name Claude Code 2.1.329 lists the first
// alone (observed), and a rule about one is about the other.
func checkAlike(o *dialect.Input, p *Problems) {
	called, spell := map[string]string{}, p.MCPName
	if spell == nil {
		spell = protocol.MCPName
	}
	check := func(at, name string) {
		wire := spell(name)
		if other, taken := called[wire]; taken && other != name {
			p.Warn(at, other, fmt.Sprintf("agents write both %q and %q as %s: tools with the same name cannot be told apart, and rules match both servers", name, other, wire),
				"rename one of them")
			return
		}
		called[wire] = name
	}
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		check(fmt.Sprintf("MCPServers[%q]", name), name)
	}
	for i, s := range o.Servers {
		check(fmt.Sprintf("SDKMCPServers[%d].Name", i), s.Name)
	}
}

func checkServer(p *Problems, at string, s session.MCPServerConfig) {
	switch s.Type {
	case "", "stdio":
		p.AddIf(s.Command == "", at+".Command", "is empty", "give the server's program, or set Type and URL")
		p.AddIf(s.URL != "", at+".URL", "is not for a stdio server", "set Type to http or sse")
	case "streamable-http", "streamableHttp":
		if s.Type != "streamable-http" || p.Backend != "claude" { // Claude Code takes the one, and no other (observed on 2.1.329)
			p.Add(at+".Type", fmt.Sprintf("%q is not known", s.Type), "write http, which means the same")
			return
		}
		fallthrough
	case "http", "sse":
		// The agent expands ${NAME} and ${NAME:-default}; only then it is a URL.
		p.AddIf(!isHTTP(s.URL) && !strings.Contains(s.URL, "${"), at+".URL", "is not an http or https URL", "give the server's URL")
		p.AddIf(s.Command != "", at+".Command", "is not for a server with a URL", "set Type to stdio")
	case "sdk":
		p.Add(at+".Type", "sdk is for servers that run in the host", "pass the server itself")
	default:
		p.Add(at+".Type", fmt.Sprintf("%q is not known", s.Type), "use stdio, http or sse")
	}
	p.AddIf(s.Timeout < 0, at+".Timeout", "is negative", "give 0 for the agent's default")
}

// variable is a variable that agents put into the texts of a server: ${NAME}, ${NAME:-default}.
var variable = regexp.MustCompile(`\$\{([^}:]+)(:-)?[^}]*\}`)

// warnUnset warns of variables that the agent does not have: the server gets the text as it is written. What an agent
// that is started elsewhere has is not known.
func warnUnset(o *dialect.Input, p *Problems, at string, s session.MCPServerConfig) {
	if o.Spawner != nil {
		return
	}
	check := func(field, text string) {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if _, set := o.LookupEnv(m[1]); !set && m[2] == "" {
				p.Warn(at+"."+field, m[0], "is not set in the agent's environment, so the server gets the text as it is written",
					"set it in Env or give a default: ${"+m[1]+":-…}")
			}
		}
	}
	check("Command", s.Command)
	for i, a := range s.Args {
		check(fmt.Sprintf("Args[%d]", i), a)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		check(fmt.Sprintf("Env[%q]", name), s.Env[name])
	}
	check("URL", s.URL)
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		check(fmt.Sprintf("Headers[%q]", name), s.Headers[name])
	}
}

// isHTTP reports whether raw is a URL of a server on the web.
func isHTTP(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func checkTools(p *Problems, at string, tools []session.MCPToolPolicy) {
	known := []string{"", session.AlwaysAllow, session.AlwaysAsk, session.AlwaysDeny}
	for i, t := range tools {
		p.AddIf(t.Name == "", fmt.Sprintf("%s.Tools[%d].Name", at, i), "is empty", "name the tool")
		p.AddIf(!slices.Contains(known, t.PermissionPolicy), fmt.Sprintf("%s.Tools[%d].PermissionPolicy", at, i),
			fmt.Sprintf("%q is not known", t.PermissionPolicy), fmt.Sprintf("use one of %v", known[1:]))
		p.AddIf(!slices.Contains([]string{"", "allow", "ask", "blocked"}, t.OrgMaxPermission), fmt.Sprintf("%s.Tools[%d].OrgMaxPermission", at, i),
			fmt.Sprintf("%q is not known", t.OrgMaxPermission), "use allow, ask or blocked")
	}
}
