package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxDiff is the longest text of [Diff], in bytes.
const maxDiff = 64 << 10

// Diff returns what a call of the tools Edit, MultiEdit or Write would change, as a unified diff
// for people; "" for another call, and for an input that does not decode. It reads no file: the
// lines of a hunk are those of the call, and their numbers are not those of the file. A diff
// above 64 KiB ends with a line that says so.
func Diff(tool string, input json.RawMessage) string {
	type edit struct {
		Old string `json:"old_string"`
		New string `json:"new_string"`
	}
	var in struct {
		edit
		Path    string  `json:"file_path"`
		Content *string `json:"content"`
		Edits   []edit  `json:"edits"`
	}
	if json.Unmarshal(input, &in) != nil || in.Path == "" {
		return ""
	}
	switch tool {
	case "Edit":
		in.Edits = []edit{in.edit}
	case "Write":
		if in.Content == nil {
			return ""
		}
		in.Edits = []edit{{New: *in.Content}}
	case "MultiEdit":
	default:
		return ""
	}
	var b strings.Builder
	from := "a/" + strings.TrimPrefix(in.Path, "/")
	if tool == "Write" {
		from = "/dev/null"
	}
	fmt.Fprintf(&b, "--- %s\n+++ b/%s\n", from, strings.TrimPrefix(in.Path, "/"))
	for _, e := range in.Edits {
		hunk(&b, linesOf(e.Old), linesOf(e.New))
	}
	if b.Len() > maxDiff {
		text := b.String()[:maxDiff]
		return text[:strings.LastIndexByte(text, '\n')+1] + fmt.Sprintf("\\ %d bytes of the diff are not shown\n", b.Len()-maxDiff)
	}
	return b.String()
}

// linesOf are the lines of a text, without their ends.
func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunk writes one change: the lines that both have at the beginning and the end, and all between.
func hunk(b *strings.Builder, before, after []string) {
	head, tail := 0, 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	fmt.Fprintf(b, "@@ -1,%d +1,%d @@\n", len(before), len(after))
	write := func(sign string, lines []string) {
		for _, line := range lines {
			b.WriteString(sign + line + "\n")
		}
	}
	write(" ", before[:head])
	write("-", before[head:len(before)-tail])
	write("+", after[head:len(after)-tail])
	write(" ", slices.Clip(before[len(before)-tail:]))
}
