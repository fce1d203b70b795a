package ui

import (
	"encoding/json"
	"net/http"

	"github.com/agent-troupe/troupe/base/shown"
)

// writeJSON answers with a value, whose text of agents is harmless on a terminal, too.
func writeJSON(w http.ResponseWriter, v any) {
	raw, err := encode(v)
	if err != nil {
		http.Error(w, "the answer cannot be written as JSON: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(raw, '\n')) //nolint:gosec // JSON, with its type and nosniff; an error means that the client has left
}

// encode is a value as one line of JSON without control, zero-width and direction characters.
func encode(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	return shown.JSON(raw), err
}

// missing answers 404 and names what was asked for.
func missing(w http.ResponseWriter, what string) {
	http.Error(w, "there is no "+what+" with this id, or it has ended", http.StatusNotFound)
}
