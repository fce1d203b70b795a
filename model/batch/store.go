package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// kept is how long the endpoints keep answers: Anthropic says 29 days, OpenAI a month.
const kept = 29 * 24 * time.Hour

// storeName is the file in Config.Dir.
const storeName = "batches.jsonl"

// record is a line of the store. The first member that is set says what it is about.
type record struct {
	Sending string    `json:"sending,omitempty"` // a batch of that tag may be made from now on
	Model   string    `json:"model,omitempty"`
	At      time.Time `json:"at,omitzero"`
	IDs     []string  `json:"ids,omitempty"`
	Sent    string    `json:"sent,omitempty"` // the batch of that tag is there
	Batch   string    `json:"batch,omitempty"`
	Never   string    `json:"never,omitempty"` // it was not made, or is not there any more
}

// store is the file. Without a directory it keeps nothing.
type store struct {
	name  string
	files session.Files
	torn  bool // the last line may be cut off
}

// load reads the store once.
func (c *Client) load() error {
	if c.store != nil {
		return nil
	}
	s := &store{files: c.cfg.Files}
	if c.cfg.Dir != "" {
		s.name = filepath.Join(c.cfg.Dir, storeName)
		list, err := s.read(c.cfg.Clock.Now().Add(-kept))
		if err != nil {
			return &model.Error{Class: model.Invalid, RetryAfter: -1, Final: true, Message: "the record of batches cannot be read", Err: err}
		}
		for _, b := range list {
			c.batches[b.tag] = b
			for _, id := range sortedIDs(b) {
				e := b.entries[id]
				if known := c.open[e.hash]; len(known) > 0 && known[0].of != b { // an earlier request was answered, or its answer was of no use
					for _, o := range known {
						if delete(o.of.entries, o.id); len(o.of.entries) == 0 {
							delete(c.batches, o.of.tag)
						}
					}
					delete(c.open, e.hash)
				}
				c.open[e.hash] = append(c.open[e.hash], e)
			}
		}
	}
	c.store = s
	return nil
}

// read returns the batches that may be there, in the order of their submission. A line older than
// since is dropped from the file, and so is a line that a death has cut off.
func (s *store) read(since time.Time) ([]*batch, error) {
	content, err := os.ReadFile(s.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*batch
	var keep bytes.Buffer
	known := map[string]*batch{}
	for line := range bytes.Lines(content) {
		var r record
		if !bytes.HasSuffix(line, []byte{'\n'}) || json.Unmarshal(line, &r) != nil {
			continue
		}
		switch {
		case r.Sending != "" && r.At.After(since):
			b := &batch{tag: r.Sending, model: r.Model, at: r.At, size: len(r.IDs), earlier: true, entries: map[string]*entry{}}
			for _, id := range r.IDs {
				hash, rest, _ := strings.Cut(id, "-")
				_, b.mark, _ = strings.Cut(rest, "-")
				b.entries[id] = &entry{hash: hash, id: id, of: b}
			}
			known[b.tag] = b
			list = append(list, b)
		case known[r.Sent] != nil:
			known[r.Sent].id = r.Batch
		case known[r.Never] != nil:
			known[r.Never].entries = nil
		default:
			continue
		}
		keep.Write(line)
	}
	var there []*batch
	for _, b := range list {
		if len(b.entries) > 0 {
			there = append(there, b)
		}
	}
	if keep.Len() < len(content) {
		err = durable.WriteFile(s.files, s.name, durable.Bytes(keep.Bytes()))
	}
	return there, err
}

func (s *store) sending(b *batch) error {
	return s.append(record{Sending: b.tag, Model: b.model, At: b.at, IDs: sortedIDs(b)})
}

func (s *store) sent(b *batch) { _ = s.append(record{Sent: b.tag, Batch: b.id}) }

func (s *store) never(b *batch) { _ = s.append(record{Never: b.tag}) }

// append adds a line that is durable when it returns.
func (s *store) append(r record) error {
	if s.name == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the record of a batch: %w", err)
	}
	dir := filepath.Dir(s.name)
	if err := s.files.Mkdir(dir, 0o700); err != nil {
		return err
	}
	f, err := s.files.Append(s.name)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if s.torn {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil && r.Sending != "" {
		err = s.files.SyncDir(dir)
	}
	s.torn = err != nil
	return err
}
