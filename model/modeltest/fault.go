package modeltest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-troupe/troupe/model"
)

// Fault is what goes wrong with one request. The zero value is nothing. With Status or Page
// there is no stream, and the faults of streams do nothing.
type Fault struct {
	NoConnection bool          // the request surely does not arrive
	Delay        time.Duration // until the answer begins
	Status       int           // of HTTP, such as 429, 500 or 529; 0: 200
	Type         string        // of the error with that status; "": the usual one
	Message      string        // of the error with that status; "": it names the status
	RetryAfter   string        // header of that answer; "": none
	Page         string        // the answer is this page of HTML, with status 200

	// Where the stream ends. Bytes count from its first one; 0: it is whole.
	BreakAt  int // the connection breaks
	EndAt    int // it is closed, as if the answer were over
	SilentAt int // nothing more comes, not even the end

	Pause time.Duration // before each event
	Piece int           // at most so many bytes come at once; 0: whole events

	// Faults of the stream's content. Events count from 0; Garbage and Error take the place of an event
	// and of those behind it.
	Garbage   bool // the middle event is not JSON
	Error     bool // the middle event is an error: the provider is overloaded
	Swapped   bool // of each two events, the second comes first
	Twice     bool // each event comes twice
	Duplicate bool // the middle event comes twice

	// Faults of the model's answer.
	SameID bool   // all calls of the answer have the id of the first
	OldID  bool   // the calls have the id of a call of an earlier answer, if there is one
	Empty  bool   // no block
	Stop   string // why the answer ends, such as max_tokens or refusal; "": as the script says
}

// body is that of an answer with Status.
func (f *Fault) body() string {
	kind := f.Type
	if kind == "" {
		kind = map[int]string{
			http.StatusTooManyRequests: "rate_limit_error", 529: "overloaded_error", http.StatusUnauthorized: "authentication_error",
			http.StatusBadRequest: "invalid_request_error",
		}[f.Status]
	}
	message := cmp.Or(f.Message, fmt.Sprintf("the fault %d", f.Status))
	return string(encoded(object{"type": "error", "error": object{"type": cmp.Or(kind, "api_error"), "message": message}}))
}

// firstID is the id that the calls of an answer have with OldID; "": that of the script.
func (f *Fault) firstID(r *Request) string {
	if !f.OldID {
		return ""
	}
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if b.Kind == model.ToolUse {
				return b.ID
			}
		}
	}
	return ""
}

// events has the faults of the stream in its events.
func (f *Fault) events(r *Request, all [][]byte) [][]byte {
	middle := len(all) / 2
	switch {
	case f.Garbage:
		all = append(all[:middle:middle], []byte("data: {\"type\":<html>\n\n"))
	case f.Error && r.API == "openai":
		all = append(all[:middle:middle], []byte(`data: {"error":{"type":"overloaded","message":"Overloaded"}}`+"\n\n"))
	case f.Error:
		all = append(all[:middle:middle], []byte("event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n\n"))
	}
	var sent [][]byte
	for i := 0; i < len(all); i++ {
		switch {
		case f.Swapped && i+1 < len(all):
			sent = append(sent, all[i+1], all[i])
			i++
		case f.Twice, f.Duplicate && i == middle:
			sent = append(sent, all[i], bytes.Clone(all[i]))
		default:
			sent = append(sent, all[i])
		}
	}
	return sent
}
