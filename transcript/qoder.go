package transcript

import (
	"bytes"
	"encoding/json"
)

// shownByQoder decides which messages Qoder's SDK shows.
func (t *Transcript) shownByQoder(o ShownOptions) []shown {
	var k *links
	switch {
	case o.agent != nil:
		k = t.talkOnly()
	case o.Historical:
		k = t.acrossCompactions()
	default:
		k = t.relink()
	}
	leaf := k.activeLeaf()
	if leaf < 0 {
		return nil
	}
	var out []shown
	for _, at := range k.withSiblings(k.chain(leaf)) {
		f := t.nodes[at].flags
		if f.has(isTeam|isMeta) || f.has(isSide) && o.agent == nil {
			continue
		}
		if o.Historical && f.has(isBoundary|isSummary) {
			continue
		}
		if f.talk() || f.has(isSystem) && o.System {
			out = append(out, shown{node: at})
		}
	}
	return out
}

// activeLeaf is the leaf that the last active-leaf line names, else the newest message at
// an end of the tree. Unlike Claude's SDK, Qoder's goes by the place of the message, not of
// what hangs below it, and a child outside of the main conversation counts as a child.
func (k *links) activeLeaf() int32 {
	switch k.t.activeSet {
	case -1:
		return none
	case 1:
		if at, ok := k.t.byID[k.t.active]; ok {
			return at
		}
	}
	return k.anyLeaf()
}

// talkOnly cuts the chain at every line that is not a message, as Qoder's reader of
// subagents does.
func (t *Transcript) talkOnly() *links {
	k := &links{t: t, up: make([]int32, len(t.nodes))}
	for i := range t.nodes {
		k.up[i] = t.nodes[i].up
		if up := k.up[i]; up >= 0 && !t.nodes[up].flags.talk() {
			k.up[i] = missing
		}
	}
	return k
}

// acrossCompactions continues the chain of a boundary with the line that preceded it.
func (t *Transcript) acrossCompactions() *links {
	k := &links{t: t, up: make([]int32, len(t.nodes))}
	for i := range t.nodes {
		k.up[i] = t.nodes[i].up
		if t.nodes[i].flags.has(isBoundary) && k.up[i] < 0 {
			k.up[i] = t.nodes[i].source // see addNode: the logical parent
		}
	}
	return k
}

// addQoder adds what only Qoder's messages have.
func (m *Message) addQoder(l *Line) {
	m.ToolUseResult, m.APIError = l.head.result, isTrue(l.head.apiError)
	if m.Type == typeSystem {
		m.Subtype = l.Subtype()
		if isObject(l.head.compact) {
			m.CompactMetadata = compactInSnakeCase(l.head.compact)
		}
	}
}

// compactInSnakeCase writes what Qoder's SDK shows of a compaction.
func compactInSnakeCase(metadata []byte) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	add := func(object []byte, name, as string) {
		if v := get(object, name); v != nil {
			if b.Bytes()[b.Len()-1] != '{' {
				b.WriteByte(',')
			}
			b.WriteString(`"` + as + `":`)
			b.Write(v)
		}
	}
	add(metadata, "trigger", "trigger")
	add(metadata, "preTokens", "pre_tokens")
	add(metadata, "postTokens", "post_tokens")
	add(metadata, "durationMs", "duration_ms")
	if s := get(metadata, "preservedSegment"); isObject(s) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"preserved_segment":{`)
		add(s, "headUuid", "head_uuid")
		add(s, "anchorUuid", "anchor_uuid")
		add(s, "tailUuid", "tail_uuid")
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}
