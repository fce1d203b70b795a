package transcript

import (
	"errors"
	"io"
	"iter"
)

// ShownOptions are the options of [Transcript.Shown]. The zero value is the default of
// the vendors' SDKs.
type ShownOptions struct {
	Limit  int // the most messages; 0 and less: all
	Offset int // messages that are left out from the start; 0 and less: none
	System bool
	// Historical shows, for Qoder, what was before the compactions too, without their
	// boundaries and summaries.
	Historical bool
	// agent is set for the transcript of a subagent.
	agent *agentOf
}

// agentOf says who started a subagent.
type agentOf struct {
	toolUseID, parentAgentID *string
}

// Shown returns the messages as the vendor's SDK shows them (getSessionMessages): the
// newest branch by place in the file, from the last compaction on, without text that the
// agent added. The last-prompt pointer does not count, so this can be another branch than
// the agent resumes; a message whose parent is missing begins the conversation. See
// [Transcript.Resumed] for the other view.
//
// The messages are read from the file one by one while the loop runs. An error is the
// file's, and ends the loop.
func (t *Transcript) Shown(o ShownOptions) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		var list []shown
		if t.vendor == Qoder {
			list = t.shownByQoder(o)
		} else {
			list = t.shownByClaude(o)
		}
		if o.Offset > 0 {
			list = list[min(o.Offset, len(list)):]
		}
		if o.Limit > 0 {
			list = list[:min(o.Limit, len(list))]
		}
		t.yield(list, o.agent, yield)
	}
}

// shown is a message before its line is read.
type shown struct {
	node  int32
	local bool // part of a local command that has ended
}

func (t *Transcript) yield(list []shown, agent *agentOf, yield func(*Message, error) bool) {
	w := window{r: t.r, size: t.size}
	for _, s := range list {
		n := &t.nodes[s.node]
		raw, err := w.read(n.off, int(n.size))
		if err != nil {
			yield(nil, err)
			return
		}
		l := &Line{Raw: raw, Offset: n.off}
		if !l.parseTrusted() {
			yield(nil, errChanged)
			return
		}
		m := t.message(l, n)
		m.LocalCommand = s.local
		if agent != nil {
			m.ParentToolUseID, m.ParentAgentID = agent.toolUseID, agent.parentAgentID
			if t.vendor == Qoder {
				m.Timestamp = "" // Qoder's SDK leaves it out; Line has it
			}
		}
		if !yield(m, nil) {
			return
		}
	}
}

// errChanged: the lines are no longer where the index has them.
var errChanged = errors.New("transcript: the file was changed in another way than by appending while it was read")

// shownByClaude decides which messages Claude's SDK shows.
func (t *Transcript) shownByClaude(o ShownOptions) []shown {
	k := t.relink()
	hidden := k.hideBOM()
	leaf, end := k.leaf()
	if leaf < 0 {
		return nil
	}
	chain := k.withSiblings(k.chain(leaf))
	regular := len(chain)
	if end >= 0 {
		chain = append(chain, k.trailing(leaf, chain)...)
	}
	local := t.localCommands(chain)
	reply := t.followedByReply(chain, local)
	out := make([]shown, 0, len(chain))
	there := map[id]bool{}
	for _, at := range chain {
		there[t.nodes[at].id] = true
	}
	for i, at := range chain {
		n := &t.nodes[at]
		switch {
		case at == hidden, n.flags.has(isTeam | isMeta), n.flags.has(isSide) && o.agent == nil:
			continue
		case n.flags.talk(), n.flags.has(isSystem) && o.System:
		case n.flags.has(isQueued) && (reply[i] || i >= regular):
		default:
			continue
		}
		out = append(out, shown{at, local[i]})
	}
	return out
}

// HasMark reports whether the file begins with a byte order mark. The result of Shown then
// lacks the first line.
func (t *Transcript) HasMark() bool { return len(t.nodes) > 0 && t.nodes[0].flags.has(isBOM) }

// hideBOM takes the line with a byte order mark out of the chain, as Claude's SDK cannot
// read it, and returns it.
func (k *links) hideBOM() int32 {
	for i := range k.t.nodes[:min(1, len(k.t.nodes))] {
		if k.t.nodes[i].flags.has(isBOM) {
			for j := range k.up {
				if k.up[j] == int32(i) {
					k.up[j] = missing
				}
			}
			return int32(i)
		}
	}
	return none
}

// localCommands finds the commands that the agent's program ran without the model, and
// their output: they follow a caveat.
func (t *Transcript) localCommands(chain []int32) []bool {
	out := make([]bool, len(chain))
	caveat, record := false, false
	for i, at := range chain {
		f := t.nodes[at].flags
		switch {
		case f.has(isAssistant):
			caveat, record = false, false
		case !f.has(isUser):
		case f.has(isMeta):
			if f.has(isCaveat) {
				caveat, record = true, false
			}
		case caveat && !record && f.has(isRecord):
			record = true
			out[i] = true
		case caveat && record && f.has(isOutput):
			out[i] = true
		default:
			caveat, record = false, false
		}
	}
	return out
}

// followedByReply says, for each line, whether an answer comes before the next prompt.
func (t *Transcript) followedByReply(chain []int32, local []bool) []bool {
	out := make([]bool, len(chain))
	reply := false
	for i := len(chain) - 1; i >= 0; i-- {
		out[i] = reply
		f := t.nodes[chain[i]].flags
		switch {
		case f.has(isAssistant | isResult):
			reply = true
		case f.has(isUser) && !f.has(isMeta|isSummary) && !local[i]:
			reply = false
		}
	}
	return out
}

// window reads parts of a file that mostly follow each other.
type window struct {
	r    io.ReaderAt
	size int64
	at   int64
	buf  []byte
}

// windowSize is how much a window reads at once.
const windowSize = 256 << 10

// read returns a copy of the bytes at off.
func (w *window) read(off int64, n int) ([]byte, error) {
	if off < w.at || off+int64(n) > w.at+int64(len(w.buf)) {
		want := min(max(int64(n), windowSize), w.size-off)
		if int64(cap(w.buf)) < want {
			w.buf = make([]byte, want)
		}
		w.buf = w.buf[:want]
		w.at = off
		got, err := w.r.ReadAt(w.buf, off)
		w.buf = w.buf[:got]
		if got < n {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF // the file became shorter
			}
			w.buf = w.buf[:0]
			return nil, err
		}
	}
	from := off - w.at
	return append([]byte(nil), w.buf[from:from+int64(n)]...), nil
}
