package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/transcript"
)

// makeHome makes a home with one session. It was rewound to its first answer, the pointer
// of the agent still names that answer, and its last line is torn.
func makeHome() (string, error) {
	home, err := os.MkdirTemp("", "troupe-example")
	if err != nil {
		return "", err
	}
	const dir, id = "/work/shop", "5e550000-0000-4000-8000-000000000001"
	var b strings.Builder
	line := func(n int, parent, typ, text string) {
		if parent != "null" {
			parent = `"` + uuid(parent) + `"`
		}
		fmt.Fprintf(&b, `{"type":%q,"uuid":%q,"parentUuid":%s,"isSidechain":false,"message":{"id":"msg_%d","role":%q,"content":[{"type":"text","text":%q}]},"sessionId":%q,"cwd":%q,"timestamp":"2026-11-22T09:00:0%d.000Z"}`+"\n",
			typ, uuid(fmt.Sprint(n)), parent, n, typ, text, id, dir, n)
	}
	line(1, "null", "user", "Name the shop")
	line(2, "1", "assistant", "Blue Door")
	line(3, "2", "user", "Another one")
	line(4, "3", "assistant", "Corner Stone")
	fmt.Fprintf(&b, `{"type":"last-prompt","lastPrompt":"Another one","leafUuid":%q,"sessionId":%q}`+"\n", uuid("4"), id)
	line(5, "2", "user", "A shorter one")
	line(6, "5", "assistant", "Door")
	b.WriteString(`{"type":"us`)
	folder := filepath.Join(home, ".claude", "projects", transcript.FolderName(transcript.Claude, dir))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	return home, os.WriteFile(filepath.Join(folder, id+".jsonl"), []byte(b.String()), 0o600)
}

func uuid(n string) string { return "00000000-0000-4000-8000-00000000000" + n }
