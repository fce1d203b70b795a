package protocol

import "encoding/json"

// ContextUsageSummary is the context usage that an assistant line carries as
// the output of /context.
type ContextUsageSummary struct {
	Model        string            `json:"model"`                // full id
	TotalTokens  int64             `json:"total_tokens"`         // in use, an estimate; can exceed RawMaxTokens
	RawMaxTokens int64             `json:"raw_max_tokens"`       // the model's limit, or a smaller one at which the agent compacts
	Percentage   float64           `json:"percentage"`           // TotalTokens of RawMaxTokens, 0 to 100 and above
	OverLimit    *OverLimit        `json:"over_limit,omitempty"` // nil: within the limit
	Categories   []ContextCategory `json:"categories"`           // what fills the context; add up those with kind used
	MCPTools     []SummaryMCPTool  `json:"mcp_tools"`            // one entry for each tool
	MemoryFiles  []ContextFile     `json:"memory_files"`         // CLAUDE.md files and memories
	Agents       []SummaryAgent    `json:"agents"`               // one entry for each definition
	Skills       []ContextSkill    `json:"skills,omitempty"`     // nil if no skill costs tokens
}

// SummaryMCPTool is an MCP tool in a [ContextUsageSummary].
type SummaryMCPTool struct {
	Name       string `json:"name"`        // mcp__SERVER__TOOL
	ServerName string `json:"server_name"` // as configured
	Tokens     int64  `json:"tokens"`      // of its definition
}

// SummaryAgent is a subagent in a [ContextUsageSummary].
type SummaryAgent struct {
	AgentType string `json:"agent_type"` // name of the definition
	Source    string `json:"source"`     // where it is defined, such as userSettings or plugin
	Tokens    int64  `json:"tokens"`     // of its description
}

// OverLimit says by how much the context is too long.
type OverLimit struct {
	TokensOver int64  `json:"tokens_over"` // TotalTokens above RawMaxTokens
	Kind       string `json:"kind"`        // hard_limit, compaction_window
}

// ContextCategory is one part of the context. ID, Color and IsDeferred come
// from Claude Code, Type and Percentage from Qoder.
type ContextCategory struct {
	Name       string  `json:"name"`                 // for people
	Tokens     int64   `json:"tokens,omitempty"`     // an estimate
	Kind       string  `json:"kind,omitempty"`       // used, free, buffer, deferred
	ID         string  `json:"id,omitempty"`         // system_prompt, messages, free_space, …; "": an older release
	Color      string  `json:"color,omitempty"`      // a color name of the agent's own
	IsDeferred bool    `json:"isDeferred,omitempty"` // outside of the context until a tool search finds it
	Type       string  `json:"type,omitempty"`       // used, free, …; the set is not documented
	Percentage float64 `json:"percentage,omitempty"` // 0 to 100
}

// ContextFile is a memory file in the context.
type ContextFile struct {
	Path   string `json:"path"`   // absolute
	Type   string `json:"type"`   // User, Project, Local, Managed, …
	Tokens int64  `json:"tokens"` // of its text
}

// ContextSkill is a skill in the context.
type ContextSkill struct {
	Name       string `json:"name"`                  // what the model calls it
	Source     string `json:"source"`                // where it is defined, such as userSettings or plugin
	PluginName string `json:"plugin_name,omitempty"` // "": not a plugin's
	Tokens     int64  `json:"tokens"`                // of its name and description
}

// TokenCount is a named share of the context.
type TokenCount struct {
	Name     string `json:"name"`               // of the part
	Tokens   int64  `json:"tokens"`             // an estimate
	IsLoaded bool   `json:"isLoaded,omitempty"` // false: deferred, and Tokens are not in use
}

// ContextUsage is the answer to [ContextUsageRequest]. The first group of
// fields is Claude Code's, the last is Qoder's.
type ContextUsage struct {
	Model      string            `json:"model"`      // full id
	Categories []ContextCategory `json:"categories"` // what fills the context

	TotalTokens          int64   `json:"totalTokens,omitempty"`          // in use; can exceed MaxTokens
	MaxTokens            int64   `json:"maxTokens,omitempty"`            // the limit that Percentage is of
	RawMaxTokens         int64   `json:"rawMaxTokens,omitempty"`         // the model's limit
	Percentage           float64 `json:"percentage,omitempty"`           // 0 to 100
	AutocompactSource    string  `json:"autocompactSource,omitempty"`    // where the threshold is from: auto, model-default, …
	AutoCompactThreshold int64   `json:"autoCompactThreshold,omitempty"` // tokens at which the agent compacts; 0: not sent
	IsAutoCompactEnabled bool    `json:"isAutoCompactEnabled,omitempty"` // false: the agent does not compact by itself
	// GridRows is the picture that a terminal shows.
	GridRows             [][]ContextGridCell `json:"gridRows,omitempty"`
	MemoryFiles          []ContextFile       `json:"memoryFiles,omitempty"`          // CLAUDE.md files and memories
	MCPTools             []ContextMCPTool    `json:"mcpTools,omitempty"`             // one entry for each tool
	MCPInstructions      []json.RawMessage   `json:"mcpInstructions,omitempty"`      // objects with a server and its share of the tokens
	DeferredBuiltinTools []TokenCount        `json:"deferredBuiltinTools,omitempty"` // tools that a tool search has to find first
	SystemTools          []TokenCount        `json:"systemTools,omitempty"`          // the agent's own tools
	SystemPromptSections []TokenCount        `json:"systemPromptSections,omitempty"` // parts of the system prompt
	Agents               []ContextAgent      `json:"agents,omitempty"`               // one entry for each definition
	SlashCommands        *ContextCommands    `json:"slashCommands,omitempty"`        // nil: not sent
	Skills               *ContextSkills      `json:"skills,omitempty"`               // nil: not sent
	MessageBreakdown     *MessageBreakdown   `json:"messageBreakdown,omitempty"`     // nil: not sent
	APIUsage             *Usage              `json:"apiUsage,omitempty"`             // of the last model call; nil before the first call

	ContextWindow      *ContextWindow    `json:"contextWindow,omitempty"`      // nil from Claude Code
	AutoCompact        *AutoCompact      `json:"autoCompact,omitempty"`        // nil from Claude Code
	DuplicateFileReads []json.RawMessage `json:"duplicateFileReads,omitempty"` // files that were read more than once; of a form that was not observed
	Session            *SessionActivity  `json:"session,omitempty"`            // nil from Claude Code
}

// ContextMCPTool is an MCP tool in the context.
type ContextMCPTool struct {
	Name       string `json:"name"`               // mcp__SERVER__TOOL
	ServerName string `json:"serverName"`         // as configured
	Tokens     int64  `json:"tokens"`             // of its definition
	IsLoaded   bool   `json:"isLoaded,omitempty"` // false: deferred, and Tokens are not in use
}

// ContextAgent is a subagent in the context.
type ContextAgent struct {
	AgentType string `json:"agentType"` // name of the definition
	Source    string `json:"source"`    // where it is defined, such as userSettings or plugin
	Tokens    int64  `json:"tokens"`    // of its description
}

// ContextCommands is the share of slash commands.
type ContextCommands struct {
	TotalCommands    int   `json:"totalCommands"`    // all there are
	IncludedCommands int   `json:"includedCommands"` // those that the model knows of
	Tokens           int64 `json:"tokens"`           // of these
}

// ContextWindow says how full Qoder's context is.
type ContextWindow struct {
	UsedPercentage float64 `json:"usedPercentage"` // 0 to 100
}

// AutoCompact says when Qoder compacts.
type AutoCompact struct {
	Enabled             bool    `json:"enabled"`             // false: only /compact compacts
	ThresholdPercentage float64 `json:"thresholdPercentage"` // 0 to 100
}

// ContextGridCell is one cell of the picture of the context.
type ContextGridCell struct {
	Color          string  `json:"color"`          // a color name of the agent's own
	IsFilled       bool    `json:"isFilled"`       // false: free space
	CategoryName   string  `json:"categoryName"`   // as ContextCategory.Name
	Tokens         int64   `json:"tokens"`         // of the category
	Percentage     float64 `json:"percentage"`     // of the category, 0 to 100
	SquareFullness float64 `json:"squareFullness"` // share of the cell that is in use, 0 to 1
}

// ContextSkills is the share of skills. Count, PercentageOfContext and Items
// are Qoder's.
type ContextSkills struct {
	TotalSkills         int               `json:"totalSkills,omitempty"`         // all there are
	IncludedSkills      int               `json:"includedSkills,omitempty"`      // those that the model knows of
	Tokens              int64             `json:"tokens,omitempty"`              // of these
	SkillFrontmatter    []ContextSkill    `json:"skillFrontmatter,omitempty"`    // one entry for each skill
	Count               int               `json:"count,omitempty"`               // all there are
	PercentageOfContext float64           `json:"percentageOfContext,omitempty"` // 0 to 100
	Items               []json.RawMessage `json:"items,omitempty"`               // one object for each skill
}

// MessageBreakdown splits the tokens of the messages.
type MessageBreakdown struct {
	ToolCallTokens          int64        `json:"toolCallTokens"`          // tool calls of the model
	ToolResultTokens        int64        `json:"toolResultTokens"`        // what tools gave back
	AttachmentTokens        int64        `json:"attachmentTokens"`        // files and notes that the agent adds
	AssistantMessageTokens  int64        `json:"assistantMessageTokens"`  // text and thinking of the model
	UserMessageTokens       int64        `json:"userMessageTokens"`       // prompts
	RedirectedContextTokens int64        `json:"redirectedContextTokens"` // observed, meaning not documented
	UnattributedTokens      int64        `json:"unattributedTokens"`      // of no other kind
	ToolCallsByType         []ToolTokens `json:"toolCallsByType"`         // one entry for each tool
	AttachmentsByType       []TokenCount `json:"attachmentsByType"`       // by kind of attachment
}

// ToolTokens is the share of one tool.
type ToolTokens struct {
	Name         string `json:"name"`         // as in [ToolUseBlock]
	CallTokens   int64  `json:"callTokens"`   // of its inputs
	ResultTokens int64  `json:"resultTokens"` // of what it gave back
}

// SessionActivity counts what a Qoder session did.
type SessionActivity struct {
	MessageCount int           `json:"messageCount"` // of all kinds
	PromptCount  int           `json:"promptCount"`  // of the user
	ToolCalls    ToolCallCount `json:"toolCalls"`    // so far
	LinesChanged LinesChanged  `json:"linesChanged"` // in files, by the agent
}

// ToolCallCount counts tool calls.
type ToolCallCount struct {
	Total     int `json:"total"`     // Succeeded and Failed
	Succeeded int `json:"succeeded"` // without an error
	Failed    int `json:"failed"`    // with an error
}

// LinesChanged counts lines of files.
type LinesChanged struct {
	Added   int `json:"added"`   // lines
	Removed int `json:"removed"` // lines
}

// SessionCost is what a session has cost so far.
type SessionCost struct {
	TotalCostUSD       float64               `json:"total_cost_usd"`        // US dollars, an estimate of the agent
	TotalAPIDurationMS Millis                `json:"total_api_duration_ms"` // of model calls, in milliseconds
	TotalDurationMS    Millis                `json:"total_duration_ms"`     // since the session began, in milliseconds
	TotalLinesAdded    int64                 `json:"total_lines_added"`     // to files, by the agent
	TotalLinesRemoved  int64                 `json:"total_lines_removed"`   // from files, by the agent
	ModelUsage         map[string]ModelUsage `json:"model_usage,omitempty"` // by model
}

// UsageSummary is the usage report that an assistant line carries as the
// output of /usage.
type UsageSummary struct {
	Session SessionCost `json:"session"` // the session so far
	// RateLimits is the state of the subscription's limits, unchanged.
	RateLimits json.RawMessage `json:"rate_limits,omitempty"`
}

// UsageReport is the answer to [UsageRequest], which Claude's SDK calls
// experimental.
type UsageReport struct {
	Session             SessionCost       `json:"session"`                     // the session so far
	SubscriptionType    string            `json:"subscription_type,omitempty"` // pro, max, team, enterprise; "": no subscription
	RateLimitsAvailable bool              `json:"rate_limits_available"`       // false: no limits apply, and RateLimits is nil
	RateLimits          *RateLimitWindows `json:"rate_limits,omitempty"`       // nil: not available
	Behaviors           *UsageBehaviors   `json:"behaviors,omitempty"`         // nil: not asked for, or not available
}

// RateLimitWindows are a subscription's windows; nil: not available.
type RateLimitWindows struct {
	FiveHour          *RateLimitWindow  `json:"five_hour,omitempty"`            // all models, 5 hours
	SevenDay          *RateLimitWindow  `json:"seven_day,omitempty"`            // all models, 7 days
	SevenDayOAuthApps *RateLimitWindow  `json:"seven_day_oauth_apps,omitempty"` // other programs with the same login, 7 days
	SevenDayOpus      *RateLimitWindow  `json:"seven_day_opus,omitempty"`       // Opus models, 7 days
	SevenDaySonnet    *RateLimitWindow  `json:"seven_day_sonnet,omitempty"`     // Sonnet models, 7 days
	ModelScoped       []RateLimitWindow `json:"model_scoped,omitempty"`         // single models, 7 days; named by DisplayName
	ExtraUsage        *ExtraUsage       `json:"extra_usage,omitempty"`          // nil without extra usage in the plan
}

// RateLimitWindow is one window; nil fields are unknown.
type RateLimitWindow struct {
	DisplayName string   `json:"display_name,omitempty"` // for people; "" outside of ModelScoped
	Utilization *float64 `json:"utilization"`            // percent, 0 to 100
	ResetsAt    *string  `json:"resets_at"`              // RFC 3339
}

// ExtraUsage is usage beyond the subscription.
type ExtraUsage struct {
	IsEnabled    bool     `json:"is_enabled"`         // false: calls cannot be charged to it
	MonthlyLimit *float64 `json:"monthly_limit"`      // in minor units of Currency, such as cents; nil: no limit
	UsedCredits  *float64 `json:"used_credits"`       // in minor units of Currency; nil: not known
	Utilization  *float64 `json:"utilization"`        // percent of MonthlyLimit; nil: not known
	Currency     string   `json:"currency,omitempty"` // ISO 4217, such as USD; "": not sent
}

// UsageBehaviors is what drives the usage.
type UsageBehaviors struct {
	Day  UsagePeriod `json:"day"`  // the last 24 hours
	Week UsagePeriod `json:"week"` // the last 7 days
}

// UsagePeriod is the usage of a day or a week.
type UsagePeriod struct {
	RequestCount int64           `json:"request_count"` // model requests in local transcripts
	SessionCount int64           `json:"session_count"` // sessions in local transcripts
	Behaviors    []UsageBehavior `json:"behaviors"`     // they overlap: their shares do not add up to 100
	Agents       []UsageShare    `json:"agents"`        // by subagent
	Skills       []UsageShare    `json:"skills"`        // by skill
	Plugins      []UsageShare    `json:"plugins"`       // by plugin
	MCPServers   []UsageShare    `json:"mcp_servers"`   // by server
}

// UsageBehavior is a habit that costs.
type UsageBehavior struct {
	Key   string  `json:"key"`   // cache_miss, long_context, subagent_heavy, …
	Pct   float64 `json:"pct"`   // percent of the usage, 0 to 100
	Count int64   `json:"count"` // requests that show it
}

// UsageShare is a named share of the usage.
type UsageShare struct {
	Name string  `json:"name"` // of the subagent, skill, plugin or server
	Pct  float64 `json:"pct"`  // percent of the usage, 0 to 100
}

// UsageInfo is the answer to [UsageInfoRequest], Qoder's.
type UsageInfo struct {
	// Usage is the account's usage, unchanged; or null.
	Usage   json.RawMessage `json:"usage,omitempty"`
	Session CreditUsage     `json:"session"` // the session so far
}

// CreditUsage is what a session has used so far, in credits.
type CreditUsage struct {
	TotalCredits float64               `json:"total_credits"`         // 0 before the first call
	ModelUsage   map[string]ModelUsage `json:"model_usage,omitempty"` // by model
}
