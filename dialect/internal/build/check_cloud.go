package build

import (
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// CheckCloud finds what is wrong with the value of ExperimentalCloudAgent. Whether the backend has it is for the dialect
// to say.
func CheckCloud(o *dialect.Input, p *Problems) {
	c := o.ExperimentalCloudAgent
	if c == nil {
		return
	}
	const at = "ExperimentalCloudAgent"
	made := c.Session.Create
	switch {
	case c.Session.ID != "" && made != nil:
		p.Add(at+".Session", "has both ID, which resumes a session, and Create, which creates one", "use one of them")
	case c.Session.ID == "" && made == nil:
		p.Add(at+".Session", "names no session", "give ID to resume a session, or Create to create one")
	case c.Session.ID != "":
		p.AddIf(c.Agent != nil, at+".Agent", "cannot be combined with Session.ID: the session has its agent", "leave it out, or give Session.Create")
	default:
		p.AddIf(c.Agent == nil, at+".Agent", "is missing, and Session.Create needs an agent", "give ID or Create")
		p.AddIf(made.EnvironmentID == "", at+".Session.Create.EnvironmentID", "is empty", "name the container's environment")
		for i, r := range made.Resources {
			checkKind(p, fmt.Sprintf("%s.Session.Create.Resources[%d].Type", at, i), r.Type, "file")
			p.AddIf(r.FileID == "", fmt.Sprintf("%s.Session.Create.Resources[%d].FileID", at, i), "is empty", "name the file")
		}
	}
	if a := c.Agent; a != nil {
		p.AddIf((a.ID != "") == (a.Create != nil), at+".Agent", "needs either ID or Create", "give ID for an existing agent, or Create for a new one")
		checkCloudAgent(p, at+".Agent.Create", a.Create)
	}
	if s := c.Stream; s != nil {
		p.AddIf(s.DeltaFlushIntervalMs.Or(0) < 0, at+".Stream.DeltaFlushIntervalMs", "is negative", "leave it out for the default")
	}
}

func checkCloudAgent(p *Problems, at string, a *session.CloudAgentCreate) {
	if a == nil {
		return
	}
	p.AddIf(a.Name == "", at+".Name", "is empty", "name the agent")
	checkKind(p, at+".Model", a.Model, "auto", "ultimate", "performance", "efficient", "lite")
	for i, t := range a.Tools {
		checkKind(p, fmt.Sprintf("%s.Tools[%d].Type", at, i), t.Type, "agent_toolset_20260401")
		for _, name := range t.EnabledTools {
			checkKind(p, fmt.Sprintf("%s.Tools[%d].EnabledTools", at, i), name,
				"bash", "write", "glob", "web_fetch", "read", "edit", "grep", "web_search")
		}
	}
	for i, s := range a.MCPServers {
		checkKind(p, fmt.Sprintf("%s.MCPServers[%d].Type", at, i), s.Type, "url")
		p.AddIf(s.Name == "", fmt.Sprintf("%s.MCPServers[%d].Name", at, i), "is empty", "name the server")
		p.AddIf(!isHTTP(s.URL), fmt.Sprintf("%s.MCPServers[%d].URL", at, i), "is not an http or https URL", "give the server's URL")
	}
	for i, s := range a.Skills {
		checkKind(p, fmt.Sprintf("%s.Skills[%d].Type", at, i), s.Type, "custom")
		p.AddIf(s.SkillID == "", fmt.Sprintf("%s.Skills[%d].SkillID", at, i), "is empty", "name the skill")
	}
}

// checkKind refuses a value that is not in known.
func checkKind(p *Problems, option, value string, known ...string) {
	p.AddIf(!slices.Contains(known, value), option, fmt.Sprintf("%q is not known", value), fmt.Sprintf("use one of %v", known))
}
