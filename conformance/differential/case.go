package differential

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// Case is one case: what there is before, what the model says, and, if it was recorded, what
// Claude Code did. Paths in it are those of the recordings, below /w.
type Case struct {
	Name     string            `json:"name"`
	Mode     string            `json:"mode"`
	Model    string            `json:"model"`
	Offered  string            `json:"tools_offered"`
	Files    []File            `json:"files"`
	Setup    []string          `json:"setup"`
	Env      map[string]string `json:"env"`
	Flags    []string          `json:"flags"`
	Asker    *bool             `json:"asker"`
	Prompts  []string          `json:"prompts"`
	Hooks    []Hook            `json:"hooks"`
	Sources  string            `json:"sources"`
	Settings struct {
		Permissions struct{ Allow, Deny, Ask []string }
		Hooks       json.RawMessage
		Sandbox     json.RawMessage
		// SkipWebFetchPreflight: the vendor is not asked whether a host is safe.
		SkipWebFetchPreflight bool
	} `json:"settings"`
	Init struct {
		SystemPrompt       []string `json:"systemPrompt"`
		AppendSystemPrompt string   `json:"appendSystemPrompt"`
	} `json:"init"`
	Events      []Event           `json:"events"`
	Answers     []json.RawMessage `json:"answers"`
	Script      []Step            `json:"script"`
	Subagents   map[string][]Step `json:"subagents"`
	Side        []Step            `json:"side"` // answers to what the agent asks on its own
	CountTokens json.RawMessage   `json:"count_tokens"`
	// Tools are those of this process that the agent gets, by an MCP server called srv; not in
	// recordings.
	Host bool `json:"host_tools"`
	// Partial asks for partial messages; not in recordings, where it is a flag.
	Partial bool `json:"partial"`
	// Endless: Claude Code does not come to an end, and is stopped.
	Endless bool `json:"timed_out"`

	raw json.RawMessage
}

// File is one of the workspace.
type File struct {
	Path    string  `json:"path"`
	Text    *string `json:"text"`
	Base64  string  `json:"base64"`
	Symlink string  `json:"symlink"`
	Dir     bool    `json:"dir"`
	FIFO    bool    `json:"fifo"`
	Mode    string  `json:"mode"`
	MTime   int64   `json:"mtime"`
	Gen     *struct {
		Line  string `json:"line"`
		Count int    `json:"count"`
	} `json:"gen"`
}

// Hook is a hook of the host, with the answer to each call.
type Hook struct {
	Event   string          `json:"event"`
	Matcher string          `json:"matcher"`
	Answer  json.RawMessage `json:"answer"`
}

// Event is what the host does when a frame comes that has these members.
type Event struct {
	After map[string]any `json:"after"`
	Do    string         `json:"do"` // interrupt, user
	Text  string         `json:"text"`
	Delay float64        `json:"delay"` // seconds
}

// Step is an answer of the model.
type Step struct {
	Content     []Content         `json:"content"`
	Stop        string            `json:"stop"`
	Usage       map[string]any    `json:"usage"`
	Delta       map[string]any    `json:"delta"`
	Status      int               `json:"status"`
	ErrorType   string            `json:"error_type"`
	Message     string            `json:"message"`
	Headers     map[string]string `json:"headers"`
	Raw         *string           `json:"raw"`
	ContentType string            `json:"content_type"`
	Reset       bool              `json:"reset"`
	Hang        truth             `json:"hang"`
	CutAfter    int               `json:"cut_after"`
	CutHow      string            `json:"cut_how"`
	Stall       float64           `json:"stall"`
	StreamError *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"stream_error"`
	Delay   float64 `json:"delay"`
	Actions []struct {
		Do   string `json:"do"` // write, touch, remove
		Path string `json:"path"`
		Text string `json:"text"`
	} `json:"actions"`
}

// UnmarshalJSON takes a list of blocks, too.
func (s *Step) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, &s.Content)
	}
	type plain Step
	return json.Unmarshal(b, (*plain)(s))
}

// truth is a switch, which some recordings have as a number.
type truth bool

// UnmarshalJSON implements [json.Unmarshaler].
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = string(b) != "false" && string(b) != "0" && string(b) != "null"
	return nil
}

// Content is a block of an answer.
type Content struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"`
	Raw      *string         `json:"raw_input"`
	Pause    float64         `json:"pause"`
}

// Cases reads the cases of the directory that TROUPE_TOOL_CASES names, or else of own. A
// relative name begins at the top of the repository. other reports whether it is not own.
func Cases(own string) (all []*Case, other bool, err error) {
	dir := os.Getenv("TROUPE_TOOL_CASES")
	if dir == "" {
		all, err = Load(own)
		return all, false, err
	}
	if !filepath.IsAbs(dir) {
		top, err := top()
		if err != nil {
			return nil, true, err
		}
		dir = filepath.Join(top, dir)
	}
	if all, err = Load(dir); err != nil {
		err = fmt.Errorf("TROUPE_TOOL_CASES=%s: %w", os.Getenv("TROUPE_TOOL_CASES"), err)
	}
	return all, true, err
}

// top is the directory of the module: a test runs in that of its package.
func top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod is in %s or above", dir)
		}
	}
}

// Load reads the cases of a directory: every .json file that is a list of them. Files that
// are an object, such as one of schemas, are left out.
func Load(dir string) ([]*Case, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, fmt.Errorf("read the directory of cases: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*Case
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(strings.TrimSpace(string(text)), "{") && json.Valid(text) {
			continue
		}
		var list []json.RawMessage
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s is not a JSON list of cases: %w%s", f, err, lineOf(text, err))
		}
		for i, raw := range list {
			c, err := decode(raw)
			if err == nil && c.Name == "" {
				err = fmt.Errorf("case %d has no name", i+1)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f, err)
			}
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no cases: .json files with lists of cases are expected", dir)
	}
	return all, nil
}

// lineOf says where in a file the syntax is wrong.
func lineOf(text []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return ""
	}
	return fmt.Sprintf(" (line %d)", 1+bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte{'\n'}))
}

func decode(raw json.RawMessage) (*Case, error) {
	c := &Case{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("case %q: %w", c.Name, err)
	}
	c.raw = raw
	if len(c.Prompts) == 0 {
		c.Prompts = []string{"Go."}
	}
	return c, nil
}

// at is the case in another directory than /w.
func (c *Case) at(root string) (*Case, error) {
	raw := c.raw
	if raw == nil {
		var err error
		if raw, err = json.Marshal(c); err != nil {
			return nil, err
		}
	}
	return decode(eachLiteral(raw, func(s string) string { return places.ReplaceAllString(s, "${1}"+root+"${2}") }))
}

// mcpFlag is followed by the MCP servers of a case, in a separate element.
const mcpFlag = "--mcp-config"

// servers are the MCP servers of the case.
func (c *Case) servers() map[string]session.MCPServerConfig {
	i := slices.Index(c.Flags, mcpFlag)
	if i < 0 || i+1 == len(c.Flags) {
		return nil
	}
	var config struct {
		Servers map[string]session.MCPServerConfig `json:"mcpServers"`
	}
	_ = json.Unmarshal([]byte(c.Flags[i+1]), &config) // a case without its servers does not pass
	return config.Servers
}

// places are paths below /w, which base64 is not.
var places = regexp.MustCompile(`(^|[^A-Za-z0-9+/_.-])/w(/|$|[^A-Za-z0-9+/=_.-])`)

// eachLiteral replaces each string of a JSON text; the order of members stays.
func eachLiteral(raw []byte, change func(string) string) []byte {
	var out []byte
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			out = append(out, raw[i])
			i++
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		literal := raw[i : end+1]
		i = end + 1
		var s string
		if json.Unmarshal(literal, &s) != nil {
			out = append(out, literal...)
			continue
		}
		changed := change(s)
		if changed == s {
			out = append(out, literal...)
			continue
		}
		b, _ := json.Marshal(changed) // a string
		out = append(out, b...)
	}
	return out
}

// recording is what Claude Code did.
type recording struct {
	Requests []struct {
		Of            string            `json:"of"`
		New           []json.RawMessage `json:"new"`
		Same          bool              `json:"same_as_previous"`
		Stream        *bool             `json:"stream"`
		LastAssistant []any             `json:"last_assistant"`
		Endpoint      string            `json:"endpoint"`
	} `json:"requests"`
	Structured []struct {
		ID    string `json:"id"`
		Value any    `json:"value"`
		Meta  any    `json:"meta"`
	} `json:"structured"`
	Asks  []map[string]any `json:"permission_requests"`
	Hooks []struct {
		Hook  int            `json:"hook"`
		Input map[string]any `json:"input"`
	} `json:"hook_calls"`
	Frames     []map[string]any `json:"frames"`
	FilesAfter struct {
		Changed map[string]any `json:"changed"`
		Removed []string       `json:"removed"`
	} `json:"files_after"`
	Result   []map[string]any `json:"result"`
	TimedOut bool             `json:"timed_out"`
}

// Calls are the tools that the script calls.
func (c *Case) Calls() []string {
	var names []string
	steps := slices.Clone(c.Script)
	for _, more := range c.Subagents {
		steps = append(steps, more...)
	}
	for _, s := range steps {
		for _, b := range s.Content {
			if b.Type == "tool_use" && !slices.Contains(names, b.Name) {
				names = append(names, b.Name)
			}
		}
	}
	return names
}
