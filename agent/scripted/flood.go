package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// The size of a flood's writes, and how much it writes between two checks of the host's
// input.
const (
	floodBatch = 64 << 10
	floodLook  = 1 << 20
)

func (s *Flood) play(p *player) error {
	line, err := json.Marshal(agent.Object{
		"type": "stream_event", "session_id": p.SessionID(), "parent_tool_use_id": nil, "uuid": p.UUID(),
		"event": agent.Object{
			"type": "content_block_delta", "index": 0,
			"delta": agent.Object{"type": "text_delta", "text": strings.Repeat("x", s.Size)},
		},
	})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	batch := bytes.Repeat(line, max(floodBatch/len(line), 1))

	p.Flush()
	began := p.Elapsed()
	for left, unseen := s.Count, 0; left > 0; {
		n := min(left, len(batch)/len(line))
		p.Lane.Raw(batch[:n*len(line)])
		p.Flush()
		left -= n
		if unseen += n * len(line); unseen >= floodLook {
			unseen = 0
			if err := p.Strand().Yield(); err != nil {
				return err
			}
		}
	}
	return p.Text(fmt.Sprintf("%d ns", (p.Elapsed() - began).Nanoseconds()))
}
