package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// entrySum knows an entry by what it says: a store may change the space and the order of
// members.
type entrySum [16]byte

func sumOf(raw []byte) (sum entrySum) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if sorted, err := json.Marshal(v); err == nil {
			raw = sorted
		}
	}
	all := sha256.Sum256(raw)
	return entrySum(all[:16])
}

// missing returns which lines of a file, by number, the store lacks, or nil. The file's
// lines without a uuid, such as titles, of which the last one counts, are taken only if they
// come after all that the store has. Nothing is missing where the store has messages that
// the file lacks: another machine has continued the session.
func (i *importer) missing(name string, key session.StoreKey) (map[int]bool, error) {
	have := make(map[entrySum]int)
	chain := make(map[entrySum]bool) // of them, messages
	for e, err := range i.store.Load(i.ctx, key) {
		if err != nil {
			return nil, storeError("load", key, err)
		}
		sum := sumOf(e)
		have[sum]++
		var head struct {
			UUID   string          `json:"uuid"`
			Parent json.RawMessage `json:"parentUuid"`
		}
		if json.Unmarshal(e, &head) == nil && head.UUID != "" && head.Parent != nil {
			chain[sum] = true
		}
	}
	if err := i.ctx.Err(); err != nil {
		return nil, err
	}
	out := make(map[int]bool)
	var late []int // without a uuid, since the last line that the store has
	err := i.lines(name, func(l *Line) {
		if strings.HasPrefix(l.Type(), "api-request") { // the agent does not report them
			return
		}
		sum := sumOf(l.Raw)
		delete(chain, sum)
		switch {
		case have[sum] > 0:
			late = late[:0]
			if l.UUID() == "" { // the same uuid and content is one entry, however often it comes
				have[sum]--
			}
		case l.UUID() != "":
			out[l.Number] = true
		default:
			late = append(late, l.Number)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(chain) > 0 {
		i.Foreign += len(chain)
		return nil, nil
	}
	for _, n := range late {
		out[n] = true
	}
	return out, nil
}

// lines calls f with each line of a file that is an object.
func (i *importer) lines(name string, f func(*Line)) error {
	file, err := i.open(name)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	defer closeQuietly(file)
	d := NewDecoder(file)
	for {
		l, err := d.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // the decoder's own
			return nil
		case err != nil:
			return fmt.Errorf("transcript: %s cannot be read: %w", name, err)
		case l.Damage == "":
			f(l)
		}
	}
}

// hasLast reports whether the last description of a subagent in the store is this one.
func (i *importer) hasLast(key session.StoreKey, entry json.RawMessage) (bool, error) {
	last := entrySum{}
	for e, err := range i.store.Load(i.ctx, key) {
		if err != nil {
			return false, storeError("load", key, err)
		}
		if parseLine(e).Type() == typeAgentMetadata {
			last = sumOf(e)
		}
	}
	return last == sumOf(entry), nil
}
