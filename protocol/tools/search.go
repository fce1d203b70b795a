package tools

import (
	"github.com/agent-troupe/troupe/protocol"
)

// GlobInput finds files by name. Claude Code 2.1.329 has Glob and [Grep] only
// if Options.Tools names them (observed).
type GlobInput struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path,omitempty"`
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*GlobInput) Tool() string { return Glob }

// GlobOutput is the files that were found. Files is of Qoder's document; its
// CLI declares Filenames, too.
type GlobOutput struct {
	Filenames       []string        `json:"filenames,omitempty"`
	NumFiles        int             `json:"numFiles,omitempty"`
	TotalMatches    int             `json:"totalMatches,omitempty"`
	Truncated       bool            `json:"truncated,omitempty"`
	CountIsComplete bool            `json:"countIsComplete,omitempty"`
	TimedOut        bool            `json:"timedOut,omitempty"`
	DurationMS      protocol.Millis `json:"durationMs,omitempty"`
	Files           []string        `json:"files,omitempty"`
}

func (*GlobOutput) isOutput() {}

// GrepInput finds files by content.
type GrepInput struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty"`
	Glob       string `json:"glob,omitempty"`
	Type       string `json:"type,omitempty"`        // of file, such as go
	OutputMode string `json:"output_mode,omitempty"` // content, files_with_matches, count
	// Lines of context; nil is not given.
	Before  *int `json:"-B,omitempty"`
	After   *int `json:"-A,omitempty"`
	Around  *int `json:"-C,omitempty"`
	Context *int `json:"context,omitempty"`

	LineNumbers *bool `json:"-n,omitempty"` // nil is true
	IgnoreCase  bool  `json:"-i,omitempty"`
	OnlyMatch   bool  `json:"-o,omitempty"`
	Multiline   bool  `json:"multiline,omitempty"`
	HeadLimit   *int  `json:"head_limit,omitempty"` // 0 is no limit
	Offset      int   `json:"offset,omitempty"`
	Extra       `json:"-"`
}

// Tool implements [Input].
func (*GrepInput) Tool() string { return Grep }

// GrepOutput is what was found. Results and MatchCount are of Qoder's document;
// its CLI declares the other fields.
type GrepOutput struct {
	Mode          string   `json:"mode,omitempty"` // as GrepInput.OutputMode
	Filenames     []string `json:"filenames,omitempty"`
	NumFiles      int      `json:"numFiles,omitempty"`
	Content       string   `json:"content,omitempty"`
	NumLines      int      `json:"numLines,omitempty"`
	NumMatches    int      `json:"numMatches,omitempty"`
	TotalFiles    int      `json:"totalFiles,omitempty"`
	TotalLines    int      `json:"totalLines,omitempty"`
	AppliedLimit  int      `json:"appliedLimit,omitempty"`
	AppliedOffset int      `json:"appliedOffset,omitempty"`
	TimedOut      bool     `json:"timedOut,omitempty"`
	Truncated     bool     `json:"truncated,omitempty"`
	Results       string   `json:"results,omitempty"`
	MatchCount    int      `json:"matchCount,omitempty"`
}

func (*GrepOutput) isOutput() {}

// WebFetchInput reads a web page and asks a model about it.
type WebFetchInput struct {
	URL    string `json:"url"`
	Prompt string `json:"prompt"`
	Offset int    `json:"offset,omitempty"`
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*WebFetchInput) Tool() string { return WebFetch }

// WebFetchOutput is what a page says. The last four fields are of Qoder's
// document; its CLI declares the others, too.
type WebFetchOutput struct {
	URL          string          `json:"url,omitempty"`
	Bytes        int64           `json:"bytes,omitempty"`
	Code         int             `json:"code,omitempty"` // HTTP status
	CodeText     string          `json:"codeText,omitempty"`
	Result       string          `json:"result,omitempty"`
	DurationMS   protocol.Millis `json:"durationMs,omitempty"`
	ArtifactRead *ArtifactRead   `json:"artifactRead,omitempty"`
	Content      string          `json:"content,omitempty"`
	StatusCode   int             `json:"statusCode,omitempty"`
	Error        string          `json:"error,omitempty"`
	RedirectURL  string          `json:"redirectUrl,omitempty"`
}

func (*WebFetchOutput) isOutput() {}

// WebSearchInput searches the web.
type WebSearchInput struct {
	Query          string   `json:"query"`
	AllowedDomains []string `json:"allowed_domains,omitempty"`
	BlockedDomains []string `json:"blocked_domains,omitempty"`
	Extra          `json:"-"`
}

// Tool implements [Input].
func (*WebSearchInput) Tool() string { return WebSearch }

// WebSearchOutput is what was found.
type WebSearchOutput struct {
	Query           string            `json:"query"`
	Results         []WebSearchResult `json:"results,omitempty"`
	DurationSeconds float64           `json:"durationSeconds,omitempty"`
	SearchCount     int               `json:"searchCount,omitempty"`
	RequestID       string            `json:"requestId,omitempty"` // Qoder's
}

func (*WebSearchOutput) isOutput() {}

// WebSearchResult is one of three: a remark of the model (Text, a bare string
// on the wire), the pages of one search (ToolUseID and Content), or, in
// Qoder's document, one page (Title, URL and Snippet).
type WebSearchResult struct {
	Text string `json:"-"`

	ToolUseID string    `json:"tool_use_id,omitempty"`
	Content   []WebPage `json:"content,omitempty"`

	WebPage
}

// WebPage is a page that was found.
type WebPage struct {
	Title   string `json:"title,omitempty"`
	URL     string `json:"url,omitempty"`
	Snippet string `json:"snippet,omitempty"`
}

// UnmarshalJSON decodes a string or an object.
func (r *WebSearchResult) UnmarshalJSON(b []byte) error {
	*r = WebSearchResult{}
	if len(b) > 0 && b[0] == '"' {
		return protocol.Unmarshal(b, &r.Text)
	}
	type plain WebSearchResult
	return protocol.Unmarshal(b, (*plain)(r))
}

// MarshalJSON encodes a string or an object.
func (r WebSearchResult) MarshalJSON() ([]byte, error) {
	if r.Text != "" {
		return marshal(r.Text)
	}
	type plain WebSearchResult
	return marshal(plain(r))
}

// ImageSearchInput searches images. Qoder's.
type ImageSearchInput struct {
	Query string `json:"query"`
	Count int    `json:"count,omitempty"` // 1 to 10
	Extra `json:"-"`
}

// Tool implements [Input].
func (*ImageSearchInput) Tool() string { return ImageSearch }
