package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	wire "github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
)

// SetupFile is the name of the file of a [dialect.Launch] that has the [Setup].
const SetupFile = "acp-setup.json"

// Setup says which session of the agent to open, and how. It may have secrets.
type Setup struct {
	Cwd                   string           `json:"cwd"` // absolute
	AdditionalDirectories []string         `json:"additionalDirectories,omitempty"`
	MCPServers            []wire.MCPServer `json:"mcpServers,omitempty"` // sorted by name
	Resume                string           `json:"resume,omitempty"`     // the id of a session to continue; "": a new one
	Model                 string           `json:"model,omitempty"`      // "": the agent's default
	Mode                  string           `json:"mode,omitempty"`       // "": the agent's default
	Partial               bool             `json:"partial,omitempty"`    // write stream events
}

func setupOf(o *dialect.Input) ([]byte, error) {
	cwd, err := filepath.Abs(o.Cwd)
	if err != nil {
		return nil, &session.ConfigError{Option: "Cwd", Backend: Name, Problem: err.Error(), Fix: "give an absolute path"}
	}
	s := Setup{
		Cwd: cwd, MCPServers: servers(o), Resume: o.Resume, Model: o.Model, Mode: string(o.PermissionMode), Partial: o.IncludePartialMessages,
	}
	for _, dir := range o.AdditionalDirectories {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		s.AdditionalDirectories = append(s.AdditionalDirectories, dir)
	}
	return json.Marshal(s)
}

func checkServers(o *dialect.Input, p *build.Problems) {
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		at, s := fmt.Sprintf("MCPServers[%q]", name), o.MCPServers[name]
		switch s.Type {
		case "", "stdio":
			p.AddIf(s.Command == "", at, "has no Command", "name the server's program")
		case "http", "sse":
			p.AddIf(s.URL == "", at, "has no URL", "give the server's address")
		default:
			p.Add(at, "has the unknown type "+strconv.Quote(s.Type), "use stdio, http or sse")
		}
		p.AddIf(s.HeadersHelper != "" || s.OAuth != nil || s.Timeout != 0 || len(s.Tools) > 0 || len(s.Extra) > 0 || s.AlwaysLoad.Or(false),
			at, "has settings that the protocol cannot express", "leave only Type, Command, Args, Env, URL and Headers")
	}
}

func servers(o *dialect.Input) []wire.MCPServer {
	var all []wire.MCPServer
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		from := o.MCPServers[name]
		s := wire.MCPServer{Name: name, URL: from.URL, Command: from.Command}
		// The schema requires the lists of a server's kind, also when they are empty.
		if from.Type == "" || from.Type == "stdio" {
			s.Args, s.Env = append([]string{}, from.Args...), []wire.EnvVariable{}
		} else {
			s.Type, s.Headers = from.Type, []wire.HTTPHeader{}
		}
		for _, key := range slices.Sorted(maps.Keys(from.Headers)) {
			s.Headers = append(s.Headers, wire.HTTPHeader{Name: key, Value: from.Headers[key]})
		}
		for _, key := range slices.Sorted(maps.Keys(from.Env)) {
			s.Env = append(s.Env, wire.EnvVariable{Name: key, Value: from.Env[key]})
		}
		all = append(all, s)
	}
	return all
}

// Refusal is why the agent did not open the session, in the answer to initialize.
type Refusal struct {
	// Method is the request that failed.
	Method string `json:"method"`
	// Code and Message are the agent's; Code is 0 if the agent did not answer with an error.
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// Version is the version of the protocol that the agent wants; not 0 only if it is not 1.
	Version int `json:"version,omitempty"`
	// Capability is what the agent does not have, and the options need.
	Capability string `json:"capability,omitempty"`
}

func (f *Refusal) err() error {
	switch {
	case f.Version != 0:
		return &session.ProtocolVersionError{Backend: Name, Version: strconv.Itoa(f.Version), Major: "1"}
	case f.Capability != "":
		return &session.UnsupportedCapabilityError{Backend: Name, Capability: f.Capability, Request: f.Method}
	}
	e := &session.ControlError{Request: f.Method, Message: f.Message}
	if f.Code != 0 {
		e.Code = strconv.Itoa(f.Code)
	}
	if f.Code == int(wire.CodeAuthenticationRequired) {
		return &session.AuthError{Backend: Name, Err: e}
	}
	return e
}
