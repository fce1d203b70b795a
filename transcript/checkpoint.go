package transcript

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
)

// Checkpoint is the state of the files that the agent's tools had changed, at one user
// message. Only what the tools Write and Edit touched is tracked; changes of shell
// commands are not, and cannot be undone.
type Checkpoint struct {
	MessageUUID string // of the user line; Client.RewindFiles takes it
	Timestamp   string // RFC 3339
	// Files has the backup of each tracked file, by path: relative to the session's
	// directory where possible. A backup without a file name says that the file did not
	// exist. The backups are in file-history/<session>/ in the configuration directory.
	Files map[string]Backup
}

// Checkpoints reads all checkpoints of the session, oldest first; none if checkpointing
// was off. It reads the file once. The error is the file's.
func (t *Transcript) Checkpoints() ([]Checkpoint, error) {
	var out []Checkpoint
	at := map[string]int{}
	d := NewDecoder(io.NewSectionReader(t.r, 0, t.size))
	for {
		l, err := d.Next()
		if err == io.EOF { //nolint:errorlint // the decoder's own
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch l.Type() {
		case typeFileHistorySnapshot:
			var e snapshotEntry
			if json.Unmarshal(l.Raw, &e) != nil {
				continue // a shape that this release does not know
			}
			files := maps.Clone(e.Snapshot.Backups)
			if files == nil {
				files = map[string]Backup{}
			}
			c := Checkpoint{MessageUUID: e.MessageID, Timestamp: e.Snapshot.Timestamp, Files: files}
			if i, again := at[e.MessageID]; again && e.IsUpdate {
				out[i] = c
				continue
			}
			at[e.MessageID] = len(out)
			out = append(out, c)
		case typeFileHistoryDelta:
			var e snapshotDeltaEntry
			if json.Unmarshal(l.Raw, &e) != nil {
				continue
			}
			// The file did not change before, so earlier checkpoints have the same state.
			if i, ok := at[e.SnapshotMessageID]; ok {
				if _, there := out[i].Files[e.Path]; !there {
					out[i].Files[e.Path] = e.Backup
				}
			}
		}
	}
}

// Paths returns the tracked files, sorted.
func (c *Checkpoint) Paths() []string { return slices.Sorted(maps.Keys(c.Files)) }
