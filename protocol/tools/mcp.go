package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// MCPToolInput is the call of an MCP server's tool, mcp__server__tool.
type MCPToolInput struct {
	Server string // as it is in the tool's name
	Name   string // of the tool, at its server
	// Arguments are of the tool's own schema.
	Arguments json.RawMessage
}

// Tool implements [Input]: the full name.
func (in *MCPToolInput) Tool() string { return protocol.MCPToolName(in.Server, in.Name) }

func (*MCPToolInput) isInput()      {}
func (*MCPToolInput) extra() *Extra { return nil }

// UnmarshalJSON keeps the arguments.
func (in *MCPToolInput) UnmarshalJSON(b []byte) error {
	in.Arguments = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON returns the arguments as they came.
func (in *MCPToolInput) MarshalJSON() ([]byte, error) {
	if isNull(in.Arguments) {
		return []byte("{}"), nil
	}
	return in.Arguments, nil
}

// MCPToolOutput is the result of an MCP server's tool: its content blocks
// (observed on Claude Code 2.1.329), or an object.
type MCPToolOutput struct {
	Content protocol.Content // nil if Object is set
	// Object is the output if it is not a list: structured content.
	Object json.RawMessage
}

func (*MCPToolOutput) isOutput() {}

// UnmarshalJSON decodes a list of blocks or any other value.
func (o *MCPToolOutput) UnmarshalJSON(b []byte) error {
	*o = MCPToolOutput{}
	if len(b) > 0 && b[0] == '[' {
		return o.Content.UnmarshalJSON(b)
	}
	o.Object = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON encodes the blocks or the object.
func (o *MCPToolOutput) MarshalJSON() ([]byte, error) {
	if o.Object != nil {
		return o.Object, nil
	}
	return o.Content.MarshalJSON()
}

// MCPInput is a call of an MCP tool under the name Mcp. Qoder's document.
type MCPInput struct {
	ServerName string          `json:"server_name,omitempty"` // as configured
	ToolName   string          `json:"tool_name,omitempty"`   // at its server
	Arguments  json.RawMessage `json:"arguments,omitempty"`   // an object of the tool's own schema
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*MCPInput) Tool() string { return "Mcp" }

// MCPOutput is the result of such a call. Qoder's document.
type MCPOutput struct {
	// Content is the tool's own.
	Content json.RawMessage `json:"content,omitempty"`
	IsError bool            `json:"isError,omitempty"` // the tool reported a failure
}

func (*MCPOutput) isOutput() {}

// ListMCPResourcesInput lists the resources of MCP servers.
type ListMCPResourcesInput struct {
	Server     string `json:"server,omitempty"`      // "" is all
	ServerName string `json:"server_name,omitempty"` // Server in Qoder's document
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*ListMCPResourcesInput) Tool() string { return "ListMcpResources" }

// ListMCPResourcesOutput is a list of resources: a bare list on Claude's wire,
// in an object with ServerName in Qoder's document.
type ListMCPResourcesOutput struct {
	Resources  []MCPResource // nil: none
	ServerName string        // "" on Claude's wire
}

func (*ListMCPResourcesOutput) isOutput() {}

type listMCPResources struct {
	Resources  []MCPResource `json:"resources"`
	ServerName string        `json:"server_name,omitempty"`
}

// UnmarshalJSON decodes a list or an object.
func (o *ListMCPResourcesOutput) UnmarshalJSON(b []byte) error {
	*o = ListMCPResourcesOutput{}
	if len(b) > 0 && b[0] == '[' {
		return protocol.Unmarshal(b, &o.Resources)
	}
	var p listMCPResources
	if err := protocol.Unmarshal(b, &p); err != nil {
		return err
	}
	*o = ListMCPResourcesOutput(p)
	return nil
}

// MarshalJSON encodes an object if there is a ServerName, else a list.
func (o *ListMCPResourcesOutput) MarshalJSON() ([]byte, error) {
	if o.ServerName != "" {
		return protocol.Marshal(listMCPResources(*o))
	}
	if o.Resources == nil {
		return []byte("[]"), nil
	}
	return protocol.Marshal(o.Resources)
}

// MCPResource is a resource of an MCP server.
type MCPResource struct {
	URI         string `json:"uri"`                   // for [ReadMCPResourceInput]
	Name        string `json:"name"`                  // for people and the model
	Description string `json:"description,omitempty"` // "": none
	MIMEType    string `json:"mimeType,omitempty"`    // "": not said
	Server      string `json:"server,omitempty"`      // as configured; "" in Qoder's document
}

// ReadMCPResourceInput reads a resource of an MCP server.
type ReadMCPResourceInput struct {
	Server     string `json:"server,omitempty"`      // as configured
	ServerName string `json:"server_name,omitempty"` // Server in Qoder's document
	URI        string `json:"uri"`                   // as [MCPResource] lists it
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*ReadMCPResourceInput) Tool() string { return "ReadMcpResource" }

// ReadMCPResourceOutput is what a resource holds.
type ReadMCPResourceOutput struct {
	Contents []MCPResourceContent `json:"contents"`        // one entry for each part
	Error    string               `json:"error,omitempty"` // why it could not be read; "": it was
}

func (*ReadMCPResourceOutput) isOutput() {}

// MCPResourceContent is a part of a resource. A blob goes to a file on the
// agent's host.
type MCPResourceContent struct {
	URI         string `json:"uri"`                   // of the part
	MIMEType    string `json:"mimeType,omitempty"`    // "": not said
	Text        string `json:"text,omitempty"`        // "": a blob
	BlobSavedTo string `json:"blobSavedTo,omitempty"` // a path on the agent's machine; "": a text
}

// ReadMCPResourceDirInput lists the resources below one of an MCP server.
type ReadMCPResourceDirInput struct {
	Server string `json:"server"` // as configured
	URI    string `json:"uri"`    // of a directory
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*ReadMCPResourceDirInput) Tool() string { return "ReadMcpResourceDir" }

// ReadMCPResourceDirOutput is the resources that were found.
type ReadMCPResourceDirOutput struct {
	Resources []MCPResource `json:"resources"`       // nil: none
	Error     string        `json:"error,omitempty"` // why it could not be read; "": it was
}

func (*ReadMCPResourceDirOutput) isOutput() {}

// RefreshMCPToolsInput asks MCP servers for their tools again.
type RefreshMCPToolsInput struct {
	Server string `json:"server,omitempty"` // "" is all
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*RefreshMCPToolsInput) Tool() string { return "RefreshMcpTools" }

// RefreshMCPToolsOutput is what became of each server.
type RefreshMCPToolsOutput []MCPRefresh

func (*RefreshMCPToolsOutput) isOutput() {}

// MCPRefresh is what became of one server.
type MCPRefresh struct {
	Server    string   `json:"server"`              // as configured
	Status    string   `json:"status"`              // refreshed, error, not_connected
	ToolCount int      `json:"toolCount,omitempty"` // tools that it has now
	Added     []string `json:"added,omitempty"`     // names of tools
	Removed   []string `json:"removed,omitempty"`   // names of tools
	Error     string   `json:"error,omitempty"`     // with status error
}
