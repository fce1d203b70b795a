package scripted

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// DirHistory stores sessions in files of mode 0600 in a directory.
type DirHistory string

// Load implements [agent.History].
func (d DirHistory) Load(path string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(d), filepath.FromSlash(path)))
}

// Append implements [agent.History].
func (d DirHistory) Append(path string, line []byte) error {
	name := filepath.Join(string(d), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keep a session: %w", err)
	}
	return appendTo(name, line)
}

func appendTo(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b); err != nil {
		_ = f.Close() // the write's error says more
		return err
	}
	return f.Close()
}

// lagging is a history that lags.
type lagging struct {
	agent.History
	lag time.Duration
}

// Lag is how long after the agent has written a line the store has it.
func (l lagging) Lag() time.Duration { return l.lag }

// MemoryHistory stores sessions in memory. The zero value is empty and ready to use. It
// is safe for concurrent use.
type MemoryHistory struct {
	mu    sync.Mutex
	files map[string][]byte
}

// Load implements [agent.History].
func (m *MemoryHistory) Load(path string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[path]
	if !ok {
		return nil, &fs.PathError{Op: "load", Path: path, Err: fs.ErrNotExist}
	}
	return slices.Clone(b), nil
}

// Append implements [agent.History].
func (m *MemoryHistory) Append(path string, line []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string][]byte{}
	}
	m.files[path] = append(m.files[path], line...)
	return nil
}
