package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// mcpServer is a server as the engine knows it: one of the host's process, or of the agent's own.
type mcpServer struct {
	name      string
	tools     []string
	described []json.RawMessage // of each of tools: as in tools/list
	manifest  bool
	state     string // "", connected, failed, disabled
	nextID    int    // of the next JSON-RPC request

	own     MCPServer         // nil if it is in the host's process
	lasting bool              // it is of the configuration: mcp_set_servers does not replace it
	info    json.RawMessage   // of an own one: what it says of itself
	failure string            // of an own one: why it is not connected
	next    []json.RawMessage // of an own one: its tools from the next turn on, if fresh
	fresh   bool
}

// newMCPServer takes the tools from a manifest's tools/list result, if there
// is one.
func newMCPServer(name string, toolsList json.RawMessage) *mcpServer {
	s := &mcpServer{name: name}
	if len(toolsList) > 0 {
		s.manifest = true
		s.learn(toolsList)
	}
	return s
}

func (m *mcpServer) learn(toolsList json.RawMessage) {
	if tools := toolsIn(toolsList); tools != nil {
		m.take(tools)
	}
}

// toolsIn are the entries of a tools/list; nil if it cannot be read.
func toolsIn(toolsList json.RawMessage) []json.RawMessage {
	list := struct {
		Tools []json.RawMessage `json:"tools"`
	}{Tools: []json.RawMessage{}}
	if json.Unmarshal(toolsList, &list) != nil {
		return nil
	}
	return list.Tools
}

// take sets the tools to the entries of a tools/list.
func (m *mcpServer) take(list []json.RawMessage) {
	m.tools, m.described = nil, nil
	for _, raw := range list {
		var t struct {
			Name string `json:"name"`
		}
		if protocol.Unmarshal(raw, &t) == nil {
			m.tools, m.described = append(m.tools, t.Name), append(m.described, raw)
		}
	}
}

func (m *mcpServer) status() string {
	switch {
	case m.state == "":
		return "pending"
	case m.own != nil && m.state == "connected" && !m.own.Alive():
		return "failed" // until the next call, which starts it again
	}
	return m.state
}

func (e *engine) server(name string) *mcpServer {
	i := slices.IndexFunc(e.host.servers, func(m *mcpServer) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return e.host.servers[i]
}

// connected reports whether every server has been connected to, or failed.
func (e *engine) connected() bool {
	return !slices.ContainsFunc(e.host.servers, func(m *mcpServer) bool { return m.state == "" })
}

// connectServers makes the first contact with the servers of initialize.
func (e *engine) connectServers(s *Strand) {
	for _, m := range e.host.servers {
		if m.state != "" || m.own != nil {
			continue
		}
		if m.manifest && e.cfg.Handshake != HandshakeMessages || e.cfg.Handshake == HandshakeManifest {
			m.state, m.nextID = "connected", 2 // 0 and 1 are the handshake that did not happen
			continue
		}
		if s.handshake(m) != nil {
			return
		}
	}
}

// handshake is initialize, notifications/initialized, tools/list.
func (s *Strand) handshake(m *mcpServer) error {
	if m.own != nil {
		return s.connect(m)
	}
	m.nextID = 0
	_, err := s.rpc(m, "initialize", Object{
		"protocolVersion": "2025-11-25", "capabilities": Object{},
		"clientInfo": Object{"name": "claude-code", "title": "Claude Code", "version": s.e.tr.version},
	})
	if err == nil {
		_, err = s.Ask(mcpMessage(m, Object{"jsonrpc": "2.0", "method": "notifications/initialized"}), mcpLimit)
	}
	var list json.RawMessage
	if err == nil {
		list, err = s.rpc(m, "tools/list", nil)
	}
	if err != nil {
		m.state = "failed"
		return err
	}
	if s.e.cfg.Live != nil {
		m.offer(s.e, toolsIn(list))
	} else {
		m.learn(list)
	}
	m.state = "connected"
	return nil
}

// MCPTool says which tool of the host's in-process servers a model calls by name.
// in reports whether the name is that of a tool of such a server; tool is "" when the
// server has no tool of that name.
func (l *Lane) MCPTool(name string) (server, tool string, in bool) {
	for _, m := range l.e.host.servers {
		rest, ok := strings.CutPrefix(name, l.MCPToolName(m.name, ""))
		if !ok {
			continue
		}
		for _, t := range m.tools {
			if l.MCPToolName(m.name, t) == name {
				return m.name, t, true
			}
		}
		if len(m.tools) == 0 && m.own == nil { // a server without a list of tools is assumed to have every tool
			return m.name, rest, true
		}
		server, in = m.name, true
	}
	return server, "", in
}

// MCPToolName is what the model calls a tool of an MCP server.
func (l *Lane) MCPToolName(server, tool string) string { return l.e.mcpToolName(server, tool) }

func (e *engine) mcpToolName(server, tool string) string {
	if e.cfg.Dialect == Qoder {
		return "mcp__" + protocol.MCPNameQoder(server) + "__" + protocol.MCPNameQoder(tool)
	}
	return protocol.MCPToolName(server, tool)
}

const mcpLimit = 60 * time.Second

func mcpMessage(m *mcpServer, message Object) Object {
	return Object{"subtype": "mcp_message", "server_name": m.name, "message": message}
}

// rpcError is what a server, or the host for it, refused.
type rpcError struct{ text string }

func (r *rpcError) Error() string { return r.text }

// rpc makes one JSON-RPC request and returns its result.
func (s *Strand) rpc(m *mcpServer, method string, params Object) (json.RawMessage, error) {
	message := Object{"jsonrpc": "2.0", "id": m.nextID, "method": method}
	m.nextID++
	if params != nil {
		message["params"] = params
	}
	answer, err := s.Ask(mcpMessage(m, message), mcpLimit)
	if err != nil {
		return nil, err
	}
	return rpcResult(answer)
}

func rpcResult(a Answer) (json.RawMessage, error) {
	switch {
	case a.Closed:
		return nil, &rpcError{"MCP error -32000: Connection closed"}
	case !a.OK:
		return nil, &rpcError{a.Error}
	}
	var in struct {
		MCP struct {
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		} `json:"mcp_response"`
	}
	if err := json.Unmarshal(a.Body, &in); err != nil {
		return nil, &rpcError{"MCP error: answer is not a JSON-RPC response"}
	}
	if in.MCP.Error != nil {
		return nil, &rpcError{"MCP error: " + in.MCP.Error.Message}
	}
	return in.MCP.Result, nil
}

// CallMCP calls a tool of an in-process server of the host. Use it in the Run function of
// a [ToolCall] with the id toolUseID. After an interrupt, and after limit if it is not 0,
// the call is cancelled with notifications/cancelled.
func (s *Strand) CallMCP(server, tool, toolUseID string, arguments Object, limit time.Duration) (ToolResult, error) {
	m := s.e.server(server)
	if m == nil || m.own != nil || m.state != "connected" {
		return ToolResult{}, &rpcError{"No such tool available: mcp__" + server + "__" + tool}
	}
	id := m.nextID
	m.nextID++
	p := s.e.ask(s.scope, mcpMessage(m, Object{
		"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": Object{
			"name": tool, "arguments": arguments,
			"_meta": Object{"claudecode/toolUseId": toolUseID, "progressToken": id},
		},
	}))
	reason := "AbortError: remote-cancel"
	p.cancel = func() {
		s.e.ask(nil, mcpMessage(m, Object{
			"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": Object{"requestId": id, "reason": reason},
		}))
	}
	if limit == 0 {
		limit = -1
	} else {
		reason = "McpError: MCP error -32001: Request timed out"
	}
	switch err := s.await(p, limit); {
	case errors.Is(err, ErrTimeout):
		return ToolResult{Content: "MCP error -32001: Request timed out", IsError: true}, nil
	case err != nil:
		return ToolResult{}, err
	}
	return toolResult(rpcResult(p.answer())), nil
}

// toolResult is the result of tools/call as the model sees it: what goes wrong
// is a result too.
func toolResult(raw json.RawMessage, err error) ToolResult {
	if err != nil {
		return ToolResult{Content: err.Error(), IsError: true}
	}
	var result struct {
		Content json.RawMessage `json:"content"`
		IsError bool            `json:"isError"`
	}
	if json.Unmarshal(raw, &result) != nil || len(result.Content) == 0 {
		return ToolResult{Content: string(raw)}
	}
	if result.IsError {
		return ToolResult{Content: textOf(result.Content), IsError: true}
	}
	return ToolResult{Content: result.Content, Structured: result.Content}
}

// mcpStatus answers mcp_status.
func (e *engine) mcpStatus(r *Request) {
	list := []any{}
	for _, m := range e.host.servers {
		tools := []any{}
		for _, t := range m.tools {
			tools = append(tools, Object{"name": t, "annotations": Object{}})
		}
		o := Object{"name": m.name, "status": m.status(), "tools": tools}
		if e.cfg.Dialect == Qoder {
			o["config"] = Object{"type": "sdk", "scope": "dynamic"}
		} else {
			o["serverInfo"] = Object{"name": m.name, "version": "1.0"}
			o["transport"], o["scope"], o["source"] = "sdk", "dynamic", "sdk"
		}
		if m.own != nil {
			o = m.about(o)
			o["tools"] = m.toolStates()
		}
		list = append(list, o)
	}
	key := "mcpServers"
	if e.cfg.Dialect == Qoder {
		key = "servers"
	}
	r.Succeed(Object{key: list})
}

// setServers replaces the dynamic servers: those of the host are asked for
// their tools after the answer.
func (e *engine) setServers(r *Request, servers map[string]protocol.MCPServerConfig) {
	added, removed, wrong := e.replace(servers)
	r.Succeed(Object{"added": added, "removed": removed, "errors": wrong})
	e.spawn(nil, func(s *Strand) {
		for _, m := range slices.Clone(e.host.servers) {
			switch {
			case m.state != "":
			case m.own != nil:
				e.spawnApart(func(s *Strand) { _ = s.connect(m) }) // its state says how it went
			case s.handshake(m) != nil:
				return
			}
		}
	})
}

// reconnect serves mcp_toggle and mcp_reconnect: the answer comes after the
// handshake.
func (e *engine) reconnect(r *Request, name string, enable bool) {
	m := e.server(name)
	switch {
	case m == nil && e.cfg.Dialect == Qoder && r.Subtype == "mcp_toggle":
		r.Succeed(nil)
	case m == nil && e.cfg.Dialect == Qoder:
		r.Fail(`No MCP server registered with the name "`+name+`"`, "")
	case m == nil:
		r.Fail("Server not found: "+name, "")
	case m.own != nil:
		e.toggle(r, m, enable)
	case !enable:
		m.state = "disabled"
		r.Succeed(nil)
	default:
		e.spawn(nil, func(s *Strand) {
			if err := s.handshake(m); err != nil {
				r.Fail(err.Error(), "")
				return
			}
			r.Succeed(nil)
		})
	}
}
