package runtime

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// historyTail is how much of the end of a transcript is read. The turn that ran is there.
const historyTail = 16 << 20

// history returns the function that reads the transcripts of the session's agent after
// its death; nil if they cannot be found, because the agent stores none or may run
// elsewhere.
func (s *Session) history(spec *Spec) func(context.Context, *dialect.Input, string, machine.Wanted) machine.History {
	if spec.Options.Spawner != nil || spec.Options.MaxRestarts == 0 {
		return nil
	}
	open := s.transcriptFile()
	if spec.Program != nil {
		open = s.storedIn(spec.Program)
	}
	if open == nil {
		return nil
	}
	return func(ctx context.Context, in *dialect.Input, id string, wanted machine.Wanted) machine.History {
		file, whole, err := open(in, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return machine.History{Known: true, Missing: true}
		case err != nil:
			return machine.History{}
		}
		defer func() { _ = file.Close() }() // it was only read
		return scanHistory(ctx, file, whole, wanted)
	}
}

// opened opens the end of a session's transcript. whole: it is all of it. Without a file
// the error wraps fs.ErrNotExist.
type opened func(in *dialect.Input, id string) (file io.ReadCloser, whole bool, err error)

// storedIn opens the transcripts of an agent in memory.
func (s *Session) storedIn(program agent.Program) opened {
	archive, ok := program.(agent.Archive)
	if !ok {
		return nil
	}
	return func(in *dialect.Input, id string) (io.ReadCloser, bool, error) {
		launch, err := s.dialect.Launch(in)
		if err != nil {
			return nil, false, err
		}
		content, err := archive.ReadSession(agent.Launch{Dir: launch.Dir, Env: environment(launch, in.ParentEnv)}, id)
		return inMemory{bytes.NewReader(content)}, true, err
	}
}

// transcriptFile opens the transcripts of an agent that is a process of this machine. Like
// the agent, it looks in the folders of all directories.
func (s *Session) transcriptFile() opened {
	d, ok := s.dialect.(dialect.Transcriber)
	if !ok {
		return nil
	}
	return func(in *dialect.Input, id string) (io.ReadCloser, bool, error) {
		at := d.Transcripts(in) // a private directory, perhaps
		if at.Dir == "" || id != filepath.Base(id) {
			return nil, false, errElsewhere
		}
		folders, err := os.ReadDir(at.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
		for _, folder := range folders {
			file, err := openRead(filepath.Join(at.Dir, folder.Name(), id+".jsonl"))
			if errors.Is(err, fs.ErrNotExist) || err != nil && !folder.IsDir() {
				continue
			}
			return endOf(file, err)
		}
		if ranHere(at.Live, id) {
			return nil, false, fs.ErrNotExist
		}
		return nil, false, errElsewhere
	}
}

// errElsewhere says that the agent may have stored its session in another place: its program
// may be a script that runs it in a container.
var errElsewhere = errors.New("the transcript's place is not known")

// ranHere reports whether a process of the session has used the directory, and was killed.
func ranHere(live, id string) bool {
	names, _ := filepath.Glob(filepath.Join(live, "*.json")) // its only error is one of the pattern
	for _, name := range names {
		var process struct {
			SessionID string `json:"sessionId"`
		}
		if content, err := readSmall(name); err == nil && protocol.Unmarshal(content, &process) == nil && process.SessionID == id {
			return true
		}
	}
	return false
}

// openRead opens a file to read it. The directory is the agent's, who may have put a pipe
// there: to open one would wait for a writer.
func openRead(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readSmall reads a file that has a few fields.
func readSmall(name string) ([]byte, error) {
	const most = 64 << 10
	file, err := openRead(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return nil, errNoFile
	}
	return io.ReadAll(io.LimitReader(file, most))
}

var errNoFile = errors.New("it is no file, or too large")

// endOf goes to the end of a file that was opened.
func endOf(file *os.File, err error) (io.ReadCloser, bool, error) {
	if err != nil {
		return nil, false, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	whole := err != nil || info.Size() <= historyTail
	if !whole {
		_, err = file.Seek(-historyTail, io.SeekEnd)
	}
	if err != nil {
		return nil, false, errors.Join(err, file.Close())
	}
	return file, whole, nil
}

// scanHistory looks for the wanted messages. The file may be damaged anywhere: damaged
// lines are skipped.
func scanHistory(ctx context.Context, file io.Reader, whole bool, wanted machine.Wanted) machine.History {
	h := machine.History{Known: true}
	for line, err := range transcript.NewDecoder(file).Lines() {
		if err != nil || ctx.Err() != nil {
			return machine.History{}
		}
		for _, id := range wanted.Messages { // an attachment names the message that it is of
			if bytes.Contains(line.Raw, []byte(`"`+id+`"`)) {
				h.Messages = add(h.Messages, id)
			}
		}
		if line.Damage != "" || line.Type() != "user" && line.Type() != "assistant" {
			continue
		}
		if id := line.UUID(); slices.Contains(wanted.Shown, id) {
			h.Shown = add(h.Shown, id)
		}
		h = addTools(h, line.Raw, wanted.Calls)
	}
	if !whole && len(wanted.Shown) > 0 && len(h.Shown) == 0 { // what was shown may be before the part that was read
		return machine.History{}
	}
	return h
}

// addTools adds what a line has of the tool calls.
func addTools(h machine.History, raw []byte, calls []machine.ToolCall) machine.History {
	if len(calls) == 0 || !bytes.Contains(raw, []byte(`"tool_`)) {
		return h
	}
	var said struct {
		Message struct {
			Content []struct {
				Type      string `json:"type"`
				ID        string `json:"id"`
				ToolUseID string `json:"tool_use_id"`
			} `json:"content"`
		} `json:"message"`
	}
	if protocol.Unmarshal(raw, &said) != nil {
		return h // a content that is a text, among others
	}
	for _, b := range said.Message.Content {
		id := machine.Short(b.ID)
		if b.Type == "tool_result" {
			id = machine.Short(b.ToolUseID)
		}
		if !slices.ContainsFunc(calls, func(c machine.ToolCall) bool { return c.ID == id }) {
			continue
		}
		switch b.Type {
		case "tool_use":
			h.Calls = add(h.Calls, id)
		case "tool_result":
			h.Results = add(h.Results, id)
		}
	}
	return h
}

// add appends what is not there yet.
func add(all []string, one string) []string {
	if slices.Contains(all, one) {
		return all
	}
	return append(all, one)
}
