package command

import (
	"context"
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// openStore takes the sessions of a command from the store of --store, if there is one.
func (s *settings) openStore(command string) error {
	dir := s.rest.store
	switch {
	case dir == "", command == "import":
		return nil
	case command == "rewind":
		return &usageError{"a session store has no checkpoints of files", "leave --store out"}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &usageError{fmt.Sprintf("--store %s is no directory", printable(dir)), "name the directory of a session store"}
	}
	s.opts.SessionStore = store.NewDir(dir)
	return nil
}

func importSession(ctx context.Context, c *console, s *settings, all *transcript.Sessions) error {
	if s.rest.store == "" {
		return &usageError{"there is no store", "write troupe sessions import ID --store DIR"}
	}
	done, err := all.Import(ctx, s.words[0], store.NewDir(s.rest.store), transcript.ImportOptions{Missing: true})
	if err != nil {
		return err
	}
	if done.Foreign > 0 {
		return fmt.Errorf("the store has %s that the file lacks, since another machine went on with the session; nothing was imported there", shown.Count(done.Foreign, "message"))
	}
	if done.Damaged > 0 {
		c.note("%s that cannot be read %s left out", shown.Count(done.Damaged, "line"), shown.Verb(done.Damaged, "was", "were"))
	}
	c.remark("%s %s imported, as session %s of project %s", shown.Count(done.Entries, "entry"), shown.Verb(done.Entries, "was", "were"), printable(done.Key.Session), printable(done.Key.Project))
	return nil
}
