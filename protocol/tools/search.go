package tools

import (
	"github.com/agent-troupe/troupe/protocol"
)

// GlobInput finds files by name. Claude Code 2.1.329 has Glob and [Grep] only
// if Options.Tools names them (observed).
type GlobInput struct {
	Pattern string `json:"pattern"`        // such as **/*.go
	Path    string `json:"path,omitempty"` // a directory; "": the working directory
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*GlobInput) Tool() string { return "Glob" }

// GlobOutput is the files that were found. Files is of Qoder's document; its
// CLI declares Filenames, too.
type GlobOutput struct {
	Filenames       []string        `json:"filenames,omitempty"`       // absolute or relative to the working directory, at most 100 on Claude Code
	NumFiles        int             `json:"numFiles,omitempty"`        // length of Filenames
	TotalMatches    int             `json:"totalMatches,omitempty"`    // before truncation; a lower bound unless CountIsComplete
	Truncated       bool            `json:"truncated,omitempty"`       // there are more matches than Filenames
	CountIsComplete bool            `json:"countIsComplete,omitempty"` // TotalMatches is exact
	TimedOut        bool            `json:"timedOut,omitempty"`        // the search was stopped for its time
	DurationMS      protocol.Millis `json:"durationMs,omitempty"`      // milliseconds
	Files           []string        `json:"files,omitempty"`           // as Filenames
}

func (*GlobOutput) isOutput() {}

// GrepInput finds files by content.
type GrepInput struct {
	Pattern    string `json:"pattern"`               // a regular expression, in ripgrep's syntax
	Path       string `json:"path,omitempty"`        // a file or a directory; "": the working directory
	Glob       string `json:"glob,omitempty"`        // restricts the files, such as *.{ts,tsx}
	Type       string `json:"type,omitempty"`        // of file, such as go
	OutputMode string `json:"output_mode,omitempty"` // content, files_with_matches, count
	// Lines of context; nil is not given.
	Before  *int `json:"-B,omitempty"`      // lines before each match, with content
	After   *int `json:"-A,omitempty"`      // lines after each match, with content
	Around  *int `json:"-C,omitempty"`      // lines before and after each match, with content
	Context *int `json:"context,omitempty"` // as Around

	LineNumbers *bool `json:"-n,omitempty"`         // nil is true
	IgnoreCase  bool  `json:"-i,omitempty"`         // of letters
	OnlyMatch   bool  `json:"-o,omitempty"`         // prints what matched, not the line
	Multiline   bool  `json:"multiline,omitempty"`  // . matches newlines, and matches may span lines
	HeadLimit   *int  `json:"head_limit,omitempty"` // lines or entries; 0: no limit; nil: the agent's default
	Offset      int   `json:"offset,omitempty"`     // lines or entries to leave out first
	Extra       `json:"-"`
}

// Tool implements [Input].
func (*GrepInput) Tool() string { return "Grep" }

// GrepOutput is what was found. Results and MatchCount are of Qoder's document;
// its CLI declares the other fields.
type GrepOutput struct {
	Mode          string   `json:"mode,omitempty"`          // as GrepInput.OutputMode
	Filenames     []string `json:"filenames,omitempty"`     // with mode files_with_matches
	NumFiles      int      `json:"numFiles,omitempty"`      // files with matches
	Content       string   `json:"content,omitempty"`       // with mode content or count: ripgrep's output
	NumLines      int      `json:"numLines,omitempty"`      // lines of Content
	NumMatches    int      `json:"numMatches,omitempty"`    // with mode count
	TotalFiles    int      `json:"totalFiles,omitempty"`    // before the limit; 0: not said
	TotalLines    int      `json:"totalLines,omitempty"`    // before the limit; 0: not said
	AppliedLimit  int      `json:"appliedLimit,omitempty"`  // the limit that cut the output; 0: none
	AppliedOffset int      `json:"appliedOffset,omitempty"` // of the input
	TimedOut      bool     `json:"timedOut,omitempty"`      // the search was stopped for its time
	Truncated     bool     `json:"truncated,omitempty"`     // there are more matches
	Results       string   `json:"results,omitempty"`       // ripgrep's output
	MatchCount    int      `json:"matchCount,omitempty"`    // matches
}

func (*GrepOutput) isOutput() {}

// WebFetchInput reads a web page and asks a model about it.
type WebFetchInput struct {
	URL    string `json:"url"`              // http or https
	Prompt string `json:"prompt"`           // what a model is to make of the page
	Offset int    `json:"offset,omitempty"` // characters of the page's text to leave out first
	Extra  `json:"-"`
}

// Tool implements [Input].
func (*WebFetchInput) Tool() string { return "WebFetch" }

// WebFetchOutput is what a page says. The last four fields are of Qoder's
// document; its CLI declares the others, too.
type WebFetchOutput struct {
	URL          string          `json:"url,omitempty"`          // of the page that was read
	Bytes        int64           `json:"bytes,omitempty"`        // of the page
	Code         int             `json:"code,omitempty"`         // HTTP status
	CodeText     string          `json:"codeText,omitempty"`     // of the HTTP status, such as OK
	Result       string          `json:"result,omitempty"`       // what the model made of the page
	DurationMS   protocol.Millis `json:"durationMs,omitempty"`   // milliseconds, with the model call
	ArtifactRead *ArtifactRead   `json:"artifactRead,omitempty"` // nil: a plain page
	Content      string          `json:"content,omitempty"`      // as Result
	StatusCode   int             `json:"statusCode,omitempty"`   // HTTP
	Error        string          `json:"error,omitempty"`        // "": none
	RedirectURL  string          `json:"redirectUrl,omitempty"`  // another host that the page points to; "": none
}

func (*WebFetchOutput) isOutput() {}

// WebSearchInput searches the web.
type WebSearchInput struct {
	Query          string   `json:"query"`                     // for the search engine
	AllowedDomains []string `json:"allowed_domains,omitempty"` // results from these alone; nil: from all
	BlockedDomains []string `json:"blocked_domains,omitempty"` // no results from these
	Extra          `json:"-"`
}

// Tool implements [Input].
func (*WebSearchInput) Tool() string { return "WebSearch" }

// WebSearchOutput is what was found.
type WebSearchOutput struct {
	Query           string            `json:"query"`                     // of the input
	Results         []WebSearchResult `json:"results,omitempty"`         // in order
	DurationSeconds float64           `json:"durationSeconds,omitempty"` // of all searches
	SearchCount     int               `json:"searchCount,omitempty"`     // searches that were made
	RequestID       string            `json:"requestId,omitempty"`       // Qoder's
}

func (*WebSearchOutput) isOutput() {}

// WebSearchResult is one of three: a remark of the model (Text, a bare string
// on the wire), the pages of one search (ToolUseID and Content), or, in
// Qoder's document, one page (Title, URL and Snippet).
type WebSearchResult struct {
	Text string `json:"-"` // of the model

	ToolUseID string    `json:"tool_use_id,omitempty"` // id of the search at the API
	Content   []WebPage `json:"content,omitempty"`     // best first

	WebPage
}

// WebPage is a page that was found.
type WebPage struct {
	Title   string `json:"title,omitempty"`   // of the page
	URL     string `json:"url,omitempty"`     // of the page
	Snippet string `json:"snippet,omitempty"` // text of the page; "" on Claude's wire, where only hooks get it
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
		return protocol.Marshal(r.Text)
	}
	type plain WebSearchResult
	return protocol.Marshal(plain(r))
}

// ImageSearchInput searches images. Qoder's.
type ImageSearchInput struct {
	Query string `json:"query"`           // for the search engine
	Count int    `json:"count,omitempty"` // 1 to 10
	Extra `json:"-"`
}

// Tool implements [Input].
func (*ImageSearchInput) Tool() string { return "ImageSearch" }
