package tools

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// ReadInput reads a file.
type ReadInput struct {
	FilePath string `json:"file_path"`
	// Offset is the first line, from 1; Limit the number of lines; 0: not given.
	Offset int `json:"offset,omitempty"`
	Limit  int `json:"limit,omitempty"`
	// Pages is a range of a PDF's pages, such as "1-5".
	Pages      string `json:"pages,omitempty"`
	AllowLarge bool   `json:"allow_large,omitempty"`
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*ReadInput) Tool() string { return Read }

// ReadOutput is what was read. Type says which fields of File are set: text,
// image, notebook, pdf, parts or file_unchanged. The shape of Qoder's document,
// with the content beside the type, is covered by the fields after Pages; the
// CLI itself declares the one with File.
type ReadOutput struct {
	Type         string        `json:"type"`
	File         *ReadFile     `json:"file,omitempty"`
	ArtifactRead *ArtifactRead `json:"artifactRead,omitempty"`
	FirstPage    int           `json:"firstPage,omitempty"`
	// Pages are the rendered pages of parts, or a PDF's in Qoder's document.
	Pages []ReadPage `json:"pages,omitempty"`

	FilePath   string           `json:"file_path,omitempty"`
	Text       string           `json:"text,omitempty"`
	TotalLines int              `json:"totalLines,omitempty"`
	TotalPages int              `json:"totalPages,omitempty"`
	Source     *protocol.Source `json:"source,omitempty"`
	Cells      []NotebookCell   `json:"cells,omitempty"`
	Parts      protocol.Content `json:"parts,omitzero"`
	Message    string           `json:"message,omitempty"`
}

func (*ReadOutput) isOutput() {}

// ReadFile is the file that was read.
type ReadFile struct {
	FilePath string `json:"filePath,omitempty"`
	// Of text. StartLine counts from 1.
	Content             string `json:"content,omitempty"`
	NumLines            int    `json:"numLines,omitempty"`
	StartLine           int    `json:"startLine,omitempty"`
	TotalLines          int    `json:"totalLines,omitempty"`
	TruncatedByTokenCap bool   `json:"truncatedByTokenCap,omitempty"`
	// Of an image or a PDF. Type is the media type, OriginalSize in bytes.
	Base64       string           `json:"base64,omitempty"`
	URL          string           `json:"url,omitempty"` // Qoder's, in place of Base64
	Type         string           `json:"type,omitempty"`
	OriginalSize int64            `json:"originalSize,omitempty"`
	Dimensions   *ImageDimensions `json:"dimensions,omitempty"`
	// Of a notebook.
	Cells []ReadCell `json:"cells,omitempty"`
	// Of parts: so many files in OutputDir.
	Count     int    `json:"count,omitempty"`
	OutputDir string `json:"outputDir,omitempty"`
}

// ReadCell is a cell of a notebook (observed on Claude Code 2.1.329).
type ReadCell struct {
	CellType       string `json:"cellType"` // code, markdown, raw
	Source         string `json:"source"`
	CellID         string `json:"cell_id,omitempty"`
	Language       string `json:"language,omitempty"`
	ExecutionCount *int   `json:"execution_count,omitempty"`
	// Outputs are texts and images, in a shape that was not observed.
	Outputs []json.RawMessage `json:"outputs,omitempty"`
}

// ImageDimensions are pixels, before and after the image was scaled.
type ImageDimensions struct {
	OriginalWidth  int `json:"originalWidth,omitempty"`
	OriginalHeight int `json:"originalHeight,omitempty"`
	DisplayWidth   int `json:"displayWidth,omitempty"`
	DisplayHeight  int `json:"displayHeight,omitempty"`
}

// ReadPage is a page of a PDF.
type ReadPage struct {
	Base64     string `json:"base64,omitempty"`
	MediaType  string `json:"mediaType,omitempty"`
	Error      string `json:"error,omitempty"`
	PageNumber int    `json:"page_number,omitempty"` // Qoder's document
	Content    string `json:"content,omitempty"`     // Qoder's document
}

// NotebookCell is a cell of a notebook in Qoder's document.
type NotebookCell struct {
	CellNumber int      `json:"cell_number"`
	CellType   string   `json:"cell_type"` // code, markdown, raw
	Source     string   `json:"source"`
	Outputs    []string `json:"outputs,omitempty"`
}

// ArtifactRead is an artifact that was read in place of a file or a page.
type ArtifactRead struct {
	Slug   string `json:"slug"`
	Ver    string `json:"ver,omitempty"`
	Seeded *bool  `json:"seeded,omitempty"`
}

// WriteInput creates or replaces a file.
type WriteInput struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*WriteInput) Tool() string { return Write }

// WriteOutput is a file that was written. The first group of fields is
// Claude's, the second Qoder's.
type WriteOutput struct {
	Type            string      `json:"type,omitempty"` // create, update
	FilePath        string      `json:"filePath,omitempty"`
	Content         string      `json:"content,omitempty"`
	StructuredPatch []PatchHunk `json:"structuredPatch,omitempty"`
	// OriginalFile is nil for a new file.
	OriginalFile *string  `json:"originalFile,omitempty"`
	GitDiff      *GitDiff `json:"gitDiff,omitempty"`
	UserModified bool     `json:"userModified,omitempty"`
	Staged       bool     `json:"staged,omitempty"`

	WriteSummary
	BytesWritten int64 `json:"bytesWritten,omitempty"`
}

func (*WriteOutput) isOutput() {}

// WriteSummary is what Qoder says of a file that was changed.
type WriteSummary struct {
	Success bool   `json:"success,omitempty"`
	Path    string `json:"file_path,omitempty"`
	// Diff is in unified form, cut at 128 KiB.
	Diff          string `json:"diff,omitempty"`
	DiffTruncated bool   `json:"diff_truncated,omitempty"`
	Additions     int    `json:"additions,omitempty"`
	Deletions     int    `json:"deletions,omitempty"`
	Error         string `json:"error,omitempty"`
}

// EditInput replaces a string in a file.
type EditInput struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
	// AllowMultiple is ReplaceAll as qodercli 1.1.52 declares it to the model.
	AllowMultiple bool `json:"allow_multiple,omitempty"`
	Extra         `json:"-"`
}

// Tool implements [Input].
func (*EditInput) Tool() string { return Edit }

// EditOutput is a file that was edited. The first group of fields is Claude's,
// the second Qoder's.
type EditOutput struct {
	FilePath        string      `json:"filePath,omitempty"`
	OldString       string      `json:"oldString,omitempty"`
	NewString       string      `json:"newString,omitempty"`
	OriginalFile    *string     `json:"originalFile,omitempty"`
	StructuredPatch []PatchHunk `json:"structuredPatch,omitempty"`
	UserModified    bool        `json:"userModified,omitempty"`
	ReplaceAll      bool        `json:"replaceAll,omitempty"`
	GitDiff         *GitDiff    `json:"gitDiff,omitempty"`
	Staged          bool        `json:"staged,omitempty"`
	// ContentNotInModelContext: the file was not read before (observed on
	// Claude Code 2.1.329).
	ContentNotInModelContext bool `json:"contentNotInModelContext,omitempty"`

	WriteSummary
}

func (*EditOutput) isOutput() {}

// PatchHunk is one hunk of a change. Lines begin with a space, - or +.
type PatchHunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// GitDiff is a change as git sees it.
type GitDiff struct {
	Filename   string `json:"filename"`
	Status     string `json:"status"` // modified, added
	Additions  int    `json:"additions"`
	Deletions  int    `json:"deletions"`
	Changes    int    `json:"changes"`
	Patch      string `json:"patch"`
	Repository string `json:"repository,omitempty"`
}

// NotebookEditInput edits a cell of a Jupyter notebook.
type NotebookEditInput struct {
	NotebookPath string `json:"notebook_path"`
	CellID       string `json:"cell_id,omitempty"`
	NewSource    string `json:"new_source"`
	CellType     string `json:"cell_type,omitempty"` // code, markdown
	EditMode     string `json:"edit_mode,omitempty"` // replace, insert, delete
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*NotebookEditInput) Tool() string { return NotebookEdit }

// NotebookEditOutput is a notebook that was edited.
type NotebookEditOutput struct {
	NotebookPath string `json:"notebook_path"`
	CellID       string `json:"cell_id,omitempty"`
	CellType     string `json:"cell_type,omitempty"`
	Language     string `json:"language,omitempty"`
	EditMode     string `json:"edit_mode,omitempty"`
	OldSource    string `json:"old_source,omitempty"`
	NewSource    string `json:"new_source,omitempty"`
	OriginalFile string `json:"original_file,omitempty"`
	UpdatedFile  string `json:"updated_file,omitempty"`
	Error        string `json:"error,omitempty"`
	Success      bool   `json:"success,omitempty"` // Qoder's document
}

func (*NotebookEditOutput) isOutput() {}
