package session

// CloudAgent runs the session in Qoder's cloud instead of a process: options.experimentalCloudAgent. It takes up a
// session (Session.ID alone), or makes one (Session.Create) with an agent that is there (Agent.ID) or made for it
// (Agent.Create). This release checks it and cannot run it. Keys are those of the vendor's documents.
type CloudAgent struct {
	// Agent is whose session it is. Not together with Session.ID, required with Session.Create.
	Agent *CloudAgentReference `json:"agent,omitempty"`
	// Session is the session to take up or to make.
	Session CloudSession `json:"session"`
	// Stream tunes how events come.
	Stream *CloudStream `json:"stream,omitempty"`
}

// CloudAgentReference is an agent in the cloud: one of ID and Create.
type CloudAgentReference struct {
	// ID names an agent that is there.
	ID string `json:"id,omitempty"`
	// Create makes one.
	Create *CloudAgentCreate `json:"create,omitempty"`
}

// CloudAgentCreate is an agent to be made.
type CloudAgentCreate struct {
	// Model is auto, ultimate, performance, efficient or lite. Required.
	Model string `json:"model"`
	// Name is for people. Required.
	Name string `json:"name"`
	// Description says what the agent is for.
	Description *string `json:"description,omitempty"`
	// System is the system prompt.
	System *string `json:"system,omitempty"`
	// Tools are the toolsets it has.
	Tools []CloudToolset `json:"tools,omitzero"`
	// MCPServers are servers with a URL.
	MCPServers []CloudMCPServer `json:"mcp_servers,omitzero"`
	// Skills are custom skills.
	Skills []CloudSkill `json:"skills,omitzero"`
	// Metadata is yours.
	Metadata map[string]string `json:"metadata,omitzero"`
}

// CloudToolset is a set of built-in tools.
type CloudToolset struct {
	// Type is agent_toolset_20260401.
	Type string `json:"type"`
	// EnabledTools are those of bash, write, glob, web_fetch, read, edit, grep and web_search that may be used; nil: all.
	EnabledTools []string `json:"enabled_tools,omitzero"`
}

// CloudMCPServer is an MCP server with a URL.
type CloudMCPServer struct {
	// Name is the server's key; tools are called mcp__NAME__TOOL.
	Name string `json:"name"`
	// Type is url.
	Type string `json:"type"`
	// URL is where the cloud reaches the server.
	URL string `json:"url"`
}

// CloudSkill is a custom skill.
type CloudSkill struct {
	// SkillID is the id under which the cloud has the skill.
	SkillID string `json:"skill_id"`
	// Type is custom.
	Type string `json:"type"`
}

// CloudSession is a session in the cloud: one of ID and Create.
type CloudSession struct {
	// ID takes up a session.
	ID string `json:"id,omitempty"`
	// Create makes one.
	Create *CloudSessionCreate `json:"create,omitempty"`
}

// CloudSessionCreate is a session to be made.
type CloudSessionCreate struct {
	// EnvironmentID is the container's environment. Required.
	EnvironmentID string `json:"environment_id"`
	// Resources are mounted into the container.
	Resources []CloudResource `json:"resources,omitzero"`
	// Title is the session's title.
	Title *string `json:"title,omitempty"`
	// VaultIDs are vaults with credentials.
	VaultIDs []string `json:"vault_ids,omitzero"`
	// MemoryStoreIDs are the ids of memory stores that the session may use.
	MemoryStoreIDs []string `json:"memory_store_ids,omitzero"`
}

// CloudResource is a file in the session's container.
type CloudResource struct {
	// Type is file.
	Type string `json:"type"`
	// FileID is the id of a file that was uploaded before.
	FileID string `json:"file_id"`
	// Path is where it is mounted; empty: where the cloud puts it.
	Path string `json:"path,omitempty"`
}

// CloudStream tunes how events come.
type CloudStream struct {
	// AfterID replays the events after this one.
	AfterID string `json:"afterId,omitempty"`
	// DeltaFlushIntervalMs is how long deltas are gathered, in milliseconds; absent: the SDK's default.
	DeltaFlushIntervalMs Opt[int] `json:"deltaFlushIntervalMs,omitzero"`
}
