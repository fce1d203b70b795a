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
	Made   bool    `json:"isSynthetic"`
	Parent *string `json:"parent_tool_use_id"`
	Agent  string  `json:"agent_id"` // of a sub-agent's
	// Members of task_started.
	Task       string `json:"task_id"`
	ParentTask string `json:"parent_task_id"`
	TaskType   string `json:"task_type"`
	Background bool   `json:"is_backgrounded"`
	Message    struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
	Usage   tokens            `json:"usage"`
	ByModel map[string]tokens `json:"modelUsage"`
	Cost    float64           `json:"total_cost_usd"`
	IsError bool              `json:"is_error"`
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
	Input       int     `json:"input_tokens"`
	Output      int     `json:"output_tokens"`
	CacheRead   int     `json:"cache_read_input_tokens"`
	CacheWrite  int     `json:"cache_creation_input_tokens"`
	InputOf     int     `json:"inputTokens"` // in modelUsage
	OutputOf    int     `json:"outputTokens"`
	CacheReadOf int     `json:"cacheReadInputTokens"`
	CostOf      float64 `json:"costUSD"`
}
