package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

var pageRange = regexp.MustCompile(`^\s*(\d+)\s*(?:(-)\s*(\d*)\s*)?$`)

// maxPages is how many pages of a PDF file a call can want.
const maxPages = 20

// pagesProblem is what the model reads if pages are not valid, or too many; "": they can be had.
func pagesProblem(pages string) string {
	if pages == "" {
		return ""
	}
	if m := pageRange.FindStringSubmatch(pages); m != nil {
		first, err := strconv.Atoi(m[1])
		last, endErr := strconv.Atoi(m[3])
		if m[2] == "" {
			last, endErr = first, err
		}
		switch {
		case err != nil || first < 1:
		case m[2] != "" && m[3] == "" || endErr == nil && last-first >= maxPages:
			return fmt.Sprintf("Page range \"%s\" exceeds maximum of %d pages per request. Please use a smaller range.", pages, maxPages)
		case endErr == nil && last >= first:
			return ""
		}
	}
	return fmt.Sprintf("Invalid pages parameter: \"%s\". Give one page (\"3\") or one range (\"1-5\"), not a list. To read several pages or ranges, read each one separately. Pages are 1-indexed.", pages)
}

// pdfResult is a PDF file, whole, or some of its pages.
func (h *hands) pdfResult(ctx context.Context, name, path, pages string, content []byte) agent.ToolResult {
	switch {
	case len(content) == 0:
		return failure("PDF file is empty: %s", path)
	case pages != "":
		return h.pdfPages(ctx, name, path, pages, content)
	case !bytes.HasPrefix(content, []byte("%PDF-")):
		return failure("File is not a valid PDF (missing %%PDF- header): %s", path)
	case h.notTaken(model.Document, path, len(content)) != "":
		return failure("%s", h.notTaken(model.Document, path, len(content)))
	}
	h.saw(path, content)
	data := base64.StdEncoding.EncodeToString(content)
	return agent.ToolResult{
		Content: []any{
			agent.Object{"type": "text", "text": fmt.Sprintf("PDF file read: %s (%s)", path, sizeOf(len(content)))},
			agent.Object{"type": "document", "source": agent.Object{"type": "base64", "media_type": "application/pdf", "data": data}},
		},
		Structured: agent.Object{"type": "pdf", "file": agent.Object{"filePath": name, "base64": data, "originalSize": len(content)}},
	}
}

// onPath reports whether commands have a program.
func (h *hands) onPath(program string) bool {
	return slices.ContainsFunc(filepath.SplitList(h.getenv("PATH")), func(dir string) bool {
		info, err := os.Stat(filepath.Join(dir, program))
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
}

// pdfPages are pages of a PDF file, as images that pdftoppm makes (as of Claude Code 2.1.329, observed).
func (h *hands) pdfPages(ctx context.Context, name, path, pages string, content []byte) agent.ToolResult {
	if !h.onPath("pdftoppm") {
		return failure("pdftoppm is not installed. Install poppler-utils (e.g. `brew install poppler` or `apt-get install poppler-utils`) to enable PDF page rendering.")
	}
	if problem := h.notTaken(model.Image, path, 0); problem != "" {
		return failure("%s", problem)
	}
	dir, err := h.shellsFile(fmt.Sprintf("pdf-%016x", h.seams.Rand.Uint64()))
	if err == nil && dir == "" {
		return failure("Pages of PDF files are not shown where commands run elsewhere. Read the file without pages.")
	}
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	source := filepath.Join(dir, "source.pdf")
	if err == nil {
		err = os.WriteFile(source, content, 0o600)
	}
	if err != nil {
		return failure("%s", err)
	}
	m := pageRange.FindStringSubmatch(pages) // it was checked
	printed, ok, err := h.printed(ctx, session.Command{
		Path: "/bin/bash", Dir: dir, Env: h.env,
		Args: []string{"-c", `exec pdftoppm "$@" 2>&1`, "/bin/bash", "-jpeg", "-r", "100", "-f", m[1], "-l", cmp.Or(m[3], m[1]), source, filepath.Join(dir, "page")},
	})
	said := strings.TrimSpace(string(printed))
	switch {
	case err != nil:
		return failure("pdftoppm failed: %s", err)
	case !ok && strings.Contains(strings.ToLower(said), "password"):
		return failure("PDF is password-protected. Please provide an unprotected version.")
	case !ok:
		return failure("pdftoppm failed: %s", said)
	}
	if err := os.Remove(source); err != nil {
		return failure("%s", err)
	}
	images, problem, err := h.pageImages(dir, path)
	switch {
	case err != nil:
		return failure("%s", err)
	case problem != "":
		return failure("%s", problem)
	case len(images) == 0:
		return failure("pdftoppm produced no output pages. The PDF may be invalid.")
	}
	first, _ := strconv.Atoi(m[1]) // digits
	about := fmt.Sprintf("PDF pages extracted: %d page(s) from %s (%s)", len(images), path, sizeOf(len(content)))
	return agent.ToolResult{
		Content: append([]any{agent.Object{"type": "text", "text": about}}, images...),
		Structured: agent.Object{"type": "parts", "firstPage": first, "file": agent.Object{
			"filePath": name, "originalSize": len(content), "count": len(images), "outputDir": dir,
		}},
	}
}

// pageImages are the blocks of the images in a directory, in the order of their pages: pdftoppm
// writes the numbers with the same length. problem says why the model cannot have them.
func (h *hands) pageImages(dir, path string) (blocks []any, problem string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = root.Close() }() // it was read
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".jpg") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, "", err
		}
		if problem := h.notTaken(model.Image, "A page of "+path, int(info.Size())); problem != "" {
			return nil, problem, nil
		}
		content, err := root.ReadFile(e.Name())
		if err != nil {
			return nil, "", err
		}
		blocks = append(blocks, inlined{Media: "image/jpeg", Data: base64.StdEncoding.EncodeToString(content)}.block())
	}
	return blocks, "", nil
}
