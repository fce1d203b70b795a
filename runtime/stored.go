package runtime

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
)

// Transcript opens what the agent has stored of the conversation so far, lines of JSON; the last one
// may still be written. It is there for agents whose files are known and on this machine; without it the
// error matches [fs.ErrNotExist]. It has the whole content of the conversation.
func (s *Session) Transcript() (io.ReadSeekCloser, error) {
	id := s.AgentSessionID()
	open := s.transcriptFile()
	if s.program != nil {
		open = s.storedIn(s.program)
	}
	if open == nil || id == "" {
		return nil, fmt.Errorf("session %s: no transcript is known: %w", s.id, fs.ErrNotExist)
	}
	f, _, err := open(s.core.Input(), id)
	if err != nil {
		return nil, fmt.Errorf("session %s: its transcript: %w: %w", s.id, fs.ErrNotExist, err)
	}
	file, ok := f.(io.ReadSeekCloser)
	if !ok {
		_ = f.Close()
		return nil, fmt.Errorf("session %s: its transcript is elsewhere: %w", s.id, fs.ErrNotExist)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("session %s: its transcript: %w", s.id, err)
	}
	return file, nil
}

// inMemory is a transcript of an agent in this process.
type inMemory struct{ *bytes.Reader }

// Close implements [io.Closer].
func (inMemory) Close() error { return nil }
