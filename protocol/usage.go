package protocol

import "encoding/json"

// ContextUsageSummary is the context usage that an assistant line carries as
// the output of /context.
type ContextUsageSummary struct {
	Model        string            `json:"model"`
	TotalTokens  int64             `json:"total_tokens"`
	RawMaxTokens int64             `json:"raw_max_tokens"`
	Percentage   float64           `json:"percentage"`
	OverLimit    *OverLimit        `json:"over_limit,omitempty"`
	Categories   []ContextCategory `json:"categories"`
	MCPTools     []SummaryMCPTool  `json:"mcp_tools"`
	MemoryFiles  []ContextFile     `json:"memory_files"`
	Agents       []SummaryAgent    `json:"agents"`
	Skills       []ContextSkill    `json:"skills,omitempty"`
}

// SummaryMCPTool is an MCP tool in a [ContextUsageSummary].
type SummaryMCPTool struct {
	Name       string `json:"name"`
	ServerName string `json:"server_name"`
	Tokens     int64  `json:"tokens"`
}

// SummaryAgent is a subagent in a [ContextUsageSummary].
type SummaryAgent struct {
	AgentType string `json:"agent_type"`
	Source    string `json:"source"`
	Tokens    int64  `json:"tokens"`
}

// OverLimit says by how much the context is too long.
type OverLimit struct {
	TokensOver int64  `json:"tokens_over"`
	Kind       string `json:"kind"` // hard_limit, compaction_window
}

// ContextCategory is one part of the context. ID, Color and IsDeferred come
// from Claude Code, Type and Percentage from Qoder.
type ContextCategory struct {
	Name       string  `json:"name"`
	Tokens     int64   `json:"tokens,omitempty"`
	Kind       string  `json:"kind,omitempty"` // used, free, buffer, deferred
	ID         string  `json:"id,omitempty"`
	Color      string  `json:"color,omitempty"`
	IsDeferred bool    `json:"isDeferred,omitempty"`
	Type       string  `json:"type,omitempty"`
	Percentage float64 `json:"percentage,omitempty"` // 0 to 100
}

// ContextFile is a memory file in the context.
type ContextFile struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Tokens int64  `json:"tokens"`
}

// ContextSkill is a skill in the context.
type ContextSkill struct {
	Name       string `json:"name"`
	Source     string `json:"source"`
	PluginName string `json:"plugin_name,omitempty"`
	Tokens     int64  `json:"tokens"`
}

// TokenCount is a named share of the context.
type TokenCount struct {
	Name     string `json:"name"`
	Tokens   int64  `json:"tokens"`
	IsLoaded bool   `json:"isLoaded,omitempty"`
}

// ContextUsage is the answer to [ContextUsageRequest]. The first group of
// fields is Claude Code's, the last is Qoder's.
type ContextUsage struct {
	Model      string            `json:"model"`
	Categories []ContextCategory `json:"categories"`

	TotalTokens          int64   `json:"totalTokens,omitempty"`
	MaxTokens            int64   `json:"maxTokens,omitempty"`
	RawMaxTokens         int64   `json:"rawMaxTokens,omitempty"`
	Percentage           float64 `json:"percentage,omitempty"` // 0 to 100
	AutocompactSource    string  `json:"autocompactSource,omitempty"`
	AutoCompactThreshold int64   `json:"autoCompactThreshold,omitempty"`
	IsAutoCompactEnabled bool    `json:"isAutoCompactEnabled,omitempty"`
	// GridRows is the picture that a terminal shows.
	GridRows             [][]ContextGridCell `json:"gridRows,omitempty"`
	MemoryFiles          []ContextFile       `json:"memoryFiles,omitempty"`
	MCPTools             []ContextMCPTool    `json:"mcpTools,omitempty"`
	MCPInstructions      []json.RawMessage   `json:"mcpInstructions,omitempty"`
	DeferredBuiltinTools []TokenCount        `json:"deferredBuiltinTools,omitempty"`
	SystemTools          []TokenCount        `json:"systemTools,omitempty"`
	SystemPromptSections []TokenCount        `json:"systemPromptSections,omitempty"`
	Agents               []ContextAgent      `json:"agents,omitempty"`
	SlashCommands        *ContextCommands    `json:"slashCommands,omitempty"`
	Skills               *ContextSkills      `json:"skills,omitempty"`
	MessageBreakdown     *MessageBreakdown   `json:"messageBreakdown,omitempty"`
	APIUsage             *Usage              `json:"apiUsage,omitempty"`

	ContextWindow      *ContextWindow    `json:"contextWindow,omitempty"`
	AutoCompact        *AutoCompact      `json:"autoCompact,omitempty"`
	DuplicateFileReads []json.RawMessage `json:"duplicateFileReads,omitempty"`
	Session            *SessionActivity  `json:"session,omitempty"`
}

// ContextMCPTool is an MCP tool in the context.
type ContextMCPTool struct {
	Name       string `json:"name"`
	ServerName string `json:"serverName"`
	Tokens     int64  `json:"tokens"`
	IsLoaded   bool   `json:"isLoaded,omitempty"`
}

// ContextAgent is a subagent in the context.
type ContextAgent struct {
	AgentType string `json:"agentType"`
	Source    string `json:"source"`
	Tokens    int64  `json:"tokens"`
}

// ContextCommands is the share of slash commands.
type ContextCommands struct {
	TotalCommands    int   `json:"totalCommands"`
	IncludedCommands int   `json:"includedCommands"`
	Tokens           int64 `json:"tokens"`
}

// ContextWindow says how full Qoder's context is.
type ContextWindow struct {
	UsedPercentage float64 `json:"usedPercentage"` // 0 to 100
}

// AutoCompact says when Qoder compacts.
type AutoCompact struct {
	Enabled             bool    `json:"enabled"`
	ThresholdPercentage float64 `json:"thresholdPercentage"` // 0 to 100
}

// ContextGridCell is one cell of the picture of the context.
type ContextGridCell struct {
	Color          string  `json:"color"`
	IsFilled       bool    `json:"isFilled"`
	CategoryName   string  `json:"categoryName"`
	Tokens         int64   `json:"tokens"`
	Percentage     float64 `json:"percentage"`
	SquareFullness float64 `json:"squareFullness"`
}

// ContextSkills is the share of skills. Count, PercentageOfContext and Items
// are Qoder's.
type ContextSkills struct {
	TotalSkills         int               `json:"totalSkills,omitempty"`
	IncludedSkills      int               `json:"includedSkills,omitempty"`
	Tokens              int64             `json:"tokens,omitempty"`
	SkillFrontmatter    []ContextSkill    `json:"skillFrontmatter,omitempty"`
	Count               int               `json:"count,omitempty"`
	PercentageOfContext float64           `json:"percentageOfContext,omitempty"`
	Items               []json.RawMessage `json:"items,omitempty"`
}

// MessageBreakdown splits the tokens of the messages.
type MessageBreakdown struct {
	ToolCallTokens          int64        `json:"toolCallTokens"`
	ToolResultTokens        int64        `json:"toolResultTokens"`
	AttachmentTokens        int64        `json:"attachmentTokens"`
	AssistantMessageTokens  int64        `json:"assistantMessageTokens"`
	UserMessageTokens       int64        `json:"userMessageTokens"`
	RedirectedContextTokens int64        `json:"redirectedContextTokens"`
	UnattributedTokens      int64        `json:"unattributedTokens"`
	ToolCallsByType         []ToolTokens `json:"toolCallsByType"`
	AttachmentsByType       []TokenCount `json:"attachmentsByType"`
}

// ToolTokens is the share of one tool.
type ToolTokens struct {
	Name         string `json:"name"`
	CallTokens   int64  `json:"callTokens"`
	ResultTokens int64  `json:"resultTokens"`
}

// SessionActivity counts what a Qoder session did.
type SessionActivity struct {
	MessageCount int           `json:"messageCount"`
	PromptCount  int           `json:"promptCount"`
	ToolCalls    ToolCallCount `json:"toolCalls"`
	LinesChanged LinesChanged  `json:"linesChanged"`
}

// ToolCallCount counts tool calls.
type ToolCallCount struct {
	Total     int `json:"total"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
}

// LinesChanged counts lines of files.
type LinesChanged struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// SessionCost is what a session has cost so far.
type SessionCost struct {
	TotalCostUSD       float64               `json:"total_cost_usd"`
	TotalAPIDurationMS Millis                `json:"total_api_duration_ms"`
	TotalDurationMS    Millis                `json:"total_duration_ms"`
	TotalLinesAdded    int64                 `json:"total_lines_added"`
	TotalLinesRemoved  int64                 `json:"total_lines_removed"`
	ModelUsage         map[string]ModelUsage `json:"model_usage,omitempty"`
}

// UsageSummary is the usage report that an assistant line carries as the
// output of /usage.
type UsageSummary struct {
	Session SessionCost `json:"session"`
	// RateLimits is the state of the subscription's limits, as it came.
	RateLimits json.RawMessage `json:"rate_limits,omitempty"`
}

// UsageReport is the answer to [UsageRequest], which Claude's SDK calls
// experimental.
type UsageReport struct {
	Session             SessionCost       `json:"session"`
	SubscriptionType    string            `json:"subscription_type,omitempty"`
	RateLimitsAvailable bool              `json:"rate_limits_available"`
	RateLimits          *RateLimitWindows `json:"rate_limits,omitempty"`
	Behaviors           *UsageBehaviors   `json:"behaviors,omitempty"`
}

// RateLimitWindows are a subscription's windows; nil: not available.
type RateLimitWindows struct {
	FiveHour          *RateLimitWindow  `json:"five_hour,omitempty"`
	SevenDay          *RateLimitWindow  `json:"seven_day,omitempty"`
	SevenDayOAuthApps *RateLimitWindow  `json:"seven_day_oauth_apps,omitempty"`
	SevenDayOpus      *RateLimitWindow  `json:"seven_day_opus,omitempty"`
	SevenDaySonnet    *RateLimitWindow  `json:"seven_day_sonnet,omitempty"`
	ModelScoped       []RateLimitWindow `json:"model_scoped,omitempty"`
	ExtraUsage        *ExtraUsage       `json:"extra_usage,omitempty"`
}

// RateLimitWindow is one window; nil fields are unknown.
type RateLimitWindow struct {
	DisplayName string   `json:"display_name,omitempty"`
	Utilization *float64 `json:"utilization"`
	ResetsAt    *string  `json:"resets_at"` // RFC 3339
}

// ExtraUsage is usage beyond the subscription.
type ExtraUsage struct {
	IsEnabled    bool     `json:"is_enabled"`
	MonthlyLimit *float64 `json:"monthly_limit"`
	UsedCredits  *float64 `json:"used_credits"`
	Utilization  *float64 `json:"utilization"`
	Currency     string   `json:"currency,omitempty"`
}

// UsageBehaviors is what drives the usage.
type UsageBehaviors struct {
	Day  UsagePeriod `json:"day"`
	Week UsagePeriod `json:"week"`
}

// UsagePeriod is the usage of a day or a week.
type UsagePeriod struct {
	RequestCount int64           `json:"request_count"`
	SessionCount int64           `json:"session_count"`
	Behaviors    []UsageBehavior `json:"behaviors"`
	Agents       []UsageShare    `json:"agents"`
	Skills       []UsageShare    `json:"skills"`
	Plugins      []UsageShare    `json:"plugins"`
	MCPServers   []UsageShare    `json:"mcp_servers"`
}

// UsageBehavior is a habit that costs.
type UsageBehavior struct {
	Key   string  `json:"key"` // cache_miss, long_context, subagent_heavy, …
	Pct   float64 `json:"pct"`
	Count int64   `json:"count"`
}

// UsageShare is a named share of the usage.
type UsageShare struct {
	Name string  `json:"name"`
	Pct  float64 `json:"pct"`
}

// UsageInfo is the answer to [UsageInfoRequest], Qoder's.
type UsageInfo struct {
	// Usage is the account's usage, as it came; null if there is none.
	Usage   json.RawMessage `json:"usage,omitempty"`
	Session CreditUsage     `json:"session"`
}

// CreditUsage is what a session has used so far, in credits.
type CreditUsage struct {
	TotalCredits float64               `json:"total_credits"`
	ModelUsage   map[string]ModelUsage `json:"model_usage,omitempty"`
}
