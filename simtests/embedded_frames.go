package simtests

import "encoding/json"

// frame is what the oracles read of a line of the agent's.
type frame struct {
	UUID    string `json:"uuid"`
	Session string `json:"session_id"`
	Before  string `json:"parentUuid"` // in a session's file, as are the next four
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Summary bool   `json:"isCompactSummary"`
	Added   struct {
		Type string `json:"type"`
	} `json:"attachment"`
	Made    bool    `json:"isSynthetic"`
	Parent  *string `json:"parent_tool_use_id"`
	Agent   string  `json:"agent_id"` // of a sub-agent's
	Message struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Stop    string          `json:"stop_reason"`
	} `json:"message"`
	Usage   tokens            `json:"usage"`
	ByModel map[string]tokens `json:"modelUsage"`
	Fresh   map[string]tokens `json:"model_usage_since_last_result"`
	Cost    float64           `json:"total_cost_usd"`
	Denials []denial          `json:"permission_denials"`
	// Subagents are counts of all that the process has started.
	Subagents *stats `json:"subagent_stats"`
	// Meta is of a call of an MCP server's tool.
	Meta []struct {
		ID   string `json:"id"`
		Name string `json:"display_name"`
	} `json:"tool_use_meta"`
	IsError bool `json:"is_error"`
	// Terminal says why a turn has ended.
	Terminal string          `json:"terminal_reason"`
	Ran      json.RawMessage `json:"tool_use_result"`
}

// blocks are those of a message.
func blocksIn(content json.RawMessage) []blockIn {
	var all []blockIn
	_ = json.Unmarshal(content, &all) // a text has no blocks
	return all
}

type blockIn struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	ToolUse string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// tokens is how results count what was used.
type tokens struct {
	Input        int     `json:"input_tokens"`
	Output       int     `json:"output_tokens"`
	CacheRead    int     `json:"cache_read_input_tokens"`
	CacheWrite   int     `json:"cache_creation_input_tokens"`
	InputOf      int     `json:"inputTokens"` // in modelUsage
	OutputOf     int     `json:"outputTokens"`
	CacheReadOf  int     `json:"cacheReadInputTokens"`
	CacheWriteOf int     `json:"cacheCreationInputTokens"`
	HourOf       int     `json:"cacheCreationEphemeral1hInputTokens"`
	CostOf       float64 `json:"costUSD"`
	Basis        string  `json:"costBasis"`
	Window       int     `json:"contextWindow"`
	MostOutput   int     `json:"maxOutputTokens"`
}
