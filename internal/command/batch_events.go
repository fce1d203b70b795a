package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-troupe/troupe/fleet"
)

// eventFile is the file of --events; nil: none.
type eventFile struct {
	c    *console
	file *os.File

	mu   sync.Mutex
	lost bool // an event could not be written; a reader of the file would not see the gap, so that none follows
}

// checkEvents finds a mistake in --events without making the file.
func (s *settings) checkEvents() error {
	name := s.batch.events
	if name == "" {
		return nil
	}
	st, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(filepath.Dir(name))
	} else if err == nil && st.IsDir() {
		err = fmt.Errorf("%s is a directory", name)
	}
	if err != nil {
		return &usageError{problem: "--events: " + err.Error()}
	}
	return nil
}

// openEvents opens the file of --events.
func (s *settings) openEvents(p process, c *console) (*eventFile, error) {
	if s.batch.events == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}
	f := &eventFile{c: c}
	err := p.unlessEnded(func() error {
		file, err := os.OpenFile(s.batch.events, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return &usageError{problem: "--events: " + err.Error()}
		}
		f.file = file
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (f *eventFile) write(e fleet.Event) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		return
	}
	if err := json.NewEncoder(f.file).Encode(e); err != nil {
		f.fail(err)
	}
}

func (f *eventFile) fail(err error) {
	f.lost = true
	f.c.note("--events: %v; the file lacks the events from here on", err)
}

// close closes the file. A job that went well does not end well without its events.
func (f *eventFile) close(code int) int {
	if f == nil {
		return code
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); err != nil && !f.lost {
		f.fail(err)
	}
	if f.lost && code == exitOK {
		return exitOutput
	}
	return code
}
