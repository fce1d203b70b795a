package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// ReadInput reads a file.
type ReadInput struct {
	FilePath string `json:"file_path"` // absolute
	// Offset is the first line, from 1; Limit the number of lines; 0: not given.
	Offset int `json:"offset,omitempty"`
	Limit  int `json:"limit,omitempty"` // lines
	// Pages is a range of a PDF's pages, such as "1-5".
	Pages      string `json:"pages,omitempty"`
	AllowLarge bool   `json:"allow_large,omitempty"` // reads a text above the usual limit of size
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*ReadInput) Tool() string { return "Read" }

// ReadOutput is what was read. Type says which fields of File are set: text,
// image, notebook, pdf, parts or file_unchanged. The shape of Qoder's document,
// with the content beside the type, is covered by the fields after Pages; the
// CLI itself declares the one with File.
type ReadOutput struct {
	Type         string        `json:"type"`                   // see above
	File         *ReadFile     `json:"file,omitempty"`         // nil in the form of Qoder's document
	ArtifactRead *ArtifactRead `json:"artifactRead,omitempty"` // nil: a plain file
	FirstPage    int           `json:"firstPage,omitempty"`    // number of the first of Pages, from 1
	// Pages are the rendered pages of parts, or a PDF's in Qoder's document.
	Pages []ReadPage `json:"pages,omitempty"`

	FilePath   string           `json:"file_path,omitempty"`  // of the input
	Text       string           `json:"text,omitempty"`       // with type text
	TotalLines int              `json:"totalLines,omitempty"` // of the file, with type text
	TotalPages int              `json:"totalPages,omitempty"` // of the file, with type pdf
	Source     *protocol.Source `json:"source,omitempty"`     // base64, with type image
	Cells      []NotebookCell   `json:"cells,omitempty"`      // with type notebook
	Parts      protocol.Content `json:"parts,omitzero"`       // text and images, with type parts
	Message    string           `json:"message,omitempty"`    // with type file_unchanged
}

func (*ReadOutput) isOutput() {}

// ReadFile is the file that was read.
type ReadFile struct {
	FilePath string `json:"filePath,omitempty"` // absolute
	// Of text. StartLine counts from 1.
	Content             string `json:"content,omitempty"`             // without line numbers
	NumLines            int    `json:"numLines,omitempty"`            // lines in Content
	StartLine           int    `json:"startLine,omitempty"`           // of Content in the file
	TotalLines          int    `json:"totalLines,omitempty"`          // of the file
	TruncatedByTokenCap bool   `json:"truncatedByTokenCap,omitempty"` // Content is the first part of a file that was to be read whole
	// Of an image or a PDF. Type is the media type, OriginalSize in bytes.
	Base64       string           `json:"base64,omitempty"`       // "" if the bytes went to the model alone
	URL          string           `json:"url,omitempty"`          // Qoder's, in place of Base64
	Type         string           `json:"type,omitempty"`         // such as image/png
	OriginalSize int64            `json:"originalSize,omitempty"` // of the file
	Dimensions   *ImageDimensions `json:"dimensions,omitempty"`   // of an image; nil: not said
	// Of a notebook.
	Cells []ReadCell `json:"cells,omitempty"` // in order
	// Of parts: so many files in OutputDir.
	Count     int    `json:"count,omitempty"`     // pages of a PDF
	OutputDir string `json:"outputDir,omitempty"` // on the agent's machine
}

// ReadCell is a cell of a notebook (observed on Claude Code 2.1.329).
type ReadCell struct {
	CellType       string `json:"cellType"`                  // code, markdown, raw
	Source         string `json:"source"`                    // of the cell
	CellID         string `json:"cell_id,omitempty"`         // what [NotebookEditInput] takes
	Language       string `json:"language,omitempty"`        // of a code cell, such as python
	ExecutionCount *int   `json:"execution_count,omitempty"` // nil: not run
	// Outputs are texts and images, in a shape that was not observed.
	Outputs []json.RawMessage `json:"outputs,omitempty"`
}

// ImageDimensions are pixels, before and after the image was scaled.
type ImageDimensions struct {
	OriginalWidth  int `json:"originalWidth,omitempty"`  // of the file
	OriginalHeight int `json:"originalHeight,omitempty"` // of the file
	DisplayWidth   int `json:"displayWidth,omitempty"`   // as the model sees it
	DisplayHeight  int `json:"displayHeight,omitempty"`  // as the model sees it
}

// ReadPage is a page of a PDF.
type ReadPage struct {
	Base64     string `json:"base64,omitempty"`      // an image of the page, or ""
	MediaType  string `json:"mediaType,omitempty"`   // of Base64, such as image/jpeg
	Error      string `json:"error,omitempty"`       // why there is no image; "": there is one
	PageNumber int    `json:"page_number,omitempty"` // Qoder's document
	Content    string `json:"content,omitempty"`     // Qoder's document
}

// NotebookCell is a cell of a notebook in Qoder's document.
type NotebookCell struct {
	CellNumber int      `json:"cell_number"`       // the cell's place in the notebook
	CellType   string   `json:"cell_type"`         // code, markdown, raw
	Source     string   `json:"source"`            // of the cell
	Outputs    []string `json:"outputs,omitempty"` // as text
}

// ArtifactRead is an artifact that was read in place of a file or a page.
type ArtifactRead struct {
	Slug   string `json:"slug"`             // names the artifact
	Ver    string `json:"ver,omitempty"`    // its version; "": not said
	Seeded *bool  `json:"seeded,omitempty"` // observed in the types, meaning not documented; nil: not said
}

// WriteInput creates or replaces a file.
type WriteInput struct {
	FilePath string `json:"file_path"` // absolute
	Content  string `json:"content"`   // the whole new content
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*WriteInput) Tool() string { return "Write" }

// WriteOutput is a file that was written. The first group of fields is
// Claude's, the second Qoder's.
type WriteOutput struct {
	Type            string      `json:"type,omitempty"`            // create, update
	FilePath        string      `json:"filePath,omitempty"`        // absolute
	Content         string      `json:"content,omitempty"`         // of the input
	StructuredPatch []PatchHunk `json:"structuredPatch,omitempty"` // nil: a new file, no change, or a change too large to show
	// OriginalFile is nil for a new file.
	OriginalFile *string  `json:"originalFile,omitempty"`
	GitDiff      *GitDiff `json:"gitDiff,omitempty"`      // nil: not said
	UserModified bool     `json:"userModified,omitempty"` // a person changed the content before it was written
	Staged       bool     `json:"staged,omitempty"`       // not written: held for a review

	WriteSummary
	BytesWritten int64 `json:"bytesWritten,omitempty"` // 0: not said
}

func (*WriteOutput) isOutput() {}

// WriteSummary is what Qoder says of a file that was changed.
type WriteSummary struct {
	Success bool   `json:"success,omitempty"`   // false from Claude Code, which does not send it
	Path    string `json:"file_path,omitempty"` // absolute
	// Diff is in unified form, cut at 128 KiB.
	Diff          string `json:"diff,omitempty"`
	DiffTruncated bool   `json:"diff_truncated,omitempty"` // Diff was cut
	Additions     int    `json:"additions,omitempty"`      // lines
	Deletions     int    `json:"deletions,omitempty"`      // lines
	Error         string `json:"error,omitempty"`          // "": none
}

// EditInput replaces a string in a file.
type EditInput struct {
	FilePath   string `json:"file_path"`             // absolute
	OldString  string `json:"old_string"`            // must occur exactly once, unless ReplaceAll; "": a new file
	NewString  string `json:"new_string"`            // differs from OldString
	ReplaceAll bool   `json:"replace_all,omitempty"` // every occurrence
	// AllowMultiple is ReplaceAll as qodercli 1.1.52 declares it to the model.
	AllowMultiple bool `json:"allow_multiple,omitempty"`
	Extra         `json:"-"`
}

// Tool implements [Input].
func (*EditInput) Tool() string { return "Edit" }

// EditOutput is a file that was edited. The first group of fields is Claude's,
// the second Qoder's.
type EditOutput struct {
	FilePath        string      `json:"filePath,omitempty"`        // absolute
	OldString       string      `json:"oldString,omitempty"`       // of the input, as it was in the file
	NewString       string      `json:"newString,omitempty"`       // of the input, as it is in the file
	OriginalFile    *string     `json:"originalFile,omitempty"`    // the whole content before; nil: not said
	StructuredPatch []PatchHunk `json:"structuredPatch,omitempty"` // nil: not said, or too large to show
	UserModified    bool        `json:"userModified,omitempty"`    // a person changed the edit before it was made
	ReplaceAll      bool        `json:"replaceAll,omitempty"`      // of the input
	GitDiff         *GitDiff    `json:"gitDiff,omitempty"`         // nil: not said
	Staged          bool        `json:"staged,omitempty"`          // not written: held for a review
	// ContentNotInModelContext: the file was not read before (observed on
	// Claude Code 2.1.329).
	ContentNotInModelContext bool `json:"contentNotInModelContext,omitempty"`

	WriteSummary
}

func (*EditOutput) isOutput() {}

// PatchHunk is one hunk of a change. Lines begin with a space, - or +.
type PatchHunk struct {
	OldStart int      `json:"oldStart"` // line in the old file, from 1
	OldLines int      `json:"oldLines"` // lines of the old file
	NewStart int      `json:"newStart"` // line in the new file, from 1
	NewLines int      `json:"newLines"` // lines of the new file
	Lines    []string `json:"lines"`    // without their newlines
}

// GitDiff is a change as git sees it.
type GitDiff struct {
	Filename   string `json:"filename"`             // relative to the repository
	Status     string `json:"status"`               // modified, added
	Additions  int    `json:"additions"`            // lines
	Deletions  int    `json:"deletions"`            // lines
	Changes    int    `json:"changes"`              // Additions and Deletions
	Patch      string `json:"patch"`                // in unified form
	Repository string `json:"repository,omitempty"` // OWNER/REPO on GitHub; "": not said
}

// NotebookEditInput edits a cell of a Jupyter notebook.
type NotebookEditInput struct {
	NotebookPath string `json:"notebook_path"`       // absolute
	CellID       string `json:"cell_id,omitempty"`   // with insert: the cell that the new one follows; "": at the top
	NewSource    string `json:"new_source"`          // ignored with delete
	CellType     string `json:"cell_type,omitempty"` // code, markdown; needed with insert; "": unchanged
	EditMode     string `json:"edit_mode,omitempty"` // replace, insert, delete; "": replace
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*NotebookEditInput) Tool() string { return "NotebookEdit" }

// NotebookEditOutput is a notebook that was edited.
type NotebookEditOutput struct {
	NotebookPath string `json:"notebook_path"`           // absolute
	CellID       string `json:"cell_id,omitempty"`       // of the cell that was edited
	CellType     string `json:"cell_type,omitempty"`     // code, markdown
	Language     string `json:"language,omitempty"`      // of the notebook, such as python
	EditMode     string `json:"edit_mode,omitempty"`     // as in [NotebookEditInput]
	OldSource    string `json:"old_source,omitempty"`    // of the cell; "" with insert
	NewSource    string `json:"new_source,omitempty"`    // of the cell
	OriginalFile string `json:"original_file,omitempty"` // the whole notebook before, JSON
	UpdatedFile  string `json:"updated_file,omitempty"`  // the whole notebook after, JSON
	Error        string `json:"error,omitempty"`         // "": none
	Success      bool   `json:"success,omitempty"`       // Qoder's document
}

func (*NotebookEditOutput) isOutput() {}
