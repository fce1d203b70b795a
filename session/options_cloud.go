package session

// CloudAgent runs the session in Qoder's cloud instead of a local process: options.experimentalCloudAgent. It resumes
// a session (Session.ID alone) or creates one (Session.Create); a new session gets an existing agent (Agent.ID) or a
// new one (Agent.Create). Both stay in the cloud: a [CloudOpened] event has their ids, and cloud.Cleanup archives
// or deletes them. The keys are those of the vendor's documents.
type CloudAgent struct {
	// Agent is the agent of a new session. It is required with Session.Create and an error with Session.ID.
	Agent *CloudAgentReference `json:"agent,omitempty"`
	// Session is the session to resume or to create.
	Session CloudSession `json:"session"`
	// Stream configures the stream of events; nil: the vendor's defaults.
	Stream *CloudStream `json:"stream,omitempty"`
}

// CloudAgentReference is an agent in the cloud. Set either ID or Create.
type CloudAgentReference struct {
	// ID is the id of an existing agent.
	ID string `json:"id,omitempty"`
	// Create creates a new agent.
	Create *CloudAgentCreate `json:"create,omitempty"`
}

// CloudAgentCreate describes an agent to create.
type CloudAgentCreate struct {
	// Model is auto, ultimate, performance, efficient or lite. Required.
	Model string `json:"model"`
	// Name is shown to people. Required.
	Name string `json:"name"`
	// Description says what the agent is for.
	Description *string `json:"description,omitempty"`
	// System is the system prompt.
	System *string `json:"system,omitempty"`
	// Tools are the toolsets that the agent has.
	Tools []CloudToolset `json:"tools,omitzero"`
	// MCPServers are the agent's MCP servers, each with a URL.
	MCPServers []CloudMCPServer `json:"mcp_servers,omitzero"`
	// Skills are the agent's custom skills.
	Skills []CloudSkill `json:"skills,omitzero"`
	// Metadata are your own keys and values.
	Metadata map[string]string `json:"metadata,omitzero"`
}

// CloudToolset is a set of built-in tools.
type CloudToolset struct {
	// Type must be agent_toolset_20260401.
	Type string `json:"type"`
	// EnabledTools are the tools of the set that the agent may use, out of bash, write, glob, web_fetch, read, edit, grep
	// and web_search; nil: all of them.
	EnabledTools []string `json:"enabled_tools,omitzero"`
}

// CloudMCPServer is an MCP server with a URL.
type CloudMCPServer struct {
	// Name is the server's key; its tools are named mcp__NAME__TOOL.
	Name string `json:"name"`
	// Type must be url.
	Type string `json:"type"`
	// URL is the address at which the cloud reaches the server.
	URL string `json:"url"`
}

// CloudSkill is a custom skill.
type CloudSkill struct {
	// SkillID is the skill's id in the cloud.
	SkillID string `json:"skill_id"`
	// Type must be custom.
	Type string `json:"type"`
}

// CloudSession is a session in the cloud. Set either ID or Create.
type CloudSession struct {
	// ID is the id of the session to resume.
	ID string `json:"id,omitempty"`
	// Create creates a new session.
	Create *CloudSessionCreate `json:"create,omitempty"`
}

// CloudSessionCreate describes a session to create.
type CloudSessionCreate struct {
	// EnvironmentID is the id of the container's environment. Required.
	EnvironmentID string `json:"environment_id"`
	// Resources are the files that are mounted into the container.
	Resources []CloudResource `json:"resources,omitzero"`
	// Title is the session's title.
	Title *string `json:"title,omitempty"`
	// VaultIDs are the ids of vaults with credentials that the session may use.
	VaultIDs []string `json:"vault_ids,omitzero"`
	// MemoryStoreIDs are the ids of memory stores that the session may use.
	MemoryStoreIDs []string `json:"memory_store_ids,omitzero"`
}

// CloudResource is a file in the session's container.
type CloudResource struct {
	// Type must be file.
	Type string `json:"type"`
	// FileID is the id of a file that was uploaded before.
	FileID string `json:"file_id"`
	// Path is where the file is mounted; empty: the cloud chooses.
	Path string `json:"path,omitempty"`
}

// CloudStream configures the stream of events.
type CloudStream struct {
	// AfterID is the id of an event; the events after it are replayed.
	AfterID string `json:"afterId,omitempty"`
	// DeltaFlushIntervalMs is how long deltas are collected before they are sent, in milliseconds; absent: the vendor's
	// default.
	DeltaFlushIntervalMs Opt[int] `json:"deltaFlushIntervalMs,omitzero"`
}
