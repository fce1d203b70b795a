package acpclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	dialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/protocol"
)

// version is the version of the protocol that is spoken.
const version = 1

// failure is why a request to the agent has no result.
type failure dialect.Refusal

func (f *failure) Error() string {
	switch {
	case f.Capability != "":
		return fmt.Sprintf("the agent does not have %s, which %s needs", f.Capability, f.Method)
	case f.Code != 0:
		return fmt.Sprintf("%s (%d)", f.Message, f.Code)
	}
	return f.Message
}

// open makes the agent open the session that the setup names.
func (c *conn) open() {
	c.call(acp.MethodInitialize, acp.InitializeRequest{
		ProtocolVersion: version, ClientCapabilities: &acp.ClientCapabilities{}, ClientInfo: &acp.Implementation{Name: "troupe", Title: "Troupe", Version: "1"},
	}, func(m acp.Message) {
		switch f := read(acp.MethodInitialize, m, &c.agent); {
		case f != nil:
			c.failOpen(f)
		case c.agent.ProtocolVersion == 0:
			c.failOpen(&failure{Method: acp.MethodInitialize, Message: "the answer has no protocolVersion: the program is no agent of the Agent Client Protocol"})
		case c.agent.ProtocolVersion != version:
			c.failOpen(&failure{Method: acp.MethodInitialize, Version: int(c.agent.ProtocolVersion)})
		default:
			c.openSession()
		}
	})
}

// read reads the result of a request.
func read(method string, m acp.Message, to any) *failure {
	if m.Error != nil {
		f := &failure{Method: method, Code: int(m.Error.Code), Message: m.Error.Message}
		if len(m.Error.Data) > 0 && string(m.Error.Data) != "null" {
			f.Message += ": " + string(m.Error.Data)
		}
		return f
	}
	if err := json.Unmarshal(m.Result, to); err != nil {
		return &failure{Method: method, Message: fmt.Sprintf("the answer cannot be read: %v", err)}
	}
	return nil
}

// capabilities returns those of the agent, without nil.
func (c *conn) capabilities() (all acp.AgentCapabilities, of acp.SessionCapabilities, mcp acp.MCPCapabilities, prompt acp.PromptCapabilities) {
	if c.agent.AgentCapabilities != nil {
		all = *c.agent.AgentCapabilities
	}
	if all.SessionCapabilities != nil {
		of = *all.SessionCapabilities
	}
	if all.MCPCapabilities != nil {
		mcp = *all.MCPCapabilities
	}
	if all.PromptCapabilities != nil {
		prompt = *all.PromptCapabilities
	}
	return all, of, mcp, prompt
}

// missing returns a part of the setup that the agent lacks, or nil.
func (c *conn) missing(method string) *failure {
	all, of, mcp, _ := c.capabilities()
	lacks := func(capability string) *failure { return &failure{Method: method, Capability: capability} }
	if method == acp.MethodSessionLoad && !all.LoadSession {
		return lacks("loadSession")
	}
	if len(c.setup.AdditionalDirectories) > 0 && of.AdditionalDirectories == nil {
		return lacks("sessionCapabilities.additionalDirectories")
	}
	for _, s := range c.setup.MCPServers {
		if s.Type == "http" && !mcp.HTTP || s.Type == "sse" && !mcp.SSE {
			return lacks("mcpCapabilities." + s.Type)
		}
	}
	return nil
}

// openSession opens a new session, or the one to continue: without its history if the agent
// can leave it out.
func (c *conn) openSession() {
	_, of, _, _ := c.capabilities()
	s := &c.setup
	method, params := acp.MethodSessionNew, any(acp.NewSessionRequest{Cwd: s.Cwd, AdditionalDirectories: s.AdditionalDirectories, MCPServers: s.MCPServers})
	switch {
	case s.Resume != "" && of.Resume != nil:
		c.id = acp.SessionID(s.Resume)
		servers := append([]acp.MCPServer{}, s.MCPServers...)
		method, params = acp.MethodSessionResume, acp.ResumeSessionRequest{SessionID: c.id, Cwd: s.Cwd, AdditionalDirectories: s.AdditionalDirectories, MCPServers: servers}
	case s.Resume != "":
		c.id, c.loading = acp.SessionID(s.Resume), true
		method, params = acp.MethodSessionLoad, acp.LoadSessionRequest{SessionID: c.id, Cwd: s.Cwd, AdditionalDirectories: s.AdditionalDirectories, MCPServers: s.MCPServers}
	}
	if f := c.missing(method); f != nil {
		c.failOpen(f)
		return
	}
	c.call(method, params, func(m acp.Message) {
		c.loading = false
		var made acp.NewSessionResponse
		if f := read(method, m, &made); f != nil {
			c.failOpen(f)
			return
		}
		c.id = cmp.Or(c.id, made.SessionID)
		if c.id == "" {
			c.failOpen(&failure{Method: method, Message: "the answer has no sessionId"})
			return
		}
		c.modes, c.config = made.Modes, made.ConfigOptions
		c.configure()
	})
}

// configure sets the mode and the model, one after the other.
func (c *conn) configure() {
	then := func(f *failure) {
		if f != nil {
			c.failOpen(f)
			return
		}
		c.ready()
	}
	model := func(f *failure) {
		if f != nil || c.setup.Model == "" {
			then(f)
			return
		}
		c.setModel(c.setup.Model, then)
	}
	if c.setup.Mode == "" {
		model(nil)
		return
	}
	c.setMode(c.setup.Mode, model)
}

// setMode sets the permission mode: one of the agent's modes, or a value of its option of the
// category mode.
func (c *conn) setMode(mode string, done func(*failure)) {
	if c.modes != nil {
		var offered []string
		for _, m := range c.modes.AvailableModes {
			offered = append(offered, string(m.ID))
			if string(m.ID) != mode {
				continue
			}
			c.call(acp.MethodSessionSetMode, acp.SetSessionModeRequest{SessionID: c.id, ModeID: m.ID}, func(a acp.Message) {
				var made acp.SetSessionModeResponse
				f := read(acp.MethodSessionSetMode, a, &made)
				if f == nil {
					c.modes.CurrentModeID = m.ID
				}
				done(f)
			})
			return
		}
		if c.option(acp.SessionConfigOptionCategoryMode) == nil {
			done(&failure{Method: "PermissionMode", Capability: fmt.Sprintf("mode %q (it has %s)", mode, strings.Join(offered, ", "))})
			return
		}
	}
	c.setOption(acp.SessionConfigOptionCategoryMode, "PermissionMode", mode, done)
}

// setModel sets the agent's option of the category model.
func (c *conn) setModel(model string, done func(*failure)) {
	c.setOption(acp.SessionConfigOptionCategoryModel, "Model", model, done)
}

// option returns the agent's option of a category, or nil.
func (c *conn) option(category acp.SessionConfigOptionCategory) *acp.SessionConfigOption {
	for i := range c.config {
		if c.config[i].Category == category {
			return &c.config[i]
		}
	}
	return nil
}

// setOption sets an option of the agent, which must offer the value.
func (c *conn) setOption(category acp.SessionConfigOptionCategory, needs, value string, done func(*failure)) {
	o := c.option(category)
	if o == nil {
		done(&failure{Method: needs, Capability: fmt.Sprintf("an option of the category %s", category)})
		return
	}
	var offered []string
	for _, item := range o.Options {
		if item.Options == nil {
			offered = append(offered, string(item.Value))
		}
		for _, inner := range item.Options {
			offered = append(offered, string(inner.Value))
		}
	}
	known := false
	for _, one := range offered {
		known = known || one == value
	}
	if !known {
		done(&failure{Method: needs, Capability: fmt.Sprintf("%s %q (it has %s)", category, value, strings.Join(offered, ", "))})
		return
	}
	raw, _ := json.Marshal(value) // a string always can
	c.call(acp.MethodSessionSetConfigOption, acp.SetSessionConfigOptionRequest{SessionID: c.id, ConfigID: o.ID, Value: raw}, func(a acp.Message) {
		var made acp.SetSessionConfigOptionResponse
		f := read(acp.MethodSessionSetConfigOption, a, &made)
		if f == nil {
			c.config = made.ConfigOptions
		}
		done(f)
	})
}

// failOpen answers initialize with what went wrong, of which the dialect makes an error.
func (c *conn) failOpen(f *failure) {
	if f.Code == int(acp.CodeAuthenticationRequired) {
		f.Message = strings.TrimSuffix(f.Message+"; "+c.logins(), "; ")
	}
	body, err := json.Marshal(struct {
		Refusal *failure `json:"acp_failure"`
	}{f})
	if err != nil {
		c.controlFailed(c.initID, f.Error())
		return
	}
	c.controlled(c.initID, body)
}

// logins says how one logs in with the agent; "" if it does not say.
func (c *conn) logins() string {
	var all []string
	for _, m := range c.agent.AuthMethods {
		text := m.Name
		if m.Description != "" {
			text += " (" + m.Description + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return "the agent's ways to log in: " + strings.Join(all, ", ")
}

// ready says that the session is open: it is named before initialize is answered, so that the
// name is known when the first message is written.
func (c *conn) ready() {
	c.opened = true
	type server struct {
		Name string `json:"name"`
	}
	servers := []server{}
	for _, s := range c.setup.MCPServers {
		servers = append(servers, server{s.Name})
	}
	c.write(struct {
		Type           string        `json:"type"`
		Subtype        string        `json:"subtype"`
		SessionID      acp.SessionID `json:"session_id"`
		UUID           string        `json:"uuid"`
		Cwd            string        `json:"cwd"`
		Model          string        `json:"model,omitempty"`
		PermissionMode string        `json:"permissionMode,omitempty"`
		MCPServers     []server      `json:"mcp_servers"`
	}{"system", "init", c.id, c.uuid(), c.setup.Cwd, c.model(), c.mode(), servers})
	body, err := protocol.Marshal(struct {
		Commands []string               `json:"commands"`
		Models   []string               `json:"models"`
		Account  struct{}               `json:"account"`
		Agent    acp.InitializeResponse `json:"acp_agent"`
	}{[]string{}, []string{}, struct{}{}, c.agent})
	if err != nil {
		c.controlFailed(c.initID, err.Error())
		return
	}
	c.controlled(c.initID, body)
}

// model is the current model; "" if the agent does not say.
func (c *conn) model() string {
	if o := c.option(acp.SessionConfigOptionCategoryModel); o != nil {
		var value string
		if json.Unmarshal(o.CurrentValue, &value) == nil {
			return value
		}
	}
	return ""
}

// mode is the current permission mode; "" if the agent does not say.
func (c *conn) mode() string {
	if c.modes == nil {
		return ""
	}
	return string(c.modes.CurrentModeID)
}
