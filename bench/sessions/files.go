package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dir is the directory whose sessions are made.
const dir = "/bench/project"

// folder is its folder in the configuration directory.
const folder = "projects/-bench-project"

// sessionID returns the id of the i-th session.
func sessionID(i int) string { return fmt.Sprintf("5e550000-0000-4000-8000-%012d", i) }

// writeSessions makes n sessions of some turns each, 16 to 32 KB; every tenth has 160 KB.
func writeSessions(root string, n int) (bytes int64, err error) {
	if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
		return 0, err
	}
	for i := range n {
		turns := 6 + i%6
		if i%10 == 0 {
			turns = 60
		}
		file := filepath.Join(root, folder, sessionID(i)+".jsonl")
		size, err := writeSession(file, sessionID(i), turns, 1200)
		if err != nil {
			return 0, err
		}
		bytes += size
		at := time.Unix(1790000000+int64(i), 0)
		if err := os.Chtimes(file, at, at); err != nil {
			return 0, err
		}
	}
	return bytes, nil
}

// writeTranscript makes one session of at least size bytes.
func writeTranscript(root, id string, size int64) (int64, error) {
	const each = 9000 // of a turn, about
	if err := os.MkdirAll(filepath.Join(root, folder), 0o700); err != nil {
		return 0, err
	}
	return writeSession(filepath.Join(root, folder, id+".jsonl"), id, int(size/each)+1, 7000)
}

// writeSession writes turns of five lines: a prompt, an answer with a tool call in two
// lines, a result of the given size, and the end of the answer.
func writeSession(file, id string, turns, result int) (int64, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20) // keeps its error until Flush
	code := strings.Repeat(`\tif err != nil {\n\t\treturn fmt.Errorf(\"reading %s: %w\", name, err)\n\t}\n`, result/85+1)
	parent, n := "null", 0
	line := func(typ, rest string) {
		n++
		uuid := fmt.Sprintf("%08d-0000-4000-8000-%s", n, id[24:])
		_, _ = fmt.Fprintf(w, `{"parentUuid":%s,"isSidechain":false,"type":%q,%s,"uuid":%q,"timestamp":"2026-11-22T00:%02d:%02d.000Z","userType":"external","entrypoint":"cli","cwd":%q,"sessionId":%q,"version":"2.1.329","gitBranch":"main"}`+"\n",
			parent, typ, rest, uuid, n/60%60, n%60, dir, id)
		parent = `"` + uuid + `"`
	}
	const usage = `"stop_reason":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":11000,"output_tokens":5}`
	for t := range turns {
		line("user", fmt.Sprintf(`"message":{"role":"user","content":[{"type":"text","text":"Prompt %d: find the mistake"}]}`, t))
		line("assistant", fmt.Sprintf(`"message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I look at the file."}],%s}`, t, usage))
		line("assistant", fmt.Sprintf(`"message":{"id":"msg_%d","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"file_path":"/bench/project/main.go"}}],%s}`, t, t, usage))
		line("user", fmt.Sprintf(`"message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":"%s"}]},"toolUseResult":{"type":"text"}`, t, code))
		line("assistant", fmt.Sprintf(`"message":{"id":"msg_%db","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"The error is wrapped twice."}],%s}`, t, usage))
		_, _ = fmt.Fprintf(w, `{"type":"last-prompt","lastPrompt":"Prompt %d: find the mistake","leafUuid":%s,"sessionId":%q}`+"\n", t, parent, id)
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Close()
}
