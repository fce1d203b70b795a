package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// Limits of what Read shows, as observed on Claude Code 2.1.329.
const (
	uncounted = 25000 // characters of a text whose tokens are not counted
	maxTokens = 25000 // tokens of one that is shown
	pageShare = 0.85  // of a page's limit that is used, since tokens are not spread evenly
)

// counter is a model whose endpoint may count tokens.
type counter interface {
	CountTokens(ctx context.Context, model, text string) (int, error)
}

// tokens asks the endpoint for the tokens of a text, if that may matter; 0: the number is not
// known. Many servers do not count: one that refuses, or says nothing, is not asked again.
func (h *hands) tokens(ctx context.Context, text string) int {
	c, ok := h.model.(counter)
	if !ok || utf8.RuneCountInString(text) <= uncounted {
		return 0
	}
	h.mu.Lock()
	name, countless := h.name, h.countless
	h.mu.Unlock()
	if countless {
		return 0
	}
	n, err := c.CountTokens(ctx, name, text)
	if err == nil {
		return n
	}
	e, refused := errors.AsType[*model.Error](err)
	if errors.Is(err, errors.ErrUnsupported) || refused && (!e.Temporary() || errors.Is(err, model.ErrSilent)) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.countless = true
	}
	return 0
}

// firstPage is the part of a text that fits if all of it has so many tokens: its first lines, or the
// first characters of its only line. It also says what the model has to know of it. first is
// the number of the text's first line, and total how many the file has.
func firstPage(path, text string, first, total, tokens int) (part string, lines int, note string) {
	share := pageShare * maxTokens / float64(tokens)
	count := strings.Count(text, "\n") + 1
	lines = int(float64(count) * share)
	what, next := fmt.Sprintf("lines %d-%d of %d total", first, first+lines-1, total), fmt.Sprintf("Call Read with offset=%d limit=%d for the next page, or Grep for what you look for.", first+lines, lines)
	if lines > 0 {
		part = lineRange(text, 1, lines)
	} else {
		line, _, _ := strings.Cut(text, "\n")
		all := []rune(line)
		n := min(int(float64(utf8.RuneCountInString(text))*share), len(all))
		part, lines = string(all[:n]), 1
		what, next = fmt.Sprintf("the first %d of %d characters of line %d", n, len(all), first), "Call Grep for what you look for, or a command that cuts the line."
	}
	return part, lines, fmt.Sprintf("[Truncated: PARTIAL view — %s: showing %s (%d tokens, cap %d). %s You do not know the rest.]", path, what, tokens, maxTokens, next)
}

// tooManyTokens is the error of a part that the model asked for.
func tooManyTokens(n int) agent.ToolResult {
	return failure("File content (%d tokens) exceeds maximum allowed tokens (%d). %s", n, maxTokens, readLess)
}

const readLess = "Use offset and limit parameters to read specific portions of the file, or search for specific content instead of reading the whole file. To read it anyway, up to what still fits in your context, call Read again with allow_large: true — only if you genuinely need all of it or the user asked for the whole file."
