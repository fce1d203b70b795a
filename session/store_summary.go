package session

import (
	"context"
	"encoding/json"
	"time"
)

// StoreSummaries is implemented by a [Store] that keeps a summary of each session, so that
// sessions can be listed without loading them. transcript.FoldSummary makes the summaries:
// call it in Append, for keys without a Subpath, with the entries that were new.
type StoreSummaries interface {
	// Summaries returns the summaries of a project's sessions, in any order. A summary that
	// is older than the session, or missing, makes the caller load the session.
	Summaries(ctx context.Context, project string) ([]StoredSummary, error)
}

// StoredSummary is one row of [StoreSummaries].Summaries.
type StoredSummary struct {
	ID string // of the session, as in [StoredSession]
	// Modified is the time that [StoredSession] had when the summary was made.
	Modified time.Time
	// Data is a JSON object from transcript.FoldSummary. A store keeps it as it is.
	Data json.RawMessage
}
