package embedded

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
)

// space is what the log knows of the room that the conversation takes in the model's window. It
// is folded from the lines, as the conversation is.
type space struct {
	context int // tokens as of the last answer whose usage is known, with it; 0: none is
	since   int // bytes that have come since
	gone    int // tokens that compactions have dropped
	large   []bulk

	words   []string  // what the user has said last, oldest first
	answers []string  // uuids of the lines of the last answer
	asks    []string  // and of those behind it, which ask the next one
	edge    *boundary // a compaction whose summary is the next line; nil: none
	opens   func(transcript string)
}

// boundary is what a line says of a compaction.
type boundary struct {
	uuid       string
	PostTokens int    `json:"postTokens"`
	Dropped    int    `json:"cumulativeDroppedTokens"`
	Transcript string `json:"troupeTranscript"`
	Kept       struct {
		UUIDs []string `json:"uuids"`
	} `json:"preservedMessages"`
}

// upTo is the boundary if the line r is its summary. Without one it has no effect: a death was
// between the two.
func (b *boundary) upTo(r *record) *boundary {
	if b != nil && (!r.IsSummary || r.Parent != b.uuid) {
		return nil
	}
	return b
}

// bulk is a large result of a call.
type bulk struct {
	ID   string `json:"id"`   // of the call
	Line string `json:"line"` // uuid of the line that has it
	At   int    `json:"at"`   // the message that has it, counted from 0
	Size int    `json:"size"` // bytes
}

const (
	bytesPerToken = 4    // as observed on Claude Code 2.1.329
	imageSize     = 6000 // bytes that an image, or a document that is not text, counts for
	minLarge      = 1000 // bytes of a result that is worth leaving out
	maxWords      = 5    // messages of the user that a summary repeats
	maxWord       = 2000 // characters of each of them
	recent        = 6    // messages before the newest answer, of which no result is left out
)

// lineUsage is the usage of an answer, as its lines have it.
type lineUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func weight(blocks []model.Block) (bytes int) {
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Kind == model.Image, b.Kind == model.Document && !isText(b.Content), b.Kind == model.ToolResult && len(b.Content) > imageSize: // with an image in it
			bytes += imageSize
		default:
			bytes += len(b.Text) + len(b.Content) + len(b.Input) + len(b.BadInput)
		}
	}
	return bytes
}

// grew notes what the model is asked in addition.
func (l *log) grew(blocks []model.Block, line string) {
	if len(blocks) == 0 {
		return
	}
	l.asks = append(l.asks, line)
	l.since += weight(blocks)
	for i := range blocks {
		if size := weight(blocks[i : i+1]); blocks[i].Kind == model.ToolResult && size >= minLarge {
			l.large = append(l.large, bulk{blocks[i].ID, line, len(l.messages), size})
		}
	}
}

// answeredWith notes what an answer has used.
func (l *log) answeredWith(blocks []model.Block, u lineUsage, line string) {
	l.answers = append(l.answers, line)
	if n := u.Input + u.Output + u.CacheRead + u.CacheWrite; n > 0 {
		l.context, l.since = n, 0
		return
	}
	l.since += weight(blocks)
}

// newest reports whether the newest part of the conversation begins with an answer, whose calls
// have results now; if not, it is what the user says. A compaction keeps it word for word.
func (l *log) newest() (answer bool) {
	l.endAnswer()
	return len(l.messages) > 0 && slices.ContainsFunc(l.user, func(b model.Block) bool { return b.Kind == model.ToolResult })
}

// older is the conversation without its newest part.
func (l *log) older() [][]byte {
	if l.newest() {
		return l.messages[:len(l.messages)-1]
	}
	return l.messages
}

// kept are the lines of the newest part.
func (l *log) kept() []string {
	if l.newest() {
		return slices.Concat(l.answers, l.asks)
	}
	return slices.Clone(l.asks)
}

// heard notes what the user says.
func (l *log) heard(blocks []model.Block) {
	for i := range blocks {
		if blocks[i].Kind == model.Text && strings.TrimSpace(blocks[i].Text) != "" {
			l.words = append(l.words, short(blocks[i].Text, maxWord))
		}
	}
	l.words = slices.Clone(l.words[max(len(l.words)-maxWords, 0):])
}

// quotes reports whether the newest part has a text of the user's.
func (l *log) quotes(words string) bool {
	return slices.ContainsFunc(l.user, func(b model.Block) bool { return b.Kind == model.Text && short(b.Text, maxWord) == words })
}

// short is a text of at most so many characters.
func short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + fmt.Sprintf(" […%d more characters]", len(r)-most)
	}
	return s
}

// compacted puts the summary in place of all but the newest part of the conversation, as far as
// the boundary before it says that it is kept.
func (l *log) compacted(summary []model.Block) {
	l.endAnswer()
	b := l.edge
	l.edge = nil
	ask := l.codec.Message(&model.Message{Role: model.User, Blocks: summary})
	switch kept := b.Kept.UUIDs; {
	case len(kept) == 0:
		l.messages, l.user, l.answers, l.asks = nil, summary, nil, nil
	case slices.Contains(l.asks, kept[0]) || len(l.messages) == 0:
		l.messages, l.user = nil, append(slices.Clip(summary), l.user...)
	default:
		l.messages = [][]byte{ask, l.messages[len(l.messages)-1]}
	}
	l.asked, l.plan = nil, false
	l.large = slices.DeleteFunc(l.large, func(r bulk) bool {
		return !slices.ContainsFunc(l.user, func(b model.Block) bool { return b.Kind == model.ToolResult && b.ID == r.ID })
	})
	for i := range l.large {
		l.large[i].At = len(l.messages)
	}
	l.context, l.since, l.gone = b.PostTokens, 0, b.Dropped
	if l.opens != nil && b.Transcript != "" {
		l.opens(b.Transcript)
	}
}

// old are the large results that may be left out: the model has read them, and answered since.
func (l *log) old() (list []bulk, saved int) {
	l.endAnswer()
	for _, r := range l.large {
		if r.At < len(l.messages)-1-recent {
			list = append(list, r)
			saved += r.Size - len(stub(r.Line, ""))
		}
	}
	return list, max(saved, 0) / bytesPerToken
}

// stub stands in place of a result that is left out.
func stub(line, transcript string) string {
	return fmt.Sprintf("[This result was left out, to save room. It is in the line with the uuid %s of %s]", line, transcript)
}

// leaveOut puts stubs in place of results.
func (l *log) leaveOut(results []bulk, transcript string) {
	l.endAnswer()
	l.messages = slices.Clone(l.messages) // a request may have the others
	for i := range l.messages {
		before := len(l.messages[i])
		l.messages[i] = l.codec.Results(l.messages[i], func(id string) (string, bool) {
			at := slices.IndexFunc(results, func(r bulk) bool { return r.At == i && r.ID == id })
			if at < 0 {
				return "", false
			}
			return stub(results[at].Line, transcript), true
		})
		l.context = max(l.context-max(before-len(l.messages[i]), 0)/bytesPerToken, 0)
	}
	l.large = slices.DeleteFunc(l.large, func(r bulk) bool { return slices.Contains(results, r) })
	if l.opens != nil {
		l.opens(transcript)
	}
}

// tokens estimates the tokens of the conversation. own are the bytes of what precedes it in
// requests.
func (l *log) tokens(own int) int {
	n := l.since
	if l.context == 0 { // no answer has said it
		n += own
	}
	return l.context + (n+bytesPerToken/2)/bytesPerToken
}
